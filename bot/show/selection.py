"""Fair selections: how much of everything is shown, and which part, so that nothing crowds out the rest."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """What is shown of a list, and of how much.

    Attributes:
        total: length of the whole list.
        noun: what one entry is, in the singular.
    """

    items: tuple[T, ...] = ()
    total: int = 0
    noun: str = "entry"

    @property
    def more(self) -> int:
        """How many are left out."""
        return max(0, self.total - len(self.items))

    def __bool__(self) -> bool:
        """True where the whole list has anything, shown or not."""
        return self.total > 0

    def __iter__(self) -> Iterator[T]:
        """Over what is shown."""
        return iter(self.items)


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a view shows of everything.

    Attributes:
        grid_models: rows of the grid.
        grid_width: of the grid, in small characters: 6 pixels on GitHub, one column on a terminal.
        failures: notes, and groups of failed cells, each with `lines` of diagnostics.
        alarms: lines of cells that broke a rule.
        changed: changed metrics of changed cells.
        names: cells named in one list.
        commands: cells whose commands are printed.
        causes: root causes.
        whys: cells whose change is explained, each with `dispatches` rows in a table and `diff_lines` of a diff.
        overview: rows of what is said of whole models.
        every: True where what did not change is told, too.
        details: False where a root cause is one sentence; each target's part and its largest delta are in a fold.
        terminal: True where nothing can be opened, and where commands are not copied from.
    """

    grid_models: int
    grid_width: int
    failures: int
    lines: int
    alarms: int
    findings: int
    changed: int
    names: int
    commands: int
    causes: int = 4
    whys: int = 0
    dispatches: int = 0
    diff_lines: int = 0
    overview: int = 0
    every: bool = False
    details: bool = True
    terminal: bool = False


def fair(items: Sequence[T], group: Callable[[T], Hashable], limit: int) -> list[T]:
    """The first `limit` of `items` by turns: every group's first, then every group's second, and so on.

    Args:
        items: in order of importance; the order in which the groups take turns follows from it.
    """
    return [items[index] for _, index in _turns(items, group, limit)]


def fair_in_order(items: Sequence[T], group: Callable[[T], Hashable], limit: int) -> list[T]:
    """The same selection, in the order of `items`."""
    return [items[index] for index in sorted(index for _, index in _turns(items, group, limit))]


def _turns(items: Sequence[T], group: Callable[[T], Hashable], limit: int) -> list[tuple[int, int]]:
    """Turn and index of the selected items."""
    seen: Counter[Hashable] = Counter()
    ranked: list[tuple[int, int]] = []
    for index, item in enumerate(items):
        name = group(item)
        ranked.append((seen[name], index))
        seen[name] += 1
    return heapq.nsmallest(limit, ranked)


def listing(items: Iterable[T], total: int, noun: str) -> Listing[T]:
    """A selection of a longer list."""
    return Listing(tuple(items), total, noun)


def first(items: Sequence[T], limit: int, noun: str) -> Listing[T]:
    """The first `limit` entries."""
    return Listing(tuple(items[:limit]), len(items), noun)
