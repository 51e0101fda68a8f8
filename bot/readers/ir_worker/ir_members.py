"""Read executables for comparison.

An executable is read in the order of its text. Its rows are always compared:
operations, their attributes, types without static dimensions, and the numbers of the
values that they use. Its slots may differ: values of constants, where they are used,
static offsets and static dimensions. Two executables with equal rows have as many slots
of the same kinds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

from .ir_kinds import collect, name_of

EXECUTABLE = "flow.executable"
EXPORT = "flow.executable.export"
FUNCTION = "func.func"
CONSTANT = "arith.constant"
DYNAMIC = -(1 << 63)  # ShapedType::kDynamic
SHAPE = re.compile(r"\b(tensor|vector|memref)<((?:(?:[0-9]+|\?)x)+)")
_NAMES = frozenset({"sym_name", "function_ref", "function_type"})
"""Attributes that are names of the executable, or follow from what else is compared."""
_ARRAYS = {
    **dict.fromkeys(("static_offsets", "static_strides"), "offset"),
    **dict.fromkeys(
        ("static_sizes", "static_output_shape", "static_low", "static_high"),
        "dimension",
    ),
}
"""Static arrays of an operation → the kind of their slots."""
_SCALAR_USERS = (
    "arith.",
    "math.",
    "complex.",
    "linalg.",
    "iree_linalg_ext.",
    "tensor.extract",
    "tensor.splat",
)
"""Operations whose constant operands are values of the computation.

Constant operands of all other operations may be shapes.
"""


class Slot(NamedTuple):
    """A value that may differ between executables."""

    # `constant`, `offset`, `dimension`; what no operand can take the place of is
    # `fixed`, a constant that is a shape, or `type`, the type of a constant that has
    # dimensions
    kind: str
    value: str
    # the user of the constant, the operation with the array, or the maker of the value
    # whose type it is
    op: Any
    place: Any  # which operand, which (array, entry), or which (value, position of the dimension)
    constant: Any = None  # the operation of the constant; None for the other kinds


@dataclass(frozen=True)
class Member:
    """An executable that can be folded."""

    name: str
    entry: str
    # executable, export, function: its operations; there is one export and one function
    # of one block
    executable: Any
    export: Any
    function: Any
    rows: tuple[Any, ...]
    # slots, function_slots: all, and those of the function: the export is what the host
    # does for it
    slots: tuple[Slot, ...]
    # equal for executables whose functions differ in slots alone, and so have as many
    # of the same kinds
    structure: tuple[Any, ...]
    function_slots: tuple[Slot, ...]

    def key(self, free: frozenset[str]) -> tuple[Any, ...]:
        """Return a key of all but the slots of these kinds.

        It is equal for executables that differ in such slots, and in nothing else.
        """
        values = [None if slot.kind in free else slot.value for slot in self.slots]
        return self.rows, tuple(values)

    @property
    def arguments(self) -> list[Any]:
        """Return the arguments of the function."""
        return list(self.function.regions[0].blocks[0].arguments)


class Unfit(Exception):
    """An executable, or a group of them, cannot be folded; the text is the reason."""


def member_of(ir: Any, executable: Any) -> Member:
    """Read an executable; raises Unfit if fusion does not give its form."""
    exports = collect(ir, executable, (EXPORT,))
    functions = collect(ir, executable, (FUNCTION,))
    if (
        len(exports) != 1
        or len(functions) != 1
        or len(list(functions[0].regions[0].blocks)) != 1
    ):
        raise Unfit("it is not one function of one block")
    reading = _Reading()
    reading.visit(executable)
    rows = tuple(reading.rows)
    slots = tuple(reading.slots)
    row, slot = reading.begin
    entry = name_of(exports[0])
    return Member(
        name=name_of(executable),
        entry=entry,
        executable=executable,
        export=exports[0],
        function=functions[0],
        rows=rows,
        slots=slots,
        structure=rows[row:],
        function_slots=slots[slot:],
    )


def read(ir: Any, module: Any) -> tuple[dict[str, Member], dict[str, str]]:
    """Return the executables that have the form that fusion gives, by name.

    Returns as well why the others do not.
    """
    members = dict[str, Member]()
    unfit = dict[str, str]()
    for op in collect(ir, module, (EXECUTABLE,)):
        try:
            members[name_of(op)] = member_of(ir, op)
        except Unfit as error:
            unfit[name_of(op)] = str(error)
    return members, unfit


def partition(
    members: Iterable[Member], key: Callable[[Member], Any]
) -> list[list[Member]]:
    """Return the groups of two and more that have one key, in the program's order."""
    by_key: dict[Any, list[Member]] = {}
    for member in members:
        by_key.setdefault(key(member), []).append(member)
    return [group for group in by_key.values() if len(group) > 1]


