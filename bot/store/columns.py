"""A snapshot's plain JSON values as columns: what is alike stands together, so that it packs to three quarters.

A column of values is a list of them. Where all are lists it is `{"counts": [...], "items": column}`: all their items
as one column. Where all are objects it is `{"shapes": [[name, ...], ...], "shape": [...], "columns": {name: column}}`:
which names there are together, which of the shapes each object has, and the values of a name over the objects that
have it. So an absent field stays absent and a null stays null. Ours, and read by nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from bot.core.codec.checked import Fields, shown
from bot.errors import InputError

COLUMNS_SCHEMA = "code-size-columns/1"
MOST_ROWS = 1 << 21
"""Objects and lists of one snapshot: 64 MiB of text hold fewer that are real, but many more empty ones."""
_DEPTH = 6
"""How deep tables stand in each other: cells, families, their members, the members' names; and two to spare."""
_FIELDS = frozenset({"schema", "snapshot", "cells", "names", "programs"})
_LISTS, _OBJECTS = frozenset({"counts", "items"}), frozenset({"shapes", "shape", "columns"})


def to_columns(plain: Mapping[str, Any]) -> dict[str, Any]:
    """What `bot.core.codec.serial.snapshot_to_plain` gives, its cells and programs as columns."""
    names = sorted(plain["programs"])
    return {
        "schema": COLUMNS_SCHEMA,
        "snapshot": {name: value for name, value in plain.items() if name not in ("cells", "programs")},
        "cells": _column(list(plain["cells"])),
        "names": names,
        "programs": _column([plain["programs"][name] for name in names]),
    }


def from_columns(value: Any, where: str) -> dict[str, Any]:
    """The plain values of a snapshot, its cells a list; raises InputError naming `where` for columns of another form.

    What the values say is not checked.
    """
    if not isinstance(value, dict) or value.get("schema") != COLUMNS_SCHEMA:
        schema = shown(value.get("schema") if isinstance(value, dict) else value)
        raise InputError(
            f"is no stored snapshot this version reads: schema is {schema}, not {COLUMNS_SCHEMA!r}",
            where=where,
            hint="measure it again with this version of code-size-bot",
        )
    found, reader = Fields(value, where, _FIELDS), _Reader(where)
    names, programs = found.strings("names"), reader.values(found.value.get("programs"))
    if len(set(names)) != len(programs) or len(names) != len(programs):
        raise InputError("its programs have other names than there are programs", where=where)
    told = {"cells": reader.values(found.value.get("cells")), "programs": dict(zip(names, programs, strict=True))}
    rest = found.get("snapshot", dict)
    if rest.keys() & told.keys():
        raise InputError("has its cells or programs twice", where=where)
    return {**rest, **told}


def _column(values: list[Any], depth: int = _DEPTH) -> Any:
    kinds = {type(value) for value in values} if depth else set()
    if kinds == {dict}:
        return _table(values, depth - 1)
    if kinds == {list}:
        items = [item for value in values for item in value]
        return {"counts": [len(value) for value in values], "items": _column(items, depth - 1)}
    return values


def _table(rows: Sequence[Mapping[str, Any]], depth: int) -> dict[str, Any]:
    shapes: dict[tuple[str, ...], int] = {}
    shape: list[int] = []
    columns: dict[str, list[Any]] = {}
    for row in rows:
        shape.append(shapes.setdefault(tuple(sorted(row)), len(shapes)))
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    return {
        "shapes": [list(names) for names in shapes],
        "shape": shape,
        "columns": {name: _column(values, depth) for name, values in columns.items()},
    }


class _Reader:
    """Columns back to values, checked: they come from an untrusted place."""

    def __init__(self, where: str) -> None:
        self._where, self._rows_left = where, MOST_ROWS

    def values(self, column: Any, depth: int = _DEPTH) -> list[Any]:
        """The values of one column."""
        if isinstance(column, list):
            return column
        if not isinstance(column, dict) or not depth:
            raise self._broken("a column is missing, of another type or too deep")
        if "counts" in column:
            return self._lists(Fields(column, self._where, _LISTS), depth - 1)
        return self._objects(Fields(column, self._where, _OBJECTS), depth - 1)

    def _lists(self, found: Fields, depth: int) -> list[Any]:
        counts = self._numbers(found, "counts")
        items = self.values(found.value.get("items"), depth)
        if sum(counts) != len(items):
            raise self._broken(f"the lists of a column have {sum(counts)} items, not {len(items)}")
        rest = iter(items)
        return [list(islice(rest, count)) for count in counts]

    def _objects(self, found: Fields, depth: int) -> list[Any]:
        shapes = [self._names(names) for names in found.items("shapes")]
        shape = self._numbers(found, "shape")
        if any(number >= len(shapes) for number in shape):
            raise self._broken("an object of a column has no shape")
        columns = found.get("columns", dict)
        rests = {name: iter(self.values(column, depth)) for name, column in columns.items()}
        rows = [self._row(shapes[number], rests) for number in shape]
        if any(_has_more(rest) for rest in rests.values()):
            raise self._broken("a column has more values than objects")
        return rows

    def _row(self, names: Sequence[str], rests: Mapping[str, Iterator[Any]]) -> dict[str, Any]:
        try:
            return {name: next(rests[name]) for name in names}
        except (KeyError, StopIteration):
            raise self._broken("a column has fewer values than objects") from None

    def _names(self, names: Any) -> list[str]:
        if not isinstance(names, list) or not all(type(name) is str for name in names):
            raise self._broken("the shapes of a column are no lists of names")
        if len(set(names)) != len(names):
            raise self._broken("a shape of a column has a name twice")
        return names

    def _numbers(self, found: Fields, name: str) -> tuple[int, ...]:
        numbers = found.of_type(name, int)
        self._rows_left -= len(numbers)
        if self._rows_left < 0:
            raise self._broken(f"has more than {MOST_ROWS} objects and lists")
        return numbers

    def _broken(self, what: str) -> InputError:
        return InputError(what, where=self._where, hint="measure it again")


def _has_more(rest: Iterator[Any]) -> bool:
    return next(rest, rest) is not rest
