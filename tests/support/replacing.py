"""`replace` for every value of the project: those that are written as JSON are structs, the others dataclasses."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

import msgspec

_Value = TypeVar("_Value")


def replace(value: _Value, /, **changes: Any) -> _Value:
    """The value with other fields."""
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(value, **changes)
    return dataclasses.replace(value, **changes)  # type: ignore[type-var]
