"""The SPIR-V reader, on real modules and on modules assembled here; sizes of its types."""

from __future__ import annotations

import struct
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reader_checks import fixture, outcome

from bot.errors import MalformedBinary
from bot.readers.spirv import SPIRV, Module

READ = SPIRV.read
MATMUL = "dense.vulkan-spirv.0.spv"
REDUCTION = "dense.vulkan-spirv.1.spv"
V1_3 = 0x00010300
V1_4 = 0x00010400

ENTRY = 15
FUNCTION = 54
FUNCTION_END = 56
VARIABLE = 59
DECORATE = 71
BOOL = 20
INT = 21
FLOAT = 22
VECTOR = 23
MATRIX = 24
ARRAY = 28
RUNTIME_ARRAY = 29
STRUCT = 30
POINTER = 32
CONSTANT = 43
MEMBER_DECORATE = 72
WORKGROUP = 4
FUNCTION_STORAGE = 7
TYPES = (
    (INT, 1, 32, 0),
    (CONSTANT, 1, 2, 16),
    (ARRAY, 3, 1, 2),
    (POINTER, 4, WORKGROUP, 3),
    (POINTER, 5, FUNCTION_STORAGE, 3),
    (RUNTIME_ARRAY, 6, 1),
    (POINTER, 7, FUNCTION_STORAGE, 6),
    (POINTER, 8, WORKGROUP, 1),
)
"""1: u32, 3: u32[16]; pointers to it are 4 (workgroup) and 5 (function), 7 to an array of unknown length, 8 to u32."""


def module(version: int, *instructions: tuple[int, ...]) -> bytes:
    """A module of instructions given as opcode and operands."""
    numbers = [0x07230203, version, 0, 1000, 0]
    for opcode, *operands in instructions:
        numbers += [(len(operands) + 1) << 16 | opcode, *operands]
    return struct.pack(f"<{len(numbers)}I", *numbers)


def entry(function_id: int, name: str, *interface: int) -> tuple[int, ...]:
    raw = name.encode() + b"\0"
    raw += bytes(-len(raw) % 4)
    return (
        ENTRY,
        5,
        function_id,
        *struct.unpack(f"<{len(raw) // 4}I", raw),
        *interface,
    )


