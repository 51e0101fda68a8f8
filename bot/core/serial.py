"""Snapshots as JSON text: strict on the way in, canonical on the way out.

A snapshot may come from an untrusted run, so that every field's type is checked; unknown fields are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, asdict, fields
from sys import intern
from typing import Any

from bot.core.metrics import METRIC_BY_ID
from bot.core.snapshot import (
    SNAPSHOT_SCHEMA,
    STATUSES,
    Cell,
    CellKey,
    CompilerInfo,
    Dispatch,
    Failure,
    Snapshot,
    SourceInfo,
)
from bot.errors import InputError

_INT_LIMIT = 1 << 53  # what every JSON reader holds exactly
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def _shown(value: Any) -> str:
    """The value in an error: foreign text can be of any length, and any nesting."""
    if not isinstance(value, str):
        return "missing" if value is None else f"of type {type(value).__name__}"
    return repr(value) if len(value) <= 60 else f"{value[:57]!r}..."


_DISPATCH_FIELDS = tuple(f.name for f in fields(Dispatch))


def _dispatch(dispatch: Dispatch) -> dict[str, Any]:
    return {name: value for name in _DISPATCH_FIELDS if (value := getattr(dispatch, name)) is not None}


def cell_to_plain(cell: Cell) -> dict[str, Any]:
    """One cell as plain JSON values."""
    return {
        "model": cell.key.model,
        "target": cell.key.target,
        "status": cell.status,
        "metrics": dict(cell.metrics),
        "dispatches": [_dispatch(dispatch) for dispatch in cell.dispatches],
        "failure": asdict(cell.failure) if cell.failure else None,
        "command": cell.command,
        "artifact_digest": cell.artifact_digest,
        "reasons": dict(cell.reasons),
        "rechecked": cell.rechecked,
    }


def snapshot_to_plain(snapshot: Snapshot) -> dict[str, Any]:
    """The contract's `snapshot.json` as plain values; its cells one at a time, so that they are not held twice."""
    return {
        "schema": SNAPSHOT_SCHEMA,
        "compiler": asdict(snapshot.compiler),
        "source": asdict(snapshot.source),
        "flags": list(snapshot.flags),
        "targets": dict(snapshot.targets),
        "backends": list(snapshot.backends),
        "models": dict(snapshot.models),
        "notes": list(snapshot.notes),
        "cells": map(cell_to_plain, snapshot.cells),
    }


def _line(plain: Any) -> str:
    return json.dumps(plain, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def lines(plain: Mapping[str, Any]) -> Iterator[str]:
    """Canonical JSON text of one object: sorted keys, a line for each field and for each entry of `cells`.

    So a change of one cell is one line in `git diff`, and the text stays small.
    """
    for index, key in enumerate(sorted(plain)):
        yield f"{'{' if index == 0 else ','}{_line(key)}:"
        if key == "cells":
            yield "["
            for number, row in enumerate(plain[key]):
                yield f"{',' if number else ''}\n{_line(row)}"
            yield "]\n"
        else:
            yield f"{_line(plain[key])}\n"
    yield "}\n"


def dumps(plain: Mapping[str, Any]) -> str:
    """The lines as one text."""
    return "".join(lines(plain))


def to_json(snapshot: Snapshot) -> str:
    """The text of `snapshot.json`; the same snapshot always gives the same text."""
    return dumps(snapshot_to_plain(snapshot))


class _Fields:
    """Checked access to one JSON object; `path` names it in errors."""

    def __init__(self, value: Any, path: str, allowed: frozenset[str]) -> None:
        if not isinstance(value, dict):
            raise InputError(f"expected an object, found {type(value).__name__}", where=path)
        if unknown := value.keys() - allowed:
            raise InputError(f"unknown field {_shown(min(unknown))}", where=path)
        self.value, self.path = value, path

    def get(self, name: str, kind: type | tuple[type, ...], default: Any = MISSING) -> Any:
        found = self.value.get(name, default)
        if found is MISSING:
            raise InputError(f"field {name!r} is missing", where=self.path)
        allowed = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(found, allowed) or (isinstance(found, bool) and bool not in allowed):
            raise InputError(f"field {_shown(name)} has the wrong type {type(found).__name__}", where=self.path)
        if isinstance(found, int) and abs(found) > _INT_LIMIT:
            raise InputError(f"field {_shown(name)} is out of range", where=self.path)
        return found

    def items(self, name: str) -> list[Any]:
        found: list[Any] = self.get(name, list, [])
        return found

    def strings(self, name: str) -> tuple[str, ...]:
        values = self.items(name)
        if not all(isinstance(value, str) for value in values):
            raise InputError(f"field {name!r} holds something else than strings", where=self.path)
        return tuple(values)

    def mapping(self, name: str, kind: tuple[type, ...]) -> dict[str, Any]:
        inner = _Fields(self.get(name, dict, {}), f"{self.path}.{name}", frozenset(self.value.get(name) or ()))
        return {key: inner.get(key, kind) for key in inner.value}


_INT = (int, type(None))
_STR = (str, type(None))
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "str": str,
    "bool": bool,
    "int": int,
    "int | None": _INT,
    "str | None": _STR,
}


