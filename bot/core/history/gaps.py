"""What a gap is, and which sides are neighbours across it: decided here alone.

A gap is no measurement: a release that could not be had, and of a cell one in which nothing is known of it. It is
nobody's neighbour: what was measured after it is held against what was measured before it, and that is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from bot.core.values.snapshot import UNFETCHED, Cell, CellKey, Snapshot

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
