"""Measured cells and folded ones as the cells of an experiment."""

from __future__ import annotations

from collections.abc import Mapping

from bot.core.folds.fold_values import FAILED, FoldAudit, FoldCell
from bot.core.lab.experiment import BEFORE_FUSION
from bot.core.lab.lab_values import LabCell, LabVariant
from bot.core.rules.outcomes import seen_values
from bot.core.values.snapshot import Cell
from bot.measurement.lab.planning import VariantPlan

_FAILURE_CHARACTERS = 500


def variant_told(plan: VariantPlan) -> LabVariant:
    """What is said of a variant."""
    return LabVariant(
        name=plan.variant.name,
        compiler=plan.toolchain.info,
        flags=plan.variant.flags,
        targets=dict(plan.variant.targets or {}),
        files={cell.key.model: cell.model.shown for cell in plan.cells} if plan.variant.files else {},
        shapes=plan.variant.shapes,
        folded=plan.variant.folded,
        at=plan.variant.at,
        reason=plan.reason,
    )


def unsupported(plan: VariantPlan) -> list[LabCell]:
    """The cells of a variant that this compiler does not know."""
    return [
        LabCell(cell.key.model, cell.key.target, plan.variant.name, "unsupported", failure=plan.reason)
        for cell in plan.cells
    ]


def cell_told(variant: str, cell: Cell, module: str = "") -> LabCell:
    """A measured cell, or a failed one.

    `module`: the model that was made for it, relative to the directory of `lab.json`.
    """
    before = cell.program.linalg_ops_before if cell.program else None
    added = {BEFORE_FUSION.id: before} if cell.measured else {}
    unknown = {BEFORE_FUSION.id: "global optimization could not be read"} if added and before is None else {}
    return LabCell(
        model=cell.key.model,
        target=cell.key.target,
        variant=variant,
        status=cell.status,
        metrics={**cell.metrics, **added},
        reasons={**cell.reasons, **unknown},
        failure=cell.failure.first_line[:_FAILURE_CHARACTERS] if cell.failure else "",
        command=cell.command,
        artifact_digest=cell.artifact_digest,
        varies=bool(cell.others),
        module=module if cell.command else "",
        seen=seen_values(cell),
    )


def folded_told(variant: str, audit: FoldAudit, others: Mapping[tuple[str, str], str]) -> list[LabCell]:
    """The cells of a folded variant.

    `others`: model and target of cells whose outputs and time were held against another program than the reference's,
    which is none of the experiment's questions → what is said of that.
    """
    regions = {model.model: model.regions for model in audit.models}
    return [_folded(variant, cell, regions, others.get((cell.model, cell.target), "")) for cell in audit.cells]


def _folded(variant: str, cell: FoldCell, regions: Mapping[str, int | None], why: str) -> LabCell:
    status = {"unsupported": "unsupported", FAILED: "failed"}.get(cell.state, "ok")
    after = {
        "executables": cell.executables.after,
        "artifact_bytes": cell.artifact_bytes.after,
        "executable_bytes": cell.executable_bytes.after,
        "dispatch_regions": regions.get(cell.model),
    }
    lab_cell = LabCell(cell.model, cell.target, variant, status, failure=cell.note[:_FAILURE_CHARACTERS])
    if status != "ok":
        return lab_cell
    return LabCell(
        model=cell.model,
        target=cell.target,
        variant=variant,
        status=status,
        metrics=after,
        reasons={name: "is not measured of a folded program" for name, value in after.items() if value is None},
        failure="" if cell.state == "folded" else "nothing to fold",
        command=cell.command,
        equal=None if why else cell.equal,
        equal_note=why or cell.equal_note,
        price=None if why else cell.price,
        price_note=why or cell.price_note,
        module=cell.module,
    )
