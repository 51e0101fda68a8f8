"""Owns the text of a stored baseline: the rows that a snapshot has thousands of stand as columns, one for each field.

Equal fields stand side by side, which saves a fifth under xz: 117 cells of 13 models on 9 targets, with 3,400
dispatches, take 117 KB, and 146 KB as `snapshot.json` has them. Ours, and read by nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from msgspec.structs import replace

from bot.core.codec.json_text import canonical, converted, decoded, require_schema
from bot.core.codec.snapshot_json import SnapshotRow, rows_of, snapshot_of
from bot.core.record import Count, Record
from bot.core.values.program import Site, Source
from bot.core.values.snapshot import Dispatch, Snapshot
from bot.errors import InputError

COLUMNS_SCHEMA = "code-size-columns/2"
MOST_ROWS = 1 << 20
"""Of a kind: 64 MiB of text hold fewer that are real, but many more of a hostile hand's."""
_HINT = "measure it again with this version of code-size-bot"
_Row = TypeVar("_Row", bound=Record)
_Value = str | int | bool | None | tuple[str, ...]


class Table(Record, frozen=True):
    """Lists of rows: how long each is, and their rows' fields, a column each; one that is missing has no values."""

    counts: tuple[Count, ...]
    columns: dict[str, tuple[_Value, ...]]


class Stored(Record, frozen=True):
    """A snapshot whose cells have no dispatches and whose programs no sources and sites: these stand in the tables."""

    schema: str
    snapshot: SnapshotRow
    dispatches: Table
    sources: Table
    sites: Table


def to_columns(snapshot: Snapshot) -> bytes:
    """The text of a snapshot; equal snapshots give equal bytes."""
    row = rows_of(snapshot)
    names = sorted(row.programs)
    programs = [row.programs[name] for name in names]
    bare = replace(
        row,
        cells=tuple(replace(cell, dispatches=()) for cell in row.cells),
        programs={name: replace(row.programs[name], sources=(), sites=()) for name in names},
    )
    tables = (
        _table(Dispatch, [cell.dispatches for cell in row.cells]),
        _table(Source, [program.sources for program in programs]),
        _table(Site, [program.sites for program in programs]),
    )
    return canonical(Stored(COLUMNS_SCHEMA, bare, *tables))


def from_columns(text: bytes, where: str) -> Snapshot:
    """The snapshot; raises InputError naming `where` for text of another form, UnicodeDecodeError for what is none."""
    require_schema(text, COLUMNS_SCHEMA, "stored snapshot", where, _HINT)
    stored = decoded(text, Stored, where, _HINT)
    row, names = stored.snapshot, sorted(stored.snapshot.programs)
    dispatches = _lists(stored.dispatches, Dispatch, len(row.cells), f"{where}: dispatches")
    sources = _lists(stored.sources, Source, len(names), f"{where}: sources")
    sites = _lists(stored.sites, Site, len(names), f"{where}: sites")
    full = replace(
        row,
        cells=tuple(replace(cell, dispatches=next(dispatches)) for cell in row.cells),
        programs={name: replace(row.programs[name], sources=next(sources), sites=next(sites)) for name in names},
    )
    return snapshot_of(full, full.cells, where)


def _table(kind: type[Record], lists: Sequence[Sequence[Record]]) -> Table:
    rows = [row for rows in lists for row in rows]
    columns = {name: tuple(getattr(row, name) for row in rows) for name in kind.__struct_fields__}
    said = {name: values for name, values in columns.items() if any(value is not None for value in values)}
    return Table(tuple(map(len, lists)), said)


def _lists(table: Table, kind: type[_Row], count: int, where: str) -> Iterator[tuple[_Row, ...]]:
    """The rows of each list."""
    size = sum(table.counts)
    if size > MOST_ROWS:
        raise InputError(f"has more than {MOST_ROWS} rows", where=where, hint=_HINT)
    if len(table.counts) != count or any(len(values) != size for values in table.columns.values()):
        raise InputError("its columns are of another length than its rows", where=where, hint=_HINT)
    names = tuple(table.columns)
    plain: list[dict[str, Any]] = [
        dict(zip(names, values, strict=True)) for values in zip(*table.columns.values(), strict=True)
    ]
    if len(plain) != size:
        raise InputError("has rows without a column", where=where, hint=_HINT)
    rows = iter(converted(plain, list[kind], where))  # type: ignore[valid-type]
    return (tuple(islice(rows, length)) for length in table.counts)
