"""What values have in common that are many or are JSON: typed structs, so that to read one is to check it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeGuard

import msgspec

from bot.errors import MalformedBinary

INT_LIMIT = 1 << 53  # what every JSON reader holds exactly
Count = Annotated[int, msgspec.Meta(ge=0, le=INT_LIMIT)]
"""An amount or a count of anything: never below zero."""
Amount = Annotated[int, msgspec.Meta(ge=-INT_LIMIT, le=INT_LIMIT)]
"""A change of one, or a number that has nothing to do with counting."""
Name = Annotated[str, msgspec.Meta(min_length=1)]


class Small(msgspec.Struct, frozen=True, gc=False):
    """A value of which a report has hundreds of thousands: quickly made, and small.

    `gc`: such values are trees, so that the garbage collector has nothing to look for in them.
    """


class Record(Small, frozen=True, forbid_unknown_fields=True):
    """A value that JSON holds as an object of these fields, and of no others."""


def always(value: Any) -> Any:
    """The default of a field that is written even where it has it, in a record that leaves out defaults."""
    return msgspec.field(default_factory=lambda: value)


def is_count(value: object) -> TypeGuard[int]:
    """True for a whole number that no reader of a snapshot refuses: from 0 to INT_LIMIT."""
    return type(value) is int and 0 <= value <= INT_LIMIT


def require_counts(values: Mapping[str, int | None], where: str) -> None:
    """Raises MalformedBinary where one of them is known and no count, whatever the binary claims."""
    for name, value in values.items():
        if value is not None and not is_count(value):
            raise MalformedBinary(f"{name.replace('_', ' ')} out of range", where=where)
