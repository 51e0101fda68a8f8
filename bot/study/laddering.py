"""Ladders of the dispatches that changed most, as far as their budget goes; head's cells carry them.

The cache keeps the ladders of a cell beside its measurements, and a stored head brings its own. A ladder is used only
where base has the very code that it was measured against.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from bot.compiler.cell_cache import cell_key
from bot.compiler.schedule import Task, run_all
from bot.core.delta import diff
from bot.core.explanation import DispatchDelta, Explanation, moved_bytes
from bot.core.ladder import Ladder
from bot.core.planned import SIDES
from bot.core.policy import is_local
from bot.core.snapshot import Cell, CellKey, Snapshot
from bot.core.work import compile_work, ladder_work
from bot.explain.explanations import explanations, fitting_ladder
from bot.show.filters import plural
from bot.study.ladder import measured_ladder
from bot.study.prepare import Work
from bot.study.run import Resources, SidePlan
from bot.study.trace_budget import Moved, work_for
from bot.study.tracing import SideTracer, opened

_PASSING = ("not finished after ", "ended by ")  # as `bot.compiler.diagnostics` says a timeout and a signal
BOTH_ORDERS = 10
"""So many of the largest dispatches are measured in both orders, as far as the work allows."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One ladder that is asked for."""

    key: CellKey
    delta: DispatchDelta
    both_orders: bool

    @property
    def place(self) -> tuple[CellKey, str]:
        """Where head has it."""
        return self.key, self.delta.name


def no_ladder(delta: DispatchDelta, here: Collection[str]) -> str:
    """Return why a dispatch can have no ladder; empty where it can.

    Args:
        here: the sides whose compilers are here.
    """
    if delta.base is None or delta.head is None:
        return "one side alone has it"
    if delta.base.code is None or delta.head.code is None:
        return "the digest of its code is not known"
    missing = [side for side in SIDES if side not in here]
    if missing:
        return f"the compiler of {' and '.join(missing)} is not here"
    return ""


def worth_laddering(explanations: Mapping[CellKey, Explanation]) -> list[Moved]:
    """Return the pairs with other code, the largest change first."""
    moved = []
    for key, explanation in explanations.items():
        for delta in explanation.dispatches:
            if moved_bytes(delta) and not no_ladder(delta, SIDES):
                moved.append((key, delta))
    return sorted(moved, key=lambda pair: (-abs(moved_bytes(pair[1]) or 0), pair[0], pair[1].name))


def within_work(sides: Mapping[str, Snapshot], moved: Sequence[Moved], work: int | None) -> list[Wanted]:
    """Return the ladders that the work covers, in their order; one that does not fit is passed over.

    What is left then is spent on the other order of the largest ones. Work counts whether or not a ladder is known
    already: the same snapshots always get the same ladders.
    """
    compiled = {cell.key: 0 for side in sides.values() for cell in side.cells}
    for side in sides.values():
        for cell in side.cells:
            compiled[cell.key] += compile_work(cell)
    left = work
    chosen = list[Moved]()
    paid = set[CellKey]()  # cells of which the sources are written
    for key, delta in moved:
        cost = _work(delta, both_orders=False)
        if key not in paid:
            cost += compiled[key] // 4
        if left is not None and cost > left:
            continue
        if left is not None:
            left -= cost
        paid.add(key)
        chosen.append((key, delta))
    wanted = list[Wanted]()
    for place, (key, delta) in enumerate(chosen):
        cost = _work(delta, both_orders=True) - _work(delta, both_orders=False)
        both_orders = place < BOTH_ORDERS and (left is None or cost <= left)
        if both_orders and left is not None:
            left -= cost
        wanted.append(Wanted(key, delta, both_orders))
    return wanted


def _work(delta: DispatchDelta, *, both_orders: bool) -> int:
    if delta.base is None or delta.head is None:
        return 0
    return ladder_work(delta.base, delta.head, both_orders=both_orders)


def with_ladders(
    plans: Sequence[SidePlan],
    sides: Mapping[str, Snapshot],
    wanted: Sequence[Wanted],
    resources: Resources,
    tracers: Mapping[str, SideTracer] | None = None,
) -> dict[str, Snapshot]:
    """Return the sides, head with these ladders and no others.

    Args:
        plans: of the sides whose compilers are here; without both, only ladders that are known already count.
        tracers: label → what traces that side, where the caller has these open.
    """
    here = {plan.label: plan for plan in plans}
    ladders = _known(here, sides, wanted, resources)
    missing = [
        one
        for one in wanted
        if not no_ladder(one.delta, here) and not _is_enough(ladders.get(one.place), one.both_orders)
    ]
    if missing:
        resources.progress.stage("attributing", len(missing), "dispatch")
        with opened(tracers, plans, resources) as open_tracers:
            _measure(missing, sides, open_tracers, ladders, resources)
    return {**sides, "head": _with_those(here.get("head"), sides["head"], ladders, resources)}


