"""Snapshots as JSON text: strict on the way in, canonical on the way out.

A snapshot may come from an untrusted run, so that every field's type is checked; unknown fields are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from operator import attrgetter
from typing import Any

from bot.core.codec.checked import INT, STR, Fields, flat, shown, table_of
from bot.core.codec.serial_program import (
    Programs,
    canonical,
    families_to_plain,
    family_from_plain,
    programs_from_plain,
)
from bot.core.codec.serial_text import dispatch_of, parsed
from bot.core.metrics import METRIC_BY_ID
from bot.core.values.program import Family, Program
from bot.core.values.snapshot import (
    SNAPSHOT_SCHEMA,
    STATUSES,
    Cell,
    CellKey,
    CompilerInfo,
    Dispatch,
    Failure,
    Outcome,
    Snapshot,
    SourceInfo,
)
from bot.errors import InputError

_DISPATCH_FIELDS = tuple(f.name for f in fields(Dispatch))


_dispatch_values = attrgetter(*_DISPATCH_FIELDS)


def dispatch_to_plain(dispatch: Dispatch) -> dict[str, Any]:
    """What is known of one entry point."""
    pairs = zip(_DISPATCH_FIELDS, _dispatch_values(dispatch), strict=True)
    return {name: value for name, value in pairs if value is not None}


def cell_to_plain(cell: Cell, programs: Programs | None = None) -> dict[str, Any]:
    """One cell as plain JSON values; its program stands among `programs`, by name."""
    programs = programs or Programs((cell,))
    return {
        "model": cell.key.model,
        "target": cell.key.target,
        "status": cell.status,
        "metrics": dict(cell.metrics),
        "dispatches": [dispatch_to_plain(dispatch) for dispatch in cell.dispatches],
        "failure": asdict(cell.failure) if cell.failure else None,
        "command": cell.command,
        "artifact_digest": cell.artifact_digest,
        "reasons": dict(cell.reasons),
        "compiles": cell.compiles,
        "others": [asdict(other) for other in cell.others],
        "donor": cell.donor,
        "program": programs.key(cell.program),
        "families": families_to_plain(cell.families),
        "phases_ms": dict(cell.phases_ms),
        "parts": dict(cell.parts),
    }


def snapshot_to_plain(snapshot: Snapshot) -> dict[str, Any]:
    """The contract's `snapshot.json` as plain values; its cells one at a time, so that they are not held twice."""
    programs = Programs(snapshot.cells)
    return {
        "schema": SNAPSHOT_SCHEMA,
        "compiler": asdict(snapshot.compiler),
        "source": asdict(snapshot.source),
        "flags": list(snapshot.flags),
        "targets": dict(snapshot.targets),
        "backends": list(snapshot.backends),
        "models": dict(snapshot.models),
        "notes": list(snapshot.notes),
        "programs": programs.plain,
        "cells": (cell_to_plain(cell, programs) for cell in snapshot.cells),
    }


def lines(plain: Mapping[str, Any]) -> Iterator[str]:
    """Canonical JSON text of one object: sorted keys, a line for each field, cell and program.

    So a change of one cell is one line in `git diff`, and the text stays small.
    """
    for index, key in enumerate(sorted(plain)):
        yield f"{'{' if index == 0 else ','}{canonical(key)}:"
        if key == "cells":
            yield "["
            for number, row in enumerate(plain[key]):
                yield f"{',' if number else ''}\n{canonical(row)}"
            yield "]\n"
        elif key == "programs":
            yield "{"
            for number, name in enumerate(sorted(plain[key])):
                yield f"{',' if number else ''}\n{canonical(name)}:{canonical(plain[key][name])}"
            yield "}\n"
        else:
            yield f"{canonical(plain[key])}\n"
    yield "}\n"


def dumps(plain: Mapping[str, Any]) -> str:
    """The lines as one text."""
    return "".join(lines(plain))


def to_json(snapshot: Snapshot) -> str:
    """The text of `snapshot.json`; the same snapshot always gives the same text."""
    return dumps(snapshot_to_plain(snapshot))


_FLAT = {cls: table_of(cls) for cls in (CompilerInfo, SourceInfo, Failure)}
_CELL_FIELDS = frozenset({f.name for f in fields(Cell)} - {"key"} | {"model", "target"})
_OUTCOME_FIELDS = frozenset(f.name for f in fields(Outcome))
_SNAPSHOT_FIELDS = frozenset({f.name for f in fields(Snapshot)} | {"schema", "programs"})


