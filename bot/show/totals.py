"""Artifacts added up: a sum for each target, and one over all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from bot.core.delta import CellDelta
from bot.core.record import Value, certain, difference, total
from bot.core.report import Report
from bot.show.blocks import by
from bot.show.facts import MARKS, Facts, broken_alike, mark_of, whole_of, worst_first
from bot.show.filters import relative, sides


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
    # mark, level: of the worst finding there: its symbol, and `fail`, `warn` or empty
    mark: str = ""
    level: str = ""

    @property
    def moved(self) -> int:
        """The part of the change that is sure, in bytes; 0 where even its sign is open."""
        return certain(difference(self.base, self.head)) or 0

    @property
    def change(self) -> str:
        """`+41.3 %`, `−3.1 %, 1 broken`, `1 broken`; `n/a` where no cell was measured on both sides."""
        parts = [relative(self.base, self.head)] if self.cells and (self.moves or not self.broken) else []
        parts += [f"{self.broken:,} broken"] if self.broken else []
        return ", ".join(parts) or "n/a"

    @property
    def moves(self) -> bool:
        """True where some artifact has another size."""
        return bool(self.larger or self.smaller or self.unsure or self.base != self.head)

    @property
    def sizes(self) -> str:
        """`510,350 → 721,214 B`, and of how many cells where that is not all: `385,162 B (2 of 4)`; or `n/a`."""
        if not self.cells:
            return "n/a"
        over = f" ({self.cells:,} of {self.planned:,})" if self.cells < self.planned else ""
        return f"{sides(self.base, self.head)}{over}"


class Totals(NamedTuple):
    """The sums that are shown, a row a target."""

    # each target that something changed on; then all, where these are several. Empty where nothing changed, or no cell
    # was measured on both sides.
    rows: tuple[Total, ...]
    still: int  # how many other ones there are
    everything: Total  # the sum over all targets


def totals(facts: Facts) -> Totals:
    """Artifacts added up for each measured target, and for all."""
    targets: dict[str, list[CellDelta]] = {target: [] for target in sorted(facts.measured_targets)}
    for delta in facts.report.deltas:
        if delta.key.target in targets:
            targets[delta.key.target].append(delta)
    news, rows, still = worst_first(facts.report.verdict.news), list[Total](), 0
    worst = {target: whole_of(ones[0], news) for target, ones in by(news, lambda one: one.key.target).items()}
    for target, deltas in targets.items():
        if one := worst.get(target):
            mark = "💥" if one.limit == "newly-broken" and one.accepted is None else MARKS[mark_of(one)]
            level = one.weight if one.weight != "pass" else ""
            rows.append(replace(_sum(facts.short[target], deltas), mark=mark, level=level))
        elif all(delta.state == "same" or delta.excused or broken_alike(delta) for delta in deltas):
            still += 1
        else:
            rows.append(_sum(facts.short[target], deltas))
    every = everything(facts.report)
    if not every.cells:
        rows = []
    return Totals((*rows, every) if len(rows) > 1 else tuple(rows), still, every)


def everything(report: Report) -> Total:
    """The sum over all targets that were measured."""
    measured = {delta.key.target for delta in report.deltas if delta.state != "unmeasured"}
    return _sum("", [delta for delta in report.deltas if delta.key.target in measured])


def _sum(target: str, deltas: Sequence[CellDelta]) -> Total:
    """What has the same artifact on both sides among those that were seen adds that: it moves no sum."""
    sizes = [(delta.metrics["artifact_bytes"], delta.state == "same") for delta in deltas]
    both = [(one, one.base, one.head) if same else (one, *one.sides) for one, same in sizes]
    known = [(one, base, head) for one, base, head in both if base is not None and head is not None]
    larger, smaller = (sum((one.change or 0) * sign > 0 for one, _, _ in known) for sign in (1, -1))
    sums = total(base for _, base, _ in known), total(head for _, _, head in known)
    planned, broken = sum(not d.excused for d in deltas), sum(d.state == "newly-broken" for d in deltas)
    unsure = sum(one.is_open for one, _, _ in known)
    return Total(target, len(known), *sums, larger, smaller, unsure, planned, broken)
