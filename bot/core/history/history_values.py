"""What `history.json` says: releases in their order, a point for each cell of each, the steps between, and totals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from bot.core.metrics import METRICS
from bot.core.record import Amount, Count, Name, Record
from bot.core.spread import Value, spread
from bot.core.values.snapshot import MEASURED, STATUSES, CellKey, Metrics

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
