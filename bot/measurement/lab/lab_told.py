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
_OF_FOLDED = "is not measured of a folded program"
_STATUS = {"unsupported": "unsupported", FAILED: "failed"}


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

    Args:
        module: the model that was made for it, relative to the directory of `lab.json`.
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


def folded_told(variant: str, audit: FoldAudit, *, is_priced: bool) -> list[LabCell]:
    """The cells of a folded variant.

    Args:
        is_priced: whether what was folded is the program that the variants are compared with.
    """
    regions = {model.model: model.regions for model in audit.models}
    return [_folded(variant, cell, regions, is_priced) for cell in audit.cells]


def _folded(variant: str, cell: FoldCell, regions: Mapping[str, int | None], is_priced: bool) -> LabCell:
    status = _STATUS.get(cell.state, "ok")
    after = {
        "executables": cell.executables.after,
        "artifact_bytes": cell.artifact_bytes.after,
        "executable_bytes": cell.executable_bytes.after,
        "dispatch_regions": regions.get(cell.model),
    }
    told = LabCell(cell.model, cell.target, variant, status, failure=cell.note[:_FAILURE_CHARACTERS])
    if status != "ok":
        return told
    return LabCell(
        model=cell.model,
        target=cell.target,
        variant=variant,
        status=status,
        metrics=after,
        reasons={name: _OF_FOLDED for name, value in after.items() if value is None},
        failure="" if cell.state == "folded" else "nothing to fold",
        command=cell.command,
        equal=cell.equal if is_priced else None,
        equal_note=cell.equal_note,
        price=cell.price if is_priced else None,
        price_note=cell.price_note if is_priced else "what was folded is not the first variant's program",
        module=cell.module,
    )
