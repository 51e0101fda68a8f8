"""What `history.json` says: releases in their order, a point for each cell of each, the steps between, and totals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import msgspec

from bot.core.metrics import METRIC_BY_ID, METRICS
from bot.core.record import Amount, Count, Name, Record
from bot.core.snapshot import MEASURED, STATUSES, UNFETCHED, Cell, CellKey, Metrics, Snapshot
from bot.core.spread import Spread, Value, largest, lowest, range_of, spread, total

HISTORY_SCHEMA = "code-size-history/1"

UNMEASURED = "unmeasured"
"""The status of a point whose release could not be had, or has no such cell: `reason` says why."""
PointStatus = Annotated[str, msgspec.Meta(pattern=rf"\A({'|'.join(STATUSES)}|{UNMEASURED})\Z")]

TRACKED = tuple(metric.id for metric in METRICS if metric.tracked)
"""Metrics whose moves are told; a point has all that were measured."""


class Move(Record, frozen=True, omit_defaults=True):
    """That a cell has other numbers than in the release before that measured it.

    Attributes:
        since: that release, which is an earlier one than the neighbour where there is a gap between.
        changes: tracked metric → difference, where it is not 0; of compile time only what is more than its noise, of a
            range the part that is sure, and nothing where the ranges overlap.
        ranges: tracked metric → the least and the most that the difference may be, where a side does not repeat itself.
    """

    since: Name
    changes: Mapping[Name, Amount]
    cause: Name | None = None
    why: str = ""
    ranges: Mapping[Name, tuple[Amount, Amount]] = msgspec.field(default_factory=dict)

    def change(self, metric: str) -> Value:
        """The difference as it is told; None where the metric did not move."""
        ends = self.ranges.get(metric) if metric in self.changes else None
        return spread(ends) if ends else self.changes.get(metric)


class Point(Record, frozen=True, omit_defaults=True):
    """One cell in one release.

    Attributes:
        metrics: id → value, of several those of the smallest artifact; None is "not known"; empty without an artifact.
        reason: why there is no artifact, or only one with the stack gate lifted: one line.
        seen: exact metric → every value, the lowest first, where the same command gave several.
        sizes: of all artifacts that the same command gave, where these are several: it does not repeat itself.
    """

    compiler: Name
    model: Name
    target: Name
    status: PointStatus
    metrics: Metrics
    reason: str = ""
    sizes: tuple[Count, ...] = ()
    move: Move | None = None
    command: str = ""
    digest: str = ""
    seen: Mapping[Name, tuple[Count, ...]] = msgspec.field(default_factory=dict)

    def value(self, metric: str) -> Value:
        """A metric as it is told: all that was seen of it."""
        return spread(self.seen[metric]) if metric in self.seen else self.metrics.get(metric)

    @property
    def key(self) -> CellKey:
        """The cell's model and target."""
        return CellKey(self.model, self.target)

    @property
    def measured(self) -> bool:
        """True where it has an artifact and its metrics."""
        return self.status in MEASURED


class Release(Record, frozen=True, omit_defaults=True):
    """One compiler of the history.

    Attributes:
        spec: as it was asked for, without directories.
        version, revision, digest: as the compiler tells them; empty where it could not be had.
        sha: the commit whose models were measured; None outside a repository.
        reason: why there is no point of it; empty where there is one.
        repeats: other SPECs that gave the same.
    """

    name: Name
    order: Count
    spec: str
    version: str = ""
    revision: str = ""
    digest: str = ""
    sha: str | None = None
    reason: str = ""
    repeats: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class StepCause(Record, frozen=True):
    """One root cause of a step: what changed, where, and by how many bytes (signed, and their amounts added up)."""

    cause: Name | None
    what: str
    models: tuple[Name, ...]
    targets: tuple[Name, ...]
    net_bytes: Amount
    absolute_bytes: Count


class HistoryStep(Record, frozen=True):
    """From one release that was measured to the next.

    Attributes:
        gaps: releases between the two that could not be had.
        cells: how many cells both have measured; sizes, larger and smaller are of these.
        base_bytes, head_bytes: artifacts, at the least; None without such a cell.
        base_range, head_range: the same where cells that do not repeat themselves leave a range; else None.
        broken, fixed: how many cells are newly refused, or compile again.
    """

    base: Name
    head: Name
    gaps: tuple[Name, ...]
    cells: Count
    base_bytes: Count | None
    head_bytes: Count | None
    larger: Count
    smaller: Count
    broken: Count
    fixed: Count
    causes: tuple[StepCause, ...]
    base_range: tuple[Count, Count] | None = None
    head_range: tuple[Count, Count] | None = None

    @property
    def sides(self) -> tuple[Value, Value]:
        """Artifacts of base and head as they are told."""
        base, head = self.base_range, self.head_range
        return spread(base) if base else self.base_bytes, spread(head) if head else self.head_bytes

    @property
    def name(self) -> str:
        """`3.12.0 → 3.13.0`."""
        return f"{self.base} → {self.head}"


class HistoryTotal(Record, frozen=True):
    """One target, or all, in one release, over the cells that know the metric in every release that measured any.

    Attributes:
        metrics: tracked metric → sum, or for stack the largest value, at the least; None without such a cell.
        ranges: the same where cells that do not repeat themselves leave a range.
        cells: tracked metric → how many cells that is over, the same in all releases.
    """

    compiler: Name
    target: Name | None
    metrics: Metrics
    cells: Mapping[Name, Count]
    ranges: Mapping[Name, tuple[Count, Count]] = {}

    def value(self, metric: str) -> Value:
        """A total as it is told."""
        return spread(self.ranges[metric]) if metric in self.ranges else self.metrics.get(metric)