def function(function_id: int, *body: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    return ((FUNCTION, 1, function_id, 0, 2), *body, (FUNCTION_END,))


def test_memory_of_variables() -> None:
    body = function(
        20, (VARIABLE, 5, 21, FUNCTION_STORAGE), (VARIABLE, 5, 22, FUNCTION_STORAGE)
    )
    reading = READ(
        module(V1_4, entry(20, "k", 30), *TYPES, (VARIABLE, 4, 30, WORKGROUP), *body)
    )
    (only,) = reading.entry_points
    assert (only.name, only.stack_bytes, only.workgroup_bytes) == ("k", 128, 64)
    assert only.code_bytes == 4 * (5 + 4 + 4 + 1)
    body = function(
        20, (VARIABLE, 7, 21, FUNCTION_STORAGE), (VARIABLE, 5, 22, FUNCTION_STORAGE)
    )
    (only,) = READ(module(V1_4, entry(20, "k"), *TYPES, *body)).entry_points
    assert (only.stack_bytes, only.workgroup_bytes) == (None, 0)


@pytest.mark.parametrize(("version", "expected"), [(V1_4, [64, 4]), (V1_3, [68, 68])])
def test_several_entry_points_use_what_their_interface_lists(
    version: int, expected: list[int]
) -> None:
    variables = ((VARIABLE, 4, 30, WORKGROUP), (VARIABLE, 8, 31, WORKGROUP))
    entries = (entry(20, "first", 30), entry(40, "second", 31))
    reading = READ(
        module(version, *entries, *TYPES, *variables, *function(20), *function(40))
    )
    assert [only.workgroup_bytes for only in reading.entry_points] == expected
    renumbered = READ(
        module(
            version, *entries, *TYPES, *variables, *function(20), *function(40, (1, 2))
        )
    )
    same = [
        original_entry.code == renumbered_entry.code
        for original_entry, renumbered_entry in zip(
            reading.entry_points, renumbered.entry_points, strict=True
        )
    ]
    assert same == [True, False], "entry points of one module differ by their functions"


def test_aliased_variables_share_memory() -> None:
    decorations = ((DECORATE, 30, 20), (DECORATE, 31, 20))
    variables = (
        (VARIABLE, 4, 30, WORKGROUP),
        (VARIABLE, 4, 31, WORKGROUP),
        (VARIABLE, 8, 32, WORKGROUP),
    )
    data = module(
        V1_4,
        entry(20, "k", 30, 31, 32),
        *decorations,
        *TYPES,
        *variables,
        *function(20),
    )
    assert READ(data).entry_points[0].workgroup_bytes == 64 + 4


def test_names_may_end_at_a_word_boundary() -> None:
    names = ["", "abc", "abcd", "main$async_dispatch_0"]
    entries = [entry(20, name, 30) for name in names]
    data = module(V1_4, *entries, *TYPES, (VARIABLE, 4, 30, WORKGROUP), *function(20))
    assert [(only.name, only.workgroup_bytes) for only in READ(data).entry_points] == [
        (name, 64) for name in names
    ]


NAMES = (
    (5, 20, 0x6261),
    (6, 3, 0, 0x6261),
    (7, 33, 0x6261),
    (3, 2, 600),
    (8, 33, 4, 2),
    (317,),
    (330, 0x6261),
)
"""OpName, OpMemberName, OpString, OpSource, OpLine, OpNoLine, OpModuleProcessed."""
NON_SEMANTIC = struct.unpack("<4I", b"NonSemantic.D\0\0\0")


def test_names_and_debug_information_do_not_count() -> None:
    body = function(20, (VARIABLE, 5, 21, FUNCTION_STORAGE))
    described = (body[0], (8, 33, 4, 2), body[1], (12, 1, 34, 35, 9), (317,), body[2])
    plain = code(module(V1_4, entry(20, "main$async_dispatch_9_k"), *TYPES, *body))
    assert (
        code(module(V1_4, entry(20, "main$async_dispatch_10_k"), *NAMES, *TYPES, *body))
        == plain
    )
    link = (DECORATE, 20, 41, 0x6261, 0)
    noted = module(
        V1_4, (11, 35, *NON_SEMANTIC), entry(20, "k"), *NAMES, link, *TYPES, *described
    )
    assert code(noted) == plain


@pytest.mark.parametrize(
    "changed",
    [
        module(V1_3, entry(20, "k", 30), *TYPES, *function(20, (1, 2))),
        module(V1_4, entry(20, "k", 31), *TYPES, *function(20, (1, 2))),
        module(V1_4, entry(20, "k", 30), *TYPES[1:], *function(20, (1, 2))),
        module(
            V1_4, entry(20, "k", 30), (DECORATE, 1, 2), *TYPES, *function(20, (1, 2))
        ),
        module(V1_4, entry(20, "k", 30), *TYPES, *function(20, (1, 3))),
        module(V1_4, entry(20, "k", 30), *TYPES, *function(20, (1, 2)), *function(21)),
    ],
)
def test_everything_else_counts(changed: bytes) -> None:
    assert code(changed) != code(
        module(V1_4, entry(20, "k", 30), *TYPES, *function(20, (1, 2)))
    )


@pytest.mark.parametrize("name", [MATMUL, REDUCTION])
def test_every_word_of_a_real_function_counts(name: str) -> None:
    data = fixture(name)
    (before,) = READ(data).entry_points
    position = data.rindex(struct.pack("<I", 1 << 16 | FUNCTION_END)) - 4
    (after,) = READ(
        data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]
    ).entry_points
    (renamed,) = READ(data.replace(b"main_dispatch_", b"some_dispatch_")).entry_points
    assert (renamed.code, renamed.name) == (
        before.code,
        before.name.replace("main", "some"),
    )
    assert after.code != before.code


