"""The compiler's own scheduling statistics (`--iree-scheduling-dump-statistics-file`, format `json`)."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from bot.core.codec.json_text import decoded
from bot.core.record import Count
from bot.errors import InputError, MalformedBinary


@dataclass(frozen=True, slots=True)
class Statistics:
    """What the statistics count of the program; None where a release does not write the key."""

    dispatch_sites: int | None
    executables: int | None


class _Execution(msgspec.Struct, frozen=True, rename="kebab"):
    dispatch_count: Count | None = None


class _Executable(msgspec.Struct, frozen=True, rename="kebab"):
    executable_count: Count | None = None


class _Totals(msgspec.Struct, frozen=True):
    execution: _Execution = _Execution()
    executable: _Executable = _Executable()


class _Document(msgspec.Struct, frozen=True, rename="kebab"):
    stream_aggregate: _Totals = _Totals()


def read_statistics(text: str) -> Statistics:
    """Read `stream-aggregate`, the totals over the whole program.

    Raises:
        MalformedBinary: the text is not JSON, or a count is no count.
    """
    try:
        totals = decoded(text, _Document, "scheduling statistics").stream_aggregate
    except InputError as error:
        raise MalformedBinary(error.what, where=error.where) from None
    return Statistics(totals.execution.dispatch_count, totals.executable.executable_count)
