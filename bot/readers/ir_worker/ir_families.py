"""Families of executables that deduplication left behind.

Executables of one structure are one family, whatever of their constants, offsets and
static shapes varies. Others may be the same but for the order of operands, or but for
one operation more, or be fused around the same costliest operation. An executable is in
one family at most.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from itertools import chain, islice, zip_longest
from typing import Any

from .ir_kinds import KINDS, PLAIN, kinds_of
from .ir_members import (
    DYNAMIC,
    FUNCTION,
    Member,
    Slot,
    attributes_of,
    elements_in,
    partition,
    sizes_in,
)

FAMILY_KINDS = (
    "constants",
    "static-shapes",
    "offsets",
    "operand-order",
    "extra-operation",
    "different-fusion",
)
"""`bot.core.program.FAMILY_KINDS`."""
IDENTICAL = "nothing: their functions are identical"  # `bot.core.program.IDENTICAL`
_VALUES_SHOWN = 8
_LINES_SHOWN = 4
_LINE_CHARACTERS = 160
_VALUE_CHARACTERS = 40
_NAMES_SHOWN = 6
_FOLLOWING = ("static_sizes", "static_output_shape")
"""Arrays that the types of operands and results say, too."""
_CONSTANT_OPERATIONS = frozenset(
    {"arith.constant", "complex.constant", "flow.tensor.constant"}
)
_ADDRESSING = frozenset({"arith.index_cast", "arith.index_castui"})
_UNNAMED = frozenset(
    {
        "linalg.generic",
        "linalg.fill",
        "linalg.yield",
        "linalg.index",
        "iree_linalg_ext.yield",
    }
)
_ORDERED = frozenset(
    {"indexing_maps", "operandSegmentSizes", "function_type", "sym_name"}
)
_COSTLY = KINDS[: KINDS.index("gather")]
# times that an operation is left out of one executable: each costs as much as it has
# operations
_ATTEMPTS = 32
_VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?")

Draft = tuple[str, Sequence[Member], list[str]]
Words = Counter[tuple[str, str]]  # name and element type of operations that compute


def families(ir: Any, members: Collection[Member]) -> list[dict[str, Any]]:
    """Each family as `{kind, members, varying}`, by kind, larger ones first."""
    drafts = [
        _of_one_structure(group)
        for group in partition(members, lambda member: member.structure)
    ]
    remaining = _outside(members, drafts)
    forms: dict[Hashable, int] = {}
    graphs = {member.name: _Graph(ir, member, forms) for member in remaining}
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
        varying = [
            *lines[:_LINES_SHOWN],
            *([f"… and {hidden} more"] if hidden > 0 else []),
        ]
        rows.append(
            {
                "kind": kind,
                "members": [member.name for member in group],
                "varying": varying,
            }
        )
    return rows


def _outside(members: Collection[Member], drafts: Sequence[Draft]) -> list[Member]:
    names = {member.name for _, group, _ in drafts for member in group}
    return [member for member in members if member.name not in names]


# Executables of one structure: what varies of constants, offsets and static shapes.


def _of_one_structure(group: Sequence[Member]) -> Draft:
    """Return a family with the loosest kind that varies.

    It has a line for each thing that varies, in turns of constants, offsets and shapes.
    """
    columns = list(_varying_columns(group))
    kinds = {slots[0].kind for slots in columns}
    if not kinds:
        return "constants", group, [IDENTICAL]
    is_shaped = bool(kinds & {"dimension", "fixed", "type"})
    # values → what has them. What repeats how another varies, such as shapes inside an
    # argument's, is left out.
    shapes = dict[tuple[str, ...], str]()
    arrays = dict[tuple[str, ...], str]()
    constants = dict[tuple[str, ...], str]()
    for slots in columns:
        slot = slots[0]
        values = tuple(map(_text_of, slots))
        if slot.constant is not None:
            if slot.kind == "type":  # the constant's value says its type
                continue
            type_ = str(slot.constant.results[0].type)
            if is_shaped and type_ == "index":
                lines = shapes
            else:
                lines = constants
            lines.setdefault(values, f"{type_} constant of {slot.op.name}")
        elif not isinstance(slot.place[0], str):
            shapes.setdefault(values, _owner(slot))
        elif slot.place[0] not in _FOLLOWING:
            arrays.setdefault(values, _owner(slot))
    if is_shaped:
        return "static-shapes", group, _lines_in_turns(shapes, constants, arrays)
    kind = "offsets" if "offset" in kinds else "constants"
    return kind, group, _lines_in_turns(arrays, constants)


def _varying_columns(group: Sequence[Member]) -> Iterator[tuple[Slot, ...]]:
    """Yield the slots of all members at each place where their values differ."""
    for slots in zip(*(member.function_slots for member in group), strict=True):
        if len({slot.value for slot in slots}) > 1:
            yield slots


def _lines_in_turns(*labels_by_kind: Mapping[tuple[str, ...], str]) -> list[str]:
    """Return a line of each kind, then the next line of each kind, and so on."""
    by_kind = [_varying_lines(labels) for labels in labels_by_kind]
    in_turns = dict.fromkeys(chain.from_iterable(zip_longest(*by_kind)))
    return [line for line in in_turns if line]


def _varying_lines(labels: Mapping[tuple[str, ...], str]) -> list[str]:
    """Return a line for each label, with its values shortened."""
    lines = []
    for values, label in labels.items():
        shortened = [_short(value, _VALUE_CHARACTERS) for value in values]
        lines.append(_line(label, shortened, len(set(values))))
    return lines


def _text_of(slot: Slot) -> str:
    """Return what stands in a slot.

    This is the constant's value without its type, the whole array, or the whole shape.
    """
    if slot.constant is not None:
        return slot.value.removesuffix(f" : {slot.constant.results[0].type}")
    owner = slot.place[0]
    if isinstance(owner, str):
        entries = [
            "?" if value == DYNAMIC else str(value)
            for value in slot.op.attributes[owner]
        ]
        return f"[{', '.join(entries)}]"
    return "x".join(sizes_in(str(owner.type))) or slot.value


def _owner(slot: Slot) -> str:
    if isinstance(slot.place[0], str):
        return f"{slot.place[0]} of {slot.op.name}"
    number = getattr(slot.place[0], "arg_number", None)
    if number is None:
        return f"result of {slot.op.name}"
    if slot.op.name == FUNCTION:
        return f"argument {number}"
    return f"block argument {number} of {slot.op.name}"


# The others: functions as what they store, and of what that is made.


class _Graph:
    """A function without names and places.

    Its values are described by what they are made of, whatever the order of operands.

    Attributes:
        sources: form and operands of each value and each operation without results,
            operands before their users; an operation with a body has what the body
            gives as its operands.
        effects: the operations at the top that have no results.
        units: those that compute, as (source, its operation, its own operands, names
            and types of all that it does).
        words: what all operations compute.
    """

    def __init__(self, ir: Any, member: Member, forms: dict[Hashable, int]) -> None:
        self.ir = ir
        self.member = member
        self._forms = forms
        self.sources: list[tuple[int, tuple[int, ...]]] = []
        self.units: list[tuple[int, Any, tuple[int, ...], Words]] = []
        self._places: dict[Any, int] = {}
        for argument in member.arguments:
            self._places[argument] = self._add(("argument", str(argument.type)), ())
        self.effects, self.words = self._block(member.function.regions[0].blocks[0])

    def _add(self, form: Hashable, operands: tuple[int, ...]) -> int:
        self.sources.append((self._form(form), operands))
        return len(self.sources) - 1

    def _form(self, form: Hashable) -> int:
        return self._forms.setdefault(form, len(self._forms))

    def _block(self, block: Any) -> tuple[list[int], Words]:
        """Return the sources of operations without results, and what all compute."""
        effects = list[int]()
        computed_by_all = Words()
        for op in (view.operation for view in block.operations):
            if op.name in _CONSTANT_OPERATIONS:
                self._places[op.results[0]] = self._add(
                    ("constant", str(op.attributes["value"])), ()
                )
                continue
            operands = tuple(self._places[value] for value in op.operands)
            maps, below = self._enter(op, operands)
            inside = list[int]()
            op_computes = Words()
            for inner_block in below:
                stores, computed = self._block(inner_block)
                inside += stores
                op_computes += computed
            op_computes += Words(_word(op))
            names = sorted(set(attributes_of(op)) - _ORDERED)
            attributes = tuple((name, str(op.attributes[name])) for name in names)
            form = (
                op.name,
                attributes,
                maps,
                *(str(result.type) for result in op.results),
            )
            made_of = (*(() if maps else operands), *inside)
            for index, result in enumerate(op.results):
                self._places[result] = self._add((*form, index), made_of)
            if not op.results:
                effects.append(self._add(form, made_of))
            elif op_computes and len(op.results) == 1:
                self.units.append((len(self.sources) - 1, op, operands, op_computes))
            computed_by_all += op_computes
        return effects, computed_by_all

    def _enter(
        self, op: Any, operands: tuple[int, ...]
    ) -> tuple[tuple[str, ...], list[Any]]:
        """Take in the blocks of an operation, whose arguments are sources from now on.

        Return the maps of the results of a structured operation, and all blocks. Where
        there is one argument to each operand, as in linalg, it is that operand, read in
        the order of its map.
        """
        blocks = [block for region in op.regions for block in region.blocks]
        arguments = [argument for block in blocks for argument in block.arguments]
        is_structured = "." in op.name and 0 < len(arguments) == len(operands)
        has_maps = is_structured and "indexing_maps" in op.attributes
        maps = [""] * len(operands)
        if has_maps:
            maps = [str(attribute) for attribute in op.attributes["indexing_maps"]]
        for index, argument in enumerate(arguments):
            form = ("in", maps[index] if is_structured else index, str(argument.type))
            used = (operands[index],) if is_structured else ()
            self._places[argument] = self._add(form, used)
        return tuple(maps[-len(op.results) :]) if is_structured else (), blocks

    def serial(
        self, alias: Mapping[int, int] | None = None
    ) -> tuple[tuple[Any, ...], list[int]]:
        """Return the graph from what is stored back to the arguments.

        Return as well its sources in the order in which it comes to them. Equal ones
        are the same graph but for the order of operands. `alias`: source → that which
        takes its place.
        """
        alias = alias or {}
        terms = list[int]()
        for form, operands in self.sources:
            terms.append(
                self._form(
                    (
                        form,
                        *sorted(
                            terms[alias.get(operand, operand)] for operand in operands
                        ),
                    )
                )
            )
        order = dict[int, int]()
        row = list[Any]()
        stack = sorted(self.effects, key=terms.__getitem__)
        while stack:
            source = stack.pop()
            if source in order:
                row.append(order[source])
                continue
            order[source] = len(order)
            form, operands = self.sources[source]
            row.append((form, len(operands)))
            stack += sorted(
                (alias.get(operand, operand) for operand in operands),
                key=terms.__getitem__,
            )
        return tuple(row), list(order)


def _word(op: Any) -> list[tuple[str, str]]:
    """Return name and element type of an operation that computes values.

    Return nothing for an operation that computes addresses, and for all others.
    """
    types = [str(value.type) for value in (*op.operands, *op.results)]
    is_named = (
        op.name.startswith(("linalg.", "iree_linalg_ext.")) and op.name not in _UNNAMED
    )
    is_scalar = (
        op.name.startswith(("arith.", "math.", "complex."))
        and op.name not in _ADDRESSING
    )
    if is_named or (is_scalar and types[:1] != ["index"]):
        return [(op.name, types[0] if types else "?")]
    return []


def _operand_orders(
    members: Sequence[Member], graphs: Mapping[str, _Graph]
) -> Iterator[Draft]:
    """Families of the same graph."""
    serials = {member.name: graphs[member.name].serial() for member in members}
    for group in partition(members, lambda member: serials[member.name][0]):
        first = group[0]
        order = serials[group[0].name][1]
        lines = [
            _order_line(
                member, order=serials[member.name][1], first=first, expected=order
            )
            for member in group[1:]
        ]
        yield "operand-order", group, lines


def _order_line(
    member: Member, order: list[int], first: Member, expected: list[int]
) -> str:
    """Return the line of a member whose operands have another order.

    `expected`, `order`: the sources of the first member and of this one, as the walk
    through their one graph meets them.
    """
    arguments = len(first.arguments)
    places = sorted(
        (first_place, place)
        for first_place, place in zip(expected, order, strict=True)
        if first_place < arguments
    )
    if all(first_place == place for first_place, place in places):
        return _line(f"@{member.name}", ["operands or operations in another order"])
    return _line(
        f"@{member.name}",
        [f"arguments in another order: {' '.join(str(place) for _, place in places)}"],
    )


def _extra_operations(
    members: Sequence[Member], graphs: Mapping[str, _Graph]
) -> Iterator[Draft]:
    """Yield families that differ in one operation.

    One executable and those that are the same without one operation, which one of its
    operands feeds.
    """
    by_words = defaultdict[Hashable, list[Member]](list)
    larger = defaultdict[str, dict[str, str]](dict)
    for member in members:
        by_words[frozenset(graphs[member.name].words.items())].append(member)
    for member in members:
        graph = graphs[member.name]
        candidates = (
            (smaller, source, op, operand)
            for source, op, operands, computed in graph.units
            for smaller in by_words.get(frozenset((graph.words - computed).items()), ())
            for operand in operands
        )
        for smaller, source, op, operand in islice(candidates, _ATTEMPTS):
            if (
                smaller is not member
                and graph.serial({source: operand})[0]
                == graphs[smaller.name].serial()[0]
            ):
                line = f"@{member.name} has one more {op.name} ({op.operands[0].type})"
                larger[smaller.name].setdefault(
                    member.name, _short(line, _LINE_CHARACTERS)
                )
    placed = set[str]()
    for name, lines in sorted(larger.items(), key=lambda item: -len(item[1])):
        free = {
            member_name: line
            for member_name, line in lines.items()
            if member_name not in placed
        }
        if name not in placed and free:
            placed |= {name, *free}
            yield (
                "extra-operation",
                [member for member in members if member.name in (name, *free)],
                list(free.values()),
            )


def _different_fusions(
    members: Sequence[Member], graphs: Mapping[str, _Graph]
) -> Iterator[Draft]:
    """Yield families of the same costliest operation that differ in the others."""
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
                lines.append(_line(label, [text]))
            yield "different-fusion", group, lines


def _extra_text(extra: Counter[str]) -> str:
    """Return the operations that a function has beyond those of its family."""
    ranked = sorted(extra.items(), key=lambda item: (-item[1], item[0]))
    parts = [
        f"{count} {name}" if count > 1 else name
        for name, count in ranked[:_NAMES_SHOWN]
    ]
    if len(ranked) > _NAMES_SHOWN:
        parts.append(f"… ({extra.total()} operations)")
    if not parts:
        return "nothing else"
    return "+ " + ", ".join(parts)


def _root(graph: _Graph) -> tuple[str, Words] | None:
    """Return the costliest operation as text without names, and what it computes.

    None where all is elementwise.
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


def _short(text: str, characters: int) -> str:
    """At most so many characters, none of them a control character."""
    clean = "".join(
        letter if letter.isprintable() else "?" for letter in text[: characters + 1]
    )
    if len(clean) <= characters:
        return clean
    return clean[: characters - 1] + "…"


def _line(label: str, values: Sequence[str], total: int = 0) -> str:
    """`label: a, b, … (N values)`: different values in order, as many as fit.

    `total` where cutting made some equal.
    """
    distinct = list(dict.fromkeys(values))
    total = max(total, len(distinct))
    text = label
    for count in range(min(len(distinct), _VALUES_SHOWN), 0, -1):
        text = (
            f"{label}:"
            f" {', '.join(distinct[:count])}{f', … ({total} values)' if count < total else ''}"
        )
        if len(text) <= _LINE_CHARACTERS:
            break
    return _short(text, _LINE_CHARACTERS)
