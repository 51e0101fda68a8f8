"""A history: a study whose variants are releases or commits.

What moved in each, the steps between, and totals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import count

from msgspec.structs import asdict

from bot.core.delta import seen_values, value_of
from bot.core.explanation import Step
from bot.core.metrics import METRIC_BY_ID, METRICS
from bot.core.record import Amount, Count, Name, Record, Small, lowest, range_of
from bot.core.slow_growth import Grown, Growth, Point
from bot.core.snapshot import Cell, CellKey, Metrics, Snapshot, filled, lines
from bot.core.study import UNMEASURED, Study, Variant

HISTORY_SCHEMA = "code-size-history/1"

TRACKED = tuple(metric.id for metric in METRICS if metric.tracked)
"""Metrics whose moves are told; `history.json` has all that were measured."""


class Move(Record, frozen=True, omit_defaults=True):
    """How a cell's numbers moved from the release before to this one."""

    # that release, which is an earlier one than the neighbour where there is a gap
    # between
    since: Name
    # tracked metric → difference, where it is not 0; none where a side has several
    # values
    changes: Mapping[Name, Amount]
    cause: Name | None = None
    why: str = ""


class HistoryTotal(Record, frozen=True):
    """One target, or all, in one release.

    Over the cells with one value in every release that measured any.
    """

    compiler: Name
    target: Name | None
    # tracked metric → sum, or for stack the largest value; None without such a cell
    metrics: Metrics
    # tracked metric → how many cells that is over, the same in all releases
    cells: Mapping[Name, Count]


class History(Small, frozen=True, dict=True, gc=True):
    """A study of releases or commits, and what it says of their order."""

    study: Study
    # release and cell → that it has other numbers there than in the release before
    moves: Mapping[tuple[str, CellKey], Move] = {}
    steps: tuple[Step, ...] = ()
    # for all targets, then for each, in the order of the releases
    totals: tuple[HistoryTotal, ...] = ()
    # of stored baselines: the newest against older ones; empty of releases
    growths: tuple[Growth, ...] = ()

    @cached_property
    def rows(self) -> Mapping[CellKey, tuple[Cell, ...]]:
        """Return each cell that some release tried to build.

        Its row is in the order of the releases.
        """
        untried = {"unsupported", UNMEASURED}
        rows = dict[CellKey, tuple[Cell, ...]]()
        for key, row in self.study.rows.items():
            if {cell.status for cell in row} - untried:
                rows[key] = row
        return rows


def totals_of(study: Study) -> tuple[HistoryTotal, ...]:
    """Return totals over all targets, then over each, release after release.

    A release that measured nothing has None. They are over cells that have one value in
    every release, so that a gap is never taken for a change, nor is chance.
    """
    measured = {variant.name for variant in study.measured}
    columns = list[int]()
    for place, variant in enumerate(study.variants):
        if variant.name in measured:
            columns.append(place)
    values = {metric: _single_values(study, metric, columns) for metric in TRACKED}
    targets = set[str]()
    for key, row in study.rows.items():
        if any(cell.measured for cell in row):
            targets.add(key.target)
    totals = []
    for target in (None, *sorted(targets)):
        rows_of = {metric: _rows_on(cells, target) for metric, cells in values.items()}
        counts = {metric: len(rows) for metric, rows in rows_of.items()}
        for place, column in enumerate(columns):
            totals.append(
                HistoryTotal(
                    compiler=study.variants[column].name,
                    target=target,
                    metrics=_summed(rows_of, place),
                    cells=counts,
                )
            )
    return tuple(totals)


def _single_values(
    study: Study, metric: str, columns: Sequence[int]
) -> dict[CellKey, list[int]]:
    """Return the cells that have one value of a metric in every column, with these."""
    cells = {}
    for key, row in study.rows.items():
        values = []
        for column in columns:
            value = value_of(row[column], metric)
            if isinstance(value, int):
                values.append(value)
        if len(values) == len(columns):
            cells[key] = values
    return cells


def _rows_on(cells: Mapping[CellKey, list[int]], target: str | None) -> list[list[int]]:
    """Return the values of the cells of one target, or of all (None)."""
    return [row for key, row in cells.items() if target in (None, key.target)]


def _summed(
    rows_of: Mapping[str, Sequence[Sequence[int]]], place: int
) -> dict[str, int | None]:
    """Return metric → its sum, or largest value, in one column; None without a row."""
    sums: dict[str, int | None] = {}
    for metric, rows in rows_of.items():
        column = [row[place] for row in rows]
        if not column:
            sums[metric] = None
        elif METRIC_BY_ID[metric].over == "largest":
            sums[metric] = max(column)
        else:
            sums[metric] = sum(column)
    return sums


def growth_since(point: Point, base: Snapshot | None, head: Snapshot) -> Growth:
    """Compare each measure of two baselines.

    `base`: None if the point or its snapshot is not known.
    """
    if base is None:
        return Growth(
            since=point.since,
            base=None,
            what="",
            reason=point.reason or "the baseline cannot be read",
            metrics={},
        )
    study = Study((Variant("base", snapshot=base), Variant("head", snapshot=head)))
    all_targets = [total for total in totals_of(study) if total.target is None]
    if len(all_targets) < 2:
        return Growth(
            since=point.since,
            base=None,
            what="",
            reason="a side has no artifact",
            metrics={},
        )
    before, after = all_targets
    metrics = dict[str, Grown]()
    for metric in TRACKED:
        metrics[metric] = Grown(
            before.metrics[metric], after.metrics[metric], after.cells[metric]
        )
    return Growth(
        since=point.since, base=point.sha, what=point.what, reason="", metrics=metrics
    )


def history_lines(history: History) -> Iterator[bytes]:
    """Yield the text of `history.json`.

    Canonical, in the order of releases, models and targets.
    """
    releases = list(map(_release, count(), history.study.variants))
    record = {
        "schema": HISTORY_SCHEMA,
        "targets": history.study.targets,
        "releases": releases,
        "points": (),
        "steps": list(map(_step_row, history.steps)),
        "totals": history.totals,
        **filled(growths=history.growths),
    }
    return lines(record, _points(history))


def _points(history: History) -> Iterator[dict[str, object]]:
    """Yield each build of each release."""
    for place, variant in enumerate(history.study.variants):
        for key, row in history.study.rows.items():
            cell = row[place]
            yield {
                "compiler": variant.name,
                "model": key.model,
                "target": key.target,
                "status": cell.status,
                "metrics": cell.metrics if cell.measured else {},
            } | filled(
                reason=cell.reason,
                move=history.moves.get((variant.name, key)),
                command=cell.command,
                digest=cell.artifact_digest,
                seen=seen_values(cell) if cell.measured else {},
            )


def _step_row(step: Step) -> dict[str, object]:
    return asdict(step) | {
        "base_bytes": lowest(step.base_bytes),
        "head_bytes": lowest(step.head_bytes),
        "base_range": range_of(step.base_bytes),
        "head_range": range_of(step.head_bytes),
    }


def _release(order: int, variant: Variant) -> dict[str, object]:
    row = {"name": variant.name, "order": order, "spec": variant.spec}
    if (side := variant.snapshot) is None:
        return row | filled(reason=variant.reason)
    return row | filled(
        version=side.compiler.version,
        revision=side.compiler.revision,
        digest=side.compiler.digest,
        metrics=side.compiler.metrics,
        sha=side.source.sha,
        notes=side.notes,
    )
