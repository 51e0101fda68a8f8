"""The totals: what all models' artifacts are on each target, over the cells that both sides measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.core.delta import CellDelta
from bot.core.policy import Finding
from bot.core.record import Value, certain, difference, total
from bot.show.facts import MARKS, Facts, broken_alike, mark_of, whole_of, worst_first
from bot.show.filters import relative, sides

_NAME = 40


@dataclass(frozen=True, slots=True)
class Total:
    """Artifacts added up.

    Attributes:
        target: the short name; empty for all targets.
        cells: how many were measured on both sides; the sums are over these.
        planned: how many there are, but for those that are left out on purpose.
        broken: how many of them are newly broken.
        base, head: sums in bytes; None where there is no such cell.
        larger, smaller: how many of them grew and shrank.
        unsure: of how many that is open, as the compiler does not repeat itself.
        mark, level: of the worst finding there: its symbol, and `fail`, `warn` or empty.
    """

    target: str
    cells: int
    base: Value
    head: Value
    larger: int
    smaller: int
    unsure: int = 0
    planned: int = 0
    broken: int = 0
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

    @property
    def ways(self) -> str:
        """`3 / 1`, `3 / 1, 1 open`: how many are larger and smaller; `–` for none."""
        ways = f"{self.larger:,} / {self.smaller:,}" if self.larger or self.smaller else ""
        return ", ".join(filter(None, (ways, f"{self.unsure:,} open" if self.unsure else ""))) or "–"


@dataclass(frozen=True, slots=True)
class Totals:
    """All targets.

    Attributes:
        rows: each target that something changed on; then all, where these are several. Empty where nothing changed, or
            no cell was measured on both sides.
        still: the short names of the other ones.
        everything: the sum over all targets.
    """

    rows: tuple[Total, ...]
    still: tuple[str, ...]
    everything: Total


def totals(facts: Facts) -> Totals:
    """Those of each measured target."""
    found: dict[str, list[CellDelta]] = {target: [] for target in sorted(facts.measured_targets)}
    for delta in facts.report.deltas:
        if delta.key.target in found:
            found[delta.key.target].append(delta)
    news = worst_first(facts.report.verdict.news)
    worst: dict[str, Finding] = {}
    for finding in news:
        if finding.key.target not in worst:
            worst[finding.key.target] = whole_of(finding, news)
    moved = {target: deltas for target, deltas in found.items() if target in worst or not _is_still(deltas)}
    rows = tuple(_total(facts, target, deltas, worst.get(target)) for target, deltas in moved.items())
    still = tuple(facts.short[target] for target in found if target not in moved)
    every = everything(facts)
    if not every.cells:
        rows = ()
    return Totals((*rows, every) if len(rows) > 1 else rows, still, every)


def _is_still(deltas: Sequence[CellDelta]) -> bool:
    return all(delta.state == "same" or delta.excused or broken_alike(delta) for delta in deltas)


def everything(facts: Facts) -> Total:
    """The sum over all targets."""
    return _sum("", [delta for delta in facts.report.deltas if delta.key.target in facts.measured_targets])


def _total(facts: Facts, target: str, deltas: Sequence[CellDelta], worst: Finding | None) -> Total:
    level = worst.weight if worst and worst.weight != "pass" else ""
    return replace(_sum(facts.short[target], deltas), mark=_mark(worst) if worst else "", level=level)


def _mark(finding: Finding) -> str:
    return "💥" if finding.limit == "newly-broken" and not finding.accepted else MARKS[mark_of(finding)]


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
