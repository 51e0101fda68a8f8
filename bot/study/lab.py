"""Measure the variants of an experiment, and compare each with its reference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import structs

from bot.core.lab import Experiment, Lab
from bot.core.planned import COMMON_FLAGS
from bot.core.snapshot import Cell, Failure, Snapshot
from bot.core.study import Pair, Study
from bot.study.lab_plans import VariantPlan, planned_variant, scope_of
from bot.study.lab_runs import Runs, timed_runs
from bot.study.lab_times import Times, times_of_variants
from bot.study.prepare import Work


def experimented(experiment: Experiment, work: Work) -> Lab:
    """Measure all variants.

    `specs["head"]` of the request names the compiler of those that name none.

    Raises:
        UsageError: nothing is left to measure.
        CompilerUnavailable: a compiler could not be had.
    """
    models, targets = scope_of(experiment, work)
    plans = []
    ready = []
    for variant in experiment.variants:
        plan = planned_variant(variant, models=models, targets=targets, work=work)
        plans.append(plan)
        if plan.side.cells and not plan.variant.reason:
            ready.append(plan)
    sides = _measured(ready, work)
    times = Times()
    if experiment.timing:
        times = times_of_variants(ready, sides, work)
    ran_on = ""
    runs = Runs()
    if experiment.run:
        ran_on, runs = timed_runs(ready, _study(ready, sides), work)
    notes = set[str]()
    for plan in plans:
        if not plan.side.cells and not plan.refused:
            notes.add(f"{plan.name}: this run measures none of its targets")
    for name, side in sides.items():
        notes.update(f"{name}: {note}" for note in side.notes)
    return Lab(
        experiment=experiment,
        machine=ran_on,
        study=_study(plans, sides),
        runs=runs,
        flags=(*COMMON_FLAGS, *work.config.flags, *work.request.flags),
        times=times,
        notes=tuple(sorted(notes)),
    )


def _refused(plan: VariantPlan) -> tuple[Cell, ...]:
    """Return the unsupported cells of a variant, if its compiler refuses it."""
    if not plan.variant.reason:
        return ()
    refused = Failure("option", plan.variant.reason)
    cells = []
    for planned in plan.side.cells:
        key = planned.key
        cells.append(Cell(key.model, key.target, "unsupported", failure=refused))
    return tuple(cells)


def _study(plans: Sequence[VariantPlan], sides: Mapping[str, Snapshot]) -> Study:
    """Return the variants with what was measured of them.

    The cells of one that its compiler refuses are unsupported.
    """
    variants = []
    for plan in plans:
        side = sides.get(plan.name)
        if side is None:
            side = Snapshot(plan.side.compiler.info, plan.side.source, _refused(plan))
        all_cells = sorted((*side.cells, *plan.refused), key=lambda cell: cell.key)
        side = structs.replace(side, cells=tuple(all_cells))
        variants.append(structs.replace(plan.variant, snapshot=side))
    return Study(tuple(variants))


def _measured(plans: Sequence[VariantPlan], work: Work) -> dict[str, Snapshot]:
    """Measure each variant's cells, and compare them with those of the reference."""

    def pairs(sides: Mapping[str, Snapshot]) -> Iterable[Pair]:
        return _study(plans, sides).beside_references()

    sides_of_plans = [plan.side for plan in plans]
    return work.measured_variants(sides_of_plans, {}, pairs, together=False)
