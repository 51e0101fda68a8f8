"""`cache`: what is in the cache, and what leaves it when asked."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from bot.compiler.storage import KINDS, Entry, entries, evict
from bot.render.text.filters import human
from bot.study.cache_limit import removed_words


def show(cache: Path) -> str:
    """A table: what is in the cache, how many, how large, and when the first and the last was used."""
    stored = entries(cache)
    rows = [_row(words, [entry for entry in stored if entry.kind == kind]) for kind, words in KINDS.items()]
    total = _row("all", stored)
    return "\n".join([str(cache), _HEAD, *(row for row in rows if row), total or "empty"])


_HEAD = f"{'what':14}{'entries':>9}{'size':>12}  {'unused since':18}{'last used':18}".rstrip()


def _row(words: str, stored: list[Entry]) -> str:
    if not stored:
        return ""
    first, last = (datetime.fromtimestamp(choose(entry.used_ns for entry in stored) / 10**9) for choose in (min, max))
    total = human(sum(entry.size_bytes for entry in stored))
    return f"{words:14}{len(stored):>9,}{total:>12}  {first:%Y-%m-%d %H:%M}  {last:%Y-%m-%d %H:%M}"


def prune(cache: Path, limit_bytes: int) -> str:
    """Let go of what is above the limit; what went, and what is left."""
    gone, remaining = evict(cache, limit_bytes)
    went = f"removed {removed_words(gone)}" if gone else "nothing was removed"
    above = f", above the limit of {human(limit_bytes)}: compilers in use stay" if remaining > limit_bytes else ""
    return f"{went}; the cache holds {human(remaining)}{above}"
