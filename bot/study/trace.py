"""Trace one dispatch on both sides.

The result has its bytes by phase, the proof of its configuration, and its passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bot.core.delta import diff
from bot.core.explanation import DispatchDelta
from bot.core.ladder import CODE_GENERATOR, MLIR, Ladder, attribution, is_large_part
from bot.core.machine_passes import MachinePasses
from bot.core.mappings import known_values
from bot.core.near import near_or_known
from bot.core.parting import NOT_TRACED, parting
from bot.core.pass_proof import PassProof
from bot.core.planned import SIDES, beginning, matching, only_cell
from bot.core.snapshot import Cell, CellKey, Dispatch
from bot.core.trace import PROGRAM, Parting
from bot.core.traced import Traced
from bot.errors import NoVerdict, UsageError
from bot.explain.carrying import fitting_ladder
from bot.explain.explanations import explanations
from bot.explain.sameness import configured_differently
from bot.study.both_sides import BothSides, both_sides
from bot.study.changed_dispatches import dispatches_of, is_formed, is_lone
from bot.study.ladder_choice import Wanted, no_ladder
from bot.study.laddering import with_ladders
from bot.study.machine_passes import machine_passes
from bot.study.printed_passes import program_command, trace_commands
from bot.study.proving_pass import prove_pass
from bot.study.request import Request, Show
from bot.study.tracing import SideTracer, side_tracers, with_traces
from bot.system.cancel import Cancel

_SHOWN = 8


def trace(request: Request, dispatch: str, show: Show, cancel: Cancel) -> Traced:
    """Measure one cell on both sides, and trace one of its dispatches.

    A side whose cell is known already is not measured again.

    Args:
        dispatch: its name on either side, as it is shown, its beginning, or a glob.
            `base:` or `head:` before it names that side's, where base's and head's of
            one name are no pair.

    Raises:
        UsageError: several cells or dispatches are meant, or none.
        NoVerdict: a side could not be compiled.
    """
    pair_of_sides = both_sides(request, show, cancel, one_cell=True)
    keys = set[CellKey]()
    for side in pair_of_sides.sides.values():
        keys.update(side.by_key)
    key = only_cell(keys)
    cells = {}
    for name, side in pair_of_sides.sides.items():
        if key not in side.by_key:
            raise NoVerdict("has no such build", where=f"{key}, {name}")
        cells[name] = side.by_key[key]
    _require_compiled(key, cells)
    deltas = diff(pair_of_sides.sides["base"], pair_of_sides.sides["head"])
    causes = explanations(
        pair_of_sides.sides["base"],
        head=pair_of_sides.sides["head"],
        deltas=deltas,
        sections=pair_of_sides.work.config.components,
    )
    changed = causes[key].dispatches if key in causes else ()
    delta = _chosen(dispatch, cells, changed)
    wanted_ladder = Wanted(
        key, delta, both_orders=True, with_proof=configured_differently(delta)
    )
    with (
        pair_of_sides.work.resources() as resources,
        side_tracers(pair_of_sides.plans, resources) as tracers,
    ):
        sides = with_ladders(
            pair_of_sides.plans,
            sides=pair_of_sides.sides,
            wanted_ladders=[wanted_ladder],
            resources=resources,
            tracers=tracers,
        )
        sides = with_traces(
            pair_of_sides.plans,
            sides=sides,
            moved=[(key, delta)],
            resources=resources,
            tracers=tracers,
            with_bytes=True,
        )
        ladder = fitting_ladder(
            delta.base,
            head=delta.head,
            cell=sides["head"].cells[0],
            base_compiler=sides["base"].compiler.digest,
        )
        proofs = _proofs(pair_of_sides, delta=delta, ladder=ladder, tracers=tracers)
    labels_here = [plan.label for plan in pair_of_sides.plans]
    rows = dispatches_of(delta)
    traces = {}
    for name, row in rows.items():
        traces[name] = sides[name].cells[0].traces.get(row.name)
    parting_pass = parting(traces.get("base"), traces.get("head"))
    if not pair_of_sides.plans and parting_pass.why == NOT_TRACED:
        parting_pass = replace(
            parting_pass, why="no compiler is available: both sides are snapshots"
        )
    known_traces = known_values(traces)
    formed = (trace.formed for trace in known_traces.values() if trace.formed)
    return Traced(
        key=key,
        compilers={name: side.compiler.version for name, side in sides.items()},
        rows=rows,
        traces=known_traces,
        commands=_commands(cells, rows, parting_pass),
        parting=parting_pass,
        ladder=ladder,
        no_ladder="" if ladder else no_ladder(delta, labels_here),
        formed=next(formed, None),
        proof=ladder.knobs if ladder else None,
        pass_proof=proofs.mlir_pass,
        machine=proofs.machine,
    )


def _require_compiled(key: CellKey, cells: Mapping[str, Cell]) -> None:
    """Raise NoVerdict for a side that could not be compiled."""
    for name, cell in cells.items():
        if cell.measured:
            continue
        reason: str = cell.status
        if cell.failure:
            reason = cell.failure.first_line
        raise NoVerdict(f"was not compiled: {reason}", where=f"{key}, {name}")


def _commands(
    cells: Mapping[str, Cell], rows: Mapping[str, Dispatch], parting_pass: Parting
) -> dict[str, tuple[str, ...]]:
    """Return the commands of each side that print the passes of the dispatch.

    Where the sides part in a pass over the program, they print the program's passes.
    """
    row = parting_pass.row
    commands = dict[str, tuple[str, ...]]()
    for side, cell in cells.items():
        if row and row.level == PROGRAM:
            commands[side] = (program_command(cell.command),)
        elif row or side in rows:
            commands[side] = trace_commands(cell.command, rows[side])
    return commands


@dataclass(frozen=True, slots=True)
class _Proofs:
    """The experiments in the phases that carry bytes.

    An experiment that does not apply is None.
    """

    mlir_pass: PassProof | None = None
    machine: MachinePasses | None = None


def _proofs(
    pair_of_sides: BothSides,
    delta: DispatchDelta,
    ladder: Ladder | None,
    tracers: Mapping[str, SideTracer],
) -> _Proofs:
    """Make the experiments of the phases that carry bytes.

    There are none if a compiler is not here.
    """
    if (
        ladder is None
        or delta.base is None
        or delta.head is None
        or len(pair_of_sides.plans) < len(SIDES)
    ):
        return _Proofs()
    base = tracers["base"].ladder_side(pair_of_sides.sides["base"].cells[0], delta.base)
    head = tracers["head"].ladder_side(pair_of_sides.sides["head"].cells[0], delta.head)
    parts = attribution(ladder)
    mlir_pass = None
    if is_large_part(parts, MLIR):
        mlir_pass = prove_pass(base, head, ladder)
    machine = None
    if is_large_part(parts, CODE_GENERATOR):
        machine = machine_passes(base, head)
    return _Proofs(mlir_pass, machine)


def _chosen(
    dispatch_name: str, cells: Mapping[str, Cell], changed: Sequence[DispatchDelta]
) -> DispatchDelta:
    """Return the dispatch on both sides that a name means.

    Raises:
        UsageError: several are meant, or none.
        NoVerdict: the dispatch has nothing to be held against.
    """
    only_side, _, name = dispatch_name.partition(":")
    if only_side not in SIDES:  # a function's name may have a colon
        only_side = ""
        name = dispatch_name
    places = list[tuple[str, DispatchDelta]]()
    for delta in _pairs(cells, changed):
        for side, row in dispatches_of(delta).items():
            if only_side in ("", side):
                places.append((row.name, delta))
    names = list(dict.fromkeys(row_name for row_name, _ in places))
    fitting = _fitting_names(names, name)
    meant_by_id = dict[int, DispatchDelta]()
    for row_name, delta in places:
        if row_name in fitting:
            meant_by_id[id(delta)] = delta
    meant = list(meant_by_id.values())
    if not meant:
        raise _none_meant(name, only_side, cells=cells, names=names)
    if len(meant) > 1:
        raise _several_meant(name, fitting, meant)
    return meant[0]


def _pairs(
    cells: Mapping[str, Cell], changed: Sequence[DispatchDelta]
) -> list[DispatchDelta]:
    """Return the dispatches that can be traced.

    A dispatch that changed is paired as it was matched, or was formed otherwise on a
    side. Any other one is paired by its name.
    """
    pairs = []
    paired = set[str]()
    for delta in changed:
        if is_formed(delta) or not is_lone(delta):
            pairs.append(delta)
            paired.update(row.name for row in dispatches_of(delta).values())
    heads = {row.name: row for row in cells["head"].dispatches}
    for row in cells["base"].dispatches:
        if row.name in heads and row.name not in paired:
            head = heads[row.name]
            pairs.append(
                DispatchDelta(base=row, head=head, matched="same-name", cause=None)
            )
    return pairs


def _fitting_names(names: Sequence[str], text: str) -> list[str]:
    """Return the names that a text selects, or else those that begin with it."""
    return matching(names, text, None) or beginning(names, text)


def _several_meant(
    name: str, fitting: Sequence[str], meant: Sequence[DispatchDelta]
) -> UsageError:
    """Return the error for a name that fits several dispatches."""
    shown_names = ", ".join(delta.name for delta in meant[:_SHOWN])
    if len(meant) > _SHOWN:
        shown_names += ", …"
    hint = "name one of them"
    if len(fitting) == 1:  # base's and head's of that name are no pair
        hint = f"base:{fitting[0]} or head:{fitting[0]}"
    return UsageError(
        f"{name!r} matches several: {shown_names}", where="--dispatch", hint=hint
    )


def _none_meant(
    name: str, only_side: str, cells: Mapping[str, Cell], names: Sequence[str]
) -> NoVerdict | UsageError:
    """Return the error for a name that fits no dispatch on both sides."""
    for side, cell in cells.items():
        fitting = _fitting_names([row.name for row in cell.dispatches], name)
        if fitting and only_side in ("", side):
            return NoVerdict(
                f"is only on {side}, and has no counterpart", where=fitting[0]
            )
    return UsageError(
        f"no dispatch that can be traced has the name {name!r}",
        where="--dispatch",
        hint=near_or_known(name, names, None),
    )
