"""Keep a part of a mapping, in its own order."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


def known_values(values: Mapping[_K, _V | None]) -> dict[_K, _V]:
    """Return the entries whose value is known (not None)."""
    return {name: value for name, value in values.items() if value is not None}


def only_named(values: Mapping[_K, _V], names: Container[_K]) -> dict[_K, _V]:
    """Return the entries that are among the names."""
    return {name: value for name, value in values.items() if name in names}
