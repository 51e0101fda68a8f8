"""Executables that are alike: what they must have in common, which families they are, and how they become one.

An executable is read in the order of its text. What is always compared are its rows: operations, their attributes,
types without static dimensions, and which values they use, by number. What may differ stands in slots: values of
constants, where they are used, static offsets, static dimensions. Two executables with equal rows have as many slots of
the same kinds.

Executables of one structure are one family, whatever of their constants, offsets and static shapes varies. Others may
be the same but for the order of operands, or but for one operation more, or be fused around the same costliest
operation. An executable is in one family at most.

To fold a group the first of it takes what varies as operands, and all sites launch that one. Static dimensions and
offsets that vary become dynamic: in types, in operands of operations, in the workload. The compiler itself splits what
is wider than 32 bits, and casts floats, for targets that take neither.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from math import prod
from typing import Any, NamedTuple

from .ir_kinds import KINDS, PLAIN, collect, kinds_of, name_of

EXECUTABLE, EXPORT, FUNCTION, CONSTANT = "flow.executable", "flow.executable.export", "func.func", "arith.constant"
DYNAMIC = -(1 << 63)  # ShapedType::kDynamic
SHAPE = re.compile(r"\b(tensor|vector|memref)<((?:(?:[0-9]+|\?)x)+)")
_NAMES = frozenset({"sym_name", "function_ref", "function_type"})
"""Attributes that are names of the executable, or follow from what else is compared."""
_ARRAYS = {
    **dict.fromkeys(("static_offsets", "static_strides"), "offset"),
    **dict.fromkeys(("static_sizes", "static_output_shape", "static_low", "static_high"), "dimension"),
}
"""Static arrays of an operation → the kind of their slots."""
_SCALAR_USERS = ("arith.", "math.", "complex.", "linalg.", "iree_linalg_ext.", "tensor.extract", "tensor.splat")
"""Operations whose constant operands are values of the computation; those of all others may be shapes."""
LEVELS = {
    "identical": frozenset[str](),
    "constants": frozenset({"constant"}),
    "offsets": frozenset({"constant", "offset"}),
    "static-shapes": frozenset({"constant", "offset", "dimension"}),
}
"""What may differ and still be folded: level → kinds of slots, each level with those of the one before."""


class Slot(NamedTuple):
    """One thing that may differ."""

    # `constant`, `offset`, `dimension`; what no operand can take the place of is `fixed`, a constant that is a shape,
    # or `type`, the type of a constant that has dimensions
    kind: str
    value: str
    op: Any  # the user of the constant, the operation with the array, or the maker of the value whose type it is
    place: Any  # which operand, which (array, entry), or which (value, position of the dimension)
    constant: Any = None  # the operation of the constant; None for the other kinds


@dataclass(frozen=True)
class Member:
    """One executable that could be folded."""

    name: str
    entry: str
    # executable, export, function: its operations; there is one export and one function of one block
    executable: Any
    export: Any
    function: Any
    rows: tuple[Any, ...]
    # slots, function_slots: all, and those of the function: the export is what the host does for it
    slots: tuple[Slot, ...]
    # equal for executables whose functions differ in slots alone, and so have as many of the same kinds
    structure: tuple[Any, ...]
    function_slots: tuple[Slot, ...]

    def key(self, free: frozenset[str]) -> tuple[Any, ...]:
        """Equal for executables that differ in slots of these kinds, and in nothing else."""
        return self.rows, tuple(None if slot.kind in free else slot.value for slot in self.slots)

    @property
    def arguments(self) -> list[Any]:
        """What the function takes."""
        return list(self.function.regions[0].blocks[0].arguments)


class Unfit(Exception):
    """An executable, or a group of them, that cannot be folded: why, in one line."""


def member_of(ir: Any, executable: Any) -> Member:
    """Read an executable; raises Unfit for one of another form than fusion gives."""
    exports, functions = collect(ir, executable, (EXPORT,)), collect(ir, executable, (FUNCTION,))
    if len(exports) != 1 or len(functions) != 1 or len(list(functions[0].regions[0].blocks)) != 1:
        raise Unfit("it is not one function of one block")
    reading = _Reading()
    reading.visit(executable)
    rows, slots, (row, slot) = tuple(reading.rows), tuple(reading.slots), reading.begin
    entry = name_of(exports[0])
    return Member(
        name_of(executable), entry, executable, exports[0], functions[0], rows, slots, rows[row:], slots[slot:]
    )


def read(ir: Any, module: Any) -> tuple[dict[str, Member], dict[str, str]]:
    """The executables by name that have the form that fusion gives, and why the others have not."""
    members, unfit = dict[str, Member](), dict[str, str]()
    for op in collect(ir, module, (EXECUTABLE,)):
        try:
            members[name_of(op)] = member_of(ir, op)
        except Unfit as error:
            unfit[name_of(op)] = str(error)
    return members, unfit


def partition(members: Iterable[Member], key: Callable[[Member], Any]) -> list[list[Member]]:
    """The groups of two and more that have one key, in the program's order."""
    by_key: dict[Any, list[Member]] = {}
    for member in members:
        by_key.setdefault(key(member), []).append(member)
    return [group for group in by_key.values() if len(group) > 1]


