"""`cache`: what is in the cache, and what leaves it when asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bot.cli.options import Arguments, Parser, add_cache, limit, limit_told

if TYPE_CHECKING:
    from bot.compiler.storage import Entry

EXAMPLES = ("--prune --limit 2GiB",)


def arguments(parser: Parser) -> None:
    add_cache(parser)
    about = "remove what was unused for the longest time until the rest is within the limit; what a run uses now stays"
    parser.add_argument("--prune", action="store_true", help=about)
    about = "with --prune: what may stay, such as 2GiB, or 0B for nothing"
    parser.add_argument("--limit", type=limit, metavar="SIZE", help=f"{about} {limit_told()}")


def run(arguments: Arguments) -> None:
    from bot.study.cache_limit import limit_of_environment

    if arguments.prune:
        print(prune(arguments.cache, limit_of_environment() if arguments.limit is None else arguments.limit))
    else:
        print(show(arguments.cache))


def show(cache: Path) -> str:
    """A table: what is in the cache, how many, how large, and when the first and the last was used."""
    from bot.compiler.storage import KINDS, entries

    stored = entries(cache)
    head = f"{'what':14}{'entries':>9}{'size':>12}  {'unused since':18}{'last used':18}".rstrip()
    rows = [_row(words, [entry for entry in stored if entry.kind == kind]) for kind, words in KINDS.items()]
    return "\n".join([str(cache), head, *(row for row in rows if row), _row("all", stored) or "empty"])


def _row(words: str, stored: list[Entry]) -> str:
    from datetime import datetime

    from bot.show.filters import human

    if not stored:
        return ""
    first, last = (datetime.fromtimestamp(choose(entry.used_ns for entry in stored) / 10**9) for choose in (min, max))
    total = human(sum(entry.size_bytes for entry in stored))
    return f"{words:14}{len(stored):>9,}{total:>12}  {first:%Y-%m-%d %H:%M}  {last:%Y-%m-%d %H:%M}"


def prune(cache: Path, limit_bytes: int) -> str:
    """Let go of what is above the limit; what went, and what is left."""
    from bot.compiler.storage import evict
    from bot.show.filters import human
    from bot.study.cache_limit import removed_words

    gone, remaining = evict(cache, limit_bytes)
    went = f"removed {removed_words(gone)}" if gone else "nothing was removed"
    above = f", above the limit of {human(limit_bytes)}: compilers in use stay" if remaining > limit_bytes else ""
    return f"{went}; the cache holds {human(remaining)}{above}"
