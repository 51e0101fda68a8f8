"""The cache as people see it: its limit, what is in it, and what left it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from bot.compiler.caches.storage import KINDS, Entry, entries, evict
from bot.errors import UsageError
from bot.inputs.units import parse_amount
from bot.render.text.filters import human, plural

DEFAULT_LIMIT = "5GiB"
_CLOCKS_APART_NS = 10**9
"""The file system's clock may be behind the one that this program reads."""


def parse_limit(text: str) -> int:
    """A limit such as `5GiB` in bytes; raises ValueError (one line for the user)."""
    amount = parse_amount(text)
    if amount.dimension != "bytes":
        raise ValueError(f"{text!r} is no size with a unit, such as {DEFAULT_LIMIT}")
    return amount.value


def default_limit() -> str:
    """What the environment says, or DEFAULT_LIMIT."""
    return os.environ.get("CODE_SIZE_CACHE_LIMIT") or DEFAULT_LIMIT


def limit_of_environment() -> int:
    """The limit where no option gives one; raises UsageError."""
    try:
        return parse_limit(default_limit())
    except ValueError as error:
        raise UsageError(str(error), where="CODE_SIZE_CACHE_LIMIT") from None


@contextmanager
def limited(cache: Path, limit_bytes: int, say: Callable[[str], None]) -> Iterator[None]:
    """A run: where it ends well, what it did not use leaves the cache until that is within its limit."""
    since_ns = time.time_ns() - _CLOCKS_APART_NS
    yield
    try:
        gone, left = evict(cache, limit_bytes, since_ns)
    except OSError as error:
        say(f"the cache was not held to its limit: {error.filename}: {error.strerror}")
        return
    if gone:
        say(f"the cache was above its limit of {human(limit_bytes)}: {_told(gone)} left it")
    if left > limit_bytes:
        say(f"the cache holds {human(left)}, above its limit of {human(limit_bytes)}: all of it was used just now")


def _told(gone: list[Entry]) -> str:
    total = human(sum(entry.size_bytes for entry in gone))
    return f"{plural(len(gone), 'entry')} of {total}, unused for the longest time,"


def show(cache: Path) -> str:
    """A table: what is in the cache, how many, how large, and when the first and the last was used."""
    found = entries(cache)
    rows = [_row(words, [entry for entry in found if entry.kind == kind]) for kind, words in KINDS.items()]
    total = _row("all", found)
    return "\n".join([str(cache), _HEAD, *(row for row in rows if row), total or "empty"])


_HEAD = f"{'what':14}{'entries':>9}{'size':>12}  {'unused since':18}{'last used':18}".rstrip()


def _row(words: str, found: list[Entry]) -> str:
    if not found:
        return ""
    times = [_when(choose(entry.used_ns for entry in found)) for choose in (min, max)]
    total = human(sum(entry.size_bytes for entry in found))
    return f"{words:14}{len(found):>9,}{total:>12}  {times[0]:18}{times[1]:18}".rstrip()


def _when(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns / 10**9).strftime("%Y-%m-%d %H:%M")


def prune(cache: Path, limit_bytes: int) -> str:
    """Let go of what is above the limit; what went, and what is left."""
    gone, left = evict(cache, limit_bytes)
    went = f"{_told(gone)} left the cache" if gone else "nothing had to leave the cache"
    above = f", above the limit of {human(limit_bytes)}: compilers in use stay" if left > limit_bytes else ""
    return f"{went}; it holds {human(left)}{above}"
