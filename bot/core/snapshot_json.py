"""Read and write `snapshot.json`.

Reading is strict. The text is sorted, and equal snapshots have equal texts. A program
that cells share is in it once.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from sys import intern
from typing import Any, Final, Literal, cast

import msgspec
from msgspec.structs import asdict, force_setattr, replace

from bot.core.json_text import (
    canonical,
    decoded,
    lines,
    require_schema,
    require_single_keys,
)
from bot.core.metrics import ARTIFACT_PARTS, METRIC_BY_ID
from bot.core.program import Program
from bot.core.record import INT_LIMIT
from bot.core.snapshot import Cell, Metrics, Snapshot
from bot.errors import InputError

SNAPSHOT_SCHEMA = "code-size-snapshot/1"

MOST_TRACED = 40_000_000
"""The largest sum of the sizes of all traces in a snapshot.

Those of the suite's 13 models have 5 million.
"""
MEASURE_AGAIN = "measure it again with this version of code-size-bot"


_READ: Final = 0  # stands in the text for a cell that was read already


class _Rest(Snapshot, frozen=True, kw_only=True):
    """The whole of `snapshot.json`, with _READ for each cell that was read before."""

    schema: str
    cells: tuple[Literal[0] | Cell, ...]  # type: ignore[assignment]
    programs: Mapping[str, Program] = {}

    def __post_init__(self) -> None:
        """Leave the check of the order to the snapshot that has all cells."""


_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
_CELLS = (b'{"cells":[\n', b',"cells":[\n')
_decoder = msgspec.json.Decoder(Cell)
# Fields of a dispatch whose values often repeat.
_TEXTS = ("executable", "name", "kind", "strategy")
_NUMBERS = (
    "code_bytes",
    "stack_bytes",
    "alloca_bytes",
    "workgroup_bytes",
    "executable_bytes",
)


def key_of(program: Program) -> str:
    """Return the name of a program in a snapshot: the SHA-256 of its JSON, in hex."""
    return hashlib.sha256(canonical(program)).hexdigest()


def snapshot_lines(snapshot: Snapshot) -> Iterator[bytes]:
    """Yield the text of `snapshot.json`, the same one for the same snapshot."""
    names = dict[int, str]()
    programs = dict[str, Program]()
    for cell in snapshot.cells:
        program = cell.program
        if program and id(program) not in names:
            name = key_of(program)
            names[id(program)] = name
            programs[name] = program
    fields = asdict(snapshot)
    fields["schema"] = SNAPSHOT_SCHEMA
    fields["programs"] = programs
    return lines(fields, _with_names(snapshot.cells, names))


def _with_names(cells: Iterable[Cell], names: Mapping[int, str]) -> Iterator[Cell]:
    """Yield each cell with the name of its program in place of the program.

    `names`: the identity of a program → its name.
    """
    for cell in cells:
        yield replace(cell, program=names.get(id(cell.program)))


def from_json(text: bytes | str, where: str = "snapshot") -> Snapshot:
    """Read `snapshot.json`.

    Raises InputError for text that is torn, foreign or of another schema.
    """
    data = text.encode() if isinstance(text, str) else text
    return from_lines((line[0] for line in _LINE.finditer(data)), where)


def from_lines(text: Iterable[bytes], where: str) -> Snapshot:
    """Read `snapshot.json` line by line.

    Memory stays small if each cell has its own line, as `lines` writes it. Any other
    layout is read, too. Raises InputError as `from_json`.
    """
    cells = list[Cell]()
    remainder = b"".join(_without_cells(text, cells))
    require_schema(
        remainder,
        schema=SNAPSHOT_SCHEMA,
        noun="snapshot",
        where=where,
        hint=MEASURE_AGAIN,
    )
    rest = decoded(remainder, kind=_Rest, where=where, hint=MEASURE_AGAIN)
    if rest.cells.count(_READ) != len(cells):
        raise InputError(
            "a line looks like a build, but is not one", where=where, hint=MEASURE_AGAIN
        )
    early = iter(cells)
    fields = {name: getattr(rest, name) for name in Snapshot.__struct_fields__}
    all_cells = list[Cell]()
    for cell in rest.cells:
        if isinstance(cell, int):
            all_cells.append(next(early))
        else:
            all_cells.append(cell)
    fields["cells"] = tuple(all_cells)
    try:
        snapshot = Snapshot(**fields)
    except ValueError as error:
        raise InputError(str(error), where=where) from None
    _complete(snapshot, rest.programs, where)
    return snapshot


def _without_cells(text: Iterable[bytes], cells: list[Cell]) -> Iterator[bytes]:
    """Yield the text with _READ for each cell that is whole on its line.

    The cells are appended to `cells`.
    """
    inside = False
    pool = dict[Any, Any]()
    for line in text:
        if inside and line.startswith(b"{"):
            end = len(line.rstrip(b"],\n"))
            try:
                entry = line[:end]
                cell = _decoder.decode(entry)
                # what this program writes has no key twice
                if canonical(cell) != entry:
                    require_single_keys(entry, "cell")
                cells.append(_shared(cell, pool))
            except (msgspec.DecodeError, RecursionError, InputError):
                yield line  # `decoded` refuses it below and names the place
            else:
                yield b"%d%s" % (_READ, line[end:])
        else:
            inside = inside or line in _CELLS
            yield line


def _complete(snapshot: Snapshot, programs: Mapping[str, Program], where: str) -> None:
    """Give each cell its program.

    Raises InputError if the snapshot contradicts itself.
    """
    _require_names_fit(programs, where)
    declared = {metric.id for metric in snapshot.compiler.metrics}
    if clashing := declared & METRIC_BY_ID.keys():
        raise InputError(
            f"declares {min(clashing)!r}, which is a built-in metric",
            where=where,
            hint=MEASURE_AGAIN,
        )
    for i, cell in enumerate(snapshot.cells):
        complete(cell, programs, where=f"{where}: cells[{i}]", declared=declared)
    _require_small(snapshot.cells, where)
    traced = 0
    for cell in snapshot.cells:
        traced += sum(trace.size for trace in cell.traces.values())
    if traced > MOST_TRACED:
        raise InputError(
            "has traces above the size limit", where=where, hint=MEASURE_AGAIN
        )


def _require_names_fit(programs: Mapping[str, Program], where: str) -> None:
    """Raise InputError for a program whose name is not the digest of its content."""
    for name, program in programs.items():
        if name != key_of(program):
            message = "the name of a program is not the digest of its content"
            raise InputError(message, where=f"{where}: programs.{name[:20]}")


def complete(
    cell: Cell,
    programs: Mapping[str, Program],
    where: str,
    declared: Set[str] = frozenset(),
) -> None:
    """Replace the name of a cell's program by the program.

    Raises InputError naming `where` for a cell that contradicts itself.

    `declared`: ids of the metrics that the compiler declares.
    """
    for metrics in _all_metrics(cell):
        if unknown := metrics.keys() - METRIC_BY_ID.keys() - declared:
            raise InputError(f"unknown metric {min(unknown)[:60]!r}", where=where)
    if cell.parts and sum(cell.parts.values()) != cell.metrics.get("artifact_bytes"):
        raise InputError(
            f"its parts sum to {sum(cell.parts.values())}, not to its artifact_bytes",
            where=where,
        )
    _require_possible(cell, where)
    _require_ladders_fit(cell, where)
    name = cast("str | None", cell.program)
    if name is None:
        return
    if name not in programs:
        raise InputError(f"no program is called {name[:60]!r}", where=where)
    force_setattr(cell, "program", programs[name])


def _all_metrics(cell: Cell) -> Iterator[Metrics]:
    """Yield the metrics of everything that the cell's command gave."""
    yield cell.metrics
    for outcome in cell.others:
        yield outcome.metrics


