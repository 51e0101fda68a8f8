"""Fit how a value grows with the number of a model's layers.

The fit is a power law, found by linear regression (least squares) of logarithms: `log
value = constant + exponent * log layers`. The interval holds the true exponent with
95 % probability, if the logarithms of the values scatter normally around a line.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from bot.core.delta import value_of
from bot.core.record import Spread, Value
from bot.core.snapshot import Cell, CellKey
from bot.core.study import Study, Variant

WARNING_EXPONENT = 1.3
"""The least exponent of a warning: twice the layers take about 2.5 times as much."""
FEWEST_FOR_INTERVAL = 3

_T_QUANTILES = (
    12.7062,
    4.3027,
    3.1824,
    2.7764,
    2.5706,
    2.4469,
    2.3646,
    2.3060,
    2.2622,
    2.2281,
    2.2010,
    2.1788,
    2.1604,
    2.1448,
    2.1314,
    2.1199,
    2.1098,
    2.1009,
    2.0930,
    2.0860,
    2.0796,
    2.0739,
)
"""The 97.5 % quantiles of Student's t distribution, from 1 degree of freedom on.

An experiment never needs more of them.
"""

Point = tuple[int, int]  # number of layers, value


class Growth(NamedTuple):
    """A fitted power law."""

    exponent: float
    interval: tuple[float, float] | None  # None for fewer than three points
    last_step: float  # the exponent between the two deepest points alone

    @property
    def is_warning(self) -> bool:
        """Return whether the value grows clearly faster than the number of layers.

        It does so overall, or in the last step.
        """
        return max(self.exponent, self.last_step) >= WARNING_EXPONENT


def fitted(points: Sequence[Point]) -> Growth | str:
    """Fit a power law to points of different depths, or return why that fails."""
    if len({layers for layers, _ in points}) < 2:
        return "fewer than two depths were measured"
    if any(value <= 0 for _, value in points):
        return "a value is 0, which has no logarithm"
    ordered = sorted(points)
    depths = [math.log(layers) for layers, _ in ordered]
    values = [math.log(value) for _, value in ordered]
    mean_depth = statistics.fmean(depths)
    mean_value = statistics.fmean(values)
    spread = math.fsum((depth - mean_depth) ** 2 for depth in depths)
    pairs = list(zip(depths, values, strict=True))
    distances = [(depth - mean_depth, value - mean_value) for depth, value in pairs]
    exponent = math.fsum(across * up for across, up in distances) / spread
    errors = [up - exponent * across for across, up in distances]
    return Growth(exponent, _interval(exponent, errors, spread), _last_step(pairs))


def _interval(
    exponent: float, errors: Sequence[float], spread: float
) -> tuple[float, float] | None:
    """Return the 95 % interval of a slope.

    `spread`: the sum of the squared distances of depths from their mean.
    """
    if len(errors) < FEWEST_FOR_INTERVAL:
        return None
    freedom = len(errors) - 2
    squares = math.fsum(error**2 for error in errors)
    half = _T_QUANTILES[freedom - 1] * math.sqrt(squares / freedom / spread)
    return exponent - half, exponent + half


def _last_step(pairs: Sequence[tuple[float, float]]) -> float:
    """Return the slope between the two largest depths.

    If a depth was measured several times, the mean counts.
    """
    values = defaultdict[float, list[float]](list)
    for depth, value in pairs:
        values[depth].append(value)
    before, last = sorted(values)[-2:]
    rise = statistics.fmean(values[last]) - statistics.fmean(values[before])
    return rise / (last - before)


class DepthGrowth(NamedTuple):
    """How one metric of one model on one target grows."""

    key: CellKey
    column: str  # id of the metric
    # number of layers, and the value there; None if it was not measured
    values: tuple[tuple[int, Value], ...]
    growth: Growth | None
    reason: str  # why there is no fit; empty if there is one
    # names of those that differ in nothing but the number of layers
    variants: tuple[str, ...]

    @property
    def depths(self) -> tuple[int, ...]:
        """Return the numbers of layers that the fit has."""
        return tuple(layers for layers, value in self.values if value is not None)


def series(study: Study) -> list[tuple[Variant, ...]]:
    """Return the variants that differ only in the number of layers, by group.

    Each group has at least two numbers of layers.
    """
    groups = list[list[Variant]]()
    for variant in study.variants:
        if variant.layers is None:
            continue
        flat = _flat(variant)
        for group in groups:
            if _flat(group[0]) == flat:
                group.append(variant)
                break
        else:
            groups.append([variant])
    result = []
    for group in groups:
        if len({variant.layers for variant in group}) > 1:
            group.sort(key=lambda variant: variant.layers or 0)
            result.append(tuple(group))
    return result


def _flat(variant: Variant) -> Variant:
    """Return the variant without its name, layers and results."""
    return replace(variant, name="", layers=None, snapshot=None, reason="")


def growths(study: Study, columns: Sequence[str]) -> tuple[DepthGrowth, ...]:
    """Fit each metric of each build over the variants that have a number of layers.

    Variants without a sibling of another depth are left out. A build with one measured
    depth has a reason in place of a fit.
    """
    result = list[DepthGrowth]()
    for group in series(study):
        cells = [_cells_of(variant) for variant in group]
        for key in study.keys:
            series_cells = [by_key.get(key) for by_key in cells]
            if any(series_cells):
                for column in columns:
                    result.append(_grown(key, column, group, series_cells))
    return tuple(result)


def _cells_of(variant: Variant) -> dict[CellKey, Cell]:
    if variant.snapshot is None:
        return {}
    return variant.snapshot.by_key


def _value(cell: Cell | None, column: str) -> Value:
    if cell is None or not cell.measured:
        return None
    return value_of(cell, column)


def _grown(
    key: CellKey, column: str, group: Sequence[Variant], cells: Sequence[Cell | None]
) -> DepthGrowth:
    depths = [variant.layers or 0 for variant in group]
    values = [_value(cell, column) for cell in cells]
    pairs = tuple(zip(depths, values, strict=True))
    names = tuple(variant.name for variant in group)
    points = list[Point]()
    is_open = False
    for layers, value in pairs:
        if isinstance(value, int):
            points.append((layers, value))
        is_open = is_open or isinstance(value, Spread)
    growth = fitted(points)
    if is_open:
        growth = "a build is non-deterministic"
    if isinstance(growth, str):
        return DepthGrowth(
            key=key,
            column=column,
            values=pairs,
            growth=None,
            reason=growth,
            variants=names,
        )
    return DepthGrowth(
        key=key, column=column, values=pairs, growth=growth, reason="", variants=names
    )
