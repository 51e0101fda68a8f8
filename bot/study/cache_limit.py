"""Keep the cache within its size limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bot.compiler.storage import evict, without_room
from bot.config.units import parse_size
from bot.errors import UsageError
from bot.show.filters import human, plural
from bot.system.defaults import default_limit

# the file system's clock may be this much behind the clock of this program
_CLOCKS_APART_NS = 10**9


def limit_of_environment() -> int:
    """Return the limit of the environment, for a run without the option.

    Raises UsageError.
    """
    try:
        return parse_size(default_limit())
    except ValueError as error:
        raise UsageError(str(error), where="CODE_SIZE_CACHE_LIMIT") from None


@contextmanager
def limited(
    cache: Path, limit_bytes: int, say: Callable[[str], None]
) -> Iterator[None]:
    """Keep the cache within its limit around a run.

    After a run that ends well, entries that it did not use are removed until the cache
    is within its limit. After any run, the user sees whether the disk had no space for
    new entries.
    """
    since_ns = time.time_ns() - _CLOCKS_APART_NS
    try:
        yield
    finally:
        if reason := without_room(cache):
            say(
                f"the cache {cache} has no space left ({reason}): the run continued"
                " without it"
            )
    try:
        gone, held_bytes = evict(cache, limit_bytes, since_ns)
    except OSError as error:
        say(
            f"the cache could not be reduced to its limit: {error.filename}:"
            f" {error.strerror}"
        )
        return
    if gone:
        size = human(sum(entry.size_bytes for entry in gone))
        removed = f"{plural(len(gone), 'entry')} of {size}, unused for the longest time"
        say(f"the cache was above its limit of {human(limit_bytes)}: removed {removed}")
    if held_bytes > limit_bytes:
        above = f"above its limit of {human(limit_bytes)}"
        say(
            f"the cache holds {human(held_bytes)}, {above}: all remaining entries were"
            " used within a day, or cannot be removed"
        )
