"""Regressions and improvements: the largest per metric, taking turns between models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bot.core.delta import CellDelta
from bot.core.metrics import METRICS, Metric
from bot.core.snapshot import CellKey
from bot.core.verdict import Finding
from bot.render.facts import Facts
from bot.render.rows import MetricRow, metric_row
from bot.render.selection import Limits, Listing, fair, listing

_PER_MODEL = 2
"""Rows that one model gets per metric, at most: it is in the details with all of them anyway."""


@dataclass(frozen=True, slots=True)
class Movers:
    """One direction.

    Attributes:
        top: the few that everybody should see, ordered by metric.
        folded: the largest of every metric.
    """

    top: Listing[MetricRow]
    folded: Listing[MetricRow]


@dataclass(frozen=True, slots=True)
class _Move:
    key: CellKey
    metric: Metric
    base: int
    head: int
    finding: Finding | None

    @property
    def size(self) -> float:
        """Large is what is large both in steps and in percent: neither huge models nor tiny bases always win."""
        change = self.head - self.base
        return change * change / max(self.base, 1)


def movers(facts: Facts, sign: int, limits: Limits, most: int) -> Movers:
    """The cells that grew (`sign` +1) or shrank (−1), informational metrics left out."""
    found = _moves(facts, sign)
    total = sum(map(len, found.values()))
    folded = [m for moves in found.values() for m in fair(moves, _model, limits.per_metric, _PER_MODEL)]
    noun = "regression" if sign > 0 else "improvement"
    order = {metric.id: index for index, metric in enumerate(METRICS)}
    top = sorted(_top(found, most), key=lambda move: order[move.metric.id])
    return Movers(
        listing((_row(facts, move) for move in top), total, noun),
        listing((_row(facts, move) for move in folded), total, noun),
    )


def _model(move: _Move) -> str:
    return move.key.model


def _moves(facts: Facts, sign: int) -> dict[str, list[_Move]]:
    found: dict[str, list[_Move]] = {metric.id: [] for metric in METRICS if metric.exact}
    by_id = {metric.id: metric for metric in METRICS}
    for state in ("changed", "newly-broken"):
        for delta in facts.states[state]:
            for id_, base, head in _pairs(delta):
                if (head - base) * sign > 0 and id_ in found:
                    found[id_].append(_Move(delta.key, by_id[id_], base, head, finding_of(facts, delta.key, id_)))
    for moves in found.values():
        moves.sort(key=lambda m: (_rank(m.finding), -m.size, m.key))
    return found


def _pairs(delta: CellDelta) -> Iterator[tuple[str, int, int]]:
    for metric in delta.metrics.values():
        if metric.base is not None and metric.head is not None and metric.base != metric.head:
            yield metric.id, metric.base, metric.head


def finding_of(facts: Facts, key: CellKey, metric_id: str) -> Finding | None:
    """The finding of one metric of one cell."""
    return next((f for f in facts.findings.get(key, ()) if f.metric == metric_id), None)


def _rank(finding: Finding | None) -> int:
    return 2 if finding is None else ("fail", "warn").index(finding.level)


def _top(found: dict[str, list[_Move]], most: int) -> list[_Move]:
    """Findings first, the worse before the milder; metrics take turns, and within a metric models do."""
    shown: list[_Move] = []
    for rank in range(3):
        queue: list[_Move] = []
        for moves in found.values():
            alike = [move for move in moves if _rank(move.finding) == rank]
            queue += fair(alike, _model, most, _PER_MODEL)
        shown += fair(queue, lambda move: move.metric.id, most - len(shown))
    return shown


def _row(facts: Facts, move: _Move) -> MetricRow:
    return metric_row(facts, move.key, move.metric, (move.base, move.head), move.finding)
