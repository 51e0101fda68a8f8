"""Read the compiler's own reports about a compile.

`--stack-usage-file` has a line for each function of the CPU code generator,
`place:function<TAB>bytes<TAB>kind`, as LLVM's AsmPrinter writes it:

* A function with debug information has the place `file:line`. All entry points have
  it, and a model on standard input has `-:1`.
* Any other function, such as a linked library function, has the module's name.
* The names of files, modules and functions may have colons. So the function follows the
  first `:line:`. If there is none, it follows the last colon.

`--iree-scheduling-dump-statistics-file`, format `json`, has under `stream-aggregate`
the totals over the whole program. Its `variable-size` is always 0: no release works it
out (`DumpStatistics.cpp`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from bot.core.json_text import decoded
from bot.core.record import Count, is_count
from bot.errors import InputError, MalformedBinary

_MOST_DIGITS = 18
FILE_AND_LINE = re.compile(r".*?:\d+:", re.ASCII)


def read_stack_usage(text: str) -> dict[str, int]:
    """Return function → bytes of its machine frame.

    If two functions have one name, as private helpers can, the larger frame counts.
    Raises like `stack_usage_rows`.
    """
    frames: dict[str, int] = {}
    for name, size in stack_usage_rows(text):
        frames[name] = max(size, frames.get(name, 0))
    return frames


def stack_usage_rows(text: str) -> Iterator[tuple[str, int]]:
    """Yield function and bytes of its machine frame, line by line.

    Raises MalformedBinary naming the first line that is not of the format.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        if not line:
            continue
        function, _, columns = line.partition("\t")
        size, _, kind = columns.partition("\t")
        place = FILE_AND_LINE.match(function)
        if place:
            name = function[place.end() :]
        else:
            name = function.rpartition(":")[2]
        is_number = (
            size.isascii()
            and size.isdecimal()
            and len(size) <= _MOST_DIGITS
            and is_count(int(size))
        )
        if (
            not name
            or ":" not in function
            or not is_number
            or kind not in ("static", "dynamic")
        ):
            problem = "not `place:function`, a number of bytes, static or dynamic"
            raise MalformedBinary(problem, where=f"stack usage file, line {number}")
        yield name, int(size)


class _Section(msgspec.Struct, frozen=True, rename="kebab"):
    """The parts of the totals' four sections that are read."""

    constant_size: Count | None = None
    await_count: Count | None = None
    submission_count: Count | None = None
    transient_memory_size: Count | None = None
    fill_count: Count | None = None
    copy_count: Count | None = None
    dispatch_count: Count | None = None
    executable_count: Count | None = None


class _Totals(msgspec.Struct, frozen=True, rename={"global_": "global"}):
    global_: _Section = _Section()
    synchronization: _Section = _Section()
    execution: _Section = _Section()
    executable: _Section = _Section()


class _Document(msgspec.Struct, frozen=True, rename="kebab"):
    stream_aggregate: _Totals = _Totals()


def read_statistics(text: str) -> dict[str, int | None]:
    """Return metric → what the statistics count of the program.

    A value is None if the release does not write the key. Transient memory is the sum of
    all allocations of constant size, also for outputs and for constants that are made at
    load. Dynamic allocations are not counted. Constants are data in the program's text,
    from 3.11.0 on with the names of parameters. Raises MalformedBinary if the text is not
    JSON or a count is invalid.
    """
    try:
        totals = decoded(text, _Document, "scheduling statistics").stream_aggregate
    except InputError as error:
        raise MalformedBinary(error.what, where=error.where) from None
    return {
        "dispatch_sites": totals.execution.dispatch_count,
        "executables": totals.executable.executable_count,
        "fills": totals.execution.fill_count,
        "copies": totals.execution.copy_count,
        "awaits": totals.synchronization.await_count,
        "submissions": totals.execution.submission_count,
        "transient_memory_bytes": totals.execution.transient_memory_size,
        "constant_bytes": totals.global_.constant_size,
    }
