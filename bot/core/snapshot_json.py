"""`snapshot.json`: strict on the way in, canonical on the way out.

Cells of one model share a program, so that a snapshot holds each once, under the digest of what it says.
"""

from __future__ import annotations

import hashlib
import re
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from sys import intern
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import force_setattr, replace

from bot.core.json_text import canonical, decoded, require_schema
from bot.core.metrics import METRIC_BY_ID
from bot.core.program import Family, Program, Source
from bot.core.record import Count, Record
from bot.core.snapshot import (
    SNAPSHOT_SCHEMA,
    Cell,
    CellKey,
    CompilerInfo,
    Dispatch,
    Failure,
    Metrics,
    Outcome,
    Snapshot,
    SourceInfo,
    Status,
)
from bot.core.trace import DispatchTrace
from bot.errors import InputError

_OLD_NAME_DIGITS = 16
MOST_TRACED = 40_000_000
"""The largest sum of the sizes of all traces in a snapshot; those of the suite's 13 models have 5 million."""
MEASURE_AGAIN = "measure it again with this version of code-size-bot"


class CellRow(Record, frozen=True):
    """One cell; its program stands among those of the snapshot, by name."""

    model: str
    target: str
    status: Status
    metrics: Metrics = msgspec.field(default_factory=dict)
    dispatches: tuple[Dispatch, ...] = ()
    failure: Failure | None = None
    command: str = ""
    artifact_digest: str | None = None
    reasons: Mapping[str, str] = {}
    compiles: Count = 1
    others: tuple[Outcome, ...] = ()
    donor: str | msgspec.UnsetType | None = msgspec.UNSET
    """Read of what was stored while several targets shared half a compile, and forgotten."""
    program: str | None = None
    families: tuple[Family, ...] = ()
    phases_ms: Mapping[str, Count] = {}
    parts: Mapping[str, Count] = {}
    assembler: str | None = None
    traces: Mapping[str, DispatchTrace] | msgspec.UnsetType = msgspec.UNSET


class Side(Record, frozen=True):
    """The contract's `snapshot.json` but for the cells."""

    schema: str
    compiler: CompilerInfo
    source: SourceInfo
    programs: Mapping[str, Program] = {}
    flags: tuple[str, ...] = ()
    targets: Mapping[str, str] = {}
    backends: tuple[str, ...] = ()
    models: Mapping[str, str] = {}
    notes: tuple[str, ...] = ()
    only: Mapping[str, str] = {}


class SnapshotRow(Side, frozen=True, kw_only=True):
    """The whole of it."""

    cells: tuple[CellRow, ...]


_READ: Final = 0
"""Stands in the text for a cell that was read already."""


class _Rest(Side, frozen=True, kw_only=True):
    cells: tuple[Literal[0] | CellRow, ...]


_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
_CELLS = (b'{"cells":[\n', b',"cells":[\n')
_decoder = msgspec.json.Decoder(CellRow)
_TEXTS = ("executable", "name", "kind", "stack_kind", "strategy")
_NUMBERS = ("stack_bytes", "alloca_bytes", "workgroup_bytes", "executable_bytes")
"""What dispatches have in common with others, here and on the other side."""

_AS_THEY_ARE = tuple(n for n in CellRow.__struct_fields__ if n not in ("model", "target", "donor", "program", "traces"))
_SELDOM = frozenset({"only"})
"""Left out where they are empty, so that a snapshot without a suite is what it always was."""
_PILED = frozenset({"cells", "points"})
"""Each entry on a line of its own."""
_SIDE = tuple(name for name in SnapshotRow.__struct_fields__ if name not in ("schema", "cells", "programs"))


def key_of(program: Program) -> str:
    """The name of a program in a snapshot: the SHA-256 of its JSON, in hex."""
    return hashlib.sha256(canonical(program)).hexdigest()