def _is_enough(ladder: Ladder | None, both_orders: bool) -> bool:
    return ladder is not None and (ladder.back is not None or not both_orders)


_Ladders = dict[tuple[CellKey, str], Ladder]  # Cell and entry point of head → its ladder


def _known(
    here: Mapping[str, SidePlan],
    sides: Mapping[str, Snapshot],
    wanted: Sequence[Wanted],
    resources: Resources,
) -> _Ladders:
    """Return the ladders that the cache has, or that a head brought whose compiler is not here."""
    cells: dict[CellKey, Cell | None] = {cell.key: cell for cell in sides["head"].cells}
    if "head" in here:
        plan = here["head"]
        keys = {one.key for one in wanted}
        cells = {
            planned.key: resources.cache.load(cell_key(plan.compiler.info.digest, planned))
            for planned in plan.cells
            if planned.key in keys
        }
    known: _Ladders = {}
    for one in wanted:
        cell = cells.get(one.key)
        ladder = fitting_ladder(one.delta, cell, sides["base"].compiler.digest) if cell else None
        if ladder is not None:
            known[one.place] = ladder
    return known


def _measure(
    missing: Sequence[Wanted],
    sides: Mapping[str, Snapshot],
    tracers: Mapping[str, SideTracer],
    ladders: _Ladders,
    resources: Resources,
) -> None:
    cells = {(side, cell.key): cell for side, snapshot in sides.items() for cell in snapshot.cells}

    def measure(one: Wanted) -> None:
        if one.delta.base is None or one.delta.head is None:
            return
        base = tracers["base"].ladder_side(cells["base", one.key], one.delta.base)
        head = tracers["head"].ladder_side(cells["head", one.key], one.delta.head)
        ladder = measured_ladder(base, head, both_orders=one.both_orders)
        if isinstance(ladder, Ladder):
            ladders[one.place] = ladder

    tasks = [
        Task(-place, f"attribute {one.delta.name} of {one.key}", partial(measure, one))
        for place, one in enumerate(missing)
    ]
    run_all(tasks, resources.jobs, resources.cancel.set, resources.progress)


def _with_those(plan: SidePlan | None, head: Snapshot, ladders: _Ladders, resources: Resources) -> Snapshot:
    """Return head with these ladders; the cache holds them from now on."""
    planned = {cell.key: cell for cell in plan.cells} if plan else {}
    cells = []
    for cell in head.cells:
        names = [row.name for row in cell.dispatches]
        own = {name: ladders[cell.key, name] for name in names if (cell.key, name) in ladders}
        if plan and own and cell.key in planned:
            name = cell_key(plan.compiler.info.digest, planned[cell.key])
            kept = resources.cache.load(name) or cell
            lasting = {entry: ladder for entry, ladder in own.items() if _lasts(ladder)}
            resources.cache.store(name, replace(kept, ladders={**kept.ladders, **lasting}))
        cells.append(replace(cell, ladders=own))
    return replace(head, cells=tuple(cells))


def _lasts(ladder: Ladder) -> bool:
    """Return whether no experiment failed for a reason that may be gone the next time."""
    reasons = [rung.why for rung in ladder.rungs]
    is_passing = any(words in why for why in reasons for words in _PASSING)
    return not is_passing and not any(map(is_local, reasons))


def laddered(plans: Sequence[SidePlan], sides: Mapping[str, Snapshot], work: Work) -> dict[str, Snapshot]:
    """Return both sides, head with the ladders of its largest changes.

    They may cost a quarter of the work of compiling both sides.
    """
    deltas = diff(sides["base"], sides["head"])
    causes = explanations(sides["base"], sides["head"], deltas, work.config.components)
    wanted = within_work(sides, worth_laddering(causes), work_for(sides))
    can_measure = {plan.label for plan in plans if plan.compiler.is_traced} >= set(SIDES)
    if not wanted or not can_measure:
        return dict(sides)
    work.show.say(f"attributing the changes of {plural(len(wanted), 'dispatch')} to the compiler's phases")
    with work.resources() as resources:
        return with_ladders(plans, sides, wanted, resources)