class History(Record, frozen=True):
    """Releases, points, steps and totals of a history.

    Attributes:
        points: a point for each cell of each release, in the order of releases, models and targets.
        totals: for all targets, then for each, in the order of the releases.
        planned: how many cells there are, without those that no release can compile on purpose.
    """

    schema: Name
    targets: Mapping[Name, str]
    releases: tuple[Release, ...]
    points: tuple[Point, ...]
    steps: tuple[HistoryStep, ...]
    totals: tuple[HistoryTotal, ...]
    planned: Count
    notes: tuple[str, ...] = ()


# What a gap is, and which sides are neighbours across it: decided here alone.
#
# A gap is no measurement: a release that could not be had, and of a cell one in which nothing is known of it. It is
# nobody's neighbour: what was measured after it is held against what was measured before it, and that is said.


Side = tuple[str, Snapshot]
"""A name, and what was measured."""


class Neighbours(NamedTuple):
    """Two sides between which nothing could be had.

    Attributes:
        gaps: names of what lies between.
        across: earlier sides, each with the cells of head that it was the last to know.
    """

    base: Side
    head: Side
    gaps: tuple[str, ...]
    across: tuple[tuple[Side, frozenset[CellKey]], ...]


def neighbours(sides: Iterable[tuple[str, Snapshot | None]], is_known: Callable[[Cell], bool]) -> Iterator[Neighbours]:
    """Each side that could be had (None: it could not) with the one before, in their order.

    Args:
        is_known: whether a cell is no gap: what is asked for may be its numbers, or how it ended.
    """
    last, before, gaps = dict[CellKey, Side](), list[Side](), list[str]()
    for name, snapshot in sides:
        if snapshot is None:
            gaps.append(name)
            continue
        head = (name, snapshot)
        known = frozenset(cell.key for cell in snapshot.cells if is_known(cell))
        if before:
            across: dict[str, tuple[Side, set[CellKey]]] = {}
            for key in known & last.keys():
                if last[key] is not before[0]:
                    across.setdefault(last[key][0], (last[key], set()))[1].add(key)
            yield Neighbours(
                before[0], head, tuple(gaps), tuple((side, frozenset(keys)) for side, keys in across.values())
            )
        last |= dict.fromkeys(known, head)
        before, gaps = [head], []


def is_outcome(cell: Cell) -> bool:
    """True where how it ended is the compiler's own doing: with more time, or with the model, it may end otherwise."""
    return cell.status != "timeout" and not (cell.failure and cell.failure.stage == UNFETCHED)


def is_gap(side: Snapshot, key: CellKey, cell: Cell | None) -> bool:
    """True where it was to be measured, and nobody knows how it ends."""
    return side.plans(key) if cell is None else not is_outcome(cell)


# Totals of a history: only over cells that every release has, so that a gap is never taken for a change.


def measured_releases(releases: Sequence[Release], points: Sequence[Point]) -> tuple[str, ...]:
    """The names of those with a cell that compiled, in order."""
    measured = {point.compiler for point in points if point.measured}
    return tuple(release.name for release in releases if release.name in measured)


def totals_of(releases: Sequence[Release], points: Sequence[Point]) -> tuple[HistoryTotal, ...]:
    """Totals over all targets, then over each, release after release; none of a release that measured nothing."""
    names, known = measured_releases(releases, points), dict[str, dict[CellKey, list[int | Spread]]]()
    for metric in TRACKED:
        values: dict[CellKey, dict[str, int | Spread]] = {}
        for point in points:
            if point.measured and (value := point.value(metric)) is not None:
                values.setdefault(point.key, {})[point.compiler] = value
        in_all = {key: by for key, by in values.items() if all(name in by for name in names)}
        known[metric] = {key: [by[name] for name in names] for key, by in in_all.items()}
    totals = []
    for target in (None, *sorted({point.target for point in points if point.measured})):
        mine = {
            metric: [row for key, row in cells.items() if target in (None, key.target)]
            for metric, cells in known.items()
        }
        counts = {metric: len(rows) for metric, rows in mine.items()}
        for at, name in enumerate(names):
            sums = {
                metric: (largest if METRIC_BY_ID[metric].over == "largest" else total)(row[at] for row in rows)
                for metric, rows in mine.items()
            }
            ranges = {metric: both for metric, value in sums.items() if (both := range_of(value))}
            totals.append(
                HistoryTotal(name, target, {id_: lowest(value) for id_, value in sums.items()}, counts, ranges)
            )
    return tuple(totals)


# The releases in which each number of each cell moved first and most, read off the points of a history.


@dataclass(frozen=True, slots=True)
class OneMove:
    """A number that moved.

    Attributes:
        change: the difference to the release before that has a value.
    """

    point: Point
    change: int


@dataclass(frozen=True, slots=True)
class NumberMoves:
    """Where a number moved first, and where by most; the same where it moved once."""

    first: OneMove
    largest: OneMove


def number_moves(history: History) -> Mapping[CellKey, Mapping[str, NumberMoves]]:
    """Cell → metric → where it moved; a number that never did is not there."""
    moves: dict[CellKey, dict[str, NumberMoves]] = {}
    for point in history.points:
        for metric, change in (point.move.changes if point.move else {}).items():
            move, mine = OneMove(point, change), moves.setdefault(point.key, {})
            before = mine.get(metric)
            if before is None:
                mine[metric] = NumberMoves(move, move)
            elif abs(change) > abs(before.largest.change):
                mine[metric] = NumberMoves(before.first, move)
    return moves


def rows_of(history: History) -> Mapping[CellKey, tuple[Point, ...]]:
    """Cell → its points, in the order of the releases."""
    rows: dict[CellKey, list[Point]] = {}
    for point in history.points:
        rows.setdefault(point.key, []).append(point)
    return {key: tuple(rows[key]) for key in sorted(rows)}