@pytest.mark.parametrize(
    ("instructions", "message"),
    [
        ([entry(20, "k")], "entry point 'k' names no function"),
        (
            [(FUNCTION, 1, 20, 0, 2), (FUNCTION, 1, 21, 0, 2)],
            "a function inside another",
        ),
        ([(FUNCTION, 1, 20, 0, 2)], "a function without its end"),
        ([(VARIABLE, 1, 2)], "instruction 59 of 3 words"),
        ([(ENTRY, 5, 20, 0x41414141)], "without the end of its name"),
    ],
)
def test_what_is_no_module_is_refused(
    instructions: list[tuple[int, ...]], message: str
) -> None:
    with pytest.raises(MalformedBinary, match=message):
        READ(module(V1_4, *instructions))
    for word in (0x00000013, 0xFFFF0013):
        with pytest.raises(MalformedBinary, match="words at word 5 of 6"):
            READ(module(V1_4) + struct.pack("<I", word))


@given(
    st.lists(
        st.lists(st.integers(0, 40), max_size=5).flatmap(
            lambda operands: st.sampled_from(
                (15, 20, 21, 22, 23, 24, 28, 30, 32, 43, 50, 54, 56, 59, 71, 72)
            ).map(lambda opcode: (opcode, *operands))
        ),
        max_size=30,
    )
)
def test_any_instructions(instructions: list[tuple[int, ...]]) -> None:
    outcome(READ, module(V1_4, *instructions))


def code(data: bytes) -> str | None:
    (only,) = READ(data).entry_points
    return only.code


def table(*declarations: tuple[int, ...]) -> Module:
    """Declarations as opcode and operands, after: 1 = u32, 2 = f16, 3 = the constant 5."""
    types = Module(array("I"))
    for opcode, *operands in (
        (INT, 1, 32, 0),
        (FLOAT, 2, 16),
        (CONSTANT, 1, 3, 5),
        *declarations,
    ):
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
        ([(VECTOR, 11, 2, 3), (MATRIX, 10, 11, 2)], None),
        ([(ARRAY, 10, 1, 3)], (20, 4)),
        ([(DECORATE, 10, 6, 32), (ARRAY, 10, 1, 3)], (160, 4)),
        ([(VECTOR, 11, 1, 3), (ARRAY, 10, 11, 3)], (80, 16)),
        ([(STRUCT, 10, 2, 1, 2)], (12, 4)),
        ([(STRUCT, 10)], (0, 1)),
        ([(MEMBER_DECORATE, 10, 1, 35, 64), (STRUCT, 10, 1, 1)], (68, 4)),
        ([(CONSTANT, 1, 11, 3, 0), (ARRAY, 10, 2, 11)], (6, 2)),
        ([(POINTER, 10, WORKGROUP, 1)], None),  # and so is what has an unknown id in it
        ([(ARRAY, 10, 99, 3)], None),
        ([(ARRAY, 10, 1, 99)], None),
        ([(STRUCT, 10, 1, 99)], None),
        ([(VECTOR, 10, 99, 4)], None),
    ],
)
def test_sizes(
    declarations: list[tuple[int, ...]], expected: tuple[int, int] | None
) -> None:
    assert table(*declarations).sizes.get(10) == expected


def test_declarations_that_cannot_be_are_refused() -> None:
    with pytest.raises(MalformedBinary, match="a type of"):
        table((CONSTANT, 1, 9, 0xFFFFFFFF), (ARRAY, 10, 1, 9), (ARRAY, 11, 10, 9))
    with pytest.raises(MalformedBinary, match="instruction 28 of 3 words"):
        table((ARRAY, 10, 1))