class _Reading:
    """The rows and slots of one executable that were read up to now."""

    def __init__(self) -> None:
        self.rows = list[Any]()
        self.slots = list[Slot]()
        self.begin = (0, 0)
        self._numbers = dict[Any, int]()
        self._constants = dict[Any, Any]()
        # inside of the export, which counts workgroups: no operand of the function
        # reaches it
        self._is_counting = False

    def visit(self, op: Any) -> None:
        """Read an operation with all operations inside of it.

        Constants are read at their uses.
        """
        if op.name == CONSTANT:
            self._constants[op.results[0]] = op
            return
        if op.name in (EXPORT, FUNCTION):
            self._is_counting = op.name == EXPORT
        if op.name == FUNCTION:  # isolated: nothing of the export reaches it
            self.begin = (len(self.rows), len(self.slots))
            self._numbers = {}
            self._constants = {}
        self.rows.append((op.name, *self._attributes(op)))
        operands = []
        for index, value in enumerate(op.operands):
            operands.append(self._operand(op, index, value))
        self.rows.append(tuple(operands))
        for result in op.results:
            self._value(op, result)
        for region in op.regions:
            for block in region.blocks:
                self.rows.append("block")
                for argument in block.arguments:
                    self._value(op, argument)
                for operation in block.operations:
                    self.visit(operation.operation)
        self.rows.append("end")

    def _attributes(self, op: Any) -> Iterator[tuple[str, str]]:
        """Yield name and text of each attribute.

        The text of an array is without its static entries, which are slots.
        """
        for name in attributes_of(op):
            if name in _ARRAYS:
                values = list(op.attributes[name])
                for index, value in enumerate(values):
                    if value != DYNAMIC:
                        self.slots.append(
                            Slot(
                                kind=_ARRAYS[name],
                                value=str(value),
                                op=op,
                                place=(name, index),
                            )
                        )
                marks = ["?" if value == DYNAMIC else "_" for value in values]
                yield name, ",".join(marks)
            elif name not in _NAMES:
                yield name, str(op.attributes[name])

    def _operand(self, op: Any, index: int, value: Any) -> Any:
        constant = self._constants.get(value)
        if constant is None:
            return self._numbers[value]
        text = str(value.type)
        type_ = _erased(text)
        if type_ != text:
            self.slots.append(
                Slot(kind="type", value=text, op=op, place=index, constant=constant)
            )
        fits = (
            op.name.startswith(_SCALAR_USERS)
            and op.name != "tensor.extract_slice"
            and not self._is_counting
        )
        self.slots.append(
            Slot(
                kind="constant" if fits else "fixed",
                value=str(constant.attributes["value"]),
                op=op,
                place=index,
                constant=constant,
            )
        )
        return "constant", type_

    def _value(self, op: Any, value: Any) -> None:
        """Give a value its number.

        The static dimensions of its type are slots.
        """
        self._numbers[value] = len(self._numbers)
        text = str(value.type)
        self.rows.append(_erased(text))
        if self.rows[-1] != text:
            for index, size in enumerate(sizes_in(text)):
                if size != "?":
                    self.slots.append(
                        Slot(kind="dimension", value=size, op=op, place=(value, index))
                    )


def attributes_of(op: Any) -> list[str]:
    """Return the names of an operation's attributes.

    Older releases list names, newer ones pairs.
    """
    return [getattr(attribute, "name", attribute) for attribute in op.attributes]


def sizes_in(text: str) -> list[str]:
    """Return the dimensions in the text of a type, as they are written.

    Empty if it has no shape.
    """
    shape = SHAPE.search(text)
    if shape:
        return shape[2][:-1].split("x")
    return []


def elements_in(sizes: Iterable[str]) -> int:
    """Return the product of dimensions; those that are dynamic count as 1."""
    return prod(int(size) for size in sizes if size != "?")


def with_sizes(text: str, sizes: Iterable[str]) -> str:
    """Return the text of a type that has a shape, with other dimensions."""
    shape = SHAPE.search(text)
    if shape:
        return f"{text[: shape.start(2)]}{'x'.join(sizes)}x{text[shape.end(2) :]}"
    return text


def _erased(text: str) -> str:
    """Return a type without its static dimensions.

    A type with several shapes stays as it is.
    """
    shape = SHAPE.search(text)
    if shape is None or SHAPE.search(text, shape.end()):
        return text
    return with_sizes(text, ("?" if size == "?" else "_" for size in sizes_in(text)))