class Programs:
    """The programs of cells by name; equal programs are one."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        held = {id(cell.program): cell.program for cell in cells if cell.program is not None}
        self._keys = {identity: key_of(program) for identity, program in held.items()}
        self.by_name = {self._keys[identity]: program for identity, program in held.items()}

    def key(self, program: Program | None) -> str | None:
        """The name of one of them."""
        return None if program is None else self._keys[id(program)]


def row_of(cell: Cell, programs: Programs) -> CellRow:
    """The cell as it is written."""
    shared: dict[str, Any] = {name: getattr(cell, name) for name in _AS_THEY_ARE}
    traces = cell.traces or msgspec.UNSET
    return CellRow(cell.key.model, cell.key.target, program=programs.key(cell.program), traces=traces, **shared)


def rows_of(snapshot: Snapshot) -> SnapshotRow:
    """The snapshot as it is written; `lines` makes its text, the same one for the same snapshot."""
    programs = Programs(snapshot.cells)
    cells = tuple(row_of(cell, programs) for cell in snapshot.cells)
    shared: dict[str, Any] = {name: getattr(snapshot, name) for name in _SIDE}
    return SnapshotRow(SNAPSHOT_SCHEMA, cells=cells, programs=programs.by_name, **shared)


def lines(record: Record | Mapping[str, Any], cells: Iterable[Any] | None = None) -> Iterator[bytes]:
    """Canonical JSON of one object: sorted keys, a line for each field that is set, cell and program.

    So a change of one cell is one line in `git diff`.

    Args:
        cells: come one by one, in place of the record's own.
    """
    fields = record if isinstance(record, Mapping) else {n: getattr(record, n) for n in record.__struct_fields__}
    fields = {
        name: each for name, each in fields.items() if each is not msgspec.UNSET and (each or name not in _SELDOM)
    }
    for index, (name, value) in enumerate(sorted(fields.items())):
        yield b"%c%s:" % (b"{,"[index > 0], canonical(name))
        if name in _PILED:
            yield from _piled(b"[]", map(canonical, value if cells is None else cells))
        elif name == "programs":
            entries = (canonical(key) + b":" + canonical(value[key]) for key in sorted(value))
            yield from _piled(b"{}", entries)
        else:
            yield canonical(value) + b"\n"
    yield b"}\n"


def _piled(brackets: bytes, entries: Iterable[bytes]) -> Iterator[bytes]:
    """Entries on a line each."""
    yield brackets[:1]
    for number, entry in enumerate(entries):
        yield (b",\n" if number else b"\n") + entry
    yield brackets[1:] + b"\n"


def from_json(text: bytes | str, where: str = "snapshot") -> Snapshot:
    """Read `snapshot.json`; raises InputError for text that is torn, foreign or of another schema."""
    data = text.encode() if isinstance(text, str) else text
    return from_lines((line[0] for line in _LINE.finditer(data)), where)


def from_lines(text: Iterable[bytes], where: str) -> Snapshot:
    """Read `snapshot.json` line by line, so that it need not be held; raises InputError as `from_json`.

    Cells stand on a line of their own, as `lines` writes them, and are read as they come. Any other layout of the same
    JSON is read as well, at the cost of memory.
    """
    cells, sizes = list[CellRow](), list[int]()
    rest = b"".join(_without_cells(text, cells, sizes))
    require_schema(rest, SNAPSHOT_SCHEMA, "snapshot", where, MEASURE_AGAIN, sum(sizes))
    row = decoded(rest, _Rest, where, MEASURE_AGAIN)
    if row.cells.count(_READ) != len(cells):
        raise InputError("a line that looks like a cell is none", where=where, hint=MEASURE_AGAIN)
    early = iter(cells)
    return snapshot_of(row, [next(early) if isinstance(cell, int) else cell for cell in row.cells], where)


def _without_cells(text: Iterable[bytes], cells: list[CellRow], sizes: list[int]) -> Iterator[bytes]:
    """The text with _READ for each cell that is whole on its line; cells and sizes of lines go to the lists."""
    inside, held = False, dict[Any, Any]()
    for line in text:
        sizes.append(len(line))
        if inside and line.startswith(b"{"):
            end = len(line.rstrip(b"],\n"))
            try:
                cells.append(_shared(_decoder.decode(line[:end]), held))
            except (msgspec.DecodeError, RecursionError):
                yield line  # which is refused with the whole, in words that say where
            else:
                yield b"%d%s" % (_READ, line[end:])
        else:
            inside = inside or line in _CELLS
            yield line


def snapshot_of(row: Side, rows: Sequence[CellRow], where: str) -> Snapshot:
    """What was read, as the value that it stands for; raises InputError for what contradicts itself."""
    for name, program in row.programs.items():
        if name not in ((own := key_of(program)), own[:_OLD_NAME_DIGITS]):
            what = "a program's name is not the digest of what it says"
            raise InputError(what, where=f"{where}: programs.{name[:20]}")
    keys = [(cell.model, cell.target) for cell in rows]
    if keys != sorted(set(keys)):
        raise InputError("cells are not sorted and unique", where=where)
    cells = [cell_of(cell, row.programs, f"{where}: cells[{i}]") for i, cell in enumerate(rows)]
    if sum(trace.size for cell in cells for trace in cell.traces.values()) > MOST_TRACED:
        raise InputError("has larger traces than are looked at", where=where, hint=MEASURE_AGAIN)
    shared: dict[str, Any] = {name: getattr(row, name) for name in _SIDE}
    return Snapshot(cells=tuple(cells), **shared)


def cell_of(row: CellRow, programs: Mapping[str, Program], where: str) -> Cell:
    """One cell; raises InputError naming `where` for one that contradicts itself."""
    for metrics in (row.metrics, *(other.metrics for other in row.others)):
        if unknown := metrics.keys() - METRIC_BY_ID.keys():
            raise InputError(f"unknown metric {min(unknown)[:60]!r}", where=where)
    if row.parts and sum(row.parts.values()) != row.metrics.get("artifact_bytes"):
        raise InputError(f"its parts sum to {sum(row.parts.values())}, not to its artifact_bytes", where=where)
    if row.program is not None and row.program not in programs:
        raise InputError(f"no program is called {row.program[:60]!r}", where=where)
    shared: dict[str, Any] = {name: getattr(row, name) for name in _AS_THEY_ARE}
    program = None if row.program is None else programs[row.program]
    traces = {} if row.traces is msgspec.UNSET else row.traces
    return Cell(CellKey(row.model, row.target), program=program, traces=traces, **shared)


def _shared(row: CellRow, held: dict[Any, Any]) -> CellRow:
    """The row, what it has in common with others held once: texts and numbers of its dispatches, families, reasons."""
    for dispatch in row.dispatches:
        for name in _TEXTS:
            if (text := getattr(dispatch, name)) is not None:
                force_setattr(dispatch, name, intern(text))
        for name in _NUMBERS:
            if number := getattr(dispatch, name):
                force_setattr(dispatch, name, held.setdefault(number, number))
    force_setattr(row, "families", tuple(held.setdefault(family, family) for family in row.families))
    force_setattr(row, "reasons", held.setdefault(tuple(row.reasons.items()), row.reasons))
    force_setattr(row, "command", intern(row.command))
    return row


# How digests are written, how far a stored baseline cuts them, and what a cut one can still tell.
#
# A whole digest is a SHA-256: of code and of IR as 43 characters of base64url, of phases and of programs as 64 hex
# digits. The cell cache, every file of a run and the names of kept texts have whole ones: equal digests, equal texts.
#
# A short one is the beginning of a whole one, all that a stored baseline has room for. So two are compared by what both
# have: where that differs, the texts differ. That it is equal proves nothing: of 9,500 texts two share 30 bits, as
# likely
# as not. It counts only beside something that was measured apart from it (the same size and numbers, the same
# structure), the words then say that it was short, and no kept text is ever looked up by it.


WHOLE_CHARACTERS = 43
CODE_CHARACTERS, SOURCE_CHARACTERS, STRUCTURE_CHARACTERS, BOUND_CHARACTERS = 4, 5, 4, 4
PHASE_CHARACTERS = 16
SUM_MODULUS, SHORT_SUM_MODULUS = 1 << 53, 1 << 32
"""A source's `operations` is counted modulo what JSON holds exactly, and cut to its low half."""

