"""An experiment measured: its variants planned, their cells measured, folded, run and told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from bot.config.configuration import Config
from bot.core.folds.fold_options import FoldOptions
from bot.core.lab.experiment import Experiment
from bot.core.lab.lab_values import LAB_SCHEMA, Lab, LabCell, references
from bot.core.values.planned import COMMON_FLAGS
from bot.core.values.snapshot import Snapshot
from bot.errors import NoVerdict
from bot.measurement.folds.auditing import audited
from bot.measurement.lab.lab_told import cell_told, folded_told, unsupported, variant_told
from bot.measurement.lab.planning import Scope, VariantPlan, planned_variant, scope_of
from bot.measurement.lab.timing import timed
from bot.measurement.prepare import Request, Show, repository_at, workshop
from bot.measurement.recheck import recheck, repeat_unsteady
from bot.measurement.run import Workshop, measure_sides
from bot.system.processes import Cancel


def experimented(experiment: Experiment, request: Request, config: Config, show: Show, cancel: Cancel) -> Lab:
    """Measure all variants; `request.specs["head"]` names the compiler of those that name none.

    Raises UsageError where nothing is left to measure; CompilerUnavailable where a compiler could not be had.
    """
    about = scope_of(experiment, request, config, repository_at(request.config, cancel))
    plans = [
        planned_variant(about, each, each.compiler or request.specs["head"], show, cancel)
        for each in experiment.variants
    ]
    ready = [plan for plan in plans if plan.cells and not plan.reason]
    cells = [cell for plan in plans if plan.reason for cell in unsupported(plan)]
    snapshots = _measured([plan for plan in ready if not plan.variant.folded], about, show, cancel)
    for plan in ready:
        if plan.variant.name in snapshots:
            cells += _told(plan, snapshots[plan.variant.name])
    for plan in ready:
        if plan.variant.folded:
            cells += _folded(plan, _references(ready, cells), about, show, cancel)
    machine = ""
    if experiment.run:
        cells, machine = timed(ready, cells, _references(ready, cells), request, config, show, cancel)
    idle = {f"{plan.variant.name}: none of its targets is measured here" for plan in plans if not plan.cells}
    notes = idle | {f"{name}: {note}" for name, side in snapshots.items() for note in side.notes}
    experiment = about.experiment
    return Lab(
        schema=LAB_SCHEMA,
        experiment=experiment.name,
        question=experiment.question,
        columns=experiment.columns,
        axis=experiment.axis,
        run=experiment.run,
        machine=machine,
        flags=(*COMMON_FLAGS, *about.config.flags, *about.request.flags),
        targets={target.name: target.backend for target in about.targets},
        variants=tuple(variant_told(plan) for plan in plans),
        cells=tuple(sorted(cells, key=lambda cell: cell.key)),
        notes=tuple(sorted(notes)),
    )


def _told(plan: VariantPlan, side: Snapshot) -> list[LabCell]:
    models = {cell.key: cell.model.shown for cell in plan.cells} if plan.variant.shapes is not None else {}
    return [cell_told(plan.variant.name, cell, models.get(cell.key, "")) for cell in side.cells]


def require_measured(lab: Lab, out: Path) -> None:
    """Raise NoVerdict where there is not a single artifact: then the experiment says nothing."""
    if any(cell.measured for cell in lab.cells):
        return
    reason = next((cell.failure for cell in lab.cells if cell.failure), "")
    what = f"none of {len(lab.cells)} cells was measured"
    raise NoVerdict(what, where=str(out / "lab.json"), hint=reason[:200])


def _measured(plans: Sequence[VariantPlan], about: Scope, show: Show, cancel: Cancel) -> dict[str, Snapshot]:
    """Each variant's cells; one variant after the other, so that no more than one reads IR at a time."""
    snapshots: dict[str, Snapshot] = {}
    if not plans:
        return snapshots
    with workshop(about.request, about.config, show, cancel) as shop:
        for plan in plans:
            show.say(f"variant {plan.variant.name}")
            snapshots |= measure_sides([plan.side], shop)
        against = _references(plans, [cell for plan in plans for cell in _told(plan, snapshots[plan.variant.name])])
        beside = [(against.get(cell.key.target, plan), plan) for plan in plans for cell in plan.cells]
        pairs = {frozenset((first.variant.name, plan.variant.name)): (first, plan) for first, plan in beside}
        for first, plan in pairs.values():
            if first is not plan:
                _doubt(first, plan, snapshots, about.config, shop)
        sides = [replace(plan.side, label=plan.variant.name) for plan in plans]
        return repeat_unsteady(sides, snapshots, about.config, shop)


def _references(plans: Sequence[VariantPlan], cells: Sequence[LabCell]) -> dict[str, VariantPlan]:
    names = references([variant_told(plan) for plan in plans], cells)
    by_name = {plan.variant.name: plan for plan in plans}
    return {target: by_name[name] for target, name in sorted(names.items())}


def _doubt(
    first: VariantPlan, other: VariantPlan, snapshots: dict[str, Snapshot], rules: Config, shop: Workshop
) -> None:
    """Compile again what differs from the reference, as a comparison does: some of it may be the compiler's chance."""
    if other.variant.files:
        return
    names = {"base": first.variant.name, "head": other.variant.name}
    plans = [replace(plan.side, label=side) for side, plan in zip(names, (first, other), strict=True)]
    again = recheck(plans, {side: snapshots[name] for side, name in names.items()}, rules, shop)
    snapshots.update({name: again[side] for side, name in names.items()})


def _folded(
    plan: VariantPlan, against: Mapping[str, VariantPlan], about: Scope, show: Show, cancel: Cancel
) -> list[LabCell]:
    """Fold the cells of a variant; they are folded on all of their targets together, and measured from the cache.

    An audit holds what was folded against its own unfolded program: that says something here where that is the
    reference's.
    """
    paths = {cell.key.model: Path(cell.model.path) for cell in plan.cells}
    targets = {cell.key.target: cell.target for cell in plan.cells}
    config = replace(
        about.config, models=tuple(paths.values()), targets=tuple(targets.values()), suites=(), flags=plan.flags
    )
    spec = plan.variant.compiler or about.request.specs["head"]
    request = replace(about.request, models=(), targets=(), flags=(), specs={"head": spec})
    audit = audited(request, config, FoldOptions(run=about.experiment.run), show, cancel)
    rows = {path.stem: row for row, path in paths.items()}
    audit = structs.replace(
        audit,
        cells=tuple(structs.replace(cell, model=rows[cell.model]) for cell in audit.cells),
        models=tuple(structs.replace(model, model=rows[model.model]) for model in audit.models),
    )
    others = {}
    for cell in plan.cells:
        first = against.get(cell.key.target)
        theirs = next((one for one in first.cells if one.key == cell.key), None) if first else None
        is_same = theirs is not None and (theirs.argv, theirs.model.digest) == (cell.argv, cell.model.digest)
        if first is None or not is_same or first.toolchain.info != plan.toolchain.info:
            name = f"{first.variant.name}'s" if first else "that of a variant that others are compared with"
            others[cell.key.model, cell.key.target] = f"the program that was folded is not {name}"
    return folded_told(plan.variant.name, audit, others)
