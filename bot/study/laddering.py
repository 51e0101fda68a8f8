"""Measure ladders of the dispatches that changed most, within a budget.

Head's cells have them. The cache keeps the ladders of a cell beside its measurements,
and a stored head brings its own. A ladder is used only if base still has the code that
it was measured against.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace as replace_field
from functools import partial

from msgspec.structs import replace

from bot.compiler.cell_cache import cell_key
from bot.compiler.schedule import Task, run_all
from bot.core.backends import backends_of
from bot.core.delta import diff
from bot.core.ladder import NO_BASE_COMPILER, Ladder
from bot.core.planned import SIDES
from bot.core.policy import judge
from bot.core.snapshot import Cell, CellKey, Snapshot
from bot.core.stored_ir import BaseIr
from bot.core.this_machine import is_local
from bot.explain.carrying import fitting_ladder
from bot.explain.explanations import explanations
from bot.explain.root_causes import root_causes_between
from bot.show.filters import plural
from bot.study.changed_dispatches import Moved
from bot.study.ladder import LadderSide, ladder_from, measured_ladder
from bot.study.ladder_choice import (
    LadderCosts,
    Wanted,
    no_ladder,
    within_work,
    worth_laddering,
)
from bot.study.prepare import Work
from bot.study.proving import proof_of
from bot.study.resources import Resources
from bot.study.side_plan import SidePlan
from bot.study.storing_ir import first_side_of, proof_from
from bot.study.trace_budget import work_for
from bot.study.tracing import SideTracer, opened

# a timeout and a signal in the words of `bot.compiler.diagnostics`
_PASSING = (
    "not finished after ",
    "ended by ",
)


def with_ladders(
    plans: Sequence[SidePlan],
    sides: Mapping[str, Snapshot],
    wanted_ladders: Sequence[Wanted],
    resources: Resources,
    tracers: Mapping[str, SideTracer] | None = None,
    base_ir: BaseIr | None = None,
) -> dict[str, Snapshot]:
    """Return the sides; head has these ladders and no others.

    Args:
        base_ir: takes the place of base's compiler, if that is not here.
        plans: of the sides whose compilers are here; without both, only ladders that
            are known already count.
        tracers: label → tracer of that side, if the caller has them open.
    """
    plans_here = {plan.label: plan for plan in plans}
    if base_ir is None:
        usable = set(plans_here)
    else:
        usable = {*plans_here, "base"}
    ladders = _known(
        plans_here, sides=sides, wanted_ladders=wanted_ladders, resources=resources
    )
    missing = [
        wanted_ladder
        for wanted_ladder in wanted_ladders
        if not no_ladder(wanted_ladder.delta, usable)
        and not _is_enough(ladders.get(wanted_ladder.place), wanted_ladder)
    ]
    if missing:
        resources.progress.stage("attributing", len(missing), "dispatch")
        with opened(tracers, plans, resources) as open_tracers:
            _measure(
                missing,
                sides=sides,
                tracers=open_tracers,
                ladders=ladders,
                resources=resources,
                base_ir=base_ir,
            )
        measured = {
            wanted_ladder.place: ladders[wanted_ladder.place]
            for wanted_ladder in missing
            if wanted_ladder.place in ladders
        }
        _keep(
            plans_here["head"],
            head=sides["head"],
            ladders=measured,
            resources=resources,
        )
    shown_ladders = {
        wanted_ladder.place: _as_asked(ladders[wanted_ladder.place], wanted_ladder)
        for wanted_ladder in wanted_ladders
        if wanted_ladder.place in ladders
    }
    return {**sides, "head": _with_those(sides["head"], shown_ladders)}


def _is_enough(ladder: Ladder | None, wanted_ladder: Wanted) -> bool:
    if ladder is None:
        return False
    has_orders = ladder.back is not None or not wanted_ladder.both_orders
    has_proof = ladder.knobs is not None or not wanted_ladder.with_proof
    return has_orders and has_proof


# Cell and entry point of head → its ladder
_Ladders = dict[tuple[CellKey, str], Ladder]


def _known(
    plans_here: Mapping[str, SidePlan],
    sides: Mapping[str, Snapshot],
    wanted_ladders: Sequence[Wanted],
    resources: Resources,
) -> _Ladders:
    """Return the ladders that the cache has.

    Where head's compiler is not here, return those that head brought.
    """
    cells: dict[CellKey, Cell | None] = {cell.key: cell for cell in sides["head"].cells}
    if "head" in plans_here:
        plan = plans_here["head"]
        keys = {wanted_ladder.key for wanted_ladder in wanted_ladders}
        cells = {
            planned.key: resources.cache.load(
                cell_key(plan.compiler.info.digest, planned)
            )
            for planned in plan.cells
            if planned.key in keys
        }
    known_ladders: _Ladders = {}
    compiler = sides["base"].compiler.digest
    for wanted_ladder in wanted_ladders:
        cell = cells.get(wanted_ladder.key)
        if cell:
            ladder = fitting_ladder(
                wanted_ladder.delta.base,
                head=wanted_ladder.delta.head,
                cell=cell,
                base_compiler=compiler,
            )
        else:
            ladder = None
        if ladder is not None:
            known_ladders[wanted_ladder.place] = ladder
    return known_ladders


def _measure(
    missing: Sequence[Wanted],
    sides: Mapping[str, Snapshot],
    tracers: Mapping[str, SideTracer],
    ladders: _Ladders,
    resources: Resources,
    base_ir: BaseIr | None,
) -> None:
    cells = {
        (side, cell.key): cell
        for side, snapshot in sides.items()
        for cell in snapshot.cells
    }

    def measure(wanted_ladder: Wanted) -> None:
        if wanted_ladder.delta.base is None or wanted_ladder.delta.head is None:
            return
        head = tracers["head"].ladder_side(
            cells["head", wanted_ladder.key], wanted_ladder.delta.head
        )
        ladder = ladders.get(wanted_ladder.place)
        if base_ir is not None and "base" not in tracers:
            from_stored = ladder_from_stored(
                base_ir, wanted_ladders=wanted_ladder, head=head, known_ladders=ladder
            )
            if from_stored is not None:
                ladders[wanted_ladder.place] = from_stored
            return
        base = tracers["base"].ladder_side(
            cells["base", wanted_ladder.key], wanted_ladder.delta.base
        )
        ladder = _ladder_between(base, head, wanted_ladder, ladder)
        if ladder is None:
            return
        ladders[wanted_ladder.place] = ladder

    tasks = [
        Task(
            -place,
            f"attribute {wanted_ladder.delta.name} of {wanted_ladder.key}",
            partial(measure, wanted_ladder),
        )
        for place, wanted_ladder in enumerate(missing)
    ]
    run_all(
        tasks,
        jobs=resources.jobs,
        interrupt=resources.cancel.set,
        watcher=resources.progress,
    )


def _ladder_between(
    base: LadderSide, head: LadderSide, wanted_ladder: Wanted, known: Ladder | None
) -> Ladder | None:
    """Return a ladder with all that is asked for; None if there can be none.

    `known`: the ladder that the cache has; its experiments are not made again.
    """
    ladder = known
    if ladder is None or (wanted_ladder.both_orders and ladder.back is None):
        measured = measured_ladder(base, head, both_orders=wanted_ladder.both_orders)
        if not isinstance(measured, Ladder):
            return None
        ladder = measured
        if known is not None:
            ladder = replace(measured, knobs=known.knobs)
    if wanted_ladder.with_proof and ladder.knobs is None:
        ladder = replace(ladder, knobs=proof_of(base, head))
    return ladder


def _keep(
    plan: SidePlan, head: Snapshot, ladders: _Ladders, resources: Resources
) -> None:
    """Let the cache hold these ladders from now on."""
    planned = {cell.key: cell for cell in plan.cells}
    for cell in head.cells:
        lasting = {
            name: ladder
            for name, ladder in _of_cell(cell, ladders).items()
            if _lasts(ladder)
        }
        if not lasting or cell.key not in planned:
            continue
        name = cell_key(plan.compiler.info.digest, planned[cell.key])
        kept_cell = resources.cache.load(name) or cell
        resources.cache.store(
            name, replace(kept_cell, ladders={**kept_cell.ladders, **lasting})
        )


def _with_those(head: Snapshot, ladders: _Ladders) -> Snapshot:
    """Return head with these ladders and no others."""
    cells = [replace(cell, ladders=_of_cell(cell, ladders)) for cell in head.cells]
    return replace(head, cells=tuple(cells))


def _of_cell(cell: Cell, ladders: _Ladders) -> dict[str, Ladder]:
    names = [row.name for row in cell.dispatches]
    return {
        name: ladders[cell.key, name] for name in names if (cell.key, name) in ladders
    }


def _as_asked(ladder: Ladder, wanted_ladder: Wanted) -> Ladder:
    """Return a ladder without the experiments that were not asked for.

    The content of the cache must not change a report.
    """
    back = ladder.back if wanted_ladder.both_orders else None
    knobs = ladder.knobs if wanted_ladder.with_proof else None
    return replace(ladder, back=back, back_why=wanted_ladder.one_order_why, knobs=knobs)


def _lasts(ladder: Ladder) -> bool:
    """Return whether no experiment failed for a reason that may be gone next time."""
    reasons = [rung.why for rung in ladder.rungs]
    if ladder.knobs is not None:
        reasons.append(ladder.knobs.why)
    is_passing = any(phrase in reason for reason in reasons for phrase in _PASSING)
    return not is_passing and not any(map(is_local, reasons))


def ladder_from_stored(
    base_ir: BaseIr,
    wanted_ladders: Wanted,
    head: LadderSide,
    known_ladders: Ladder | None,
) -> Ladder | None:
    """Return a ladder of base's stored IR, in the order that takes base's IR first.

    Return None if no IR of the dispatch is stored.

    Args:
        known_ladders: the known part of the ladder.
    """
    base = wanted_ladders.delta.base
    if base is not None:
        stored = base_ir.of(wanted_ladders.key, base)
    else:
        stored = None
    if base is None or stored is None:
        return None
    ladder: Ladder | str | None = known_ladders
    if ladder is None:
        ladder = ladder_from(
            base, base_compiler=base_ir.compiler, first=first_side_of(stored), head=head
        )
    if not isinstance(ladder, Ladder):
        return None
    if wanted_ladders.with_proof and ladder.knobs is None:
        ladder = replace(ladder, knobs=proof_from(base, stored, head))
    return ladder


def laddered(
    plans: Sequence[SidePlan],
    sides: Mapping[str, Snapshot],
    work: Work,
    base_ir: BaseIr | None = None,
) -> dict[str, Snapshot]:
    """Return both sides; head has the ladders of its largest changes.

    They may cost a quarter of the work of compiling both sides.

    Args:
        base_ir: takes the place of base's compiler, if that is not here.
    """
    plans_here = {plan.label for plan in plans if plan.compiler.is_traced}
    if "base" in plans_here:
        base_ir = None
    elif base_ir is not None:
        plans_here.add("base")
    if not plans_here >= set(SIDES):
        return dict(sides)
    deltas = diff(sides["base"], sides["head"])
    causes = explanations(
        sides["base"],
        head=sides["head"],
        deltas=deltas,
        sections=work.config.components,
    )
    roots = root_causes_between(
        sides["base"], head=sides["head"], deltas=deltas, explanations=causes
    )
    verdict = judge(deltas, work.config.thresholds, work.config.states)
    failing = {finding.key for finding in verdict.failing}
    costs = LadderCosts(backends_of(sides["base"].targets, sides["head"].targets))
    moved = worth_laddering(causes, costs, roots, failing)
    if base_ir is not None:
        moved = [pair for pair in moved if _is_stored(base_ir, pair)]
    wanted_ladders = within_work(moved, costs, work_for(sides))
    if base_ir is not None:
        wanted_ladders = [_in_one_order(ladder) for ladder in wanted_ladders]
    if not wanted_ladders:
        return dict(sides)
    work.show.say(
        f"attributing the changes of {plural(len(wanted_ladders), 'dispatch')} to the"
        " compiler's phases"
    )
    with work.resources() as resources:
        return with_ladders(
            plans,
            sides=sides,
            wanted_ladders=wanted_ladders,
            resources=resources,
            base_ir=base_ir,
        )


def _is_stored(base_ir: BaseIr, pair: Moved) -> bool:
    key, delta = pair
    return delta.base is not None and base_ir.of(key, delta.base) is not None


def _in_one_order(wanted_ladder: Wanted) -> Wanted:
    return replace_field(
        wanted_ladder, both_orders=False, one_order_why=NO_BASE_COMPILER
    )
