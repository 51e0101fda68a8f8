"""Snapshot text → plain JSON values, cell by cell: 5,000 cells are never held as one text, nor as one tree.

Cells stand on a line of their own, as `serial.lines` writes them. Any other layout of the same JSON is read as well, at
the cost of memory. Dispatches become values as soon as they are parsed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields
from sys import intern
from typing import Any

from bot.core.checked import INT_LIMIT, flat, table_of
from bot.core.snapshot import Dispatch

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_CELLS = ('{"cells":[\n', ',"cells":[\n')
_READ = 0
"""Stands in the text for a cell that was read already."""

_DISPATCH = table_of(Dispatch)
_REQUIRED = frozenset({"executable", "name", "kind"})
_NAMES = frozenset(one.name for one in fields(Dispatch))

_Form = tuple[Any, ...]
_Rows = dict[tuple[Any, ...], Dispatch]
_forms: dict[_Form, _Rows] = {}
"""Names and types of dispatches that were checked → their values → the dispatch.

There are a few forms of hundreds of thousands of dispatches, and what is the same on both sides is held once.
"""
_FORMS_HELD, _ROWS_HELD = 1_000, 400_000


def dispatch_of(value: Any, path: str) -> Dispatch:
    """One dispatch from plain JSON values; raises InputError naming `path` and the field."""
    dispatch: Dispatch = value if isinstance(value, Dispatch) else flat(Dispatch, _DISPATCH, value, path)
    return dispatch


def _early(value: dict[str, Any]) -> Any:
    """As dictionaries dispatches would take five times the memory. What is no proper one stays, to be refused later."""
    if "executable" not in value:
        return value
    values = tuple(value.values())
    form = (*value, *map(type, values))  # 1 and true are equal, and not of one type
    rows = _forms.get(form)
    if rows is not None and (known := rows.get(values)) is not None:
        return known
    if not _REQUIRED <= value.keys() <= _NAMES:
        return value
    if rows is None or any(type(found) is int and not -INT_LIMIT <= found <= INT_LIMIT for found in values):
        dispatch_of(value, "dispatches")
        rows = _forms.setdefault(form, {}) if len(_forms) < _FORMS_HELD else {}
    dispatch = Dispatch(**{name: intern(found) if type(found) is str else found for name, found in value.items()})
    if len(rows) < _ROWS_HELD:
        rows[values] = dispatch
    return dispatch


_DECODER = json.JSONDecoder(object_hook=_early)


def parsed(lines: Iterable[str]) -> Any:
    """The value of the JSON text; raises ValueError for what is none, RecursionError for a nesting without end."""
    cells: list[Any] = []
    rest = "".join(_without_cells(lines, cells))
    _refuse_half_characters(rest)
    value = json.loads(rest, object_hook=_early)
    if not cells:
        return value
    held = value.get("cells") if isinstance(value, dict) else None
    if not isinstance(held, list) or held.count(_READ) != len(cells):
        raise ValueError("a line that looks like a cell is none")
    cells.reverse()
    value["cells"] = [cells.pop() if found == _READ else found for found in held]
    return value


def _without_cells(lines: Iterable[str], cells: list[Any]) -> Iterator[str]:
    """The text with _READ for each cell that is on a line of its own; the cells themselves go to `cells`."""
    inside = False
    for line in lines:
        start = 1 if line.startswith(",{") else 0
        if inside and line.startswith("{", start):
            cell, end = _DECODER.raw_decode(line, start)
            _refuse_half_characters(line[start:end])
            cells.append(cell)
            line = f"{line[:start]}{_READ}{line[end:]}"
        inside = inside or line in _CELLS
        yield line


def _refuse_half_characters(text: str) -> None:
    """Half a surrogate pair is JSON, but no text that could be written again."""
    if "\\u" in text and _SURROGATE.search(text):
        json.dumps(json.loads(text), ensure_ascii=False).encode()