class _Reading:
    """Rows and slots of one executable, as far as it was read."""

    def __init__(self) -> None:
        self.rows, self.slots, self.begin = list[Any](), list[Slot](), (0, 0)
        self._numbers, self._constants = dict[Any, int](), dict[Any, Any]()
        self._is_counting = (
            False  # inside of the export, which counts workgroups: no operand of the function reaches it
        )

    def visit(self, op: Any) -> None:
        """An operation and all inside of it. Constants are told where they are used."""
        if op.name == CONSTANT:
            self._constants[op.results[0]] = op
            return
        if op.name in (EXPORT, FUNCTION):
            self._is_counting = op.name == EXPORT
        if op.name == FUNCTION:  # isolated: nothing of the export reaches it
            self.begin, self._numbers, self._constants = (len(self.rows), len(self.slots)), {}, {}
        self.rows.append((op.name, *self._attributes(op)))
        self.rows.append(tuple(self._operand(op, at, value) for at, value in enumerate(op.operands)))
        for result in op.results:
            self._value(op, result)
        for region in op.regions:
            for block in region.blocks:
                self.rows.append("block")
                for argument in block.arguments:
                    self._value(op, argument)
                for one in block.operations:
                    self.visit(one.operation)
        self.rows.append("end")

    def _attributes(self, op: Any) -> Iterator[tuple[str, str]]:
        """Name and text of each attribute; of an array without its static entries, which are slots."""
        for name in attributes_of(op):
            if name in _ARRAYS:
                values = list(op.attributes[name])
                for at, value in enumerate(values):
                    if value != DYNAMIC:
                        self.slots.append(Slot(_ARRAYS[name], str(value), op, (name, at)))
                yield name, ",".join("?" if value == DYNAMIC else "_" for value in values)
            elif name not in _NAMES:
                yield name, str(op.attributes[name])

    def _operand(self, op: Any, at: int, value: Any) -> Any:
        constant = self._constants.get(value)
        if constant is None:
            return self._numbers[value]
        text = str(value.type)
        type_ = _erased(text)
        if type_ != text:
            self.slots.append(Slot("type", text, op, at, constant))
        fits = op.name.startswith(_SCALAR_USERS) and op.name != "tensor.extract_slice" and not self._is_counting
        self.slots.append(Slot("constant" if fits else "fixed", str(constant.attributes["value"]), op, at, constant))
        return "constant", type_

    def _value(self, op: Any, value: Any) -> None:
        """A value gets its number; static dimensions of its type are slots."""
        self._numbers[value] = len(self._numbers)
        text = str(value.type)
        self.rows.append(_erased(text))
        if self.rows[-1] != text:
            for at, size in enumerate(sizes_in(text)):
                if size != "?":
                    self.slots.append(Slot("dimension", size, op, (value, at)))


def attributes_of(op: Any) -> list[str]:
    """The names of an operation's attributes: older releases list names, newer ones pairs."""
    return [one if isinstance(one, str) else one.name for one in op.attributes]


def sizes_in(text: str) -> list[str]:
    """The dimensions in the text of a type, as they are written; none where it has no shape."""
    shape = SHAPE.search(text)
    return shape[2][:-1].split("x") if shape else []


def with_sizes(text: str, sizes: Iterable[str]) -> str:
    """The text of a type that has a shape, with other dimensions."""
    shape = SHAPE.search(text)
    return f"{text[: shape.start(2)]}{'x'.join(sizes)}x{text[shape.end(2) :]}" if shape else text


def _erased(text: str) -> str:
    """A type without its static dimensions; as it is where it has several shapes."""
    shape = SHAPE.search(text)
    if shape is None or SHAPE.search(text, shape.end()):
        return text
    return with_sizes(text, ("?" if size == "?" else "_" for size in sizes_in(text)))


# Families of executables that deduplication left behind.

FAMILY_KINDS = ("constants", "static-shapes", "offsets", "operand-order", "extra-operation", "different-fusion")
"""`bot.core.program.FAMILY_KINDS`."""
IDENTICAL = "nothing: their functions are identical"  # `bot.core.program.IDENTICAL`
_VALUES_SHOWN, _LINES_SHOWN, _LINE_CHARACTERS, _VALUE_CHARACTERS, _NAMES_SHOWN = 8, 4, 160, 40, 6
_FOLLOWING = ("static_sizes", "static_output_shape")
"""Arrays that the types of operands and results say, too."""
_CONSTANT_OPERATIONS = frozenset({"arith.constant", "complex.constant", "flow.tensor.constant"})
_ADDRESSING = frozenset({"arith.index_cast", "arith.index_castui"})
_UNNAMED = frozenset({"linalg.generic", "linalg.fill", "linalg.yield", "linalg.index", "iree_linalg_ext.yield"})
_ORDERED = frozenset({"indexing_maps", "operandSegmentSizes", "function_type", "sym_name"})
_COSTLY = KINDS[: KINDS.index("gather")]
_ATTEMPTS = 32  # times that an operation is left out of one executable: each costs as much as it has operations
_VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?")

Draft = tuple[str, Sequence[Member], list[str]]
Words = Counter[tuple[str, str]]  # name and element type of operations that compute


