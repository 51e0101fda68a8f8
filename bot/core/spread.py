"""Values that are a range: all that the same command gave, where the compiler does not repeat itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Spread(NamedTuple):
    """The smallest and the largest value that was seen; they differ."""

    low: int
    high: int


Value = int | Spread | None
"""An amount, a range of it, or None where it is not known."""


def spread(values: Iterable[int]) -> Value:
    """What all values say together; None of none."""
    known = sorted(values)
    if not known:
        return None
    return known[0] if known[0] == known[-1] else Spread(known[0], known[-1])


def ends(value: int | Spread) -> tuple[int, int]:
    """The smallest and the largest that it may be."""
    return (value.low, value.high) if isinstance(value, Spread) else (value, value)


def difference(base: Value, head: Value) -> Value:
    """Head − base, for all that they may be; None where either is not known."""
    if base is None or head is None:
        return None
    (least, most), (low, high) = ends(base), ends(head)
    return spread((low - most, high - least))


def total(values: Iterable[int | Spread]) -> Value:
    """The sum, for all that they may be; None of none."""
    pairs = [ends(value) for value in values]
    return spread((sum(low for low, _ in pairs), sum(high for _, high in pairs))) if pairs else None


def largest(values: Iterable[int | Spread]) -> Value:
    """The largest of all, for all that they may be; None of none."""
    pairs = [ends(value) for value in values]
    return spread((max(low for low, _ in pairs), max(high for _, high in pairs))) if pairs else None


def lowest(value: Value) -> int | None:
    """The smallest that it may be."""
    return None if value is None else ends(value)[0]


def range_of(value: Value) -> tuple[int, int] | None:
    """Both ends of a range; None for a single value, and where there is none."""
    return (value.low, value.high) if isinstance(value, Spread) else None


def certain(change: Value) -> int | None:
    """The part of a change that is sure, the end that is nearer to 0; None where even its sign is open."""
    if change is None or isinstance(change, int):
        return change
    return change.low if change.low > 0 else change.high if change.high < 0 else None
