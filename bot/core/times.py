"""Measure where a compile spends its time, by phase and by pass.

Each time is a wall time of a compile that runs alone. These times differ from run to
run, and other load on the machine adds to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from bot.core.growth import Growth, fitted
from bot.core.mappings import only_named
from bot.core.record import Small

AFTER_LAST = "artifact"
"""The phase from the last IR to the file of the artifact."""


class CompileTimes(Small, frozen=True):
    """The wall times of one compile in microseconds; empty if there is a reason."""

    phases: Mapping[str, int] = {}  # name → microseconds, in the compiler's order
    passes: Mapping[str, int] = {}  # name → microseconds, the longest first
    reason: str = ""  # why something is missing; empty if nothing is


def phases_us(started_ns: int, ended_ns: Mapping[str, int]) -> dict[str, int]:
    """Return phase → microseconds, in order, from when each phase ended.

    `ended_ns`: `7.stream` is the seventh phase; AFTER_LAST comes last.
    """
    numbered = sorted(name for name in ended_ns if name != AFTER_LAST)
    ordered = [
        *sorted(numbered, key=_number),
        *(name for name in ended_ns if name == AFTER_LAST),
    ]
    times = dict[str, int]()
    before_ns = started_ns
    for name in ordered:
        after_ns = max(ended_ns[name], before_ns)
        times[name.partition(".")[2] or name] = (after_ns - before_ns) // 1000
        before_ns = after_ns
    return times


def longest(variants: Sequence[CompileTimes], limit: int) -> list[CompileTimes]:
    """Return the times of only those passes that are longest in any variant."""
    longest_passes = set[str]()
    for times in variants:
        longest_passes.update(list(times.passes)[:limit])
    result = []
    for times in variants:
        passes = only_named(times.passes, longest_passes)
        result.append(replace(times, passes=passes))
    return result


def _number(phase: str) -> int:
    number = phase.partition(".")[0]
    if number.isdigit():
        return int(number)
    return 0


def growth_of(times: Sequence[tuple[int, int | None]]) -> Growth | None:
    """Fit the times of one phase or pass over numbers of layers.

    Return None if there are too few times.
    """
    measured = [(layers, time) for layers, time in times if time is not None]
    growth = fitted(measured)
    if isinstance(growth, str):
        return None
    return growth
