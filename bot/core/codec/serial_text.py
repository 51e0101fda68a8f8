"""Snapshot text → plain JSON values, cell by cell: 5,000 cells are never held as one text, nor as one tree.

Cells stand on a line of their own, as `serial.lines` writes them. Any other layout of the same JSON is read as well, at
the cost of memory. Dispatches become values as soon as they are parsed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields
from hashlib import blake2b
from sys import intern
from typing import Any

from bot.core.codec.checked import INT_LIMIT, flat, table_of
from bot.core.values.snapshot import Dispatch

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_CELLS = ('{"cells":[\n', ',"cells":[\n')
_READ = 0
"""Stands in the text for a cell that was read already."""

_DISPATCH = table_of(Dispatch)
_REQUIRED = frozenset({"executable", "name", "kind"})
_NAMES = frozenset(one.name for one in fields(Dispatch))

_forms: set[tuple[Any, ...]] = set()
"""Names and types of dispatches that were checked: there are a few of hundreds of thousands of dispatches."""
_FORMS_HELD = 1_000

_ROWS, _AFTER_ROWS = '"dispatches":', ',"donor":'
_rows: dict[bytes, Any] = {}
"""Digest of the text of a cell's dispatches → the dispatches."""
_ROWS_HELD = 20_000


def dispatch_of(value: Any, path: str) -> Dispatch:
    """One dispatch from plain JSON values; raises InputError naming `path` and the field."""
    dispatch: Dispatch = value if isinstance(value, Dispatch) else flat(Dispatch, _DISPATCH, value, path)
    return dispatch


def _early(value: dict[str, Any]) -> Any:
    """As dictionaries dispatches would take five times the memory. What is no proper one stays, to be refused later."""
    if "executable" not in value:
        return value
    form = (*value, *map(type, value.values()))
    if form not in _forms:
        if not _REQUIRED <= value.keys() <= _NAMES:
            return value
        dispatch_of(value, "dispatches")
        if len(_forms) < _FORMS_HELD:
            _forms.add(form)
    sizes = [found for found in value.values() if type(found) is int]
    if sizes and (max(sizes) > INT_LIMIT or min(sizes) < 0):
        return dispatch_of(value, "dispatches")  # which refuses it
    shared: dict[str, Any] = {name: intern(one) if type(one) is str else one for name, one in value.items()}
    return Dispatch(**shared)


_DECODER = json.JSONDecoder(object_hook=_early)


def parsed(lines: Iterable[str]) -> Any:
    """The value of the JSON text; raises ValueError for what is none, RecursionError for a nesting without end."""
    cells: list[Any] = []
    rest = "".join(_without_cells(lines, cells))
    refuse_surrogates(rest)
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
            cell, after = _cell(line[start:])
            cells.append(cell)
            line = f"{line[:start]}{_READ}{after}"
        inside = inside or line in _CELLS
        yield line


def _cell(text: str) -> tuple[Any, str]:
    """The cell that the text begins with, and the text behind it.

    Dispatches are nine tenths of a cell and in most cells the same on both sides: equal ones are read, and held, once.
    They can be cut out, since a quote within a string is escaped: what looks like the fields' names is nothing else.
    """
    head, name, rest = text.partition(_ROWS)
    rows, mark, tail = rest.partition(_AFTER_ROWS)
    if not (mark and rows.startswith("[") and rows.endswith("]")):
        return _decoded(text)
    cell, after = _decoded(f"{head}{name}{_READ}{mark}{tail}")
    if cell.get("dispatches") != _READ:
        return _decoded(text)
    cell["dispatches"] = _shared(rows)
    return cell, after


def _shared(rows: str) -> Any:
    key = blake2b(rows.encode(errors="surrogatepass"), digest_size=32).digest()
    if (known := _rows.get(key)) is not None:
        return known
    found, after = _decoded(rows)
    if after:
        raise ValueError("something stands behind the dispatches of a cell")
    if len(_rows) < _ROWS_HELD:
        _rows[key] = found
    return found


def _decoded(text: str) -> tuple[Any, str]:
    value, end = _DECODER.raw_decode(text)
    refuse_surrogates(text[:end])
    return value, text[end:]


def refuse_surrogates(text: str) -> None:
    """Half a surrogate pair is JSON, but no text that could be written again: ValueError."""
    if "\\" in text and _SURROGATE.search(text):
        json.dumps(json.loads(text), ensure_ascii=False).encode()