def _table(cls: Any) -> tuple[tuple[str, type | tuple[type, ...], Any], ...]:
    return tuple((f.name, _TYPES[str(f.type)], f.default) for f in fields(cls))


_FLAT = {cls: _table(cls) for cls in (CompilerInfo, SourceInfo, Dispatch, Failure)}
_FLAT_NAMES = {cls: frozenset(name for name, _, _ in table) for cls, table in _FLAT.items()}
_CELL_FIELDS = frozenset({f.name for f in fields(Cell)} - {"key"} | {"model", "target"})
_SNAPSHOT_FIELDS = frozenset({f.name for f in fields(Snapshot)} | {"schema"})


def _flat(cls: Any, value: Any, path: str) -> Any:
    found = _Fields(value, path, _FLAT_NAMES[cls])
    return cls(**{name: found.get(name, kind, default) for name, kind, default in _FLAT[cls]})


def cell_from_plain(value: Any, path: str = "cell") -> Cell:
    """One cell from plain JSON values; raises InputError naming `path` and the field."""
    found = _Fields(value, path, _CELL_FIELDS)
    status, metrics = found.get("status", str), found.mapping("metrics", _INT)
    if status not in STATUSES:
        raise InputError(f"unknown status {_shown(status)}", where=path)
    if unknown := metrics.keys() - METRIC_BY_ID.keys():
        raise InputError(f"unknown metric {_shown(min(unknown))}", where=path)
    failure = found.get("failure", (dict, type(None)), None)
    return Cell(
        key=CellKey(found.get("model", str), found.get("target", str)),
        status=status,
        metrics=metrics,
        dispatches=tuple(_dispatch_of(entry, f"{path}.dispatches") for entry in found.items("dispatches")),
        failure=_flat(Failure, failure, f"{path}.failure") if failure is not None else None,
        command=found.get("command", str, ""),
        artifact_digest=found.get("artifact_digest", _STR, None),
        reasons=found.mapping("reasons", (str,)),
        rechecked=found.get("rechecked", _STR, None),
    )


_DISPATCH_MARKS = frozenset({"executable", "name", "kind"})
_well_formed: set[tuple[tuple[str, ...], tuple[type, ...]]] = set()
"""Names and types of dispatches that `_flat` has accepted: there are a hundred thousand of a few forms."""


def _dispatch_of(value: Any, path: str) -> Dispatch:
    if isinstance(value, Dispatch):
        return value
    dispatch: Dispatch = _flat(Dispatch, value, path)
    if len(_well_formed) < 1000:
        _well_formed.add((tuple(value), tuple(map(type, value.values()))))
    return dispatch


def _early(value: dict[str, Any]) -> Any:
    """Dispatches become values as soon as they are parsed: as dictionaries they would take five times the memory."""
    if "executable" not in value or not _DISPATCH_MARKS <= value.keys() <= _FLAT_NAMES[Dispatch]:
        return value
    values = value.values()
    if (tuple(value), tuple(map(type, values))) not in _well_formed:
        return _dispatch_of(value, "dispatches")
    if any(type(found) is int and not -_INT_LIMIT <= found <= _INT_LIMIT for found in values):
        return _dispatch_of(value, "dispatches")
    value["executable"], value["name"] = intern(value["executable"]), intern(value["name"])
    return Dispatch(**value)


def _drained(values: list[Any]) -> Iterator[Any]:
    """The values in order, each let go as it is handed out: 5,000 cells are not held twice."""
    values.reverse()
    while values:
        yield values.pop()


def snapshot_from_plain(value: Any, where: str) -> Snapshot:
    """A snapshot from plain JSON values; raises InputError naming `where` and the field."""
    schema = value.get("schema") if isinstance(value, dict) else None
    if schema != SNAPSHOT_SCHEMA:
        raise InputError(
            f"is no snapshot this version reads: schema is {_shown(schema)}, not {SNAPSHOT_SCHEMA!r}",
            where=where,
            mend="measure it again with this version of code-size-bot",
        )
    found = _Fields(value, where, _SNAPSHOT_FIELDS)
    cells = [cell_from_plain(cell, f"{where}: cells[{i}]") for i, cell in enumerate(_drained(found.items("cells")))]
    if [cell.key for cell in cells] != sorted({cell.key for cell in cells}):
        raise InputError("cells are not sorted and unique", where=where)
    return Snapshot(
        compiler=_flat(CompilerInfo, found.get("compiler", dict), f"{where}: compiler"),
        source=_flat(SourceInfo, found.get("source", dict), f"{where}: source"),
        cells=tuple(cells),
        flags=found.strings("flags"),
        targets=found.mapping("targets", (str,)),
        backends=found.strings("backends"),
        models=found.mapping("models", (str,)),
        notes=found.strings("notes"),
    )


def from_json(text: str, where: str = "snapshot") -> Snapshot:
    """Read `snapshot.json`; raises InputError for text that is torn, foreign or of another schema."""
    try:
        if _SURROGATE.search(text):  # half a surrogate pair is JSON, but no text that could be written again
            json.dumps(json.loads(text), ensure_ascii=False).encode()
        value = json.loads(text, object_hook=_early)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is no JSON, or was cut off: {error}", where=where, mend="write the snapshot again") from None
    return snapshot_from_plain(value, where)
