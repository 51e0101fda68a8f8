"""How far each step takes a model: what is left of its dispatch regions today, and what could be."""

from __future__ import annotations

from collections.abc import Sequence

from bot.compiler.compiling import Source
from bot.compiler.folding import Groups, flow_of, groups_of
from bot.core.folds.fold_values import FoldCell, FoldModel
from bot.errors import MalformedBinary
from bot.measurement.folds.cell_audit import Audited, FoldTools

NOTHING_INLINED = "--iree-flow-inline-constants-max-byte-length=0"
"""The compiler inlines no constant into a dispatch, so that more of them are equal."""


def model_of(tools: FoldTools, audits: Sequence[Audited], cells: Sequence[FoldCell]) -> FoldModel:
    """The counts of one model, by the first of its cells whose program could be read."""
    name = audits[0].cell.key.model
    one = next((each for each in audits if each.groups is not None), audits[0])
    today, apart = one.groups, _not_inlined(tools, one)
    folded = [cell.executables.after for cell in cells if cell.model == name and cell.equal is not False]
    measured = one.cell.measured
    return FoldModel(
        model=name,
        regions=one.cell.value("dispatch_regions") if measured else None,
        today=one.cell.value("executables") if measured else None,
        not_inlined=count(apart),
        shapes_erased=apart.classes.shapes if apart else None,
        constants_erased=today.classes.constants if today else None,
        both_erased=today.classes.both if today else None,
        folded=min((number for number in folded if number is not None), default=None),
    )


def count(groups: Groups | None) -> int | None:
    """How many executables a program has."""
    return len(groups.entries) + len(groups.unfit) if groups else None


def _not_inlined(tools: FoldTools, one: Audited) -> Groups | None:
    """The same model's program where no constant is inlined; None where it cannot be had."""
    if one.groups is None or one.source is None:
        return None
    flow = tools.scratch / f"{one.cell.key.model}.not-inlined.mlir"
    argv = (*one.planned.argv, NOTHING_INLINED)
    try:
        if flow_of(tools.kit, argv, Source(one.planned.model.name, one.source), flow) is not None:
            return None
        return groups_of(tools.folding, flow)
    except MalformedBinary:
        return None
