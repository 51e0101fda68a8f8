"""Artifacts added up: a sum for each target, and one over all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.core.delta import CellDelta
from bot.core.record import Value, total
from bot.core.report import Report
from bot.show.facts import Facts, broken_alike


@dataclass(frozen=True, slots=True)
class Total:
    """Artifacts added up."""

    target: str  # the short name; empty for all targets
    cells: int  # how many were measured on both sides; the sums are over these
    # base, head: sums in bytes; None where there is no such cell
    base: Value
    head: Value
    # larger, smaller: how many of them grew and shrank
    larger: int
    smaller: int
    unsure: int = 0  # of how many that is open, as the compiler does not repeat itself
    planned: int = 0  # how many there are, but for those that are left out on purpose
    broken: int = 0  # how many of them are newly broken
    states_changed: bool = (
        False  # True where a build is new, gone, fixed, newly failing or not measured
    )

    @property
    def moves(self) -> bool:
        """True where some artifact has another size."""
        return bool(
            self.larger or self.smaller or self.unsure or self.base != self.head
        )


def target_deltas(facts: Facts) -> dict[str, list[CellDelta]]:
    """Return the builds of each measured target, in order."""
    targets: dict[str, list[CellDelta]] = {
        target: [] for target in sorted(facts.measured_targets)
    }
    for delta in facts.report.deltas:
        if delta.key.target in targets:
            targets[delta.key.target].append(delta)
    return targets


def everything(report: Report) -> Total:
    """The sum over all targets that were measured."""
    measured = {
        delta.key.target for delta in report.deltas if delta.state != "unmeasured"
    }
    return sum_of(
        "", [delta for delta in report.deltas if delta.key.target in measured]
    )


def sum_of(target: str, deltas: Sequence[CellDelta]) -> Total:
    """What has the same artifact on both sides among those that were seen adds that: it moves no sum."""
    sizes = [
        (delta.metrics["artifact_bytes"], delta.state == "same") for delta in deltas
    ]
    pairs = [
        (value, value.base, value.head) if same else (value, *value.sides)
        for value, same in sizes
    ]
    certain_pairs = [
        (value, base, head)
        for value, base, head in pairs
        if base is not None and head is not None
    ]
    larger, smaller = (
        sum((value.change or 0) * sign > 0 for value, _, _ in certain_pairs)
        for sign in (1, -1)
    )
    sums = (
        total(base for _, base, _ in certain_pairs),
        total(head for _, _, head in certain_pairs),
    )
    planned, broken = (
        sum(not d.excused for d in deltas),
        sum(d.state == "newly-broken" for d in deltas),
    )
    unsure = sum(value.is_open for value, _, _ in certain_pairs)
    compared = ("same", "changed")
    states_changed = any(
        delta.state not in compared and not delta.excused and not broken_alike(delta)
        for delta in deltas
    )
    return Total(
        target,
        len(certain_pairs),
        *sums,
        larger,
        smaller,
        unsure,
        planned,
        broken,
        states_changed,
    )