def _flat(cls: Any, value: Any, path: str) -> Any:
    return flat(cls, _FLAT[cls], value, path)


def cell_from_plain(value: Any, programs: Mapping[str, Program] | None = None, path: str = "cell") -> Cell:
    """One cell from plain JSON values; raises InputError naming `path` and the field."""
    found = Fields(value, path, _CELL_FIELDS)
    status, metrics = _measured(found, path)
    failure = found.get("failure", (dict, type(None)), None)
    return Cell(
        key=CellKey(found.get("model", str), found.get("target", str)),
        status=status,
        metrics=metrics,
        dispatches=tuple(dispatch_of(entry, f"{path}.dispatches") for entry in found.items("dispatches")),
        failure=_flat(Failure, failure, f"{path}.failure") if failure is not None else None,
        command=found.get("command", str, ""),
        artifact_digest=found.get("artifact_digest", STR, None),
        reasons=found.mapping("reasons", (str,)),
        compiles=found.get("compiles", int, 1),
        others=tuple(_outcome(entry, f"{path}.others") for entry in found.items("others")),
        donor=found.get("donor", STR, None),
        program=_program(found.get("program", STR, None), programs or {}, path),
        families=tuple(_family(entry, f"{path}.families") for entry in found.items("families")),
        phases_ms=found.mapping("phases_ms", (int,)),
        parts=_parts(found, metrics.get("artifact_bytes"), path),
    )


def _parts(found: Fields, whole_bytes: int | None, path: str) -> dict[str, int]:
    parts = found.mapping("parts", (int,))
    if parts and sum(parts.values()) != whole_bytes:
        raise InputError(f"its parts sum to {sum(parts.values())}, not to its artifact_bytes", where=path)
    return parts


def _measured(found: Fields, path: str) -> tuple[str, dict[str, int | None]]:
    """Status and metrics, each of a known kind."""
    status, metrics = found.get("status", str), found.mapping("metrics", INT)
    if status not in STATUSES:
        raise InputError(f"unknown status {shown(status)}", where=path)
    if unknown := metrics.keys() - METRIC_BY_ID.keys():
        raise InputError(f"unknown metric {shown(min(unknown))}", where=path)
    return status, metrics


def _outcome(value: Any, path: str) -> Outcome:
    found = Fields(value, path, _OUTCOME_FIELDS)
    return Outcome(*_measured(found, path), found.get("artifact_digest", STR, None))


def _program(name: str | None, programs: Mapping[str, Program], path: str) -> Program | None:
    if name is not None and name not in programs:
        raise InputError(f"no program is called {shown(name)}", where=path)
    return None if name is None else programs[name]


def _family(value: Any, path: str) -> Family:
    """Cells of one model have the same families, so that equal ones are checked and held once."""
    try:
        known = _families.get((value["kind"], tuple(value["members"]), tuple(value["varying"]), len(value)))
    except (KeyError, TypeError):
        known = None
    if known is not None:
        return known
    family = family_from_plain(value, path)
    if len(_families) < _FAMILIES_HELD:
        _families[family.kind, family.members, family.varying, len(fields(Family))] = family
    return family


_FAMILIES_HELD = 100_000
_families: dict[tuple[Any, ...], Family] = {}


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
            f"is no snapshot this version reads: schema is {shown(schema)}, not {SNAPSHOT_SCHEMA!r}",
            where=where,
            hint="measure it again with this version of code-size-bot",
        )
    found = Fields(value, where, _SNAPSHOT_FIELDS)
    programs = programs_from_plain(found.get("programs", dict, {}), f"{where}: programs")
    plain = enumerate(_drained(found.items("cells")))
    cells = [cell_from_plain(cell, programs, f"{where}: cells[{i}]") for i, cell in plain]
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
    return from_lines(_lines_of(text), where)


def _lines_of(text: str) -> Iterator[str]:
    """Cut at line feeds only: `splitlines` also does so at characters that stand in names."""
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield text[start:end]
        start = end


def from_lines(text: Iterable[str], where: str) -> Snapshot:
    """Do what `from_json` does for a text that comes line by line, so that it need not be held."""
    try:
        value = parsed(text)
    except UnicodeDecodeError:  # the caller's: what it reads is no text
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"is no JSON, or was cut off: {error}", where=where, hint="write the snapshot again") from None
    return snapshot_from_plain(value, where)
