"""Where the bytes went: the change of all artifacts as a tree, target → model → component → dispatch or part.

Every cell with an artifact on both sides counts with its whole change: what neither a dispatch nor a part of the
artifact explains is a leaf of its own. Bytes of a place are the sum of the amounts of its leaves; its net is their sum.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import heappush, heappushpop, nlargest

from bot.core.delta import CellDelta
from bot.core.explanation import UNATTRIBUTED, UNKNOWN, Explanation, moved_bytes
from bot.core.snapshot import CellKey
from bot.show.blocks import Phrase, Table, code, joined, listing, phrase
from bot.show.escape import clean, clip
from bot.show.facts import NAME_LIMIT, Facts, cell_address, component_address, dispatch_addresses, entry_points
from bot.show.filters import amount, plural, signed
from bot.show.why import cause_words

PLACES, CELLS = 4_000, 200
"""About how many places the picture has at most, and rows of its table; smaller ones are added up."""
_NO_COMPONENT = "no component known"
_REST = "what no dispatch and no part of the artifact explains"
_STATES = {
    "fixed": ("compiles now", "compile now"),
    "newly-broken": ("newly broken", "newly broken"),
    "new": ("new", "new"),
    "removed": ("removed", "removed"),
    "broken": ("broken on both sides", "broken on both sides"),
}


@dataclass(frozen=True, slots=True)
class Place:
    """A part of what changed."""

    name: str
    # net_bytes, moved_bytes: the sum of its leaves, and that of their amounts
    net_bytes: int
    moved_bytes: int
    address: str = ""  # on the page; empty for what is no cell and in none
    inside: tuple[Place, ...] = ()  # its parts, the largest first; a leaf has none


Leaf = tuple[str, int, str]  # Name, change in bytes and address


def change_map(facts: Facts) -> Place:
    """The tree; a component that is too small for the picture to show what is in it has no leaves."""
    targets, largest = dict[str, list[Place]](), list[int]()
    for delta in facts.report.deltas:
        if (change := _change(delta)) is not None:
            place = _cell(delta.key, change, _leaves(delta, facts.report.explanations.get(delta.key)), largest)
            if place.moved_bytes:
                targets.setdefault(facts.short[delta.key.target], []).append(place)
    return _sum("all targets", (_sum(name, models) for name, models in targets.items()))


def _change(delta: CellDelta) -> int | None:
    artifact = delta.metrics.get("artifact_bytes")
    return artifact.change if artifact else None


def _sum(name: str, inside: Iterable[Place], address: str = "") -> Place:
    parts = tuple(sorted(inside, key=lambda one: (-one.moved_bytes, one.name)))
    return Place(name, sum(p.net_bytes for p in parts), sum(p.moved_bytes for p in parts), address, parts)


def _cell(key: CellKey, change: int, leaves: Mapping[str, list[Leaf]], largest: list[int]) -> Place:
    """`largest`: a heap of what the largest places until now moved, which no smaller one can be shown beside."""
    address, groups, inside = cell_address(key), dict(leaves), list[Place]()
    if rest := change - sum(size for group in leaves.values() for _, size, _ in group):
        groups[UNATTRIBUTED] = [*groups.get(UNATTRIBUTED, ()), (_REST, rest, address)]
    for name, group in groups.items():
        # a component has an address; parts of the artifact are told with their cell
        is_part = name == _NO_COMPONENT or any(to == address for _, _, to in group)
        at, moved_bytes = address if is_part else component_address(key, name), sum(abs(size) for _, size, _ in group)
        if len(largest) <= PLACES or moved_bytes >= largest[0]:
            parts = [Place(clip(clean(leaf), NAME_LIMIT), size, abs(size), to) for leaf, size, to in group]
            inside.append(_sum(name, parts, at))
            for one in (inside[-1], *parts):
                (heappush if len(largest) <= PLACES else heappushpop)(largest, one.moved_bytes)
        else:
            inside.append(Place(name, sum(size for _, size, _ in group), moved_bytes, at))
    return _sum(clip(key.model, NAME_LIMIT) or "(empty)", inside, address)


def _leaves(delta: CellDelta, told: Explanation | None) -> Mapping[str, list[Leaf]]:
    """Component, or what else of the artifact it is, → dispatches or parts that changed."""
    groups: dict[str, list[Leaf]] = {}
    if told is None or (delta.unstable and not delta.numbers_repeat):
        return groups
    own, addresses = cell_address(delta.key), dispatch_addresses(delta.key, entry_points(delta.base, delta.head))
    for one in told.dispatches:
        if (size := moved_bytes(one)) and (known := one.head or one.base):
            name = _NO_COMPONENT if one.component == UNATTRIBUTED else clean(one.component, NAME_LIMIT)
            address = addresses.get((known.executable, known.name), own)
            groups.setdefault(name, []).append((one.name, size, address))
    for part in told.parts:
        name = UNATTRIBUTED if part.cause == UNKNOWN else cause_words(part.cause)
        groups.setdefault(name, []).append((part.what, part.change_bytes, own))
    return groups


def pruned(place: Place, least_bytes: int) -> Place:
    """The same sums with fewer places: in each, those with less than `least_bytes` are one."""
    if place.moved_bytes < least_bytes:
        return replace(place, inside=())
    inside = [pruned(one, least_bytes) for one in place.inside]
    small = [one for one in inside if one.moved_bytes < least_bytes]
    if len(small) > 1:
        sums = sum(one.net_bytes for one in small), sum(one.moved_bytes for one in small)
        inside = [one for one in inside if one.moved_bytes >= least_bytes]
        inside.append(Place(f"{len(small):,} smaller ones", *sums, place.address))
    return replace(place, inside=tuple(inside))


def map_json(tree: Place) -> str:
    """The tree for the picture: name, net, bytes, address, parts; `<` is escaped, so that it ends no element."""
    sizes = nlargest(PLACES + 1, (one.moved_bytes for one in _all(tree)))
    least_bytes = sizes[-1] + 1 if len(sizes) > PLACES else 1
    return json.dumps(_row(pruned(tree, least_bytes)), separators=(",", ":")).replace("<", "\\u003c")


def _all(place: Place) -> Iterator[Place]:
    yield place
    for one in place.inside:
        yield from _all(one)


def _row(place: Place) -> list[object]:
    row: list[object] = [clean(place.name), place.net_bytes, place.moved_bytes, place.address]
    return [*row, [_row(one) for one in place.inside]] if place.inside else row


def map_table(tree: Place) -> Table:
    """The same cell by cell, those that moved most first."""
    cells = [(target.name, cell) for target in tree.inside for cell in target.inside]
    cells.sort(key=lambda one: (-one[1].moved_bytes, one[0], one[1].name))
    rows = (
        (
            phrase(code(cell.name, cell.address)),
            phrase(code(target)),
            phrase(signed(cell.net_bytes)),
            phrase(signed((cell.moved_bytes + cell.net_bytes) // 2)),
            phrase(signed((cell.net_bytes - cell.moved_bytes) // 2)),
            joined((phrase(f"{one.name} {signed(one.net_bytes)}") for one in cell.inside[:3]), ", "),
        )
        for target, cell in cells[:CELLS]
    )
    headers = ("model", "target", "change", "grew", "shrank", "where, the most first")
    return Table(headers, listing(rows, len(cells), "build"), numbers_from=2, sentences=5)


def map_words(facts: Facts, tree: Place) -> tuple[Phrase, ...]:
    """What the picture has, and which cells it cannot have."""
    grew, shrank = (tree.moved_bytes + tree.net_bytes) // 2, (tree.moved_bytes - tree.net_bytes) // 2
    cells = sum(len(target.inside) for target in tree.inside)
    first = f"{signed(tree.net_bytes)} over {plural(cells, 'build')}: {amount(grew)} grew, {amount(shrank)} shrank."
    counts = [(facts.count(state), *words) for state, words in _STATES.items()]
    missing = [f"{count:,} {one if count == 1 else many}" for count, one, many in counts if count]
    if open_ := sum(one.unstable and _change(one) is None for one in facts.report.deltas):
        missing.append(f"{open_:,} with a compiler that does not repeat itself")
    return (phrase(first), *([phrase(f"Not in it, as they have no change: {', '.join(missing)}.")] if missing else []))
