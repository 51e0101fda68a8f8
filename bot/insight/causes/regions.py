"""The counts of two sides' regions, and the words for what formed differently: which merged, which one split.

Found by arithmetic: a region's `operations` is a sum of hashes, so a merged region has the sum of its parts'.
Recomputed or rewritten operations break the sum; then nothing is said. Nor where the sites do not add up: k parts that
became one are k - 1 sites fewer. A region that computes nothing (a transpose) has no sum, and is no part of anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from msgspec import structs

from bot.core.codec.digests import SHORT_SUM_MODULUS, SUM_MODULUS
from bot.core.values.program import Program
from bot.core.values.snapshot import Dispatch
from bot.insight.causes.matching import Match, Side

MOST_PARTS = 4
WINDOW_SITES = 6
"""How far apart, among the sites that changed, the parts of one region may be: keeps the search linear."""


@dataclass(frozen=True, slots=True)
class Census:
    """What a side's dispatch sites launch.

    Attributes:
        structures, sources: digest → sites.
        kinds: structure → what its main operation is.
        executables: structure → the executables that have it, in the program's order.
        unread: sites whose executable's IR is not known.
    """

    structures: Counter[str]
    sources: Counter[str]
    executables: Mapping[str, tuple[str, ...]]
    kinds: Mapping[str, str]
    unread: int


@dataclass(frozen=True, slots=True)
class Compared:
    """Two sides, ready for the questions; made by `compare`.

    Attributes:
        left, right: what their sites launch; None where either program is not known or both are the same, as far as
            their digests tell.
        same_model: True where the model's text is the same on both sides.
    """

    base: Side
    head: Side
    matches: tuple[Match, ...]
    same_model: bool
    left: Census | None
    right: Census | None

    @property
    def pairs(self) -> list[tuple[Dispatch, Dispatch]]:
        """Entry points that have a partner."""
        return [(m.base, m.head) for m in self.matches if m.base is not None and m.head is not None]

    @property
    def short_code(self) -> bool:
        """True where code is compared by short digests: what agrees may yet be other code."""
        return self.base.short_code or self.head.short_code

    @property
    def short_ir(self) -> bool:
        """True where IR is compared by short digests: what agrees may yet be other IR."""
        return self.base.short_ir or self.head.short_ir

    @property
    def sources_differ(self) -> bool:
        """True where the sites launch other IR."""
        return self.left is not None and self.right is not None and self.left.sources != self.right.sources

    def structure_moved(self, structure: str) -> int | None:
        """Executables more on head, of a structure with as many sites on both sides; None where those differ too."""
        if self.left is None or self.right is None:
            return None
        if not 0 < self.left.structures[structure] == self.right.structures[structure]:
            return None
        return members_of(self.right, structure) - members_of(self.left, structure)


def compare(base: Side, head: Side, matches: tuple[Match, ...], same_model: bool) -> Compared:
    """Count what both sides launch, once for all questions."""
    left, right = base.program, head.program
    if left is None or right is None or _said(left) == _said(right):
        return Compared(base, head, matches, same_model, None, None)
    return Compared(base, head, matches, same_model, _census(base, left), _census(head, right))


def _said(program: Program) -> Program:
    return structs.replace(program, arguments=(), whole="")


def _census(side: Side, program: Program) -> Census:
    executables = {row.name: row.executable for row in side.cell.dispatches}
    known = [side.sources.get(executables.get(site.entry_point, "")) for site in program.sites]
    kinds = ((side.source(row), row.kind) for row in side.cell.dispatches)
    members: dict[str, list[str]] = {}
    for source in program.sources:
        members.setdefault(source.structure, []).append(source.executable)
    return Census(
        Counter(source.structure for source in known if source),
        Counter(source.source for source in known if source),
        {structure: tuple(names) for structure, names in members.items()},
        {source.structure: kind for source, kind in kinds if source},
        sum(source is None for source in known),
    )


def members_of(census: Census, structure: str) -> int:
    """How many executables have this structure."""
    return len(census.executables.get(structure, ()))


class Region(NamedTuple):
    """One dispatch site as a region: `place` is its number in the program."""

    place: int
    structure: str
    operations: int
    kind: str
    component: str | None


def regions(side: Side) -> list[Region]:
    """All dispatch sites whose executable's IR is known, in the program's order."""
    program = side.program
    rows = {row.name: row for row in side.cell.dispatches}
    result = []
    for place, site in enumerate(program.sites if program else ()):
        row = rows.get(site.entry_point)
        source = side.source(row) if row else None
        if row and source:
            result.append(Region(place, source.structure, source.operations, row.kind, site.component))
    return result


def merges(base: Side, head: Side) -> tuple[str, ...]:
    """Name what merged and what split, most frequent first: `2 × (matmul + elementwise) → matmul`."""
    left, right = regions(base), regions(head)
    before, after = Counter(r.structure for r in left), Counter(r.structure for r in right)
    gone, new = before - after, after - before
    modulus = SHORT_SUM_MODULUS if base.short_ir or head.short_ir else SUM_MODULUS
    merged = list(_joined(_of(left, gone), gone, _of(right, new), new, modulus))
    split = list(_joined(_of(right, new), new, _of(left, gone), gone, modulus))
    if not _adds_up(merged, split, fewer=len(left) - len(right)):
        return ()
    return (*_lines(merged, "{parts} → {whole}"), *_lines(split, "{whole} → {parts}"))


def _adds_up(merged: Sequence[_Joined], split: Sequence[_Joined], fewer: int) -> bool:
    """Whether there are as many sites fewer as these make; more of them where some merges or splits were not found."""
    less, more = (sum(len(one.parts) - 1 for one in joined) for joined in (merged, split))
    if less and more:
        return less - more == fewer
    return less <= fewer if less else more <= -fewer


def _of(sites: Sequence[Region], excess: Counter[str]) -> list[Region]:
    return [region for region in sites if region.structure in excess and region.operations]


class _Joined(NamedTuple):
    parts: tuple[str, ...]
    whole: str
    component: str | None


def _joined(
    parts: list[Region], budget: Counter[str], wholes: list[Region], wanted: Counter[str], modulus: int
) -> Iterator[_Joined]:
    """Parts that sum to a whole, each site used once and no structure more often than it is in excess."""
    by_sum = {whole.operations: whole for whole in reversed(wholes)}
    parts_left, used = Counter(budget), set[int]()
    wholes_left = Counter[int]()
    for structure, operations in {(whole.structure, whole.operations) for whole in wholes}:
        wholes_left[operations] += wanted[structure]
    for first, region in enumerate(parts):
        if region.place in used or not by_sum:
            continue
        near = [other for other in parts[first + 1 : first + WINDOW_SITES] if other.place not in used]
        chosen = _summing(region, near, by_sum, (parts_left, wholes_left), modulus)
        if chosen:
            whole = by_sum[sum(part.operations for part in chosen) % modulus]
            used.update(part.place for part in chosen)
            parts_left.subtract(part.structure for part in chosen)
            wholes_left[whole.operations] -= 1
            places = {part.component for part in chosen}
            yield _Joined(tuple(part.kind for part in chosen), whole.kind, places.pop() if len(places) == 1 else None)


def _summing(
    region: Region, near: list[Region], by_sum: dict[int, Region], left: tuple[Counter[str], Counter[int]], modulus: int
) -> tuple[Region, ...]:
    parts_left, wholes_left = left
    amounts = [other.operations for other in near]
    for count in range(1, MOST_PARTS):
        # sums of plain numbers first: nearly all of them are nothing
        for values, others in zip(combinations(amounts, count), combinations(near, count), strict=True):
            whole = by_sum.get((region.operations + sum(values)) % modulus)
            if whole is None or wholes_left[whole.operations] < 1:
                continue
            chosen = (region, *others)
            if Counter(part.structure for part in chosen) <= parts_left:
                return chosen
    return ()


def _lines(joined: Iterable[_Joined], form: str) -> list[str]:
    places: dict[tuple[tuple[str, ...], str], list[str | None]] = {}
    for one in joined:
        places.setdefault((one.parts, one.whole), []).append(one.component)
    ordered = sorted(places.items(), key=lambda item: -len(item[1]))
    return [_line(form, parts, whole, where) for (parts, whole), where in ordered]


def _line(form: str, parts: tuple[str, ...], whole: str, where: list[str | None]) -> str:
    words = form.format(parts=f"({' + '.join(parts)})", whole=whole)
    component = where[0] if len(set(where)) == 1 else None
    return f"{len(where)} × {words}" + (f" in {component}" if component else "")
