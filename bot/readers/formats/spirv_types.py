"""Sizes of SPIR-V types, as their declarations come by.

Explicit layouts (`ArrayStride`, `Offset`) count where they are given; elsewhere the rules of the standard buffer
layout hold, as "Vulkan Specification", section "Offset and Stride Assignment", states them: a three-component vector
is aligned like one of four, a boolean takes four bytes.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field

from bot.errors import MalformedBinary

OP_BOOL, OP_INT, OP_FLOAT, OP_VECTOR, OP_MATRIX = 20, 21, 22, 23, 24
OP_ARRAY, OP_STRUCT, OP_POINTER = 28, 30, 32
OP_CONSTANT, OP_SPEC_CONSTANT, OP_MEMBER_DECORATE = 43, 50, 72
DECORATION_ARRAY_STRIDE, DECORATION_OFFSET = 6, 35
STORAGE_PHYSICAL_BUFFER = 5349
ADDRESS_BYTES = 8
MAX_BYTES = 1 << 48
"""Nested arrays multiply; a larger claim is refused rather than computed."""

Size = tuple[int, int]
"""Bytes and alignment of a type."""


@dataclass(slots=True)
class TypeTable:
    """Sizes by result id; a type without an entry (runtime arrays, images, …) has no known size.

    Attributes:
        constants: id → value of 32-bit constants, specialisation constants with their default.
    """

    sizes: dict[int, Size] = field(default_factory=dict)
    pointees: dict[int, int] = field(default_factory=dict)
    constants: dict[int, int] = field(default_factory=dict)
    strides: dict[int, int] = field(default_factory=dict)
    offsets: dict[int, dict[int, int]] = field(default_factory=dict)

    def define(self, opcode: int, words: array[int]) -> None:
        """Take in one declaration; raises `MalformedBinary` where it is cut short or absurdly large."""
        rule, least_words = RULES[opcode]
        if len(words) < least_words:
            raise MalformedBinary(f"instruction {opcode} of {len(words)} words", where="spirv")
        size = rule(self, words)
        if size is not None:
            if size[0] > MAX_BYTES:
                raise MalformedBinary(f"a type of {size[0]} bytes", where="spirv")
            self.sizes[words[1]] = size

    def decorate(self, target: int, decoration: int, value: int) -> None:
        """Take in a decoration with one operand."""
        if decoration == DECORATION_ARRAY_STRIDE:
            self.strides[target] = value

    def pointee_bytes(self, pointer: int) -> int | None:
        """Bytes of what a pointer type points to; None where its size is not known."""
        size = self.sizes.get(self.pointees.get(pointer, -1))
        return None if size is None else size[0]


def _number(_: TypeTable, words: array[int]) -> Size:
    size_bytes = -(-words[2] // 8)
    return size_bytes, size_bytes


def _vector(table: TypeTable, words: array[int]) -> Size | None:
    component, count = table.sizes.get(words[2]), words[3]
    return component and (component[0] * count, component[0] * (count if count % 2 == 0 else count + 1))


def _matrix(table: TypeTable, words: array[int]) -> Size | None:
    column, count = table.sizes.get(words[2]), words[3]
    return column and (_aligned(*column) * count, column[1])


def _array(table: TypeTable, words: array[int]) -> Size | None:
    element, count = table.sizes.get(words[2]), table.constants.get(words[3])
    if element is None or count is None:
        return None
    return table.strides.get(words[1], _aligned(*element)) * count, element[1]


def _struct(table: TypeTable, words: array[int]) -> Size | None:
    offsets = table.offsets.get(words[1], {})
    end, alignment = 0, 1
    for member, type_id in enumerate(words[2:]):
        size = table.sizes.get(type_id)
        if size is None:
            return None
        alignment = max(alignment, size[1])
        end = max(end, offsets.get(member, _aligned(end, size[1])) + size[0])
    return _aligned(end, alignment), alignment


def _pointer(table: TypeTable, words: array[int]) -> Size | None:
    table.pointees[words[1]] = words[3]
    return (ADDRESS_BYTES, ADDRESS_BYTES) if words[2] == STORAGE_PHYSICAL_BUFFER else None


def _constant(table: TypeTable, words: array[int]) -> None:
    # Word 1 is the type, word 2 the id, then the value, low-order word first.
    table.constants[words[2]] = sum(word << (32 * place) for place, word in enumerate(words[3:5]))


def _member_decorate(table: TypeTable, words: array[int]) -> None:
    if words[3] == DECORATION_OFFSET and len(words) > 4:
        table.offsets.setdefault(words[1], {})[words[2]] = words[4]


def _aligned(size_bytes: int, alignment: int) -> int:
    return -(-size_bytes // max(alignment, 1)) * max(alignment, 1)


RULES: dict[int, tuple[Callable[[TypeTable, array[int]], Size | None], int]] = {
    OP_BOOL: (lambda _table, _words: (4, 4), 2),
    OP_INT: (_number, 4),
    OP_FLOAT: (_number, 3),
    OP_VECTOR: (_vector, 4),
    OP_MATRIX: (_matrix, 4),
    OP_ARRAY: (_array, 4),
    OP_STRUCT: (_struct, 2),
    OP_POINTER: (_pointer, 4),
    OP_CONSTANT: (_constant, 4),
    OP_SPEC_CONSTANT: (_constant, 4),
    OP_MEMBER_DECORATE: (_member_decorate, 4),
}
"""Opcode → its rule, and the fewest words it has."""
TYPE_OPCODES = frozenset(RULES)
