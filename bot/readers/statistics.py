"""The compiler's own scheduling statistics (`--iree-scheduling-dump-statistics-file`, format `json`)."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from bot.core.json_text import decoded
from bot.core.record import Count
from bot.errors import InputError, MalformedBinary


@dataclass(frozen=True, slots=True)
class Statistics:
    """What the statistics count of the program; None where a release does not write the key.

    Attributes:
        allocated_bytes: the compiler's `transient-memory-size`: all allocations of constant size, also those for
            constants that are made at load, and for outputs. What is dynamic is in no figure.
        constant_bytes: data in the program's text; from 3.11.0 on the names of parameters are among them.

    Its `variable-size` is always 0: no release works it out (`DumpStatistics.cpp` says TODO).
    """

    dispatch_sites: int | None = None
    executables: int | None = None
    fills: int | None = None
    copies: int | None = None
    awaits: int | None = None
    submissions: int | None = None
    allocated_bytes: int | None = None
    constant_bytes: int | None = None


class _Global(msgspec.Struct, frozen=True, rename="kebab"):
    constant_size: Count | None = None


class _Synchronization(msgspec.Struct, frozen=True, rename="kebab"):
    await_count: Count | None = None


class _Execution(msgspec.Struct, frozen=True, rename="kebab"):
    submission_count: Count | None = None
    transient_memory_size: Count | None = None
    fill_count: Count | None = None
    copy_count: Count | None = None
    dispatch_count: Count | None = None


class _Executable(msgspec.Struct, frozen=True, rename="kebab"):
    executable_count: Count | None = None


class _Totals(msgspec.Struct, frozen=True, rename={"global_": "global"}):
    global_: _Global = _Global()
    synchronization: _Synchronization = _Synchronization()
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
    execution = totals.execution
    return Statistics(
        dispatch_sites=execution.dispatch_count,
        executables=totals.executable.executable_count,
        fills=execution.fill_count,
        copies=execution.copy_count,
        awaits=totals.synchronization.await_count,
        submissions=execution.submission_count,
        allocated_bytes=execution.transient_memory_size,
        constant_bytes=totals.global_.constant_size,
    )
