"""One cell's audit: its program is taken at the end of the flow phase, and searched for what is worth folding."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from bot.compiler.caches.cell_cache import CellCache
from bot.compiler.compiling import Kit, Source
from bot.compiler.diagnostics import reason
from bot.compiler.folding import Group, Groups, flow_of, groups_of
from bot.compiler.tools.bindings import Bindings
from bot.compiler.tools.importing import Importer
from bot.compiler.tools.ptxas import Assembler
from bot.core.folds.fold_values import LeftFamily
from bot.core.values.planned import LIFTED_LIMIT_FLAG, PlannedCell
from bot.core.values.program import FAMILY_KINDS
from bot.core.values.snapshot import Cell, Failure
from bot.errors import MalformedBinary
from bot.measurement.folds.attempts import Attempt, Attempts
from bot.measurement.folds.searching import reason_of, search

NOT_FOLDED = {
    "operand-order": "executables that take their operands in another order are not folded",
    "extra-operation": "executables that do something more are not folded",
    "different-fusion": "executables of other operations are not folded",
}


@dataclass(frozen=True, slots=True)
class FoldTools:
    """What an audit works with, for all cells of a side."""

    kit: Kit
    folding: Bindings
    importer: Importer
    cache: CellCache
    assembler: Assembler
    scratch: Path


@dataclass(frozen=True, slots=True)
class Audited:
    """One cell's audit.

    Attributes:
        cell: as its printed command gives it.
        planned: with the flag that lifts the compiler's stack gate where that refused it.
        source: its model's file.
        failure: why its program could not be folded at all; None where it could be.
        resumed, kept: with nothing folded, and with what is worth it; None where there is a failure.
    """

    cell: Cell
    planned: PlannedCell
    source: Path | None = None
    failure: str = ""
    attempts: Attempts | None = None
    groups: Groups | None = None
    kept: Attempt | None = None
    left: tuple[LeftFamily, ...] = ()


def audit(tools: FoldTools, planned: PlannedCell, cell: Cell) -> Audited:
    """Fold what is worth it of one cell."""
    if cell.status == "over-stack-limit":
        planned = replace(planned, user_flags=(*planned.user_flags, LIFTED_LIMIT_FLAG))
    if not cell.measured:
        return Audited(cell, planned, failure=reason(cell.failure.message) if cell.failure else cell.status)
    source = tools.importer.source(planned.model)
    if isinstance(source, Failure):
        return Audited(cell, planned, failure=source.first_line)
    flow = tools.scratch / f"{planned.model.name}.{planned.target.name}.mlir"
    failed = flow_of(tools.kit, planned.argv, Source(planned.model.name, source), flow)
    if failed is not None:
        return Audited(cell, planned, source, reason(failed.message))
    try:
        groups = groups_of(tools.folding, flow)
    except MalformedBinary as error:
        return Audited(cell, planned, source, str(error))
    attempts = Attempts(planned, flow, tools.kit, tools.folding, tools.cache, tools.assembler)
    return again(Audited(cell, planned, source, attempts=attempts, groups=groups), ())


def again(one: Audited, banned: Collection[Group]) -> Audited:
    """The same cell, searched without some groups."""
    if one.attempts is None or one.groups is None:
        return one
    result = search(one.groups, one.attempts.at, banned)
    if not result.attempt.cell.measured:
        return replace(one, kept=None, failure=f"resumed with nothing folded: {reason_of(result.attempt)}")
    return replace(one, kept=result.attempt, left=(*result.left, *_told_families(one.cell, one.groups)))


def _told_families(cell: Cell, found: Groups) -> list[LeftFamily]:
    grouped = {name for groups in found.groups.values() for group in groups for name in group}
    return [
        LeftFamily(family.kind, family.members, _why(family.kind, family.members, found))
        for family in cell.families
        if family.kind in FAMILY_KINDS and grouped.isdisjoint(family.members)
    ]


def _why(kind: str, members: tuple[str, ...], groups: Groups) -> str:
    unfit = next((name for name in members if name in groups.unfit), None)
    if unfit is not None:
        return groups.unfit[unfit]
    if not all(name in groups.entries for name in members):
        return "its executables have other names in the program that is folded"
    return NOT_FOLDED.get(
        kind, "they differ in more than constants, offsets and static dimensions, such as an attribute"
    )