def families(ir: Any, members: Collection[Member]) -> list[dict[str, Any]]:
    """Each family as `{kind, members, varying}`, by kind, larger ones first."""
    drafts = [_of_one_structure(group) for group in partition(members, lambda one: one.structure)]
    rest = _outside(members, drafts)
    forms: dict[Hashable, int] = {}
    graphs = {member.name: _Graph(ir, member, forms) for member in rest}
    for search in (_operand_orders, _extra_operations, _different_fusions):
        rest = _outside(rest, drafts)
        drafts += search(rest, graphs)
    places = {member.name: place for place, member in enumerate(members)}
    drafts.sort(key=lambda one: (FAMILY_KINDS.index(one[0]), -len(one[1]), places[one[1][0].name]))
    rows = []
    for kind, group, lines in drafts:
        more = len(lines) - _LINES_SHOWN
        varying = [*lines[:_LINES_SHOWN], *([f"… and {more} more"] if more > 0 else [])]
        rows.append({"kind": kind, "members": [member.name for member in group], "varying": varying})
    return rows


def _outside(members: Collection[Member], drafts: Sequence[Draft]) -> list[Member]:
    taken = {member.name for _, group, _ in drafts for member in group}
    return [member for member in members if member.name not in taken]


# Executables of one structure: what varies of constants, offsets and static shapes.


def _of_one_structure(group: Sequence[Member]) -> Draft:
    """The loosest kind that varies, and a line for each thing that does, in turns."""
    columns = [
        slots
        for slots in zip(*(member.function_slots for member in group), strict=True)
        if len({slot.value for slot in slots}) > 1
    ]
    kinds = {slots[0].kind for slots in columns}
    if not kinds:
        return "constants", group, [IDENTICAL]
    is_shaped = bool(kinds & {"dimension", "fixed", "type"})
    # values → what has them: what repeats how another varies, such as shapes inside an argument's, is left out
    shapes, arrays, constants = (dict[tuple[str, ...], str]() for _ in range(3))
    for slots in columns:
        first, values = slots[0], tuple(map(_text_of, slots))
        if first.constant is not None and first.kind != "type":  # the constant's value says its type
            type_ = str(first.constant.results[0].type)
            lines = shapes if is_shaped and type_ == "index" else constants
            lines.setdefault(values, f"{type_} constant of {first.op.name}")
        elif first.constant is None and not isinstance(first.place[0], str):
            shapes.setdefault(values, _owner(first))
        elif first.constant is None and first.place[0] not in _FOLLOWING:
            arrays.setdefault(values, _owner(first))
    kind = "static-shapes" if is_shaped else "offsets" if "offset" in kinds else "constants"
    by_kind = [
        [_line(label, [_short(value, _VALUE_CHARACTERS) for value in values], len(set(values)))
         for values, label in lines.items()]
        for lines in ((shapes, constants, arrays) if is_shaped else (arrays, constants))
    ]  # fmt: skip
    return kind, group, [line for line in dict.fromkeys(chain.from_iterable(zip_longest(*by_kind))) if line]


def _text_of(slot: Slot) -> str:
    """What stands there: the constant's value without its type, the whole array, or the whole shape."""
    if slot.constant is not None:
        return slot.value.removesuffix(f" : {slot.constant.results[0].type}")
    owner = slot.place[0]
    if isinstance(owner, str):
        return f"[{', '.join('?' if value == DYNAMIC else str(value) for value in slot.op.attributes[owner])}]"
    return "x".join(sizes_in(str(owner.type))) or slot.value


def _owner(slot: Slot) -> str:
    if isinstance(slot.place[0], str):
        return f"{slot.place[0]} of {slot.op.name}"
    number = getattr(slot.place[0], "arg_number", None)
    if number is None:
        return f"result of {slot.op.name}"
    return f"argument {number}" if slot.op.name == FUNCTION else f"block argument {number} of {slot.op.name}"


# The others: functions as what they store, and of what that is made.


