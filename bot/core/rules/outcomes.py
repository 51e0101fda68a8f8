"""What the same command gave, each time it was compiled: a compiler does not always repeat itself.

Two outcomes of one command are proof of that, whoever saw them: the same side in several compiles, or both sides of a
comparison where compiler, model and flags are the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from bot.core.metrics import METRICS
from bot.core.spread import Value, spread
from bot.core.values.planned import LIFTED_LIMIT_FLAG
from bot.core.values.snapshot import Cell, CellKey, Outcome, Snapshot

_TARGET_OPTIONS = ("--iree-hal-target-backends=", "--iree-hal-target-device=")

Outcomes = tuple[tuple[Outcome, ...], tuple[Outcome, ...]]
"""What base and head gave first, then what differed from it; empty where a side does not have the cell."""


def distinct(outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """Each outcome once: they are the same where status and artifact are."""
    first: dict[tuple[str, str | None], Outcome] = {}
    for outcome in outcomes:
        first.setdefault((outcome.status, outcome.artifact_digest), outcome)
    return tuple(first.values())


def seen_values(cell: Cell) -> dict[str, tuple[int, ...]]:
    """Exact metric → its values, the lowest first, where the cell's command gave several."""
    if not cell.others:
        return {}
    outcomes, exact = (cell.outcome, *cell.others), (metric.id for metric in METRICS if metric.exact)
    values = {id_: {value for one in outcomes if (value := one.metrics.get(id_)) is not None} for id_ in exact}
    return {id_: tuple(sorted(seen)) for id_, seen in values.items() if len(seen) > 1}


def value_of(cell: Cell, id_: str) -> Value:
    """A metric of a cell as it is told: all that its command gave."""
    seen = seen_values(cell).get(id_)
    return spread(seen) if seen else cell.value(id_)


def numbers_repeat(outcomes: Outcomes) -> bool:
    """True where all outcomes of a side ended alike and agree in every exact metric, on both sides."""
    exact = [metric.id for metric in METRICS if metric.exact]
    numbers = ({(one.status, *map(one.metrics.get, exact)) for one in side} for side in outcomes)
    return all(len(different) <= 1 for different in numbers)


def known_outcomes(base: Snapshot, head: Snapshot, key: CellKey, cells: tuple[Cell | None, Cell | None]) -> Outcomes:
    """All that is known of one cell on both sides."""
    left, right = (distinct((cell.outcome, *cell.others)) if cell is not None else () for cell in cells)
    if _same_command(base, head, key, cells):
        left, right = distinct((*left, *right)), distinct((*right, *left))
    return left, right


def _same_command(base: Snapshot, head: Snapshot, key: CellKey, cells: tuple[Cell | None, Cell | None]) -> bool:
    """True where both sides made artifacts of the same model with the same compiler and flags."""
    left, right = cells
    if left is None or right is None or left.artifact_digest is None or right.artifact_digest is None:
        return False
    models = base.models.get(key.model), head.models.get(key.model)
    if not base.compiler.digest or base.compiler.digest != head.compiler.digest or None in models:
        return False
    return models[0] == models[1] and _flags(left) == _flags(right) != ""


def _flags(cell: Cell) -> str:
    """The command without the model's path, and without what lifts the stack gate; empty where it names no target."""
    command = cell.command.partition(" < ")[0].replace(f" {LIFTED_LIMIT_FLAG}", "")
    return command if any(option in command for option in _TARGET_OPTIONS) else ""


def as_outcome(cell: Cell | None, outcome: Outcome | None) -> Cell | None:
    """The cell as another compile of it gave it; what is only known of the first compile is left out."""
    if cell is None or outcome is None or outcome == cell.outcome:
        return cell
    other = replace(cell, status=outcome.status, metrics=outcome.metrics, artifact_digest=outcome.artifact_digest)
    return replace(other, dispatches=(), failure=cell.failure if outcome.status != "ok" else None)
