"""Show where the bytes went: a tree of target → model → component → dispatch or part.

Every build with an artifact on both sides counts with its whole change. Bytes that
neither a dispatch nor a part of the artifact explains are a leaf of their own. The
moved bytes of a place are the sum of the amounts of its leaves, and its net bytes are
their signed sum.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from heapq import nlargest
from itertools import chain

from msgspec import structs

from bot.core.delta import CellDelta
from bot.core.explanation import UNATTRIBUTED, Explanation, moved_bytes
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
PLACES = 4_000
"""About how many places the picture has at most; smaller changes are added up."""
CELLS = 200
"""How many rows its table has at most."""
_NO_COMPONENT = "no component known"
_REST = "change that no dispatch and no part of the artifact explains"
Leaf = tuple[str, int, EntryPoint | None]


class Place(Small, frozen=True):
    """A part of what changed."""

    name: str
    # net_bytes, moved_bytes: the sum of its leaves, and that of their amounts
    net_bytes: int
    moved_bytes: int
    address: str = ""  # on the page; empty for what is not a build or inside one
    inside: tuple[Place, ...] = ()  # its parts, the largest first; a leaf has none


def change_map(facts: Facts, least_bytes: int = 0) -> Place:
    """Return the tree of all changes.

    Components that moved less than `least_bytes` have nothing inside.
    """
    targets = dict[str, list[Place]]()
    for delta in facts.report.deltas:
        place = _cell(delta, _leaves(facts, delta), least_bytes)
        if place.moved_bytes:
            targets.setdefault(facts.short[delta.key.target], []).append(place)
    places = [_sum(name, models) for name, models in targets.items()]
    return _sum("all targets", places)


def least_shown(facts: Facts) -> int:
    """Return the bytes that a place must have moved to be among the largest PLACES."""
    sizes = list[int]()
    targets = Counter[str]()
    for delta in facts.report.deltas:
        cell_bytes = 0
        for leaves in _leaves(facts, delta).values():
            amounts = [abs(size) for _, size, _ in leaves]
            sizes += [*amounts, sum(amounts)]
            cell_bytes += sum(amounts)
        sizes.append(cell_bytes)
        targets[delta.key.target] += cell_bytes
    largest = nlargest(PLACES + 1, chain(sizes, targets.values(), [targets.total()]))
    if len(largest) > PLACES:
        return largest[-1] + 1
    return 1


def _change(delta: CellDelta) -> int | None:
    artifact = delta.metrics.get("artifact_bytes")
    if artifact:
        return artifact.change
    return None


def _sum(name: str, inside: Iterable[Place], address: str = "") -> Place:
    parts = tuple(sorted(inside, key=lambda place: (-place.moved_bytes, place.name)))
    net_bytes, moved_bytes = _bytes_of(parts)
    return Place(
        name=name,
        net_bytes=net_bytes,
        moved_bytes=moved_bytes,
        address=address,
        inside=parts,
    )


def _bytes_of(places: Iterable[Place]) -> tuple[int, int]:
    """Return the sums of the net changes and of the total changes."""
    net_bytes = 0
    moved_bytes = 0
    for place in places:
        net_bytes += place.net_bytes
        moved_bytes += place.moved_bytes
    return net_bytes, moved_bytes


def _cell(
    delta: CellDelta, groups: Mapping[str, list[Leaf]], least_bytes: int
) -> Place:
    key = delta.key
    home = cell_address(key)
    addresses = dict[EntryPoint, str]()
    places = list[Place]()
    for name, leaves in groups.items():
        # A component has an address. Parts of the artifact are shown with their build.
        is_part = name == _NO_COMPONENT
        net = 0
        moved = 0
        for _, size, point in leaves:
            is_part = is_part or point is None
            net += size
            moved += abs(size)
        address = home if is_part else component_address(key, name)
        if moved < least_bytes:
            places.append(Place(name, net, moved, address))
            continue
        if not addresses:
            points = entry_points(delta.base, delta.head)
            addresses = dispatch_addresses(key, points)
        inside = [_leaf_place(leaf, addresses, home) for leaf in leaves]
        places.append(_sum(name, inside, address))
    return _sum(clip(key.model, NAME_LIMIT) or EMPTY, places, home)


def _leaf_place(leaf: Leaf, addresses: Mapping[EntryPoint, str], home: str) -> Place:
    name, size, point = leaf
    address = addresses.get(point, home) if point else home
    return Place(name=name, net_bytes=size, moved_bytes=abs(size), address=address)


def _leaves(facts: Facts, delta: CellDelta) -> dict[str, list[Leaf]]:
    """Return component, or part of the artifact → the dispatches or parts that changed.

    Their changes sum to the change of the build.
    """
    groups = dict[str, list[Leaf]]()
    unexplained = _change(delta)
    if unexplained is None:
        return groups
    explanation = facts.report.explanations.get(delta.key)
    if explanation and (delta.numbers_repeat or not delta.unstable):
        for component, leaf in _explained_leaves(explanation):
            groups.setdefault(component, []).append(leaf)
            unexplained -= leaf[1]
    if unexplained:
        groups.setdefault(UNATTRIBUTED, []).append((_REST, unexplained, None))
    return groups


def _explained_leaves(explanation: Explanation) -> Iterator[tuple[str, Leaf]]:
    """Yield each dispatch with its component, then each part with its cause."""
    for dispatch in explanation.dispatches:
        size = moved_bytes(dispatch)
        kernel = dispatch.head or dispatch.base
        if size and kernel:
            component = dispatch.component
            if component == UNATTRIBUTED:
                component = _NO_COMPONENT
            yield component, (kernel.name, size, (kernel.executable, kernel.name))
    for part in explanation.parts:
        cause = UNATTRIBUTED
        if part.cause != NO_CAUSE:
            cause = cause_words(part.cause)
        yield cause, (part.what, part.change_bytes, None)


def pruned(place: Place, least_bytes: int) -> Place:
    """Return the map with fewer places and the same sums.

    In each place, those with less than `least_bytes` become one.
    """
    if place.moved_bytes < least_bytes:
        return structs.replace(place, inside=())
    inside = [pruned(part, least_bytes) for part in place.inside]
    small = []
    large = []
    for part in inside:
        if part.moved_bytes < least_bytes:
            small.append(part)
        else:
            large.append(part)
    if len(small) > 1:
        net_bytes, moved_bytes = _bytes_of(small)
        others = Place(
            name=f"{len(small):,} smaller changes",
            net_bytes=net_bytes,
            moved_bytes=moved_bytes,
            address=place.address,
        )
        inside = [*large, others]
    return structs.replace(place, inside=tuple(inside))


def map_json(tree: Place, least_bytes: int) -> str:
    """Return the tree for the picture: name, net bytes, moved bytes, address, parts.

    `<` is escaped, so that the text ends no HTML element.
    """
    text = json.dumps(_row(pruned(tree, least_bytes)), separators=(",", ":"))
    return text.replace("<", "\\u003c")


def _row(place: Place) -> list[object]:
    row: list[object] = [
        clip(clean(place.name), NAME_LIMIT),
        place.net_bytes,
        place.moved_bytes,
        place.address,
    ]
    if place.inside:
        row.append([_row(part) for part in place.inside])
    return row


def map_table(tree: Place) -> Table:
    """Return the map as a table of builds, those that moved most first."""
    cells = []
    for place in tree.inside:
        cells += [(place.name, cell) for cell in place.inside]
    cells.sort(key=lambda pair: (-pair[1].moved_bytes, pair[0], pair[1].name))
    rows = []
    for target, cell in cells[:CELLS]:
        largest = []
        for part in cell.inside[:3]:
            name = clip(part.name, NAME_LIMIT)
            largest.append(phrase(f"{name} {signed(part.net_bytes)}"))
        rows.append(
            (
                phrase(code(cell.name, cell.address)),
                phrase(code(target)),
                phrase(signed(cell.net_bytes)),
                phrase(signed((cell.moved_bytes + cell.net_bytes) // 2)),
                phrase(signed((cell.net_bytes - cell.moved_bytes) // 2)),
                joined(largest, ", "),
            )
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
    """Return the words about the picture, and about builds that it lacks."""
    cells = sum(len(target.inside) for target in tree.inside)
    amounts = grew_and_shrank(tree.net_bytes, tree.moved_bytes)
    summary = phrase(
        f"{signed(tree.net_bytes)} over {plural(cells, 'build')}: {amounts}."
    )
    missing = []
    for state in ("fixed", "newly-broken", "new", "removed", "broken"):
        count = facts.count(state)
        if count:
            missing.append(f"{count:,} {facts.state_words[state]}")
    open_count = 0
    for delta in facts.report.deltas:
        if delta.unstable and _change(delta) is None:
            open_count += 1
    if open_count:
        missing.append(f"{open_count:,} non-deterministic")
    if not missing:
        return (summary,)
    return (
        summary,
        phrase(f"Without a change, so not in the picture: {', '.join(missing)}."),
    )
