"""The releases in which each number of each cell moved first and most, read off the points of a history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.core.history.history_values import History, Point
from bot.core.values.snapshot import CellKey


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
