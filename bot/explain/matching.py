"""The matching of two sides' entry points: passes from strict to loose, each one key function with its reason.

Nobody's ordinal is a key: one added dispatch shifts the numbers in `main_dispatch_N` of
all that follow it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import takewhile
from operator import attrgetter
from typing import NamedTuple

from bot.core.metrics import METRICS
from bot.core.program import Program, Source
from bot.core.snapshot import Cell, Dispatch
from bot.explain.texts import per_object

ADDED, REMOVED = "added", "removed"
_ORDINAL = re.compile(r"^.*_dispatch_\d+_")


@dataclass(frozen=True, slots=True)
class IndexedCell:
    """One side's cell with what its program says of every entry point; made by `index_both`."""

    cell: Cell
    sources: Mapping[str, Source] = field(
        default_factory=dict
    )  # executable → its IR's digests
    # entry point → the place where most of its sites are, layer numbers kept
    components: Mapping[str, str] = field(default_factory=dict)
    program: Program | None = None  # the cell's, where both sides have one

    def source(self, dispatch: Dispatch) -> Source | None:
        """What is known of the entry point's IR."""
        return self.sources.get(dispatch.executable)

    def is_late(self, dispatch: Dispatch) -> bool:
        """Return True for an entry point that the compiler made after the phase whose IR is known."""
        return bool(self.sources) and dispatch.executable not in self.sources

    def component(self, dispatch: Dispatch) -> str | None:
        """Where most of the entry point's sites are."""
        return self.components.get(dispatch.name)


class Match(NamedTuple):
    """An entry point on both sides; None on the one where nothing matches it."""

    base: Dispatch | None
    head: Dispatch | None
    passed: str  # name of the pass that found the pair, or `added` or `removed`


Key = Callable[[IndexedCell, Dispatch], "Hashable | None"]


_MEMORY = ("stack_bytes", "alloca_bytes", "workgroup_bytes")
MEMORY_NUMBERS = len(
    _MEMORY
)  # how many of `numbers` behind the code are of memory, which every version measures
_OTHERS = [
    metric.of_entry
    for metric in METRICS
    if metric.of_entry and metric.of_entry not in _MEMORY
]
numbers: Callable[[Dispatch], tuple[int | None, ...]] = attrgetter(
    "code_bytes", *_MEMORY, *_OTHERS
)
"""All that was measured of an entry point but its sites: its code first, then memory, registers and spills."""


def describe(dispatch: Dispatch) -> str:
    """What the compiler calls the work, without the ordinal: `main_dispatch_7_matmul_8x16_f32` → `matmul_8x16_f32`."""
    return _ORDINAL.sub("", dispatch.name) or dispatch.name


def _binary(side: IndexedCell, row: Dispatch) -> Hashable | None:
    """The digest is of the code up to names, so that its size, which may be of a longer name, says no more."""
    if row.code is None or row.code_bytes is None:
        return None
    source = side.sources.get(row.executable)
    return row.code, row.kind, source and source.source


def is_opaque(side: IndexedCell) -> bool:
    """True where nothing but the program's own text is known before there is code: of a compiler that is a command."""
    return (
        side.program is not None
        and not side.program.sources
        and bool(side.program.phases)
    )


_STEM = "same-stem"

PASSES: Mapping[str, Key] = {
    # a function of the same name in the same file, where names are those of the source
    "same-name": lambda side, row: (
        (row.executable, row.name) if is_opaque(side) else None
    ),
    # the same code of the same source: whatever its number is, nothing happened to it
    "identical-binary": _binary,
    # the same IR up to names and numbering: only the back end can make it differ
    "same-source": (
        lambda side, row: (one := side.sources.get(row.executable)) and one.source
    ),
    # the same region, of the same layer if there is one, with different constants,
    # shapes or offsets
    "same-structure": (
        lambda side, row: (one := side.sources.get(row.executable)) and one.structure
    ),
    # the layer's only work of this kind, formed differently
    "same-kind-and-component": lambda side, row: (
        (row.kind, place) if (place := side.component(row)) else None
    ),
    # the compiler describes it in the same words; all there is without the IR
    "same-description": lambda _, row: (row.kind, describe(row)),
    # a kernel of the same name in its source: what it takes is another part of a
    # mangled name
    _STEM: lambda side, row: row.kind if is_opaque(side) else None,
}
"""Each step of the matching, from strict to loose: entry points of equal key are pairs; a key of None abstains."""


# Among entry points of one key those of one place belong together, before the program's
# order decides.
_TIE_BREAKS: tuple[Key, ...] = (
    lambda side, row: (side.component(row), describe(row)),
    lambda side, row: side.component(row),
    lambda _side, _row: True,
)


@per_object
def _components(program: Program) -> dict[str, str]:
    places: dict[str, Counter[str]] = {}
    for site in program.sites:
        if site.component is not None:
            places.setdefault(site.entry_point, Counter())[site.component] += 1
    # the first of equals, so that the program's order decides
    return {name: max(count, key=count.__getitem__) for name, count in places.items()}


