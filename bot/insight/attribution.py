"""How much of a cell each part of the model has: dispatch sites, code and stack, summed over its dispatches.

How many sites a dispatch has is only a number, from an artifact of a stranger perhaps: it is counted with, not listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from bot.core.values.explanation import UNATTRIBUTED, Amounts
from bot.core.values.program import Program
from bot.core.values.snapshot import Cell, Dispatch
from bot.insight.facts.memo import per_object

AMOUNTS = Amounts.__struct_fields__
_amounts = lru_cache(maxsize=1024)(Amounts)
"""Equal ones held once: repeated layers have the same, and both sides and levels of one cell where nothing moved."""


def attribute(cell: Cell, names: Mapping[str, str]) -> dict[str, Amounts]:
    """Component → `dispatch_sites`, `code_bytes` and `stack_bytes` of one cell.

    Sites sum to the sites of all entry points. Code sums to the cell's `executable_bytes`, or where that is not known
    to that of all entry points; code of a shared entry point is split evenly over its sites, what is left over in the
    program's order. What has no location, an entry point whose sites are more than it is launched, and code that
    belongs to no entry point are `unattributed`. Stack is the largest frame of an entry point with a site there: a
    maximum, no sum. An amount is None where nothing is known of it.
    """
    parts = _Parts()
    places = dict(_spots_of(cell.program, names))
    for dispatch in cell.dispatches:
        parts.add(dispatch, _counted(dispatch, places.pop(dispatch.name, _NOWHERE)))
    parts.complete(cell.value("executable_bytes"))
    return parts.amounts()


@per_object
def places_of(program: Program | None, names: Mapping[str, str]) -> dict[str, Sequence[str]]:
    """Entry point → the component of each of its sites, in the program's order."""
    places: dict[str, list[str]] = {}
    for site in program.sites if program else ():
        place = names.get(site.component, UNATTRIBUTED) if site.component else UNATTRIBUTED
        places.setdefault(site.entry_point, []).append(place)
    return dict(places)


class _Spots:
    """The components of a dispatch's sites: those known, in the program's order, then `unplaced` that are not."""

    def __init__(self, known: Sequence[str], unplaced: int = 0) -> None:
        self.known, self._unplaced = known, unplaced
        self.total = len(known) + unplaced
        self.counts: Mapping[str, int] = self.among(self.total) or {UNATTRIBUTED: 0}

    def among(self, first: int) -> Counter[str]:
        """Component → how many of the first so many sites it has."""
        counts = Counter(self.known[:first])
        if (more := min(self._unplaced, first - len(self.known))) > 0:
            counts[UNATTRIBUTED] += more
        return counts


_NOWHERE = _Spots(())


@per_object
def _spots_of(program: Program | None, names: Mapping[str, str]) -> dict[str, _Spots]:
    return {entry: _Spots(places) for entry, places in places_of(program, names).items()}


def _counted(dispatch: Dispatch, spots: _Spots) -> _Spots:
    """As many places as the entry point has sites; which of too many are gone cannot be known."""
    if dispatch.sites is None or dispatch.sites == spots.total:
        return spots
    missing = dispatch.sites - spots.total
    return _Spots(spots.known, missing) if missing > 0 else _Spots((), dispatch.sites)


class _Parts:
    def __init__(self) -> None:
        self.sites: dict[str, int] = {}
        self.code: dict[str, int] = {}
        self.stack: dict[str, int] = {}
        self.names: dict[str, None] = {}

    def add(self, dispatch: Dispatch, spots: _Spots) -> None:
        frame = dispatch.alloca_bytes if dispatch.stack_bytes is None else dispatch.stack_bytes
        for place, count in spots.counts.items():
            self.names[place] = None
            if dispatch.sites is not None:
                self.sites[place] = self.sites.get(place, 0) + count
            if frame is not None and frame >= self.stack.get(place, 0):
                self.stack[place] = frame
        if dispatch.code_bytes is not None:
            for place, code in _shares(dispatch.code_bytes, spots):
                self.code[place] = self.code.get(place, 0) + code

    def complete(self, whole: int | None) -> None:
        """What no entry point has of the whole; parts that are more than it are no parts of it."""
        if whole is None:
            return
        rest = whole - sum(self.code.values())
        if rest < 0:
            self.code, rest = dict.fromkeys(self.code, 0), whole
        if rest:
            self.code[UNATTRIBUTED] = self.code.get(UNATTRIBUTED, 0) + rest
            self.names.setdefault(UNATTRIBUTED)
            if self.sites:
                self.sites.setdefault(UNATTRIBUTED, 0)

    def amounts(self) -> dict[str, Amounts]:
        tables = (self.sites, self.code, self.stack)
        return {name: _amounts(*(table.get(name) for table in tables)) for name in self.names}


def _shares(code_bytes: int, spots: _Spots) -> Iterable[tuple[str, int]]:
    """An even share for each site; what is left over goes to the first ones, or where there is no site unattributed."""
    if len(spots.counts) == 1:
        return [(place, code_bytes) for place in spots.counts]
    each, left = divmod(code_bytes, spots.total)
    ahead = spots.among(left)
    return [(place, each * count + ahead[place]) for place, count in spots.counts.items()]