class _Graph:
    """A function without names and places: its values by what they are made of, whatever the order of operands.

    Attributes:
        sources: form and operands of each value and each operation without results, operands before their users; an
            operation with a body has what the body gives as its operands.
        effects: the operations at the top that have no results.
        units: those that compute, as (source, its operation, its own operands, names and types of all that it does).
        words: what all operations compute.
    """

    def __init__(self, ir: Any, member: Member, forms: dict[Hashable, int]) -> None:
        self.ir, self.member, self._forms = ir, member, forms
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
        """Sources of the operations without results, and what all operations compute."""
        effects, words = list[int](), Words()
        for op in (view.operation for view in block.operations):
            if op.name in _CONSTANT_OPERATIONS:
                self._places[op.results[0]] = self._add(("constant", str(op.attributes["value"])), ())
                continue
            operands = tuple(self._places[value] for value in op.operands)
            maps, below = self._enter(op, operands)
            inside, own = list[int](), Words()
            for one in below:
                stores, computed = self._block(one)
                inside += stores
                own += computed
            own += Words(_word(op))
            names = sorted(set(attributes_of(op)) - _ORDERED)
            attributes = tuple((name, str(op.attributes[name])) for name in names)
            form = (op.name, attributes, maps, *(str(result.type) for result in op.results))
            made_of = (*(() if maps else operands), *inside)
            for at, result in enumerate(op.results):
                self._places[result] = self._add((*form, at), made_of)
            if not op.results:
                effects.append(self._add(form, made_of))
            elif own and len(op.results) == 1:
                self.units.append((len(self.sources) - 1, op, operands, own))
            words += own
        return effects, words

    def _enter(self, op: Any, operands: tuple[int, ...]) -> tuple[tuple[str, ...], list[Any]]:
        """The maps of the results of a structured operation, and all blocks, whose arguments are sources from now on.

        Where there is one argument to each operand, as in linalg, it is that operand, read in the order of its map.
        """
        blocks = [block for region in op.regions for block in region.blocks]
        arguments = [argument for block in blocks for argument in block.arguments]
        is_structured = "." in op.name and 0 < len(arguments) == len(operands)
        has_maps = is_structured and "indexing_maps" in op.attributes
        maps = [str(one) for one in op.attributes["indexing_maps"]] if has_maps else [""] * len(operands)
        for at, argument in enumerate(arguments):
            form = ("in", maps[at] if is_structured else at, str(argument.type))
            used = (operands[at],) if is_structured else ()
            self._places[argument] = self._add(form, used)
        return tuple(maps[-len(op.results) :]) if is_structured else (), blocks

    def serial(self, alias: Mapping[int, int] | None = None) -> tuple[tuple[Any, ...], list[int]]:
        """The graph from what is stored back to the arguments, and its sources in the order in which it comes to them.

        Equal ones are the same graph but for the order of operands; `alias`: source → that which takes its place.
        """
        alias, terms = alias or {}, list[int]()
        for form, operands in self.sources:
            terms.append(self._form((form, *sorted(terms[alias.get(one, one)] for one in operands))))
        order, row, stack = dict[int, int](), list[Any](), sorted(self.effects, key=terms.__getitem__)
        while stack:
            at = stack.pop()
            if at in order:
                row.append(order[at])
                continue
            order[at] = len(order)
            form, operands = self.sources[at]
            row.append((form, len(operands)))
            stack += sorted((alias.get(one, one) for one in operands), key=terms.__getitem__)
        return tuple(row), list(order)


def _word(op: Any) -> list[tuple[str, str]]:
    """Name and element type of an operation that computes, and not an address; nothing of all others."""
    types = [str(value.type) for value in (*op.operands, *op.results)]
    is_named = op.name.startswith(("linalg.", "iree_linalg_ext.")) and op.name not in _UNNAMED
    is_scalar = op.name.startswith(("arith.", "math.", "complex.")) and op.name not in _ADDRESSING
    return [(op.name, types[0] if types else "?")] if is_named or (is_scalar and types[:1] != ["index"]) else []


def _operand_orders(members: Sequence[Member], graphs: Mapping[str, _Graph]) -> Iterator[Draft]:
    """Families of the same graph."""
    serials = {member.name: graphs[member.name].serial() for member in members}
    for group in partition(members, lambda one: serials[one.name][0]):
        first, order = group[0], serials[group[0].name][1]
        lines = [_order_line(one, serials[one.name][1], first, order) for one in group[1:]]
        yield "operand-order", group, lines


def _order_line(one: Member, order: list[int], first: Member, expected: list[int]) -> str:
    """`expected`, `order`: the sources of the first and of this one, as the walk through their one graph meets them."""
    arguments = len(first.arguments)
    places = sorted((theirs, mine) for theirs, mine in zip(expected, order, strict=True) if theirs < arguments)
    if all(theirs == mine for theirs, mine in places):
        return _line(f"@{one.name}", ["operands or operations in another order"])
    return _line(f"@{one.name}", [f"arguments in another order: {' '.join(str(mine) for _, mine in places)}"])


def _extra_operations(members: Sequence[Member], graphs: Mapping[str, _Graph]) -> Iterator[Draft]:
    """Families of one executable and those that are the same without one operation, fed by one of its operands."""
    alike, larger = defaultdict[Hashable, list[Member]](list), defaultdict[str, dict[str, str]](dict)
    for member in members:
        alike[frozenset(graphs[member.name].words.items())].append(member)
    for member in members:
        graph = graphs[member.name]
        candidates = (
            (smaller, source, op, operand)
            for source, op, operands, words in graph.units
            for smaller in alike.get(frozenset((graph.words - words).items()), ())
            for operand in operands
        )
        for smaller, source, op, operand in islice(candidates, _ATTEMPTS):
            if smaller is not member and graph.serial({source: operand})[0] == graphs[smaller.name].serial()[0]:
                line = f"@{member.name} has one more {op.name} ({op.operands[0].type})"
                larger[smaller.name].setdefault(member.name, _short(line, _LINE_CHARACTERS))
    taken = set[str]()
    for name, lines in sorted(larger.items(), key=lambda item: -len(item[1])):
        free = {one: line for one, line in lines.items() if one not in taken}
        if name not in taken and free:
            taken |= {name, *free}
            yield "extra-operation", [one for one in members if one.name in (name, *free)], list(free.values())


