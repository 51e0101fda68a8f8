"""The first release in which each number of each cell moved, read off the points of a history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.core.history.history_values import History, Point
from bot.core.values.snapshot import CellKey


@dataclass(frozen=True, slots=True)
class FirstMove:
    """Where a number moved first.

    Attributes:
        point: that of the release.
        change: the difference to the release before that has a value.
    """

    point: Point
    change: int


def first_moves(history: History) -> Mapping[CellKey, Mapping[str, FirstMove]]:
    """Cell → metric → where it moved first; a number that never did is not there."""
    found: dict[CellKey, dict[str, FirstMove]] = {}
    for point in history.points:
        for metric, change in (point.move.changes if point.move else {}).items():
            found.setdefault(point.key, {}).setdefault(metric, FirstMove(point, change))
    return found


def rows_of(history: History) -> Mapping[CellKey, tuple[Point, ...]]:
    """Cell → its points, in the order of the releases."""
    found: dict[CellKey, list[Point]] = {}
    for point in history.points:
        found.setdefault(point.key, []).append(point)
    return {key: tuple(found[key]) for key in sorted(found)}
