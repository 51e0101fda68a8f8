"""Sum the builds of a history over targets, and compare the sums of two baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.core.delta import value_of
from bot.core.metrics import METRIC_BY_ID, METRICS
from bot.core.record import Count, Name, Record
from bot.core.slow_growth import Grown, Growth, Point
from bot.core.snapshot import CellKey, Metrics, Snapshot
from bot.core.study import Study, Variant

TRACKED = tuple(metric.id for metric in METRICS if metric.tracked)
"""Metrics that a history shows; `history.json` has all that were measured."""


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


def totals_of(study: Study) -> tuple[HistoryTotal, ...]:
    """Return the totals over all targets, then over each, release after release.

    A release that measured nothing has no totals. Only cells with one value in every
    release count, so that neither a gap nor chance looks like a change.
    """
    columns = _measured_columns(study)
    values = {metric: _single_values(study, metric, columns) for metric in TRACKED}
    totals = []
    for target in (None, *_measured_targets(study)):
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


def _measured_columns(study: Study) -> list[int]:
    """Return the places of the variants that measured anything."""
    measured = {variant.name for variant in study.measured}
    columns = []
    for place, variant in enumerate(study.variants):
        if variant.name in measured:
            columns.append(place)
    return columns


def _measured_targets(study: Study) -> list[str]:
    targets = set()
    for (_, key), cell in study.cells.items():
        if cell.measured:
            targets.add(key.target)
    return sorted(targets)


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
    if target is None:
        return list(cells.values())
    return [row for key, row in cells.items() if key.target == target]


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
    metrics = {}
    for metric in TRACKED:
        metrics[metric] = Grown(
            before.metrics[metric], after.metrics[metric], after.cells[metric]
        )
    return Growth(
        since=point.since, base=point.sha, what=point.what, reason="", metrics=metrics
    )