_WHOLE = re.compile(r"[A-Za-z0-9_-]{43}|[0-9a-f]{64}")


def written(sha256: bytes) -> str:
    """A whole digest as 43 characters of base64url."""
    return urlsafe_b64encode(sha256).decode("ascii").rstrip("=")


def is_whole(text: str) -> bool:
    """True for the text of a whole digest."""
    return _WHOLE.fullmatch(text) is not None


def differ(left: str, right: str) -> bool:
    """True where the digests prove that their texts differ; a beginning too short for a digest agrees with none."""
    if len(left) == len(right):
        return left != right
    common = min(len(left), len(right))
    return left != right if common < CODE_CHARACTERS else left[:common] != right[:common]


def short_code(cell: Cell) -> bool:
    """True where a digest of the cell's code was cut."""
    return any(row.code is not None and len(row.code) < WHOLE_CHARACTERS for row in cell.dispatches)


def short_program(program: Program) -> bool:
    """True where a digest of the program was cut."""
    rows = ((row.source, row.structure, row.bound or row.source, *row.bound_parts) for row in program.sources)
    digests = [*(text for row in rows for text in row), *program.phases.values()]
    return any(len(text) < WHOLE_CHARACTERS for text in digests)


def name_of(program: Program) -> str:
    """The whole digest (hex) of all that is said of a program but its arguments, which a baseline leaves out."""
    return key_of(replace(program, arguments=(), whole=""))


def cut_program(program: Program) -> Program:
    """With short digests, and the name of the program that had whole ones, where it had."""
    return replace(
        program,
        phases={phase: digest[:PHASE_CHARACTERS] for phase, digest in program.phases.items()},
        sources=tuple(
            Source(
                source.executable,
                source.source[:SOURCE_CHARACTERS],
                source.structure[:STRUCTURE_CHARACTERS],
                source.operations % SHORT_SUM_MODULUS,
                source.bound[:BOUND_CHARACTERS],
                tuple(part[:BOUND_CHARACTERS] for part in source.bound_parts),
            )
            for source in program.sources
        ),
        whole=program.whole if short_program(program) else name_of(program),
    )


def cut_dispatch(row: Dispatch) -> Dispatch:
    """With a short digest of its code."""
    return row if row.code is None else replace(row, code=row.code[:CODE_CHARACTERS])