def _different_fusions(members: Sequence[Member], graphs: Mapping[str, _Graph]) -> Iterator[Draft]:
    """Families around the same costliest operation, where what else they do is not the same."""
    roots = {member.name: root for member in members if (root := _root(graphs[member.name])) is not None}
    for group in partition([one for one in members if one.name in roots], lambda one: roots[one.name][0]):
        others = [
            Counter(name for name, _ in (graphs[one.name].words - roots[one.name][1]).elements()) for one in group
        ]
        common = others[0].copy()
        for one in others[1:]:
            common &= one
        by_text: dict[str, list[str]] = {}
        for member, one in zip(group, others, strict=True):
            ranked = sorted((one - common).items(), key=lambda item: (-item[1], item[0]))
            parts = [f"{count} {name}" if count > 1 else name for name, count in ranked[:_NAMES_SHOWN]]
            parts += [f"… ({(one - common).total()} operations)"] if len(ranked) > _NAMES_SHOWN else []
            by_text.setdefault("+ " + ", ".join(parts) if parts else "nothing else", []).append(member.name)
        if len(by_text) > 1:
            names = (f"@{who[0]}" + (f" and {len(who) - 1} more" if len(who) > 1 else "") for who in by_text.values())
            yield "different-fusion", group, [_line(name, [text]) for name, text in zip(names, by_text, strict=True)]


def _root(graph: _Graph) -> tuple[str, Words] | None:
    """The costliest operation as text without names, and what it computes; None where all is elementwise."""
    best: tuple[tuple[int, int, int], Any, Words] | None = None
    for source, op, _, words in graph.units:
        kinds = kinds_of(graph.ir, op) if op.name.startswith(("linalg.", "iree_linalg_ext.")) else set()
        if ranks := [_COSTLY.index(kind) for kind in kinds if kind in _COSTLY]:
            shapes = (sizes_in(str(value.type)) for value in op.operands)
            elements = sum(prod(int(size) for size in sizes if size != "?") for sizes in shapes if sizes)
            key = (min(ranks), -elements, source)
            if best is None or key < best[0]:
                best = key, op, words
    if best is None:
        return None
    numbers: dict[str, int] = {}
    text = best[1].get_asm(print_generic_op_form=True, **PLAIN)
    return _VALUE.sub(lambda name: f"%{numbers.setdefault(name[0], len(numbers))}", text), best[2]


def _short(text: str, characters: int) -> str:
    """At most so many characters, none of them a control character."""
    clean = "".join(letter if letter.isprintable() else "?" for letter in text[: characters + 1])
    return clean if len(clean) <= characters else clean[: characters - 1] + "…"


def _line(label: str, values: Sequence[str], total: int = 0) -> str:
    """`label: a, b, … (N values)`: different values in order, as many as fit; `total` where cutting made some equal."""
    distinct = list(dict.fromkeys(values))
    total = max(total, len(distinct))
    text = label
    for shown in range(min(len(distinct), _VALUES_SHOWN), 0, -1):
        text = f"{label}: {', '.join(distinct[:shown])}{f', … ({total} values)' if shown < total else ''}"
        if len(text) <= _LINE_CHARACTERS:
            break
    return _short(text, _LINE_CHARACTERS)


# Folding.

Answer = dict[str, Any]
DISPATCH, _ORDINAL = "flow.dispatch", "iree_tensor_ext.dispatch.workload.ordinal"
_WORKLOAD, _ARGUMENTS, _DIMENSIONS = 0, 1, 2  # segments of the operands of a dispatch
_TENSOR_OF = "!iree_tensor_ext.dispatch.tensor<readonly:{}>"
_BOUND = re.compile(r"![\w.]+<\w+:(.+)>")
_LOAD, _TIE, _RESULT = "iree_tensor_ext.dispatch.tensor.load", "flow.dispatch.tie_shape", "result"
_COUNTS = ("workgroup_count_from_slice", "workgroup_count_from_dag_root")
_OFFSETS, _SIZES, _STRIDES = "static_offsets", "static_sizes", "static_strides"
_OPERATIONS: Mapping[str, tuple[int, Mapping[int, int | str]]] = {
    _TIE: (1, {1: 0}),
    "tensor.empty": (0, {0: _RESULT}),
    "tensor.expand_shape": (1, {1: "static_output_shape"}),
    "tensor.extract_slice": (1, {1: _OFFSETS, 2: _SIZES, 3: _STRIDES}),
    "tensor.insert_slice": (2, {2: _OFFSETS, 3: _SIZES, 4: _STRIDES}),
    "tensor.pad": (1, {1: "static_low", 2: "static_high"}),
    _LOAD: (1, {1: 0, 2: _OFFSETS, 3: _SIZES, 4: _STRIDES}),
    "iree_tensor_ext.dispatch.tensor.store": (2, {2: 1, 3: _OFFSETS, 4: _SIZES, 5: _STRIDES}),
}
"""Operations with operands for what is dynamic: operands before those where nothing says how many each segment has,
and segment → whose entries it has: a static array's, those of an operand's type, or those of its result's."""
_OF_ANY_SHAPE = ("linalg.", "iree_linalg_ext.", "arith.", "math.", "tensor.collapse_shape", "tensor.cast")
"""Operations that only their types say the shape of."""


def groups(ir: Any, module: Any) -> Answer:
    """Which executables could become one: the worker's answer to the request `groups`."""
    members, unfit = read(ir, module)
    every = list(members.values())
    return {
        "entries": {member.name: member.entry for member in every},
        "elements": {member.name: _elements(member) for member in every},
        "unfit": unfit,
        "groups": {
            level: [[member.name for member in group] for group in partition(every, lambda one: one.key(free))]  # noqa: B023 - called at once
            for level, free in LEVELS.items()
        },
    }


def _elements(member: Member) -> int:
    """How many the largest tensor has that the function takes or gives, dynamic dimensions counted as 1."""
    shapes = (sizes_in(str(argument.type)) for argument in member.arguments)
    return max((prod(int(size) for size in sizes if size != "?") for sizes in shapes if sizes), default=1)


