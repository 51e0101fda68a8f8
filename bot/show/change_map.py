"""Where the bytes went: the change of all artifacts as a tree, target → model → component → dispatch or part.

Every cell with an artifact on both sides counts with its whole change: what neither a
dispatch nor a part of the artifact explains is a leaf of its own. Bytes of a place are
the sum of the amounts of its leaves; net is their sum.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from heapq import nlargest
from itertools import chain

from msgspec import structs

from bot.core.delta import CellDelta
from bot.core.explanation import UNATTRIBUTED, moved_bytes
from bot.core.explanation import UNKNOWN as NO_CAUSE
from bot.core.record import Small
from bot.show.addresses import (
    EntryPoint,
    cell_address,
    component_address,
    dispatch_addresses,
    entry_points,
)
from bot.show.blocks import Phrase, Table, code, joined, listing, phrase
from bot.show.escape import clean, clip
from bot.show.facts import NAME_LIMIT, Facts
from bot.show.filters import grew_and_shrank, plural, signed
from bot.show.why import cause_words

EMPTY = "(empty)"
PLACES, CELLS = 4_000, 200
"""About how many places the picture has at most, and rows of its table; smaller changes are added up."""
_NO_COMPONENT = "no component known"
_REST = "change that no dispatch and no part of the artifact explains"
Leaf = tuple[
    str, int, EntryPoint | None
]  # Name, change in bytes, and of a dispatch its entry point


class Place(Small, frozen=True):
    """A part of what changed."""

    name: str
    # net_bytes, moved_bytes: the sum of its leaves, and that of their amounts
    net_bytes: int
    moved_bytes: int
    address: str = ""  # on the page; empty for what is no cell and in none
    inside: tuple[Place, ...] = ()  # its parts, the largest first; a leaf has none


def change_map(facts: Facts, least_bytes: int = 0) -> Place:
    """The tree, but for what is inside of components that moved less than `least_bytes`."""
    targets = dict[str, list[Place]]()
    for delta in facts.report.deltas:
        if (place := _cell(delta, _leaves(facts, delta), least_bytes)).moved_bytes:
            targets.setdefault(facts.short[delta.key.target], []).append(place)
    return _sum("all targets", (_sum(name, models) for name, models in targets.items()))


def least_shown(facts: Facts) -> int:
    """The bytes that a place must have moved to be among the largest PLACES."""
    sizes, targets = list[int](), Counter[str]()
    for delta in facts.report.deltas:
        groups = [
            [abs(size) for _, size, _ in group]
            for group in _leaves(facts, delta).values()
        ]
        sums = [*map(sum, groups)]
        sizes += chain(*groups, sums, [sum(sums)])
        targets[delta.key.target] += sum(sums)
    largest = nlargest(PLACES + 1, chain(sizes, targets.values(), [targets.total()]))
    return largest[-1] + 1 if len(largest) > PLACES else 1


def _change(delta: CellDelta) -> int | None:
    artifact = delta.metrics.get("artifact_bytes")
    return artifact.change if artifact else None


def _sum(name: str, inside: Iterable[Place], address: str = "") -> Place:
    parts = tuple(sorted(inside, key=lambda one: (-one.moved_bytes, one.name)))
    return Place(
        name=name,
        net_bytes=sum(p.net_bytes for p in parts),
        moved_bytes=sum(p.moved_bytes for p in parts),
        address=address,
        inside=parts,
    )


def _cell(
    delta: CellDelta, groups: Mapping[str, list[Leaf]], least_bytes: int
) -> Place:
    key, inside, addresses = delta.key, list[Place](), dict[EntryPoint, str]()
    own = cell_address(key)
    for name, group in groups.items():
        # a component has an address; parts of the artifact are told with their cell
        is_part = name == _NO_COMPONENT or any(point is None for _, _, point in group)
        sums = sum(size for _, size, _ in group), sum(abs(size) for _, size, _ in group)
        place = Place(name, *sums, own if is_part else component_address(key, name))
        if sums[1] >= least_bytes:
            addresses = addresses or dispatch_addresses(
                key, entry_points(delta.base, delta.head)
            )
            leaves = (
                Place(
                    name=leaf,
                    net_bytes=size,
                    moved_bytes=abs(size),
                    address=addresses.get(point, own) if point else own,
                )
                for leaf, size, point in group
            )
            place = _sum(name, leaves, place.address)
        inside.append(place)
    return _sum(clip(key.model, NAME_LIMIT) or EMPTY, inside, own)


def _leaves(facts: Facts, delta: CellDelta) -> dict[str, list[Leaf]]:
    """Component, or what else of the artifact it is, → dispatches or parts that changed.

    They sum to its change.
    """
    groups, rest = dict[str, list[Leaf]](), _change(delta)
    if rest is None:
        return groups
    why = facts.report.explanations.get(delta.key)
    if why and (delta.numbers_repeat or not delta.unstable):
        for dispatch in why.dispatches:
            if (size := moved_bytes(dispatch)) and (
                known := dispatch.head or dispatch.base
            ):
                name = (
                    _NO_COMPONENT
                    if dispatch.component == UNATTRIBUTED
                    else dispatch.component
                )
                groups.setdefault(name, []).append(
                    (known.name, size, (known.executable, known.name))
                )
                rest -= size
        for part in why.parts:
            name = UNATTRIBUTED if part.cause == NO_CAUSE else cause_words(part.cause)
            groups.setdefault(name, []).append((part.what, part.change_bytes, None))
            rest -= part.change_bytes
    if rest:
        groups.setdefault(UNATTRIBUTED, []).append((_REST, rest, None))
    return groups


def pruned(place: Place, least_bytes: int) -> Place:
    """The map with fewer places and the same sums: in each, places with less than `least_bytes` are one."""
    if place.moved_bytes < least_bytes:
        return structs.replace(place, inside=())
    inside = [pruned(one, least_bytes) for one in place.inside]
    small = [one for one in inside if one.moved_bytes < least_bytes]
    if len(small) > 1:
        sums = (
            sum(one.net_bytes for one in small),
            sum(one.moved_bytes for one in small),
        )
        inside = [one for one in inside if one.moved_bytes >= least_bytes]
        inside.append(Place(f"{len(small):,} smaller changes", *sums, place.address))
    return structs.replace(place, inside=tuple(inside))


def map_json(tree: Place, least_bytes: int) -> str:
    """The tree for the picture: name, net, bytes, address, parts.

    `<` is escaped, so that it ends no element.
    """
    return json.dumps(_row(pruned(tree, least_bytes)), separators=(",", ":")).replace(
        "<", "\\u003c"
    )


def _row(place: Place) -> list[object]:
    row: list[object] = [
        clip(clean(place.name), NAME_LIMIT),
        place.net_bytes,
        place.moved_bytes,
        place.address,
    ]
    return [*row, [_row(one) for one in place.inside]] if place.inside else row


def map_table(tree: Place) -> Table:
    """The map as a table, cell by cell, those that moved most first."""
    cells = [(target.name, cell) for target in tree.inside for cell in target.inside]
    cells.sort(key=lambda one: (-one[1].moved_bytes, one[0], one[1].name))
    rows = (
        (
            phrase(code(cell.name, cell.address)),
            phrase(code(target)),
            phrase(signed(cell.net_bytes)),
            phrase(signed((cell.moved_bytes + cell.net_bytes) // 2)),
            phrase(signed((cell.net_bytes - cell.moved_bytes) // 2)),
            joined(
                (
                    phrase(f"{clip(one.name, NAME_LIMIT)} {signed(one.net_bytes)}")
                    for one in cell.inside[:3]
                ),
                ", ",
            ),
        )
        for target, cell in cells[:CELLS]
    )
    headers = (
        "model",
        "target",
        "change",
        "grew",
        "shrank",
        "where, largest change first",
    )
    return Table(
        headers, listing(rows, len(cells), "build"), numbers_from=2, sentences=5
    )


def map_words(facts: Facts, tree: Place) -> tuple[Phrase, ...]:
    """What the picture has, and which cells it cannot have."""
    cells = sum(len(target.inside) for target in tree.inside)
    words = grew_and_shrank(tree.net_bytes, tree.moved_bytes)
    first = f"{signed(tree.net_bytes)} over {plural(cells, 'build')}: {words}."
    counts = {
        state: facts.count(state)
        for state in ("fixed", "newly-broken", "new", "removed", "broken")
    }
    missing = [
        f"{count:,} {facts.state_words[state]}"
        for state, count in counts.items()
        if count
    ]
    if open_ := sum(
        delta.unstable and _change(delta) is None for delta in facts.report.deltas
    ):
        missing.append(f"{open_:,} non-deterministic")
    return (
        phrase(first),
        *(
            [phrase(f"Without a change, so not in the picture: {', '.join(missing)}.")]
            if missing
            else []
        ),
    )
