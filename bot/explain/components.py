"""How much of a cell each part of the model has: dispatch sites, code and stack, summed over its dispatches.

How many sites a dispatch has is only a number, from an artifact of a stranger perhaps: it is counted with, not listed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

from bot.core.delta import CellDelta
from bot.core.explanation import UNATTRIBUTED, Amounts, ComponentDelta
from bot.core.program import Program
from bot.core.snapshot import Cell, Dispatch
from bot.explain.texts import per_object

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
        spots = places.pop(dispatch.name, _NOWHERE)
        if dispatch.sites is not None and (missing := dispatch.sites - spots.total):
            # There are as many places as sites; which of too many are gone cannot be known.
            spots = _Spots(spots.known, missing) if missing > 0 else _Spots((), dispatch.sites)
        parts.add(dispatch, spots)
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


class _Parts:
    def __init__(self) -> None:
        self.sites: dict[str, int] = {}
        self.code: dict[str, int] = {}
        self.stack: dict[str, int] = {}
        self.names: dict[str, None] = {}

    def add(self, dispatch: Dispatch, spots: _Spots) -> None:
        frame = dispatch.alloca_bytes if dispatch.stack_bytes is None else dispatch.stack_bytes
        counts, code_bytes = spots.counts, dispatch.code_bytes
        for place, count in counts.items():
            self.names[place] = None
            if dispatch.sites is not None:
                self.sites[place] = self.sites.get(place, 0) + count
            if frame is not None and frame >= self.stack.get(place, 0):
                self.stack[place] = frame
            if code_bytes is not None and len(counts) == 1:
                self.code[place] = self.code.get(place, 0) + code_bytes
        if code_bytes is not None and len(counts) > 1:
            for place, code in _shares(code_bytes, spots):
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
    """An even share for each site; what is left over goes to the first ones."""
    each, left = divmod(code_bytes, spots.total)
    ahead = spots.among(left)
    return [(place, each * count + ahead[place]) for place, count in spots.counts.items()]


# Which part of the model a dispatch belongs to: names from the model's own locations, and what each part holds.
#
# Both sides share one naming, made of all places of both, so that a component has the same name on either side.

Sections = Sequence["tuple[str, str]"]  # Name and glob of each; the first whose glob matches decides

MAX_COMPONENTS = 16  # More than these are no overview: the tree is cut at the level above
MAX_LEVELS = 3

_DEEPEST = 32  # Levels of a name that are told apart
_NUMBER = re.compile(r"[0-9]+")
_TRANSFORM = re.compile(r"[A-Za-z_]+\((.*)\)")

_Levels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Naming:
    """What the places of one model are called."""

    components: Mapping[str, str]  # place, as a Site has it → its section, or the first levels of its full name
    full: Mapping[str, str]  # place → all its levels, repeated layers grouped (`encoder.layer.*.attention.self`)


def split(path: str) -> tuple[str, ...]:
    """The levels of a model's own name; empty where it says nothing.

    TensorFlow and JAX separate them by `/`, PyTorch by `.`. Of the names that TFLite joins by `;` the first counts,
    which is that of the fused operation's result. JAX's transformations are taken off: `jit(step)/jvp(MLP)/fc0`
    and its backward pass `jit(step)/transpose(jvp(MLP))/fc0` are both `MLP`, `fc0`.
    """
    first = _first(path)
    if "/" not in first:
        return tuple(filter(None, first.split(".", _DEEPEST)))
    levels = first.split("/", _DEEPEST)
    if len(levels) > 1 and re.fullmatch(r"jit\([^()]*\)", levels[0]):
        del levels[0]
    for place in range(len(levels)):
        while transform := _TRANSFORM.fullmatch(levels[place]):
            levels[place] = transform[1]
    return tuple(filter(None, levels))


def _first(path: str) -> str:
    return path.partition(";")[0]


def grouped(paths: Iterable[_Levels]) -> dict[_Levels, _Levels]:
    """Levels → the same with repeated layers as one, and without the wrapper that all have in common.

    A number is `*`, and so is each number in a level that differs in numbers only from another one at its place:
    `layer.0` is `layer.*`, `conv_dw_6_relu` beside `conv_dw_7_relu` is `conv_dw_*_relu`.
    """
    names: dict[_Levels, _Levels] = dict.fromkeys(paths, ())
    for depth in range(max(map(len, names), default=0)):
        deep = {levels: parent for levels, parent in names.items() if depth < len(levels)}
        alike: dict[tuple[_Levels, str], set[str]] = {}
        for levels, parent in deep.items():
            alike.setdefault((parent, _shape(levels[depth])), set()).add(levels[depth])
        columns = {key: zip(*map(_NUMBER.findall, each), strict=True) for key, each in alike.items()}
        varying = {key: tuple(len(set(column)) > 1 for column in each) for key, each in columns.items()}
        for levels, parent in deep.items():
            level = levels[depth]
            names[levels] = (*parent, _starred(level, varying[parent, _shape(level)]))
    wrapper = _wrapper(names.values())
    return {levels: name[wrapper:] if len(name) > wrapper else name for levels, name in names.items()}


def _shape(level: str) -> str:
    return _NUMBER.sub("0", level)


def _starred(level: str, varying: tuple[bool, ...]) -> str:
    if _NUMBER.fullmatch(level):
        return "*"
    varies = iter(varying)
    return _NUMBER.sub(lambda number: "*" if next(varies) else number[0], level)


def _wrapper(names: Iterable[_Levels]) -> int:
    """How many first levels all names share; one without levels below it has no say."""
    nested = [name[:-1] for name in names if len(name) > 1]
    if not nested:
        return 0
    low, high = min(nested), max(nested)
    pairs = enumerate(zip(low, high, strict=False))
    return next((depth for depth, (left, right) in pairs if left != right), min(map(len, nested)))


def naming(delta: CellDelta, sections: Sections = ()) -> Naming:
    """What the places of both sides of a cell are called; see `name_places`."""
    programs = [cell.program for cell in (delta.base, delta.head) if cell and cell.program]
    return name_places(frozenset().union(*map(_named_places, programs)), tuple(sections))


@per_object
def _named_places(program: Program) -> frozenset[str]:
    return frozenset(site.component for site in program.sites if site.component)


@lru_cache(maxsize=256)
def name_places(places: frozenset[str], sections: tuple[tuple[str, str], ...] = ()) -> Naming:
    """Name every place: by the first section that matches, else by the tree's first levels.

    There are as many levels, at most MAX_LEVELS, as keep the components at MAX_COMPONENTS or below; the `*` of
    `encoder.layer.*.attention` does not count.
    """
    slashed = any("/" in place for place in places)  # then a name without one is an operation's: `tfl.quantize`
    levels = {place: split(place) if "/" in place or not slashed else (_first(place),) for place in sorted(places)}
    names = grouped(dict.fromkeys(named for named in levels.values() if named))
    full = {place: ".".join(names[named]) for place, named in levels.items() if named}
    by_section = {place: section for place in full if (section := _section(place, sections)) is not None}
    rest = {place: names[levels[place]] for place in full if place not in by_section}
    return Naming({**by_section, **_cut(rest)}, full)


def _section(place: str, sections: Sections) -> str | None:
    """`/` and `.` are the same in a glob; `*.attention.*` also takes the attention itself."""
    dotted = _first(place).replace("/", ".")
    for name, glob in sections:
        pattern = glob.replace("/", ".")
        if fnmatchcase(dotted, pattern) or fnmatchcase(f".{dotted}.", pattern):
            return name
    return None


def _cut(names: Mapping[str, _Levels]) -> dict[str, str]:
    for depth in range(MAX_LEVELS, 0, -1):
        shortened = {place: ".".join(_top(name, depth)) for place, name in names.items()}
        if depth == 1 or len(set(shortened.values())) <= MAX_COMPONENTS:
            return shortened
    return {}


def _top(name: _Levels, depth: int) -> _Levels:
    counted = [index for index, level in enumerate(name) if "*" not in level]
    return name[: counted[depth]] if depth < len(counted) else name


def components(delta: CellDelta, sections: Sections = ()) -> tuple[ComponentDelta, ...]:
    """The components that moved: largest change of code first, then of sites, of stack, then by name."""
    moved = [part for part in _deltas(delta, naming(delta, sections).components) if any(map(part.change, AMOUNTS))]
    order = ("code_bytes", "dispatch_sites", "stack_bytes")
    return tuple(sorted(moved, key=lambda part: ([-abs(part.change(what)) for what in order], part.name)))


def tree(delta: CellDelta, sections: Sections = ()) -> tuple[ComponentDelta, ...]:
    """All components by full name, those of one section side by side; what is unattributed is last."""
    known = naming(delta, sections)
    section: dict[str, str] = {}
    for place, name in known.full.items():
        section.setdefault(name, known.components[place])
    parts = _deltas(delta, known.full)
    return tuple(sorted(parts, key=lambda p: (p.name == UNATTRIBUTED, section.get(p.name, ""), p.name)))


def _deltas(delta: CellDelta, names: Mapping[str, str]) -> list[ComponentDelta]:
    sides = [attribute(cell, names) if cell and cell.measured else {} for cell in (delta.base, delta.head)]
    # Of a component that a side does not have: nothing, where that side knows the amount of any other.
    known = [[what for what in AMOUNTS if any(part.get(what) is not None for part in side.values())] for side in sides]
    absent = [Amounts(*(0 if what in each else None for what in AMOUNTS)) for each in known]
    base, head = sides
    every = dict.fromkeys((*head, *base))
    return [ComponentDelta(name, base.get(name, absent[0]), head.get(name, absent[1])) for name in every]


@per_object
def where(program: Program | None, names: Mapping[str, str]) -> dict[str, str]:
    """Entry point → the component where most of its sites are; of equals the first in the program's order."""
    return {entry: max(dict.fromkeys(places), key=places.count) for entry, places in places_of(program, names).items()}


def component_of(dispatch: Dispatch, cell: Cell, names: Mapping[str, str]) -> str:
    """The component where most of a dispatch's sites are; `unattributed` without a location."""
    return where(cell.program, names).get(dispatch.name, UNATTRIBUTED)
