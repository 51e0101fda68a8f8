"""What executables must have in common to become one, or to be one family, and what may differ: their slots.

An executable is read in the order of its text. What is always compared are its rows: operations, their attributes,
types without static dimensions, and which values they use, by number. What may differ stands in slots: values of
constants, where they are used, static offsets, static dimensions. Two executables with equal rows have as many slots of
the same kinds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

EXECUTABLE, EXPORT, FUNCTION = "flow.executable", "flow.executable.export", "func.func"
CONSTANT = "arith.constant"
DYNAMIC = -(1 << 63)
"""ShapedType::kDynamic."""
SHAPE = re.compile(r"\b(tensor|vector|memref)<((?:(?:[0-9]+|\?)x)+)")
_NAMES = frozenset({"sym_name", "function_ref", "function_type"})
"""Attributes that are names of the executable, or follow from what else is compared."""
_ARRAYS = {
    "static_offsets": "offset",
    "static_sizes": "dimension",
    "static_strides": "offset",
    "static_output_shape": "dimension",
    "static_low": "dimension",
    "static_high": "dimension",
}
"""Static arrays of an operation → the kind of their slots."""
_SCALAR_USERS = ("arith.", "math.", "complex.", "linalg.", "iree_linalg_ext.", "tensor.extract", "tensor.splat")
"""Operations whose constant operands are values of the computation; those of all others may be shapes."""
_SHAPE_USERS = ("tensor.extract_slice",)
LEVELS = {
    "identical": frozenset[str](),
    "constants": frozenset({"constant"}),
    "offsets": frozenset({"constant", "offset"}),
    "static-shapes": frozenset({"constant", "offset", "dimension"}),
}
"""What may differ and still be folded: level → kinds of slots, each level with those of the one before."""


@dataclass(frozen=True)
class Slot:
    """One thing that may differ.

    Attributes:
        kind: `constant`, `offset`, `dimension`; what no operand can take the place of is `fixed`, a constant that is
            a shape, or `type`, the type of a constant that has dimensions.
        op: the user of the constant, the operation with the array, or the maker of the value whose type it is.
        place: which operand, which (array, entry), or which (value, position of the dimension).
        constant: the operation of the constant; None for the other kinds.
    """

    kind: str
    value: str
    op: Any
    place: Any
    constant: Any = None


@dataclass(frozen=True)
class Member:
    """One executable that could be folded.

    Attributes:
        executable, export, function: its operations; there is one export and one function of one block.
        begin: where the function's rows and slots begin, behind those of the export.
    """

    name: str
    entry: str
    executable: Any
    export: Any
    function: Any
    rows: tuple[Any, ...]
    slots: tuple[Slot, ...]
    begin: tuple[int, int]

    def key(self, free: frozenset[str]) -> tuple[Any, ...]:
        """Equal for executables that differ in slots of these kinds, and in nothing else."""
        return self.rows, tuple(None if slot.kind in free else slot.value for slot in self.slots)

    @property
    def function_slots(self) -> tuple[Slot, ...]:
        """Those of the function: the export is what the host does for it."""
        return self.slots[self.begin[1] :]

    @property
    def structure(self) -> tuple[Any, ...]:
        """Equal for executables whose functions differ in slots alone, and so have as many of the same kinds."""
        return self.rows[self.begin[0] :]


class Unfit(Exception):
    """An executable, or a group of them, that cannot be folded: why, in one line."""


def inner(op: Any) -> Iterator[Any]:
    """All operations inside of another, each before what is inside of it."""
    for region in op.regions:
        for block in region.blocks:
            for one in block.operations:
                yield one.operation
                yield from inner(one.operation)


def member_of(executable: Any) -> Member:
    """Read an executable; raises Unfit for one of another form than fusion gives."""
    exports = [op for op in inner(executable) if op.name == EXPORT]
    functions = [op for op in inner(executable) if op.name == FUNCTION]
    if len(exports) != 1 or len(functions) != 1 or len(list(functions[0].regions[0].blocks)) != 1:
        raise Unfit("it is not one function of one block")
    reading = _Reading()
    reading.visit(executable)
    return Member(
        name=executable.attributes["sym_name"].value,
        entry=exports[0].attributes["sym_name"].value,
        executable=executable,
        export=exports[0],
        function=functions[0],
        rows=tuple(reading.rows),
        slots=tuple(reading.slots),
        begin=reading.begin,
    )


def read(module: Any) -> tuple[dict[str, Member], dict[str, str]]:
    """The executables by name that have the form that fusion gives, and why the others have not."""
    members: dict[str, Member] = {}
    unfit: dict[str, str] = {}
    for op in module.body.operations:
        if op.operation.name == EXECUTABLE:
            try:
                member = member_of(op.operation)
                members[member.name] = member
            except Unfit as error:
                unfit[op.operation.attributes["sym_name"].value] = str(error)
    return members, unfit


def partition(members: Iterable[Member], by: frozenset[str] | Callable[[Member], Any]) -> list[list[Member]]:
    """All members, those of one key together, in the program's order; `by`: what may differ, or the key itself."""
    by_key: dict[Any, list[Member]] = {}
    for member in members:
        by_key.setdefault(by(member) if callable(by) else member.key(by), []).append(member)
    return list(by_key.values())


@dataclass
class _Reading:
    """Rows and slots of one executable, as far as it was read."""

    rows: list[Any] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)
    begin: tuple[int, int] = (0, 0)
    _numbers: dict[Any, int] = field(default_factory=dict)
    _constants: dict[Any, Any] = field(default_factory=dict)
    _is_counting: bool = False
    """True inside of the export, which counts workgroups: no operand of the function reaches it."""

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
        for one in op.attributes:
            name = one if isinstance(one, str) else one.name
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
        type_ = erased(text)
        if type_ != text:
            self.slots.append(Slot("type", text, op, at, constant))
        fits = op.name.startswith(_SCALAR_USERS) and op.name not in _SHAPE_USERS and not self._is_counting
        self.slots.append(Slot("constant" if fits else "fixed", str(constant.attributes["value"]), op, at, constant))
        return "constant", type_

    def _value(self, op: Any, value: Any) -> None:
        """A value gets its number; static dimensions of its type are slots."""
        self._numbers[value] = len(self._numbers)
        text = str(value.type)
        row = erased(text)
        self.rows.append(row)
        if row != text:
            shape = SHAPE.search(text)
            for at, size in enumerate(shape[2][:-1].split("x") if shape else ()):
                if size != "?":
                    self.slots.append(Slot("dimension", size, op, (value, at)))


def erased(text: str) -> str:
    """A type without its static dimensions; as it is where it has several shapes."""
    shape = SHAPE.search(text)
    if shape is None or SHAPE.search(text, shape.end()):
        return text
    sizes = "x".join("?" if size == "?" else "_" for size in shape[2][:-1].split("x"))
    return f"{text[: shape.start(2)]}{sizes}x{text[shape.end(2) :]}"