def folded(ir: Any, module: Any, groups: Sequence[Sequence[str]]) -> Answer:
    """Make each group one, in place, and verify; raises ValueError with the operation that broke."""
    members, unfit = read(ir, module)
    results, left = list[Answer](), list[Answer]()
    for names in groups:
        try:
            if unknown := [name for name in names if name not in members]:
                raise Unfit(unfit.get(unknown[0], "the program has no such executable"))
            group = [members[name] for name in names]
            results.append({"members": names, "operands": _fold(ir, module, group)})
            members = {name: member for name, member in members.items() if name not in names}
            members[names[0]] = member_of(ir, group[0].executable)
        except Unfit as error:
            left.append({"members": names, "why": str(error)})
    if results:
        try:
            module.operation.verify()
        except ir.MLIRError as error:
            raise ValueError("; ".join(str(one.message) for one in error.error_diagnostics[:3])) from None
    return {"folded": results, "left": left}


def _fold(ir: Any, module: Any, group: Sequence[Member]) -> list[str]:
    """Make the executables of a group one; the types of the operands that its sites pass now.

    Raises Unfit, before anything was changed, where they are not of one key at some level: their slots would not match.
    """
    if len({member.name for member in group}) < max(2, len(group)):
        raise Unfit("they are not two executables or more, each named once")
    if len({member.key(LEVELS["static-shapes"]) for member in group}) > 1:
        raise Unfit("they differ in more than constants, offsets and static dimensions")
    sites = _sites(ir, module, group)
    with module.context, ir.Location.unknown(module.context):
        varying = _varying(ir, group)
        rewriting = _Rewriting(ir, group[0], varying)
        rewriting.check()
        rewriting.rewrite(argument_places(sites))
        for at, member in enumerate(group):
            for op in sites[member.name]:
                _rewrite_site(ir, op, group[0], varying, at)
    for member in group[1:]:
        member.executable.erase()
    _require_agreement(ir, module, group[0])
    return [str(one.type) for one in varying]


def _sites(ir: Any, module: Any, group: Sequence[Member]) -> Mapping[str, list[Any]]:
    """Member → its dispatch sites; raises Unfit where something else names a member."""
    sites: dict[str, list[Any]] = {member.name: [] for member in group}
    for op in collect(ir, module, (DISPATCH,)):
        names = [ir.SymbolRefAttr(entry).value[0] for entry in op.attributes["entry_points"]]
        if len(names) == 1 and names[0] in sites:
            sites[names[0]].append(op)
        elif not sites.keys().isdisjoint(names):
            raise Unfit("a site may launch one of several executables")
    return sites


def argument_places(sites: Mapping[str, Sequence[Any]]) -> int:
    """How many operands each site passes to the function; raises Unfit where they disagree."""
    counts = {list(op.attributes["operandSegmentSizes"])[_ARGUMENTS] for ops in sites.values() for op in ops}
    if len(counts) > 1:
        raise Unfit("its sites pass different numbers of operands")
    if not counts or not all(sites.values()):
        raise Unfit("an executable is launched nowhere")
    return int(counts.pop())


class Varying(NamedTuple):
    """Slots that vary in the same way, which one operand takes the place of."""

    type: Any
    slots: tuple[Slot, ...]  # of the representative
    attributes: tuple[Any, ...]  # the value that each member's site passes, as the attribute of a constant
    is_shape: bool


def _varying(ir: Any, group: Sequence[Member]) -> list[Varying]:
    """What varies in the group, each way of varying once."""
    ways: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for at, column in enumerate(zip(*(member.slots for member in group), strict=True)):
        # An index is taken without its type, so that a constant and a dimension can be told equal.
        values = tuple(str(slot.value).removesuffix(" : index") for slot in column)
        if len(set(values)) > 1:
            type_name = str(column[0].constant.results[0].type) if column[0].constant else "index"
            ways.setdefault((type_name, values), []).append(at)
    varying = []
    for (_, values), places in ways.items():
        slots = tuple(group[0].slots[at] for at in places)
        if slots[0].constant is None:
            type_ = ir.IndexType.get()
            attributes = tuple(ir.IntegerAttr.get(type_, int(value)) for value in values)
        else:
            type_ = slots[0].constant.results[0].type
            attributes = tuple(member.slots[places[0]].constant.attributes["value"] for member in group)
        if str(type_).startswith("tensor") and "?" in str(type_):
            raise Unfit("a constant of dynamic shape")
        varying.append(Varying(type_, slots, attributes, any(slot.kind == "dimension" for slot in slots)))
    return varying


