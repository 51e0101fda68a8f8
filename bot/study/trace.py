"""`trace`: the bytes of one dispatch by phase, the proof of its configuration, and its passes on both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bot.core.delta import diff
from bot.core.explanation import DispatchDelta
from bot.core.ladder import CODE_GENERATOR, MLIR, Ladder, attribution, is_large_part
from bot.core.machine_passes import MachinePasses
from bot.core.near import near_or_known
from bot.core.parting import NOT_TRACED, Traced, parting
from bot.core.pass_proof import PassProof
from bot.core.planned import SIDES, beginning, matching, only_cell
from bot.core.snapshot import Cell
from bot.core.trace import PROGRAM
from bot.errors import NoVerdict, UsageError
from bot.explain.carrying import fitting_ladder
from bot.explain.explanations import explanations
from bot.explain.phases import configured_differently
from bot.study.comparison import BothSides, both_sides
from bot.study.laddering import Wanted, no_ladder, with_ladders
from bot.study.machine_passes import machine_passes
from bot.study.prepare import Request, Show
from bot.study.printed_passes import program_command, trace_commands
from bot.study.proving_pass import prove_pass
from bot.study.trace_budget import is_formed, is_lone
from bot.study.tracing import SideTracer, side_tracers, with_traces
from bot.system.processes import Cancel

_SHOWN = 8


def trace(request: Request, dispatch: str, show: Show, cancel: Cancel) -> Traced:
    """Measure one cell on both sides where it is not known yet, and trace one of its dispatches.

    `dispatch`: its name on either side, as it is shown, its beginning, or a glob;
    `base:` or `head:` before it: that side's, where base's and head's of one name are
    no pair. Raises UsageError where several cells or dispatches are meant, or none;
    NoVerdict where a side could not be compiled.
    """
    pair_of_sides = both_sides(request, show, cancel, one_cell=True)
    key = only_cell(
        {cell.key for side in pair_of_sides.sides.values() for cell in side.cells}
    )
    cells = {name: side.cells[0] for name, side in pair_of_sides.sides.items()}
    for name, cell in cells.items():
        if not cell.measured:
            reason = cell.failure.first_line if cell.failure else cell.status
            raise NoVerdict(f"was not compiled: {reason}", where=f"{key}, {name}")
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
        head, base_compiler = sides["head"].cells[0], sides["base"].compiler.digest
        ladder = fitting_ladder(
            delta.base, head=delta.head, cell=head, base_compiler=base_compiler
        )
        proofs = _proofs(pair_of_sides, delta=delta, ladder=ladder, tracers=tracers)
    labels_here = [plan.label for plan in pair_of_sides.plans]
    rows = {
        name: row
        for name, row in (("base", delta.base), ("head", delta.head))
        if row is not None
    }
    traces = {
        name: sides[name].cells[0].traces.get(row.name) for name, row in rows.items()
    }
    parting_pass = parting(traces.get("base"), traces.get("head"))
    if not pair_of_sides.plans and parting_pass.why == NOT_TRACED:
        parting_pass = replace(
            parting_pass, why="no compiler is available: both sides are snapshots"
        )
    return Traced(
        key=key,
        compilers={name: side.compiler.version for name, side in sides.items()},
        rows=rows,
        traces={name: trace for name, trace in traces.items() if trace is not None},
        commands={
            name: (
                (program_command(cell.command),)
                if parting_pass.row and parting_pass.row.level == PROGRAM
                else trace_commands(cell.command, rows[name])
            )
            for name, cell in cells.items()
            if name in rows or parting_pass.row
        },
        parting=parting_pass,
        ladder=ladder,
        no_ladder="" if ladder else no_ladder(delta, labels_here),
        formed=next(
            (
                trace.formed
                for trace in traces.values()
                if trace is not None and trace.formed
            ),
            None,
        ),
        proof=ladder.knobs if ladder else None,
        pass_proof=proofs.mlir_pass,
        machine=proofs.machine,
    )


@dataclass(frozen=True, slots=True)
class _Proofs:
    """The experiments in the phases that carry bytes, each None where it does not apply."""

    mlir_pass: PassProof | None = None
    machine: MachinePasses | None = None


def _proofs(
    pair_of_sides: BothSides,
    delta: DispatchDelta,
    ladder: Ladder | None,
    tracers: Mapping[str, SideTracer],
) -> _Proofs:
    """Make the experiments of the phases that carry bytes; none if a compiler is not here."""
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
    mlir_pass = prove_pass(base, head, ladder) if is_large_part(parts, MLIR) else None
    machine = (
        machine_passes(base, head) if is_large_part(parts, CODE_GENERATOR) else None
    )
    return _Proofs(mlir_pass, machine)


def _chosen(
    dispatch_name: str, cells: Mapping[str, Cell], changed: Sequence[DispatchDelta]
) -> DispatchDelta:
    """The dispatch on both sides: as they were matched where it changed, else by its name.

    Or one formed otherwise.

    Raises UsageError where several are meant, or none; NoVerdict for one that has
    nothing to be held against.
    """
    pairs = [delta for delta in changed if is_formed(delta) or not is_lone(delta)]
    paired = {row.name for delta in pairs for row in (delta.base, delta.head) if row}
    heads = {row.name: row for row in cells["head"].dispatches}
    same = [
        row
        for row in cells["base"].dispatches
        if row.name in heads and row.name not in paired
    ]
    pairs += [
        DispatchDelta(base=row, head=heads[row.name], matched="same-name", cause=None)
        for row in same
    ]
    one_side, _, name = dispatch_name.partition(":")
    one_side, dispatch_name = (
        (one_side, name) if one_side in SIDES else ("", dispatch_name)
    )  # a function's name may have a colon
    places = [
        (side, row.name, delta)
        for delta in pairs
        for side in SIDES
        if (row := getattr(delta, side))
    ]
    places = [place for place in places if one_side in ("", place[0])]
    names = list(dict.fromkeys(name for _, name, _ in places))
    fitting = matching(names, dispatch_name, None) or beginning(names, dispatch_name)
    meant = list(
        {id(delta): delta for _, name, delta in places if name in fitting}.values()
    )
    if len(meant) > 1:
        shown_names = ", ".join(delta.name for delta in meant[:_SHOWN])
        problem = f"{dispatch_name!r} matches several: {shown_names}{', …' if len(meant) > _SHOWN else ''}"
        is_one_sided = len(fitting) == 1  # base's and head's of that name are no pair
        hint = (
            f"base:{fitting[0]} or head:{fitting[0]}"
            if is_one_sided
            else "name one of them"
        )
        raise UsageError(problem, where="--dispatch", hint=hint)
    if not meant:
        for side, cell in cells.items():
            rows = [row.name for row in cell.dispatches]
            matches_of_side = matching(rows, dispatch_name, None) or beginning(
                rows, dispatch_name
            )
            if matches_of_side and one_side in ("", side):
                raise NoVerdict(
                    f"is only on {side}, and has no counterpart",
                    where=matches_of_side[0],
                )
        hint = near_or_known(dispatch_name, names, None)
        raise UsageError(
            f"no dispatch that can be traced has the name {dispatch_name!r}",
            where="--dispatch",
            hint=hint,
        )
    return meant[0]
