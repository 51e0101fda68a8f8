"""Base types of values that are many or are JSON: reading one also checks it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, NamedTuple, TypeGuard

import msgspec

INT_LIMIT = 1 << 53  # what every JSON reader holds exactly
# an amount or a count of anything: never below zero
Count = Annotated[int, msgspec.Meta(ge=0, le=INT_LIMIT)]
# a change, or a number that counts nothing
Amount = Annotated[int, msgspec.Meta(ge=-INT_LIMIT, le=INT_LIMIT)]
Name = Annotated[str, msgspec.Meta(min_length=1)]
DIGEST_BYTES = 12
DIGEST = r"\A[A-Za-z0-9_-]{16}\Z"
Digest = Annotated[str, msgspec.Meta(pattern=DIGEST)]
"""A digest of code or IR.

The first 96 bits of a SHA-256, as `bot.core.digest.written` writes them.
"""


class Small(msgspec.Struct, frozen=True, gc=False):
    """A value of which a report may have hundreds of thousands.

    It is small, and a tree, so it needs no garbage collector.
    """


class Record(Small, frozen=True, forbid_unknown_fields=True):
    """A value that JSON holds as an object of these fields, and of no others."""


def always(value: Any) -> Any:
    """Return the default of a field that is always written, also with this value."""
    return msgspec.field(default_factory=lambda: value)


def is_count(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer that any reader accepts: 0 to INT_LIMIT."""
    return type(value) is int and 0 <= value <= INT_LIMIT


class Spread(NamedTuple):
    """A range of all that the same non-deterministic command gave: the ends differ."""

    low: int
    high: int


Value = int | Spread | None  # an amount, a range of it, or None if it is not known


def spread(values: Iterable[int]) -> Value:
    """Return the range of all values; the value itself if all are equal; or None."""
    ordered = sorted(values)
    if not ordered:
        return None
    if ordered[0] == ordered[-1]:
        return ordered[0]
    return Spread(ordered[0], ordered[-1])


def shown_sides(
    base: int | None,
    head: int | None,
    seen: tuple[tuple[int, ...], tuple[int, ...]] | None,
) -> tuple[Value, Value]:
    """Return base and head as reports show them: a range if several values were seen."""
    if seen is None:
        return base, head
    return spread(seen[0]), spread(seen[1])


def ends(value: int | Spread) -> tuple[int, int]:
    """Return the smallest and the largest that it may be."""
    if isinstance(value, Spread):
        return value.low, value.high
    return value, value


def difference(base: Value, head: Value) -> Value:
    """Return head − base, for all that they may be; None if either is not known."""
    if base is None or head is None:
        return None
    base_low, base_high = ends(base)
    head_low, head_high = ends(head)
    return spread((head_low - base_high, head_high - base_low))


def total(values: Iterable[int | Spread]) -> Value:
    """Return the sum, for all that they may be; None of none."""
    return _combined(values, sum)


def largest(values: Iterable[int | Spread]) -> Value:
    """Return the largest of all, for all that they may be; None of none."""
    return _combined(values, max)


def _combined(
    values: Iterable[int | Spread], combine: Callable[[list[int]], int]
) -> Value:
    """Return one value of all low ends and all high ends; None of none."""
    pairs = [ends(value) for value in values]
    if not pairs:
        return None
    lowest_value = combine([low for low, _ in pairs])
    highest_value = combine([high for _, high in pairs])
    return spread((lowest_value, highest_value))


def lowest(value: Value) -> int | None:
    """Return the smallest that it may be."""
    if value is None:
        return None
    return ends(value)[0]


def range_of(value: Value) -> tuple[int, int] | None:
    """Return both ends of a range; None for a single value and for None."""
    if isinstance(value, Spread):
        return (value.low, value.high)
    return None


def certain(change: Value) -> int | None:
    """Return the part of a change that is certain: the end of its range nearer to 0.

    Return None if even its sign is uncertain.
    """
    if change is None or isinstance(change, int):
        return change
    if change.low > 0:
        return change.low
    if change.high < 0:
        return change.high
    return None