class _Rewriting:
    """The first member of a group, becoming the one that is left."""

    def __init__(self, ir: Any, member: Member, varying: Sequence[Varying]) -> None:
        self._ir, self._member, self._varying, self._location = ir, member, varying, member.function.location
        counts = collect(ir, member.export, lambda name: name.endswith(_COUNTS))
        self._count: Any = counts[0] if counts else None
        # What takes the place of each dimension of a value, and of each entry of an operation's array.
        self._dims, self._sizes = dict[Any, dict[int, Any]](), dict[Any, list[str]]()
        self._entries: list[tuple[Any, str, int, Any]] = []

    def check(self) -> None:
        """Raises Unfit where something varies that cannot be made dynamic."""
        for slot in (slot for one in self._varying for slot in one.slots):
            if slot.kind == "fixed":
                raise Unfit(f"a constant that {slot.op.name} takes as a shape")
            if slot.constant is not None:
                continue
            owner, is_known = slot.place[0], slot.op.name in _OPERATIONS
            if isinstance(owner, str):
                if not is_known:
                    raise Unfit(f"{slot.op.name} has no operands for {owner}")
            elif any(owner == result for result in slot.op.results):
                if not is_known and not slot.op.name.startswith(_OF_ANY_SHAPE):
                    raise Unfit(f"{slot.op.name} of varying shape")
            elif slot.op != self._member.function:
                raise Unfit(f"{slot.op.name} of varying shape")
        if any(one.is_shape for one in self._varying) and self._count is None:
            raise Unfit("its number of workgroups is not counted from its shape")

    def rewrite(self, places: int) -> None:
        """Give the function its new arguments, behind the operands that sites pass, and use them."""
        block = self._member.function.regions[0].blocks[0]
        arguments, moved = self._arguments(block, places)
        first = next(iter(block.operations)).operation
        with self._ir.InsertionPoint(first):
            values = [self._value(one.type, argument) for one, argument in zip(self._varying, arguments, strict=True)]
        for one, value in zip(self._varying, values, strict=True):
            for slot in one.slots:
                if slot.constant is not None:
                    slot.op.operands[slot.place] = value
        for one, value in zip(self._varying, self._workload(first, values), strict=True):
            for slot in (slot for slot in one.slots if slot.constant is None):
                owner, at = slot.place
                if isinstance(owner, str):
                    self._entries.append((slot.op, owner, at, value))
                else:
                    owner = moved.get(owner, owner)
                    self._sizes.setdefault(owner, sizes_in(str(owner.type)))
                    self._dims.setdefault(owner, {})[at] = value
        for value, dims in self._dims.items():
            sizes = ("?" if at in dims else size for at, size in enumerate(self._sizes[value]))
            value.set_type(self._ir.Type.parse(with_sizes(str(value.type), sizes)))
        operations = collect(self._ir, self._member.function, _OPERATIONS)  # without the ties that are made now
        self._tie(first)
        for op in operations:
            self._remake(op)
        function_type = self._ir.FunctionType.get([argument.type for argument in block.arguments], [])
        self._member.function.attributes["function_type"] = self._ir.TypeAttr.get(function_type)

    def _arguments(self, block: Any, places: int) -> tuple[list[Any], dict[Any, Any]]:
        """The new arguments in order, and those behind them, where results go, made anew: there is no inserting."""
        behind = list(block.arguments)[places:]
        for one in self._varying:
            is_tensor = str(one.type).startswith("tensor<")
            block.add_argument(
                self._ir.Type.parse(_TENSOR_OF.format(one.type)) if is_tensor else one.type, self._location
            )
        moved = [block.add_argument(argument.type, self._location) for argument in behind]
        for old, argument in zip(behind, moved, strict=True):
            old.replace_all_uses_with(argument)
        for _ in behind:
            block.erase_argument(places)
        arguments, new = list(block.arguments)[places:], len(self._varying)
        return arguments[:new], dict(zip(behind, arguments[new:], strict=True))

    def _value(self, type_: Any, argument: Any) -> Any:
        """The value that the function uses: the argument, or all of the tensor that is passed."""
        if argument.type == type_:
            return argument
        sizes = list(type_.shape)
        arrays = {_OFFSETS: [0] * len(sizes), _SIZES: sizes, _STRIDES: [1] * len(sizes)}
        attributes = {name: self._ir.DenseI64ArrayAttr.get(values) for name, values in arrays.items()}
        attributes["operandSegmentSizes"] = self._ir.DenseI32ArrayAttr.get([1, 0, 0, 0, 0])
        return self._make(_LOAD, [type_], [argument], attributes, self._location).results[0]

    def _workload(self, first: Any, values: Sequence[Any]) -> list[Any]:
        """The values, those of dimensions as the workload that the number of workgroups is counted from."""
        shapes = [at for at, one in enumerate(self._varying) if one.is_shape]
        operands, count, index = list(values), self._count, self._ir.IndexType.get()
        if not shapes:
            return operands
        block, location = count.operation.block, count.location
        known = len(list(block.arguments))
        passed = [block.add_argument(index, location) for _ in shapes]
        with self._ir.InsertionPoint(count):
            self._replace(count, [*count.operands, *passed], {})
        with self._ir.InsertionPoint(first):
            for number, at in enumerate(shapes):
                ordinal = {"ordinal": self._ir.IntegerAttr.get(index, known + number)}
                operands[at] = self._make(_ORDINAL, [index], [values[at]], ordinal, location).results[0]
        return operands

    def _tie(self, first: Any) -> None:
        """Say of the function's arguments what their dimensions are, where nothing says it yet."""
        for argument in self._member.arguments:
            dims = self._dims.get(argument)
            if not dims or any(use.owner.operation.name == _TIE for use in argument.uses):
                continue
            merged = _merged([], self._sizes[argument], dims)
            with self._ir.InsertionPoint(first):
                tied = self._make(_TIE, [argument.type], [argument, *merged], {}, first.location)
            self._dims[tied.results[0]], self._sizes[tied.results[0]] = dims, self._sizes[argument]
            argument.replace_all_uses_except(tied.results[0], tied)

    def _remake(self, op: Any) -> None:
        """Give an operation the operands more that it needs now; it stays as it is where it needs none."""
        leading, whose = _OPERATIONS[op.name]
        operands, attributes, at, is_changed = list(op.operands), dict[str, Any](), 0, False
        parts = [operands[:leading], operands[leading:]] if leading else [operands]
        if "operandSegmentSizes" in op.attributes:
            parts = []
            for size in op.attributes["operandSegmentSizes"]:
                parts.append(operands[at : at + size])
                at += size
        for segment, owner in whose.items():
            if isinstance(owner, str) and owner != _RESULT:
                # Operations are equal where they are one, but have no such hash.
                new = {at: value for of, name, at, value in self._entries if name == owner and of == op}
                entries = list(op.attributes[owner])
                values = [DYNAMIC if at in new else entry for at, entry in enumerate(entries)]
                attributes[owner] = self._ir.DenseI64ArrayAttr.get(values)
            else:
                value = op.results[0] if owner == _RESULT else op.operands[owner]
                new, entries = self._dims.get(value, {}), self._sizes.get(value, [])
            if new:
                parts[segment], is_changed = _merged(parts[segment], entries, new), True
        if not is_changed:
            return
        if "operandSegmentSizes" in op.attributes:
            attributes["operandSegmentSizes"] = self._ir.DenseI32ArrayAttr.get([len(part) for part in parts])
        with self._ir.InsertionPoint(op):
            self._replace(op, [operand for part in parts for operand in part], attributes)

    def _replace(self, op: Any, operands: Sequence[Any], changed: Mapping[str, Any]) -> None:
        """The operation with other operands; what is inside of it moves."""
        attributes = {**{name: op.attributes[name] for name in attributes_of(op)}, **changed}
        types = [result.type for result in op.results]
        replacement = self._make(op.name, types, operands, attributes, op.location, len(list(op.regions)))
        for old, new in zip(op.regions, replacement.regions, strict=True):
            for block in list(old.blocks):
                block.append_to(new)
        for before, after in zip(op.results, replacement.results, strict=True):
            if before in self._dims:
                self._dims[after], self._sizes[after] = self._dims[before], self._sizes[before]
            before.replace_all_uses_with(after)
        op.erase()

    def _make(
        self, name: str, types: Sequence[Any], operands: Sequence[Any], attributes: Any, location: Any, regions: int = 0
    ) -> Any:
        parts = {"results": types, "operands": list(operands), "attributes": attributes, "regions": regions}
        return self._ir.Operation.create(name, **parts, loc=location)


