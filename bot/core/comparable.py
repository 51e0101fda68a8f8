"""Which figures of two cells can be compared.

The machine code of cuda depends on the assembler as much as on the compiler. So figures
of two assembler versions are not compared. A metric that only one side names is newer
than the program that measured the other side. `other_version` reports it, so that no
figure is hidden.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from bot.core.metrics import METRICS, unlike
from bot.core.snapshot import Cell, Snapshot

ASSEMBLED = tuple(metric.id for metric in METRICS if metric.assembled)
OF_DISPATCH = tuple(metric.of_entry for metric in METRICS if metric.assembled)
"""Metrics that the assembler makes, and fields of a dispatch that it makes."""
# metrics that every version has measured
FIRST = frozenset(metric.id for metric in METRICS if metric.always)
_NONE: Mapping[str, str] = {}
TOO_OLD = (
    "the version of code-size-bot that measured one side does not have this metric"
)


def comparable(
    base: Cell | None, head: Cell | None, undeclared: Mapping[str, str] = _NONE
) -> tuple[Cell | None, Cell | None]:
    """Return both cells without the values that cannot be compared.

    Such a value is None, and has a reason. `undeclared`: the result of `unlike`.
    """
    if base is None or head is None or not (base.measured and head.measured):
        return base, head
    for id_, reason in undeclared.items():
        base = _without(base, (id_,), reason)
        head = _without(head, (id_,), reason)
    if base.assembler != head.assembler:
        reason = f"not compared: base has {_maker(base)}, head {_maker(head)}"
        base = _without_machine_code(base, reason)
        head = _without_machine_code(head, reason)
    young = (head.metrics.keys() ^ base.metrics.keys()) - FIRST
    if not young:
        return base, head
    return _without(base, young, TOO_OLD), _without(head, young, TOO_OLD)


def _maker(cell: Cell) -> str:
    if cell.assembler:
        return f"machine code of {cell.assembler}"
    return "no machine code of an assembler"


def other_version(base: Snapshot, head: Snapshot) -> str:
    """Return which metrics are not compared because one side does not name them.

    The text is empty if all are compared.
    """
    undeclared = unlike(base.compiler.metrics, head.compiler.metrics)
    base_ids = _measured_ids(base)
    head_ids = _measured_ids(head)
    if not base_ids or not head_ids:
        return ""
    phrase = "was measured by another version of code-size-bot, without"
    sides = []
    for side, ids in (("base", head_ids - base_ids), ("head", base_ids - head_ids)):
        lacking = sorted(ids - FIRST - undeclared.keys())
        if lacking:
            sides.append(f"{side} {phrase} {', '.join(lacking)}")
    sides += [f"{id_} is {reason}" for id_, reason in undeclared.items()]
    if sides:
        return f"not compared: {'; '.join(sides)}"
    return ""


def _measured_ids(snapshot: Snapshot) -> set[str]:
    """Return the metrics that any measured cell names."""
    ids = set[str]()
    for cell in snapshot.cells:
        if cell.measured:
            ids.update(cell.metrics)
    return ids


def _without_machine_code(cell: Cell, reason: str) -> Cell:
    unmade = dict.fromkeys(OF_DISPATCH)
    dispatches = tuple(replace(dispatch, **unmade) for dispatch in cell.dispatches)
    return replace(_without(cell, ASSEMBLED, reason), dispatches=dispatches)


def _without(cell: Cell, names: Collection[str], reason: str) -> Cell:
    """Return the cell with None for these metrics, in all that its command gave."""
    unknown = dict.fromkeys(names)
    outcomes = []
    for outcome in cell.others:
        metrics = {**outcome.metrics, **unknown}
        outcomes.append(replace(outcome, metrics=metrics))
    return replace(
        cell,
        metrics={**cell.metrics, **unknown},
        reasons={**cell.reasons, **dict.fromkeys(names, reason)},
        others=tuple(outcomes),
    )


def changed_inputs(base: Snapshot, head: Snapshot) -> frozenset[str]:
    """Return the models of builds that read other files beside the model on head."""
    base_cells = base.by_key
    models = set()
    for cell in head.cells:
        before = base_cells.get(cell.key)
        if before is not None and before.inputs != cell.inputs:
            models.add(cell.model)
    return frozenset(models)
