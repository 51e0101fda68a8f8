"""A history: a study whose variants are releases or commits; what moved in each, the steps between, and totals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

import msgspec

from bot.core.delta import seen_values, sizes_of, value_of
from bot.core.explanation import Step
from bot.core.metrics import METRIC_BY_ID, METRICS
from bot.core.record import Amount, Count, Name, Record, Small, Spread, Value, largest, lowest, range_of, spread, total
from bot.core.snapshot import Cell, CellKey, Metrics, filled, lines
from bot.core.study import UNMEASURED, Study, Variant

HISTORY_SCHEMA = "code-size-history/1"

TRACKED = tuple(metric.id for metric in METRICS if metric.tracked)
"""Metrics whose moves are told; `history.json` has all that were measured."""


class Move(Record, frozen=True, omit_defaults=True):
    """That a cell has other numbers than in the release before that measured it."""

    since: Name  # that release, which is an earlier one than the neighbour where there is a gap between
    # tracked metric → difference, where it is not 0; of compile time none, of a range the
    # part that is sure, and nothing where the ranges overlap
    changes: Mapping[Name, Amount]
    cause: Name | None = None
    why: str = ""
    # tracked metric → the least and the most that the difference may be, where a side does not repeat itself
    ranges: Mapping[Name, tuple[Amount, Amount]] = msgspec.field(default_factory=dict)

    def change(self, metric: str) -> Value:
        """The difference as it is told; None where the metric did not move."""
        ends = self.ranges.get(metric) if metric in self.changes else None
        return spread(ends) if ends else self.changes.get(metric)


class HistoryTotal(Record, frozen=True):
    """One target, or all, in one release, over the cells that know the metric in every release that measured any."""

    compiler: Name
    target: Name | None
    metrics: Metrics  # tracked metric → sum, or for stack the largest value, at the least; None without such a cell
    cells: Mapping[Name, Count]  # tracked metric → how many cells that is over, the same in all releases
    ranges: Mapping[Name, tuple[Count, Count]] = {}  # the same where cells that do not repeat themselves leave a range

    def value(self, metric: str) -> Value:
        """A total as it is told."""
        return spread(self.ranges[metric]) if metric in self.ranges else self.metrics.get(metric)


class OneMove(Small, frozen=True):
    """A number that moved."""

    release: str
    cell: Cell
    move: Move
    change: int  # the difference to the release before that has a value


class NumberMoves(Small, frozen=True):
    """Where a number moved first, and where by most; the same where it moved once."""

    first: OneMove
    largest: OneMove


class History(Small, frozen=True, dict=True, gc=True):
    """A study of releases or commits, and what it says of their order."""

    study: Study
    # release and cell → that it has other numbers there than in the release before that measured it
    moves: Mapping[tuple[str, CellKey], Move] = {}
    steps: tuple[Step, ...] = ()
    totals: tuple[HistoryTotal, ...] = ()  # for all targets, then for each, in the order of the releases
    notes: tuple[str, ...] = ()

    @cached_property
    def rows(self) -> Mapping[CellKey, tuple[Cell, ...]]:
        """Each cell that something was tried for in some release, in the order of the releases."""
        untried = ("unsupported", UNMEASURED)
        return {key: row for key, row in self.study.rows.items() if any(cell.status not in untried for cell in row)}

    @cached_property
    def number_moves(self) -> Mapping[CellKey, Mapping[str, NumberMoves]]:
        """Cell → metric → where it moved; a number that never did is not there."""
        moves: dict[CellKey, dict[str, NumberMoves]] = {}
        for key, row in self.rows.items():
            for one, cell in zip(self.study.variants, row, strict=True):
                if (move := self.moves.get((one.name, key))) is None:
                    continue
                mine = moves.setdefault(key, {})
                for metric, change in move.changes.items():
                    moved, before = OneMove(one.name, cell, move, change), mine.get(metric)
                    if before is None or abs(change) > abs(before.largest.change):
                        mine[metric] = NumberMoves(before.first if before else moved, moved)
        return moves


def totals_of(study: Study) -> tuple[HistoryTotal, ...]:
    """Totals over all targets, then over each, release after release; none of a release that measured nothing.

    They are over cells that every release has, so that a gap is never taken for a change.
    """
    measured = {one.name for one in study.measured}
    columns = [at for at, one in enumerate(study.variants) if one.name in measured]
    known: dict[str, dict[CellKey, list[int | Spread]]] = {}
    for metric in TRACKED:
        for key, row in study.rows.items():
            values = [value for at in columns if (value := value_of(row[at], metric)) is not None]
            if len(values) == len(columns):
                known.setdefault(metric, {})[key] = values
    totals = []
    for target in (None, *sorted({key.target for key, row in study.rows.items() if any(c.measured for c in row)})):
        mine = {
            metric: [row for key, row in known.get(metric, {}).items() if target in (None, key.target)]
            for metric in TRACKED
        }
        counts = {metric: len(rows) for metric, rows in mine.items()}
        for place, at in enumerate(columns):
            sums = {
                metric: (largest if METRIC_BY_ID[metric].over == "largest" else total)(row[place] for row in rows)
                for metric, rows in mine.items()
            }
            ranges = {metric: both for metric, value in sums.items() if (both := range_of(value))}
            lowests = {id_: lowest(value) for id_, value in sums.items()}
            totals.append(HistoryTotal(study.variants[at].name, target, lowests, counts, ranges))
    return tuple(totals)


def history_lines(history: History) -> Iterator[bytes]:
    """The text of `history.json`: canonical, in the order of releases, models and targets."""
    variants, rows = history.study.variants, history.study.rows
    points = (
        {
            "compiler": one.name,
            "model": key.model,
            "target": key.target,
            "status": row[at].status,
            "metrics": row[at].metrics if row[at].measured else {},
        }
        | filled(
            reason=row[at].reason,
            sizes=sizes_of(row[at]),
            move=history.moves.get((one.name, key)),
            command=row[at].command,
            digest=row[at].artifact_digest,
            seen=seen_values(row[at]) if row[at].measured else {},
        )
        for at, one in enumerate(variants)
        for key, row in rows.items()
    )
    record = {
        "schema": HISTORY_SCHEMA,
        "targets": history.study.targets,
        "releases": [_release(order, one) for order, one in enumerate(variants)],
        "points": (),
        "steps": [
            {name: getattr(step, name) for name in step.__struct_fields__}
            | {"base_bytes": lowest(step.base_bytes), "head_bytes": lowest(step.head_bytes)}
            | {"base_range": range_of(step.base_bytes), "head_range": range_of(step.head_bytes)}
            for step in history.steps
        ],
        "totals": history.totals,
        "planned": len(history.rows),
        "notes": history.notes,
    }
    return lines(record, points)


def _release(order: int, one: Variant) -> dict[str, object]:
    own = {"name": one.name, "order": order, "spec": one.spec}
    if (side := one.snapshot) is None:
        return own | filled(reason=one.reason)
    known = {name: getattr(side.compiler, name) for name in ("version", "revision", "digest", "metrics")}
    return own | filled(**known, sha=side.source.sha, notes=side.notes)
