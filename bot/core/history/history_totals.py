"""Totals of a history: only over cells that every release has, so that a gap is never taken for a change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bot.core.history.history_values import TRACKED, HistoryTotal, Point, Release
from bot.core.metrics import METRIC_BY_ID
from bot.core.spread import Spread, Value, largest, lowest, range_of, total
from bot.core.values.snapshot import CellKey

_Values = Mapping[CellKey, Sequence[int | Spread]]
"""Cell → its value in each release that measured anything; only cells that know it in all of them."""


def measured_releases(releases: Sequence[Release], points: Sequence[Point]) -> tuple[str, ...]:
    """The names of those with a cell that compiled, in order."""
    measured = {point.compiler for point in points if point.measured}
    return tuple(release.name for release in releases if release.name in measured)


def totals_of(releases: Sequence[Release], points: Sequence[Point]) -> tuple[HistoryTotal, ...]:
    """Of all targets, then of each, release after release; none of a release that measured nothing."""
    names = measured_releases(releases, points)
    known = {metric: _known(metric, names, points) for metric in TRACKED}
    targets = sorted({point.target for point in points if point.measured})
    return tuple(one for target in (None, *targets) for one in _of(target, names, known))


def _known(metric: str, names: Sequence[str], points: Sequence[Point]) -> _Values:
    found: dict[CellKey, dict[str, int | Spread]] = {}
    for point in points:
        value = point.value(metric) if point.measured else None
        if value is not None:
            found.setdefault(point.key, {})[point.compiler] = value
    return {key: [by[name] for name in names] for key, by in found.items() if all(name in by for name in names)}


def _of(target: str | None, names: Sequence[str], known: Mapping[str, _Values]) -> Iterator[HistoryTotal]:
    mine = {
        metric: [values for key, values in cells.items() if target in (None, key.target)]
        for metric, cells in known.items()
    }
    counts = {metric: len(rows) for metric, rows in mine.items()}
    for at, name in enumerate(names):
        sums = {metric: _sum(metric, rows, at) for metric, rows in mine.items()}
        ranges = {metric: both for metric, value in sums.items() if (both := range_of(value))}
        yield HistoryTotal(name, target, {metric: lowest(value) for metric, value in sums.items()}, counts, ranges)


def _sum(metric: str, rows: Sequence[Sequence[int | Spread]], at: int) -> Value:
    return (largest if METRIC_BY_ID[metric].over == "largest" else total)(row[at] for row in rows)