def _require_ladders_fit(cell: Cell, where: str) -> None:
    """Raise InputError for a ladder whose dispatch is missing or has other code."""
    if not cell.ladders:
        return
    rows = {row.name: row for row in cell.dispatches}
    for name, ladder in cell.ladders.items():
        row = rows.get(name)
        if row is None:
            raise InputError(
                f"has a ladder of {name[:60]!r}, which is no dispatch of it",
                where=where,
            )
        if row.code != ladder.head_code:
            raise InputError(
                f"the ladder of {name[:60]!r} is of other code", where=where
            )
        if ladder.head.code_bytes not in (None, row.code_bytes):
            message = (
                f"the ladder of {name[:60]!r} ends at {ladder.head.code_bytes:,} B, not"
                " at its code_bytes"
            )
            raise InputError(message, where=where)


def _require_possible(cell: Cell, where: str) -> None:
    """Raise InputError if a part or a function's code is larger than the artifact."""
    for metrics in _all_metrics(cell):
        whole = metrics.get("artifact_bytes")
        known_bytes = sum(metrics.get(id_) or 0 for id_ in ARTIFACT_PARTS)
        if whole is not None and known_bytes > whole:
            message = (
                f"{', '.join(ARTIFACT_PARTS)} sum to {known_bytes:,}, and"
                f" artifact_bytes is {whole:,}"
            )
            raise InputError(message, where=where)
    whole = cell.metrics.get("artifact_bytes")
    if whole is None:
        return
    for dispatch in cell.dispatches:
        for name in ("code_bytes", "executable_bytes"):
            size = getattr(dispatch, name)
            if size is not None and size > whole:
                message = (
                    f"{name} of {dispatch.name[:60]!r} is {size:,}, and artifact_bytes"
                    f" is {whole:,}"
                )
                raise InputError(message, where=where)


def _require_small(cells: Sequence[Cell], where: str) -> None:
    """Raise InputError for figures whose sum is too large for readers of JSON."""
    sums = Counter[str]()
    for cell in cells:
        for id_, value in cell.metrics.items():
            sums[id_] += value or 0
    for id_, total in sums.items():
        if total > INT_LIMIT:
            raise InputError(
                f"{id_} of all cells sums to more than {INT_LIMIT:,}", where=where
            )


def _shared(cell: Cell, pool: dict[Any, Any]) -> Cell:
    """Replace equal texts, numbers, families and reasons by one shared object."""
    for dispatch in cell.dispatches:
        for name in _TEXTS:
            if (text := getattr(dispatch, name)) is not None:
                force_setattr(dispatch, name, intern(text))
        for name in _NUMBERS:
            if number := getattr(dispatch, name):
                force_setattr(dispatch, name, pool.setdefault(number, number))
    force_setattr(
        cell,
        "families",
        tuple(pool.setdefault(family, family) for family in cell.families),
    )
    force_setattr(
        cell, "reasons", pool.setdefault(tuple(cell.reasons.items()), cell.reasons)
    )
    force_setattr(cell, "command", intern(cell.command))
    return cell
