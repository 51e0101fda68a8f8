"""Find families of executables that deduplication left behind.

Executables of one structure are one family, even if their constants, offsets and static
shapes vary. Other families differ only in the order of operands, or in one operation.
Others are fused around the same costliest operation. An executable is in one family at
most.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from .ir_graph import Graph, Words
from .ir_kinds import KINDS, PLAIN, kinds_of
from .ir_lines import _LINE_CHARACTERS, line_of, shortened
from .ir_members import (
    Member,
    elements_in,
    partition,
    sizes_in,
)
from .ir_varying import Draft, of_one_structure

FAMILY_KINDS = (
    "constants",
    "static-shapes",
    "offsets",
    "operand-order",
    "extra-operation",
    "different-fusion",
)
"""A copy of `bot.core.program.FAMILY_KINDS`."""
_LINES_SHOWN = 4
_NAMES_SHOWN = 6
_COSTLY = KINDS[: KINDS.index("gather")]
# times that an operation is left out of one executable: each costs as much as it has
# operations
_ATTEMPTS = 32
_VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?")


def families(ir: Any, members: Collection[Member]) -> list[dict[str, Any]]:
    """Return each family as `{kind, members, varying}`, by kind, larger ones first."""
    same_structure = partition(members, lambda member: member.structure)
    drafts = list(map(of_one_structure, same_structure))
    remaining = _outside(members, drafts)
    forms: dict[Hashable, int] = {}
    graphs = {member.name: Graph(ir, member, forms) for member in remaining}
    for search in (_operand_orders, _extra_operations, _different_fusions):
        remaining = _outside(remaining, drafts)
        drafts += search(remaining, graphs)
    places = {member.name: place for place, member in enumerate(members)}
    drafts.sort(
        key=lambda draft: (
            FAMILY_KINDS.index(draft[0]),
            -len(draft[1]),
            places[draft[1][0].name],
        )
    )
    rows = []
    for kind, group, lines in drafts:
        hidden = len(lines) - _LINES_SHOWN
        varying = lines[:_LINES_SHOWN]
        if hidden > 0:
            varying.append(f"… and {hidden} more")
        names = [member.name for member in group]
        rows.append({"kind": kind, "members": names, "varying": varying})
    return rows


def _outside(members: Collection[Member], drafts: Sequence[Draft]) -> list[Member]:
    inside = set[str]()
    for draft in drafts:
        inside.update(member.name for member in draft[1])
    return [member for member in members if member.name not in inside]


def _operand_orders(
    members: Sequence[Member], graphs: Mapping[str, Graph]
) -> Iterator[Draft]:
    """Yield the families of the same graph."""
    serials = {member.name: graphs[member.name].serial() for member in members}
    for group in partition(members, lambda member: serials[member.name][0]):
        first = group[0]
        expected = serials[first.name][1]
        lines = []
        for member in group[1:]:
            order = serials[member.name][1]
            lines.append(_order_line(member, order, first, expected))
        yield "operand-order", group, lines


def _order_line(
    member: Member, order: list[int], first: Member, expected: list[int]
) -> str:
    """Return the line of a member whose operands have another order.

    `expected`, `order`: the sources of the first member and of this one, as the walk
    through their one graph meets them.
    """
    place_of = dict(zip(expected, order, strict=True))
    used = []
    places = []
    for argument in range(len(first.arguments)):
        if argument in place_of:
            used.append(argument)
            places.append(place_of[argument])
    if places == used:
        text = "operands or operations in another order"
    else:
        text = f"arguments in another order: {' '.join(map(str, places))}"
    return line_of(f"@{member.name}", [text])


def _extra_operations(
    members: Sequence[Member], graphs: Mapping[str, Graph]
) -> Iterator[Draft]:
    """Yield families of executables that differ by one operation.

    The smallest executable of a family lacks an operation that the others have. It
    uses one of the operation's operands in its place.
    """
    by_words = defaultdict[Hashable, list[Member]](list)
    larger = defaultdict[str, dict[str, str]](dict)
    for member in members:
        by_words[frozenset(graphs[member.name].words.items())].append(member)
    for member in members:
        graph = graphs[member.name]
        candidates = _smaller_by_one(graph, by_words)
        for smaller, source, op, operand in islice(candidates, _ATTEMPTS):
            without_op = graph.serial({source: operand})[0]
            if smaller is not member and without_op == graphs[smaller.name].serial()[0]:
                line = f"@{member.name} has one more {op.name} ({op.operands[0].type})"
                larger[smaller.name].setdefault(
                    member.name, shortened(line, _LINE_CHARACTERS)
                )
    placed = set[str]()
    for name, lines in sorted(larger.items(), key=lambda item: -len(item[1])):
        names = {name} | lines.keys() - placed
        if name not in placed and len(names) > 1:
            placed |= names
            group = [member for member in members if member.name in names]
            lines_of_group = [lines[key] for key in lines if key in names]
            yield "extra-operation", group, lines_of_group


def _smaller_by_one(
    graph: Graph, by_words: Mapping[Hashable, list[Member]]
) -> Iterator[tuple[Member, int, Any, int]]:
    """Yield the members that compute all that a graph does but for one operation.

    Yields as well the operation's source, the operation, and the operand in its
    place.
    """
    for source, op, operands, computed in graph.units:
        remaining = frozenset((graph.words - computed).items())
        for smaller in by_words.get(remaining, ()):
            for operand in operands:
                yield smaller, source, op, operand


def _different_fusions(
    members: Sequence[Member], graphs: Mapping[str, Graph]
) -> Iterator[Draft]:
    """Yield families with the same costliest operation that differ in the others."""
    roots = dict[str, tuple[str, Words]]()
    for member in members:
        root = _root(graphs[member.name])
        if root is not None:
            roots[member.name] = root
    rooted = [member for member in members if member.name in roots]
    for group in partition(rooted, lambda member: roots[member.name][0]):
        extras = list[Counter[str]]()
        for member in group:
            computed = graphs[member.name].words - roots[member.name][1]
            extras.append(Counter(name for name, _ in computed.elements()))
        common = extras[0].copy()
        for extra in extras[1:]:
            common &= extra
        by_text: dict[str, list[str]] = {}
        for member, extra in zip(group, extras, strict=True):
            by_text.setdefault(_extra_text(extra - common), []).append(member.name)
        if len(by_text) > 1:
            lines = []
            for text, names in by_text.items():
                label = f"@{names[0]}"
                if len(names) > 1:
                    label += f" and {len(names) - 1} more"
                lines.append(line_of(label, [text]))
            yield "different-fusion", group, lines


def _extra_text(extra: Counter[str]) -> str:
    """Return the operations that a function has beyond those of its family."""
    ranked = sorted(extra.items(), key=lambda item: (-item[1], item[0]))
    parts = []
    for name, count in ranked[:_NAMES_SHOWN]:
        parts.append(f"{count} {name}" if count > 1 else name)
    if len(ranked) > _NAMES_SHOWN:
        parts.append(f"… ({extra.total()} operations)")
    if not parts:
        return "nothing else"
    return "+ " + ", ".join(parts)


def _root(graph: Graph) -> tuple[str, Words] | None:
    """Return the costliest operation as text without names, and its result.

    None if all operations are elementwise.
    """
    best: tuple[tuple[int, int, int], Any, Words] | None = None
    for source, op, _, computed in graph.units:
        if not op.name.startswith(("linalg.", "iree_linalg_ext.")):
            continue
        kinds = kinds_of(graph.ir, op)
        if ranks := [_COSTLY.index(kind) for kind in kinds if kind in _COSTLY]:
            elements = 0
            for value in op.operands:
                if sizes := sizes_in(str(value.type)):
                    elements += elements_in(sizes)
            key = (min(ranks), -elements, source)
            if best is None or key < best[0]:
                best = key, op, computed
    if best is None:
        return None
    numbers: dict[str, int] = {}
    text = best[1].get_asm(print_generic_op_form=True, **PLAIN)
    return (
        _VALUE.sub(lambda name: f"%{numbers.setdefault(name[0], len(numbers))}", text),
        best[2],
    )