def _merged(known: Sequence[Any], entries: Sequence[Any], new: Mapping[int, Any]) -> list[Any]:
    """The operands of the dynamic entries in their order: those that were dynamic, and those that become it."""
    rest, operands = list(known), []
    for at, entry in enumerate(entries):
        if at in new:
            operands.append(new[at])
        elif entry in ("?", DYNAMIC):
            operands.append(rest.pop(0))
    return operands


def _rewrite_site(ir: Any, op: Any, member: Member, varying: Sequence[Varying], at: int) -> None:
    """Launch the one that is left, with what the member had inside."""
    segments, operands, make = list(op.attributes["operandSegmentSizes"]), list(op.operands), ir.Operation.create
    with ir.InsertionPoint(op):
        constants = [one.attributes[at] for one in varying]
        passed = [
            make("arith.constant", results=[value.type], attributes={"value": value}, loc=op.location).results[0]
            for value in constants
        ]
        workload = [value for one, value in zip(varying, passed, strict=True) if one.is_shape]
        end = segments[_WORKLOAD] + segments[_ARGUMENTS]
        operands[end:end] = passed
        operands[segments[_WORKLOAD] : segments[_WORKLOAD]] = workload
        segments[_WORKLOAD] += len(workload)
        segments[_ARGUMENTS] += len(passed)
        attributes = {name: op.attributes[name] for name in attributes_of(op)}
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(segments)
        attributes["entry_points"] = ir.ArrayAttr.get([ir.SymbolRefAttr.get([member.name, member.entry])])
        types = [result.type for result in op.results]
        site = make(DISPATCH, results=types, operands=operands, attributes=attributes, loc=op.location)
    for old, result in zip(op.results, site.results, strict=True):
        old.replace_all_uses_with(result)
    op.erase()


def _require_agreement(ir: Any, module: Any, member: Member) -> None:
    """Raises ValueError where a site does not pass what the function takes, which no verifier looks at.

    An argument may be given a value of its type: a tensor is bound, its size may be of any.
    """
    taken = [str(argument.type) for argument in member.arguments]
    for op in _sites(ir, module, [member])[member.name]:
        start, count = list(op.attributes["operandSegmentSizes"])[:_DIMENSIONS]
        for at, value in enumerate(list(op.operands)[start : start + count]):
            bound, passed = _BOUND.fullmatch(taken[at]), str(value.type)
            pattern = re.escape(bound[1] if bound else taken[at]).replace(r"\?", r"(?:[0-9]+|\?)")
            if not re.fullmatch(pattern, passed):
                raise ValueError(f"'{DISPATCH}' op passes {passed} as operand {at} of @{member.entry}, a {taken[at]}")
