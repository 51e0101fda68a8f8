"""Sizes of SPIR-V types."""

from __future__ import annotations

from array import array

import pytest

from bot.errors import MalformedBinary
from bot.readers.spirv import Module

BOOL, INT, FLOAT, VECTOR, MATRIX, ARRAY, STRUCT, POINTER = 20, 21, 22, 23, 24, 28, 30, 32
CONSTANT, SPEC_CONSTANT, MEMBER_DECORATE = 43, 50, 72
WORKGROUP = 4


def table(*declarations: tuple[int, ...]) -> Module:
    """Declarations as opcode and operands, after: 1 = u32, 2 = f16, 3 = the constant 5."""
    types = Module(array("I"))
    for opcode, *operands in ((INT, 1, 32, 0), (FLOAT, 2, 16), (CONSTANT, 1, 3, 5), *declarations):
        types.visit(opcode, array("I", [0, *operands]))
    return types


@pytest.mark.parametrize(
    ("declarations", "expected"),
    [
        ([(BOOL, 10)], (4, 4)),
        ([(INT, 10, 8, 1)], (1, 1)),
        ([(FLOAT, 10, 64)], (8, 8)),
        ([(VECTOR, 10, 1, 4)], (16, 16)),
        ([(VECTOR, 10, 2, 3)], (6, 8)),
        ([(VECTOR, 11, 2, 3), (MATRIX, 10, 11, 2)], (16, 8)),
        ([(ARRAY, 10, 1, 3)], (20, 4)),
        ([(VECTOR, 11, 1, 3), (ARRAY, 10, 11, 3)], (80, 16)),
        ([(STRUCT, 10, 2, 1, 2)], (12, 4)),
        ([(STRUCT, 10)], (0, 1)),
        ([(MEMBER_DECORATE, 10, 1, 35, 64), (STRUCT, 10, 1, 1)], (68, 4)),
        ([(SPEC_CONSTANT, 1, 11, 7), (ARRAY, 10, 2, 11)], (14, 2)),
        ([(CONSTANT, 1, 11, 3, 0), (ARRAY, 10, 2, 11)], (6, 2)),
        ([(POINTER, 10, 5349, 1)], (8, 8)),
    ],
)
def test_sizes(declarations: list[tuple[int, ...]], expected: tuple[int, int]) -> None:
    assert table(*declarations).sizes[10] == expected


@pytest.mark.parametrize(
    "declarations",
    [
        [(ARRAY, 10, 99, 3)],
        [(ARRAY, 10, 1, 99)],
        [(STRUCT, 10, 1, 99)],
        [(VECTOR, 10, 99, 4)],
        [(POINTER, 10, WORKGROUP, 1)],
    ],
)
def test_unknown_ids_leave_the_size_unknown(declarations: list[tuple[int, ...]]) -> None:
    assert 10 not in table(*declarations).sizes


def test_an_array_stride_counts_where_it_is_given() -> None:
    types = Module(array("I"))
    for opcode, *operands in ((71, 10, 6, 32), (INT, 1, 32, 0), (CONSTANT, 1, 3, 5), (ARRAY, 10, 1, 3)):
        types.visit(opcode, array("I", [0, *operands]))
    assert types.sizes[10] == (160, 4)


def test_nested_arrays_cannot_grow_without_bound() -> None:
    declarations = [(CONSTANT, 1, 9, 0xFFFFFFFF), (ARRAY, 10, 1, 9), (ARRAY, 11, 10, 9)]
    with pytest.raises(MalformedBinary, match="a type of"):
        table(*declarations)


def test_a_declaration_that_is_cut_short_is_refused() -> None:
    with pytest.raises(MalformedBinary, match="instruction 28 of 3 words"):
        table((ARRAY, 10, 1))
