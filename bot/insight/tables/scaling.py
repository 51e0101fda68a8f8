"""How compile time grows with the model: the power law through models of one family at several depths.

The exponent is the slope of log(CPU time) over log(linalg operations), by least squares: 1 is linear growth, 2 is
quadratic. It is told from three different operation counts on. A cost that every compile has, however small, makes it
smaller than the growth itself, never larger.

Growth is called superlinear only where noise cannot explain it: every time below the middle of the logarithms is
raised by the noise band, every time above it is lowered, which gives the smallest exponent that the band allows; and
that one must still be greater than 1.1. Where no band is configured, or one below 10 %, it is taken to be 10 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from bot.core.values.model_counts import Slope
from bot.core.values.snapshot import Snapshot

LINEAR_AT_MOST = 1.1
LEAST_NOISE = 0.1
FEWEST_DEPTHS = 3

_Point = tuple[str, int, int]


def slope(snapshot: Snapshot, family: str, models: Sequence[str], target: str, noise: float | None) -> Slope | None:
    """The growth over the models that were measured on a target; None where there are none.

    Args:
        noise: the band of `compile_cpu_ms` as a share (0.07 is 7 %); None where none is configured.
    """
    points = _points(snapshot, frozenset(models), target)
    if not points:
        return None
    if len({operations for _, operations, _ in points}) < FEWEST_DEPTHS:
        return Slope(family, target, points, None)
    band = max(noise or 0.0, LEAST_NOISE)
    superlinear = _exponent(points, log(1 + band)) > LINEAR_AT_MOST
    return Slope(family, target, points, _exponent(points), superlinear)


def _points(snapshot: Snapshot, models: frozenset[str], target: str) -> tuple[_Point, ...]:
    cells = (cell for cell in snapshot.cells if cell.measured and cell.key.target == target)
    values = (
        (cell.key.model, cell.value("linalg_ops") or 0, cell.value("compile_cpu_ms") or 0)
        for cell in cells
        if cell.key.model in models
    )
    return tuple(sorted((point for point in values if min(point[1:]) > 0), key=lambda point: (point[1], point[0])))


def _exponent(points: Sequence[_Point], raised: float = 0.0) -> float:
    """Least squares of the logarithms, the lower half of the points raised and the upper half lowered by so much."""
    depths = [log(operations) for _, operations, _ in points]
    middle = sum(depths) / len(depths)
    times = [log(cpu_ms) for _, _, cpu_ms in points]
    products = sum((x - middle) * y - abs(x - middle) * raised for x, y in zip(depths, times, strict=True))
    return products / sum((x - middle) ** 2 for x in depths)
