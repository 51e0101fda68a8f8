"""A cell's audit as what is told of it; its folded program goes to the output directory."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from bot.compiler.folding import Group
from bot.core.folds.fold_values import FAILED, FOLD_KINDS, BeforeAfter, Bound, FoldCell, FoldedFamily, LeftFamily, Price
from bot.insight.whole_models import fold_counts
from bot.measurement.folds.cell_audit import Audited
from bot.measurement.folds.searching import kind_of
from bot.system.files import make_directory

FOLDER = "folded"
"""Of the folded programs, beside `fold.json`."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What running both artifacts gave; the fields are those of a `FoldCell`."""

    equal: bool | None
    equal_note: str
    price: Price | None
    price_note: str


def cell_told(one: Audited, ran: Ran, out: Path) -> FoldCell:
    """What is told of one cell."""
    cell, attempt = one.cell, one.kept
    counts = fold_counts(cell)
    is_folded = attempt is not None and bool(attempt.groups)
    row = FoldCell(
        model=cell.key.model,
        target=cell.key.target,
        state=_state(one),
        executables=_both(one, "executables"),
        artifact_bytes=_both(one, "artifact_bytes"),
        executable_bytes=_both(one, "executable_bytes"),
        equal=ran.equal,
        folded=_folded(one),
        left=one.left,
        resumed_bytes=one.attempts.at(()).artifact_bytes if one.attempts is not None else None,
        bound=Bound(counts.surplus_executables, counts.surplus_bytes) if counts is not None else None,
        equal_note=ran.equal_note,
        price=ran.price,
        price_note=ran.price_note,
        note=one.failure,
    )
    if attempt is None or one.attempts is None or not is_folded:
        return row
    module = f"{FOLDER}/{cell.key.model}.{cell.key.target}.mlir"
    make_directory(out / FOLDER)
    shutil.copyfile(one.attempts.program(attempt), out / module)
    planned = replace(attempt.planned, model=replace(attempt.planned.model, shown=module))
    return structs.replace(row, command=planned.command(), module=module)


def _state(one: Audited) -> str:
    if one.cell.status == "unsupported":
        return "unsupported"
    if one.kept is None or not one.kept.cell.measured:
        return FAILED
    return "folded" if one.kept.groups else "nothing-to-fold"


def _both(one: Audited, metric: str) -> BeforeAfter:
    """A metric before and after; what is not folded stays what it was."""
    before = one.cell.value(metric) if one.cell.measured else None
    if one.kept is None or not one.kept.groups:
        return BeforeAfter(before, before if one.kept is not None else None)
    return BeforeAfter(before, one.kept.cell.value(metric))


def _folded(one: Audited) -> tuple[FoldedFamily, ...]:
    if one.kept is None or one.groups is None:
        return ()
    return tuple(
        FoldedFamily(kind_of(one.groups, group.members) or FOLD_KINDS[-1], group.members, group.operands)
        for group in one.kept.folded
    )


def rejected(one: Audited, banned: Mapping[Group, str]) -> tuple[LeftFamily, ...]:
    """Groups of a cell that are not folded as they change outputs, here or on another target."""
    if one.groups is None:
        return ()
    rows = [(kind_of(one.groups, group), group, why) for group, why in banned.items()]
    return tuple(LeftFamily(kind, group, why) for kind, group, why in rows if kind is not None)


def news_of(one: Audited) -> str:
    """One line while it goes on."""
    if one.kept is None:
        return f"{one.cell.key}: not folded: {one.failure}"
    if not one.kept.groups:
        return f"{one.cell.key}: nothing to fold"
    counts, sizes = _both(one, "executables"), _both(one, "artifact_bytes")
    changes = [f"{pair.before:,} → {pair.after:,} {unit}" for pair, unit in ((counts, "executables"), (sizes, "B"))
            if pair.before is not None and pair.after is not None]  # fmt: skip
    return f"{one.cell.key}: {', '.join(changes)}"
