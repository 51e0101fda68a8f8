"""Measure the planned sides: take builds from the cache, and compile the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import structs

from bot.compiler.cell_cache import CellCache, cell_key
from bot.compiler.compiler import Compiled, Result
from bot.compiler.compiling import EXECUTABLE_SOURCES
from bot.core.planned import COMMON_FLAGS, LIFTED_LIMIT_FLAG, SIDES, PlannedCell
from bot.core.snapshot import Cell, CellKey, Failure, Snapshot
from bot.show.filters import plural
from bot.study.cell import cell_of
from bot.study.resources import Progress, Resources
from bot.study.side_plan import SidePlan

_CellsOfSides = dict[str, dict[CellKey, Cell]]
"""Label → the cells of that side that are already measured."""
_Waiters = dict[str, list[tuple[SidePlan, PlannedCell]]]
"""Key in the cache → the builds that wait for its compile."""


def measure_sides(
    plans: Sequence[SidePlan], resources: Resources
) -> dict[str, Snapshot]:
    """Measure all sides together, so that no core is idle until the last side ends.

    A cell that two sides share is compiled once.

    Returns:
        label → snapshot.
    """
    assembler = resources.assembler
    cells, waiters = _known_and_waiting(plans, resources.cache)
    first = [waiting_builds[0] for waiting_builds in waiters.values()]
    _announce(resources.progress, cells=cells, waiters=waiters)
    digests = {plan.label: plan.compiler.info.digest for plan in plans}

    def finish(label: str, planned: PlannedCell, _layout: int, result: Result) -> None:
        """Measure, keep, and hand out one finished compile."""
        cell = cell_of(
            planned, result=result, texts=resources.texts, assembler=assembler
        )
        key = cell_key(digests[label], planned)
        resources.cache.store(key, cell)
        if isinstance(result, Compiled) and EXECUTABLE_SOURCES in result.files:
            resources.programs.keep(key, result.files[EXECUTABLE_SOURCES])
        for other_plan, same in waiters[_waiting_key(label, digests[label], planned)]:
            cells[other_plan.label][same.key] = _labelled(cell, same)
            cost = same.cost if other_plan.label == label else 0.0
            resources.progress.measured(other_plan.label, cell, cost)

    work = []
    for plan in plans:
        compiles = []
        for owner, planned in first:
            if owner is plan:
                compiles.append((planned, 0))
        work.append((plan, compiles))
    meter = resources.compile(work, finish)
    resources.progress.spent(meter.cpu_ms, resources.jobs)
    return {plan.label: _snapshot(plan, cells[plan.label]) for plan in plans}


def _known_and_waiting(
    plans: Sequence[SidePlan], cache: CellCache
) -> tuple[_CellsOfSides, _Waiters]:
    """Split the planned cells into those known before any compile, and the others."""
    cells: _CellsOfSides = {plan.label: {} for plan in plans}
    waiters: _Waiters = {}
    for plan in plans:
        info = plan.compiler.info
        for planned in plan.cells:
            if reason := planned.target.unsupported:
                cells[plan.label][planned.key] = Cell(
                    planned.model.name,
                    planned.target.name,
                    "unsupported",
                    failure=Failure("target", reason),
                )
                continue
            key = _waiting_key(plan.label, info.digest, planned)
            cached_cell = None
            if key not in waiters:
                stored = cell_key(info.digest, planned)
                cached_cell = cache.load(stored, info.metrics)
            if cached_cell is not None:
                cells[plan.label][planned.key] = _labelled(cached_cell, planned)
            else:
                waiters.setdefault(key, []).append((plan, planned))
    return cells, waiters


def _announce(progress: Progress, cells: _CellsOfSides, waiters: _Waiters) -> None:
    """Report how many builds are to be compiled, and how many the cache has."""
    cached = list[CellKey]()
    for cells_of_side in cells.values():
        for key, cell in cells_of_side.items():
            if cell.command:
                cached.append(key)
    waiting = list[CellKey]()
    for waiting_builds in waiters.values():
        waiting += [planned.key for _, planned in waiting_builds]
    cost = sum(waiting_builds[0][1].cost for waiting_builds in waiters.values())
    about = ""
    if len(cells) > 1:
        sides = "sides" if set(cells) <= set(SIDES) else "variants"
        builds = plural(len({*cached, *waiting}), "build")
        about = f" ({builds} on {len(cells)} {sides})"
    progress.plan(len(cached) + len(waiting), len(cached), cost, about)


def _snapshot(plan: SidePlan, cells: Mapping[CellKey, Cell]) -> Snapshot:
    """Return the snapshot of a side whose cells are all measured."""
    return Snapshot(
        compiler=plan.compiler.info,
        source=plan.source,
        cells=tuple(cell for _, cell in sorted(cells.items())),
        flags=plan.cells[0].flags if plan.cells else COMMON_FLAGS,
        targets={target.name: target.backend for target in plan.targets},
        models={model.name: model.digest for model in plan.models},
    )


def _labelled(cell: Cell, planned: PlannedCell) -> Cell:
    """Return a cached cell under the names of this run.

    Drop ladders: they belong to another comparison. Keep traces only of a command
    compiler (`planned.run`): each of its compiles writes them.
    """
    command = planned.command(lifted=LIFTED_LIMIT_FLAG in cell.command)
    inputs = planned.known_inputs
    traces = cell.traces if planned.run else {}
    return structs.replace(
        cell,
        model=planned.model.name,
        target=planned.target.name,
        command=command,
        inputs=inputs,
        traces=traces,
        ladders={},
    )


def _waiting_key(label: str, compiler_digest: str, planned: PlannedCell) -> str:
    """Return the key by which sides share a compile.

    A build whose files are not all known shares none.
    """
    return cell_key(compiler_digest, planned) or f"{label} {planned.key}"