@per_object
def sources_of(program: Program) -> dict[str, Source]:
    """Executable → digests of its IR."""
    return {source.executable: source for source in program.sources}


def index_both(base: Cell, head: Cell) -> tuple[IndexedCell, IndexedCell]:
    """Both sides, with what is known of both: half the facts would keep equal things apart."""
    left, right = base.program, head.program
    if left is None or right is None:
        return IndexedCell(base), IndexedCell(head)
    return (
        IndexedCell(
            cell=base,
            sources=sources_of(left),
            components=_components(left),
            program=left,
        ),
        IndexedCell(
            cell=head,
            sources=sources_of(right),
            components=_components(right),
            program=right,
        ),
    )


def match_sides(base: IndexedCell, head: IndexedCell) -> tuple[Match, ...]:
    """Pair the entry points of two measured cells; each of them is in exactly one match.

    In the head's order, then what is removed in the base's.
    """
    rows, others = base.cell.dispatches, head.cell.dispatches
    partners: dict[int, tuple[int, str]] = {}
    left, right = list(range(len(rows))), list(range(len(others)))
    for name, key in PASSES.items():
        if not left or not right:
            break
        if name == _STEM:
            pairs = list(_alike(key, (base, left), (head, right)))
        else:
            pairs = list(_pairs((key, *_TIE_BREAKS), (base, left), (head, right)))
        partners.update((b, (a, name)) for a, b in pairs)
        left, right = _unpaired(pairs, left, right)
    paired = [
        (
            Match(rows[partners[b][0]], row, partners[b][1])
            if b in partners
            else Match(None, row, ADDED)
        )
        for b, row in enumerate(others)
    ]
    return (*paired, *(Match(rows[a], None, REMOVED) for a in left))


def _pairs(
    keys: Sequence[Key],
    base: tuple[IndexedCell, list[int]],
    head: tuple[IndexedCell, list[int]],
) -> Iterator[tuple[int, int]]:
    """Pairs of row numbers with an equal first key.

    Where several share one, the finer keys are asked in turn.
    """
    key, *finer = keys
    others = _grouped(key, *head)
    for value, left in _grouped(key, *base).items():
        right = others.get(value)
        if right is None:
            continue
        if len(left) == len(right) == 1 or not finer:
            yield from zip(left, right)  # noqa: B905 - the longer side's rest is for a later pass
            continue
        for one in finer:
            if not left or not right:
                break
            pairs = list(_pairs((one,), (base[0], left), (head[0], right)))
            yield from pairs
            left, right = _unpaired(pairs, left, right)


# pairs of names in one group; a larger group has too many overloads to tell apart
_MOST_COMPARED = 4_000


def _alike(
    key: Key, base: tuple[IndexedCell, list[int]], head: tuple[IndexedCell, list[int]]
) -> Iterator[tuple[int, int]]:
    """Yield pairs of one stem, most similar names first.

    Overloads that are equally similar stay unpaired.
    """
    others = _grouped(key, *head)
    for value, left in _grouped(key, *base).items():
        right = others.get(value, [])
        if len(left) == len(right) == 1:
            yield left[0], right[0]
            continue
        if len(left) * len(right) > _MOST_COMPARED:
            continue
        names = {a: base[0].cell.dispatches[a].name for a in left}
        candidates = {b: head[0].cell.dispatches[b].name for b in right}
        likeness = {
            (a, b): _likeness(names[a], candidates[b]) for a in left for b in right
        }
        while likeness:
            best = max(likeness.values())
            first = [pair for pair, value in likeness.items() if value == best]
            times = (
                Counter(first_of for first_of, _ in first),
                Counter(second for _, second in first),
            )
            yield from ((a, b) for a, b in first if times[0][a] == times[1][b] == 1)
            gone = {a for a, _ in first}, {b for _, b in first}
            likeness = {
                (a, b): value
                for (a, b), value in likeness.items()
                if not (a in gone[0] or b in gone[1])
            }


def _likeness(base_name: str, head_name: str) -> tuple[float, int]:
    """Return how alike two mangled names are: the share of equal characters, then how long they begin alike."""
    equal = (left == right for left, right in zip(base_name, head_name, strict=False))
    common = sum(1 for _ in takewhile(bool, equal))
    ratio = SequenceMatcher(None, base_name, head_name, autojunk=False).ratio()
    return ratio, common


def _unpaired(
    pairs: Sequence[tuple[int, int]], left: list[int], right: list[int]
) -> tuple[list[int], list[int]]:
    gone, taken = {a for a, _ in pairs}, {b for _, b in pairs}
    return [a for a in left if a not in gone], [b for b in right if b not in taken]


def _grouped(key: Key, side: IndexedCell, rows: list[int]) -> dict[Hashable, list[int]]:
    groups, dispatches = dict[Hashable, list[int]](), side.cell.dispatches
    for number in rows:
        value = key(side, dispatches[number])
        if value is not None:
            groups.setdefault(value, []).append(number)
    return groups
