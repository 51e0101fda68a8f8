"""Checked access to JSON values that may come from an untrusted run: every field's type, no unknown fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeGuard

from bot.errors import InputError, MalformedBinary

INT_LIMIT = 1 << 53  # what every JSON reader holds exactly
_SIGNED = frozenset({"exit_code", "values", "change_bytes", "waterfall", "net"})
"""Fields that may be below zero: an amount or a count of anything never is."""

INT = (int, type(None))
STR = (str, type(None))
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "str": str,
    "bool": bool,
    "int": int,
    "int | None": INT,
    "str | None": STR,
    "tuple[int, ...]": list,
    "tuple[str, ...]": list,
}
_ITEMS: Mapping[str, type] = {"tuple[int, ...]": int, "tuple[str, ...]": str}

Table = tuple[tuple[str, str, Any], ...]
"""A dataclass's fields: name, type as it is written, default."""


def is_count(value: object) -> TypeGuard[int]:
    """True for a whole number that no reader of a snapshot refuses: from 0 to INT_LIMIT."""
    return type(value) is int and 0 <= value <= INT_LIMIT


def require_counts(values: Mapping[str, int | None], where: str) -> None:
    """Raises MalformedBinary where one of them is known and no count, whatever the binary claims."""
    for name, value in values.items():
        if value is not None and not is_count(value):
            raise MalformedBinary(f"{name.replace('_', ' ')} out of range", where=where)


def shown(value: Any) -> str:
    """The value in an error: foreign text can be of any length, and any nesting."""
    if not isinstance(value, str):
        return "missing" if value is None else f"of type {type(value).__name__}"
    return repr(value) if len(value) <= 60 else f"{value[:57]!r}..."


def out_of_range(name: str, number: int) -> bool:
    """True for a number that no field of this name has."""
    return number > INT_LIMIT or number < (-INT_LIMIT if name in _SIGNED else 0)


class Fields:
    """Checked access to one JSON object; `path` names it in errors."""

    def __init__(self, value: Any, path: str, allowed: frozenset[str]) -> None:
        if not isinstance(value, dict):
            raise InputError(f"expected an object, found {type(value).__name__}", where=path)
        if unknown := value.keys() - allowed:
            raise InputError(f"unknown field {shown(min(unknown))}", where=path)
        self.value, self.path = value, path

    def get(self, name: str, kind: type | tuple[type, ...], default: Any = MISSING) -> Any:
        """The field, of one of these types; the default where it is absent."""
        found = self.value.get(name, default)
        if found is MISSING:
            raise InputError(f"field {name!r} is missing", where=self.path)
        allowed = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(found, allowed) or (isinstance(found, bool) and bool not in allowed):
            raise InputError(f"field {shown(name)} has the wrong type {type(found).__name__}", where=self.path)
        if isinstance(found, int) and out_of_range(name, found):
            raise InputError(f"field {shown(name)} is out of range", where=self.path)
        return found

    def items(self, name: str, default: Any = ()) -> list[Any]:
        """The entries of a list; of none where the field is absent."""
        found: list[Any] = self.get(name, list, list(default))
        return found

    def of_type(self, name: str, kind: type) -> tuple[Any, ...]:
        """The entries of a list, each of one type."""
        values = self.items(name)
        if not all(type(value) is kind for value in values):
            raise InputError(f"field {name!r} holds something else than {_PLURALS[kind]}", where=self.path)
        if kind is int and any(out_of_range(name, value) for value in values):
            raise InputError(f"field {name!r} is out of range", where=self.path)
        return tuple(values)

    def strings(self, name: str) -> tuple[str, ...]:
        """The entries of a list of strings."""
        return self.of_type(name, str)

    def mapping(self, name: str, kind: tuple[type, ...]) -> dict[str, Any]:
        """An object whose values are all of these types."""
        values: dict[str, Any] = self.get(name, dict, {})
        if any(type(one) not in kind or (type(one) is int and out_of_range(name, one)) for one in values.values()):
            inner = Fields(values, f"{self.path}.{name}", frozenset(values))
            return {key: inner.get(key, kind) for key in values}  # says which, and what is wrong with it
        return values


_PLURALS = {str: "strings", int: "integers"}


def table_of(cls: Any) -> Table:
    """The fields of a dataclass of simple types; raises KeyError for one that has others."""
    return tuple((f.name, str(f.type), f.default) for f in fields(cls) if _TYPES[str(f.type)])


def flat(cls: Any, table: Table, value: Any, path: str) -> Any:
    """One object as a value of the dataclass; raises InputError naming `path` and the field."""
    found = Fields(value, path, frozenset(name for name, _, _ in table))
    return cls(**{name: _field(found, name, kind, default) for name, kind, default in table})


def _field(found: Fields, name: str, kind: str, default: Any) -> Any:
    if kind in _ITEMS:
        return found.of_type(name, _ITEMS[kind])
    return found.get(name, _TYPES[kind], default)
