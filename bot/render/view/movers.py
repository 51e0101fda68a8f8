"""Regressions and improvements: the largest per metric, taking turns between models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.core.metrics import ARTIFACT_PARTS, METRIC_BY_ID, METRICS, Metric
from bot.core.values.snapshot import CellKey
from bot.core.values.verdict import Finding
from bot.render.text.selection import Limits, Listing, fair, listing
from bot.render.view.facts import Facts, level_of
from bot.render.view.rows import MetricRow, metric_row

_PER_MODEL_TOP, _PER_MODEL_FOLDED = 2, 4
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
    folded = [m for moves in found.values() for m in _ranked(moves, _PER_MODEL_FOLDED)[: limits.per_metric]]
    noun = "regression" if sign > 0 else "improvement"
    order = {metric.id: index for index, metric in enumerate(METRICS)}
    top = sorted(_top(found, most), key=lambda move: order[move.metric.id])
    return Movers(
        listing((_row(facts, move) for move in top), total, noun),
        listing((_row(facts, move) for move in folded), total, noun),
    )


def _moves(facts: Facts, sign: int) -> dict[str, list[_Move]]:
    found: dict[str, list[_Move]] = {metric.id: [] for metric in METRICS if metric.exact}
    for state in ("changed", "newly-broken"):
        for delta in facts.states[state]:
            for id_, base, head in ((metric.id, metric.base, metric.head) for metric in delta.metrics.values()):
                if base is not None and head is not None and (head - base) * sign > 0 and id_ in found:
                    finding = finding_of(facts, delta.key, id_)
                    found[id_].append(_Move(delta.key, METRIC_BY_ID[id_], base, head, finding))
    for moves in found.values():
        moves.sort(key=lambda m: (_rank(m.finding), -m.size, m.key))
    return found


def finding_of(facts: Facts, key: CellKey, metric_id: str) -> Finding | None:
    """The finding of one metric of one cell."""
    return next((f for f in facts.findings.get(key, ()) if f.metric == metric_id), None)


def _rank(finding: Finding | None) -> int:
    return 2 if finding is None else ("fail", "warn").index(level_of(finding))


def _top(found: dict[str, list[_Move]], most: int) -> list[_Move]:
    """Findings first, the worse before the milder; metrics take turns, and within a metric models do."""
    wholes = {move.key: _rank(move.finding) for move in found["artifact_bytes"]}
    news = {id_: [m for m in moves if not _is_told(m, wholes)] for id_, moves in found.items()}
    candidates = [m for moves in news.values() for m in _ranked(moves, _PER_MODEL_TOP)[: max(3, most // 2)]]
    shown: list[_Move] = []
    for rank in range(3):
        alike = [move for move in candidates if _rank(move.finding) == rank]
        shown += fair(alike, lambda move: move.metric.id, most - len(shown))
    return shown


def _is_told(move: _Move, wholes: Mapping[CellKey, int]) -> bool:
    """True for a part of an artifact that moved the same way, and no less alarmingly: the artifact's row says it."""
    return move.metric.id in ARTIFACT_PARTS and wholes.get(move.key, 3) <= _rank(move.finding)


def _ranked(moves: Sequence[_Move], per_model: int) -> list[_Move]:
    """One metric's moves with the worse findings first; in each rank models take turns."""
    ranks = [[move for move in moves if _rank(move.finding) == rank] for rank in range(3)]
    ordered = [move for alike in ranks for move in fair(alike, lambda move: move.key.model, len(alike))]
    seen: Counter[str] = Counter()
    kept = []
    for move in ordered:
        seen[move.key.model] += 1
        if seen[move.key.model] <= per_model:
            kept.append(move)
    return kept


def _row(facts: Facts, move: _Move) -> MetricRow:
    return metric_row(facts, move.key, move.metric, (move.base, move.head), move.finding)
