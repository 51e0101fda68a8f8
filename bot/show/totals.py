"""Add up artifacts: a sum for each target, and one over all targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.core.delta import CellDelta, MetricDelta
from bot.core.record import Spread, Value, total
from bot.core.report import Report
from bot.show.facts import Facts, broken_alike


@dataclass(frozen=True, slots=True)
class Total:
    """Artifacts added up."""

    target: str  # the short name; empty for all targets
    cells: int  # how many were measured on both sides; the sums are over these
    # base, head: sums in bytes; None if there is no such cell
    base: Value
    head: Value
    # larger, smaller: how many of them grew and shrank
    larger: int
    smaller: int
    # number of builds whose change is open, as the compiler is non-deterministic
    unsure: int = 0
    planned: int = 0  # number of builds, without those that are left out on purpose
    broken: int = 0  # how many of them are newly broken
    # True if a build is new, gone, fixed, newly failing or not measured
    states_changed: bool = False

    @property
    def moves(self) -> bool:
        """Return whether the size of some artifact changed."""
        return bool(
            self.larger or self.smaller or self.unsure or self.base != self.head
        )


def target_deltas(facts: Facts) -> dict[str, list[CellDelta]]:
    """Return the builds of each measured target, in order."""
    targets: dict[str, list[CellDelta]] = {}
    for target in sorted(facts.measured_targets):
        targets[target] = []
    for delta in facts.report.deltas:
        if delta.key.target in targets:
            targets[delta.key.target].append(delta)
    return targets


def everything(report: Report) -> Total:
    """Return the sum over all targets that were measured."""
    measured = set[str]()
    for delta in report.deltas:
        if delta.state != "unmeasured":
            measured.add(delta.key.target)
    deltas = [delta for delta in report.deltas if delta.key.target in measured]
    return sum_of("", deltas)


def sum_of(target: str, deltas: Sequence[CellDelta]) -> Total:
    """Return the sum of the artifacts that both sides have.

    A build with the same artifact on both sides adds the same size to both sums, even
    if it is non-deterministic.
    """
    values = list[MetricDelta]()
    bases = list[int | Spread]()
    heads = list[int | Spread]()
    for delta in deltas:
        value = delta.metrics["artifact_bytes"]
        base, head = value.sides
        if delta.state == "same":
            base = value.base
            head = value.head
        if base is not None and head is not None:
            values.append(value)
            bases.append(base)
            heads.append(head)
    larger = 0
    smaller = 0
    unsure = 0
    for value in values:
        change = value.change or 0
        larger += change > 0
        smaller += change < 0
        unsure += value.is_open
    planned = 0
    broken = 0
    for delta in deltas:
        planned += not delta.excused
        broken += delta.state == "newly-broken"
    return Total(
        target=target,
        cells=len(values),
        base=total(bases),
        head=total(heads),
        larger=larger,
        smaller=smaller,
        unsure=unsure,
        planned=planned,
        broken=broken,
        states_changed=any(map(_is_state_change, deltas)),
    )


def _is_state_change(delta: CellDelta) -> bool:
    """Return whether a build is new, gone, fixed, newly failing or not measured."""
    if delta.state in ("same", "changed") or delta.excused:
        return False
    return not broken_alike(delta)
