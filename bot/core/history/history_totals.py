"""Totals of a history: only over cells that every release has, so that a gap is never taken for a change."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.history.history_values import TRACKED, HistoryTotal, Point, Release
from bot.core.metrics import METRIC_BY_ID
from bot.core.spread import Spread, largest, lowest, range_of, total
from bot.core.values.snapshot import CellKey


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
