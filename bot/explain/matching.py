"""Match the entry points of two sides, in passes from strict to loose.

Each pass is one key function with its reason.

The numbers of dispatches (`main_dispatch_N`) are never used as keys: one added dispatch
shifts all later numbers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import product, takewhile
from operator import attrgetter, eq
from typing import NamedTuple

from bot.core.metrics import METRICS
from bot.core.program import Program, Source
from bot.core.snapshot import Cell, Dispatch
from bot.explain.kept_results import per_object

ADDED = "added"
REMOVED = "removed"
_ORDINAL = re.compile(r"^.*_dispatch_\d+_")


@dataclass(frozen=True, slots=True)
class IndexedCell:
    """One side's cell with its program's facts about each entry point.

    `index_both` makes it.
    """

    cell: Cell
    # executable → its IR's digests
    sources: Mapping[str, Source] = field(default_factory=dict)
    # entry point → the place where most of its sites are, layer numbers kept
    components: Mapping[str, str] = field(default_factory=dict)
    program: Program | None = None  # the cell's program, if both sides have one

    def source(self, dispatch: Dispatch) -> Source | None:
        """Return the digests of the entry point's IR, if known."""
        return self.sources.get(dispatch.executable)

    def is_late(self, dispatch: Dispatch) -> bool:
        """Return whether an entry point was made after the phase whose IR is known."""
        return bool(self.sources) and dispatch.executable not in self.sources

    def component(self, dispatch: Dispatch) -> str | None:
        """Return where most of the entry point's sites are."""
        return self.components.get(dispatch.name)


class Match(NamedTuple):
    """An entry point on both sides; None on the side that has no match."""

    base: Dispatch | None
    head: Dispatch | None
    passed: str  # name of the pass that found the pair, or `added` or `removed`


Key = Callable[[IndexedCell, Dispatch], "Hashable | None"]


_MEMORY = ("stack_bytes", "alloca_bytes", "workgroup_bytes")
# number of leading `numbers` after the code that are of memory, which every version
# measures
MEMORY_NUMBERS = len(_MEMORY)
_FIELDS = filter(None, [metric.of_entry for metric in METRICS])
_OTHERS = [field for field in _FIELDS if field not in _MEMORY]
numbers: Callable[[Dispatch], tuple[int | None, ...]] = attrgetter(
    "code_bytes", *_MEMORY, *_OTHERS
)
"""The measured numbers of an entry point, except its sites.

Its code is first, then memory, registers and spills.
"""


def describe(dispatch: Dispatch) -> str:
    """Return the compiler's name of the work, without the ordinal.

    `main_dispatch_7_matmul_8x16_f32` → `matmul_8x16_f32`.
    """
    return _ORDINAL.sub("", dispatch.name) or dispatch.name


def _binary(side: IndexedCell, row: Dispatch) -> Hashable | None:
    """Return the code's digest, which ignores names, with the kind and the source.

    The size of the code is left out, as it depends on the length of a name.
    """
    if row.code is None or row.code_bytes is None:
        return None
    source = side.sources.get(row.executable)
    return row.code, row.kind, source and source.source


def is_opaque(side: IndexedCell) -> bool:
    """Return whether the compiler is a command: only its input precedes the code."""
    return (
        side.program is not None
        and not side.program.sources
        and bool(side.program.phases)
    )


_STEM = "same-stem"

