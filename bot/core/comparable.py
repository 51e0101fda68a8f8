"""What of two cells may be held against each other: a figure counts only where both sides made it the same way.

Machine code of cuda is the assembler's as much as the compiler's: figures of two versions of it, or of one side that
had none, say nothing of the change. And a metric that one side does not even name is younger than the program that
measured it: it did not come or go with the change. `other_version` says so, as nothing must be able to hide a figure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from msgspec import structs

from bot.core.metrics import METRICS
from bot.core.values.snapshot import Cell

ASSEMBLED = tuple(metric.id for metric in METRICS if metric.assembled)
OF_DISPATCH = tuple(metric.of_entry for metric in METRICS if metric.assembled)
"""Metrics that the assembler makes, and fields of a dispatch that it makes."""
FIRST = frozenset(metric.id for metric in METRICS if metric.always)
"""Metrics that every version has measured."""
TOO_OLD = "one side was measured by a version of code-size-bot that did not measure it"


def comparable(base: Cell | None, head: Cell | None) -> tuple[Cell | None, Cell | None]:
    """Both cells, None in place of what cannot be compared, with its reason."""
    if base is None or head is None or not (base.measured and head.measured):
        return base, head
    if base.assembler != head.assembler:
        why = f"not compared: base has {_made_by(base)}, head {_made_by(head)}"
        base, head = _without_machine_code(base, why), _without_machine_code(head, why)
    young = (head.metrics.keys() ^ base.metrics.keys()) - FIRST
    return (_without(base, young, TOO_OLD), _without(head, young, TOO_OLD)) if young else (base, head)


def other_version(base: Iterable[Cell], head: Iterable[Cell]) -> str:
    """Which metrics are not compared because one side does not name them; empty where there are none."""
    left, right = ({id_ for cell in side if cell.measured for id_ in cell.metrics} for side in (base, head))
    lacking = {side: sorted(ids - FIRST) for side, ids in (("base", right - left), ("head", left - right))}
    if not (left and right):
        return ""
    words = "was measured by another version of this program, without"
    sides = [f"{side} {words} {', '.join(ids)}" for side, ids in lacking.items() if ids]
    return f"not compared: {'; '.join(sides)}" if sides else ""


def _made_by(cell: Cell) -> str:
    return f"machine code of {cell.assembler}" if cell.assembler else "no machine code of an assembler"


def _without_machine_code(cell: Cell, why: str) -> Cell:
    unmade = dict.fromkeys(OF_DISPATCH)
    dispatches = tuple(structs.replace(dispatch, **unmade) for dispatch in cell.dispatches)
    return replace(_without(cell, ASSEMBLED, why), dispatches=dispatches)


def _without(cell: Cell, names: Collection[str], why: str) -> Cell:
    """The cell with None for these metrics, in all that its command gave."""
    unknown = dict.fromkeys(names)
    others = tuple(structs.replace(other, metrics={**other.metrics, **unknown}) for other in cell.others)
    reasons = {**cell.reasons, **dict.fromkeys(names, why)}
    return replace(cell, metrics={**cell.metrics, **unknown}, reasons=reasons, others=others)