PASSES: Mapping[str, Key] = {
    # a function of the same name in the same file, if names are those of the source
    "same-name": lambda side, row: (
        (row.executable, row.name) if is_opaque(side) else None
    ),
    # the same code of the same source: it did not change, whatever its number is
    "identical-binary": _binary,
    # the same IR up to names and numbering: only the back end can make it differ
    "same-source": (
        lambda side, row: (source := side.sources.get(row.executable)) and source.source
    ),
    # the same region, of the same layer if there is one, with different constants,
    # shapes or offsets
    "same-structure": (
        lambda side, row: (
            (source := side.sources.get(row.executable)) and source.structure
        )
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
"""Each step of the matching, from strict to loose: entry points of equal key are pairs.

An entry point whose key is None is not matched in this step.
"""


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
    """Return executable → digests of its IR."""
    return {source.executable: source for source in program.sources}


def index_both(base: Cell, head: Cell) -> tuple[IndexedCell, IndexedCell]:
    """Return both sides with only those facts that both have.

    Facts of one side alone would keep equal entry points apart.
    """
    if base.program is None or head.program is None:
        return IndexedCell(base), IndexedCell(head)
    both_have_sources = base.program.sources and head.program.sources
    both_have_components = _components(base.program) and _components(head.program)
    indexed = []
    for cell, program in ((base, base.program), (head, head.program)):
        indexed.append(
            IndexedCell(
                cell=cell,
                sources=sources_of(program) if both_have_sources else {},
                components=_components(program) if both_have_components else {},
                program=program,
            )
        )
    base_indexed, head_indexed = indexed
    return base_indexed, head_indexed


def match_sides(base: IndexedCell, head: IndexedCell) -> tuple[Match, ...]:
    """Match the entry points of two measured cells in pairs.

    Each of them is in exactly one match. The matches are in head's order; removed entry
    points follow in base's order.
    """
    base_dispatches = base.cell.dispatches
    head_dispatches = head.cell.dispatches
    partners: dict[int, tuple[int, str]] = {}
    base_rows = list(range(len(base_dispatches)))
    head_rows = list(range(len(head_dispatches)))
    for name, key in PASSES.items():
        if not base_rows or not head_rows:
            break
        if name == _STEM:
            pairs = list(_similar_pairs(key, (base, base_rows), (head, head_rows)))
        else:
            pairs = list(
                _pairs((key, *_TIE_BREAKS), (base, base_rows), (head, head_rows))
            )
        for a, b in pairs:
            partners[b] = (a, name)
        base_rows, head_rows = _unpaired(pairs, base_rows, head_rows)
    matches = []
    for b, row in enumerate(head_dispatches):
        if b in partners:
            a, name = partners[b]
            matches.append(Match(base_dispatches[a], row, name))
        else:
            matches.append(Match(None, row, ADDED))
    matches += [Match(base_dispatches[a], None, REMOVED) for a in base_rows]
    return tuple(matches)


def _pairs(
    keys: Sequence[Key],
    base: tuple[IndexedCell, list[int]],
    head: tuple[IndexedCell, list[int]],
) -> Iterator[tuple[int, int]]:
    """Yield pairs of row numbers with an equal first key.

    Where several rows share a key, the finer keys are asked in turn.
    """
    key, *finer = keys
    head_groups = _grouped(key, *head)
    for value, base_rows in _grouped(key, *base).items():
        head_rows = head_groups.get(value)
        if head_rows is None:
            continue
        if len(base_rows) == len(head_rows) == 1 or not finer:
            yield from zip(base_rows, head_rows)  # noqa: B905 - the longer side's rest is for a later pass
            continue
        for finer_key in finer:
            if not base_rows or not head_rows:
                break
            pairs = list(
                _pairs((finer_key,), (base[0], base_rows), (head[0], head_rows))
            )
            yield from pairs
            base_rows, head_rows = _unpaired(pairs, base_rows, head_rows)


# pairs of names in one group; a larger group has too many similar overloads
_MOST_COMPARED = 4_000


def _similar_pairs(
    key: Key, base: tuple[IndexedCell, list[int]], head: tuple[IndexedCell, list[int]]
) -> Iterator[tuple[int, int]]:
    """Yield pairs of one stem, most similar names first.

    Overloads that are equally similar are not paired.
    """
    head_groups = _grouped(key, *head)
    for value, base_rows in _grouped(key, *base).items():
        head_rows = head_groups.get(value, [])
        if len(base_rows) == len(head_rows) == 1:
            yield base_rows[0], head_rows[0]
        elif len(base_rows) * len(head_rows) <= _MOST_COMPARED:
            base_names = _names(base[0], base_rows)
            head_names = _names(head[0], head_rows)
            yield from _most_similar(base_names, head_names)


def _names(side: IndexedCell, rows: list[int]) -> dict[int, str]:
    """Return row number → the name of its entry point."""
    return {row: side.cell.dispatches[row].name for row in rows}


def _most_similar(
    base_names: Mapping[int, str], head_names: Mapping[int, str]
) -> Iterator[tuple[int, int]]:
    """Yield pairs of rows, most similar names first, without ambiguous ones."""
    likeness = dict[tuple[int, int], tuple[float, int]]()
    for a, b in product(base_names, head_names):
        likeness[a, b] = _likeness(base_names[a], head_names[b])
    while likeness:
        best = max(likeness.values())
        closest = list[tuple[int, int]]()
        base_counts = Counter[int]()
        head_counts = Counter[int]()
        for (a, b), value in likeness.items():
            if value == best:
                closest.append((a, b))
                base_counts[a] += 1
                head_counts[b] += 1
        for a, b in closest:
            if base_counts[a] == head_counts[b] == 1:
                yield a, b
        for a, b in list(likeness):
            if a in base_counts or b in head_counts:
                del likeness[a, b]


def _likeness(base_name: str, head_name: str) -> tuple[float, int]:
    """Return how similar two mangled names are.

    The share of equal characters counts, then how many they begin with.
    """
    ratio = SequenceMatcher(None, base_name, head_name, autojunk=False).ratio()
    common = sum(takewhile(bool, map(eq, base_name, head_name)))
    return ratio, common


def _unpaired(
    pairs: Sequence[tuple[int, int]], base_rows: list[int], head_rows: list[int]
) -> tuple[list[int], list[int]]:
    paired_base = set[int]()
    paired_head = set[int]()
    for a, b in pairs:
        paired_base.add(a)
        paired_head.add(b)
    base_rows = [a for a in base_rows if a not in paired_base]
    head_rows = [b for b in head_rows if b not in paired_head]
    return base_rows, head_rows


def _grouped(key: Key, side: IndexedCell, rows: list[int]) -> dict[Hashable, list[int]]:
    groups = dict[Hashable, list[int]]()
    for number in rows:
        value = key(side, side.cell.dispatches[number])
        if value is not None:
            groups.setdefault(value, []).append(number)
    return groups
