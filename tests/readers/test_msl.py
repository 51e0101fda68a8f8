"""The Metal reader, and sizes of Metal types."""

from __future__ import annotations

import pytest
from growth import LINEAR, cpu_growth
from hypothesis import given
from hypothesis import strategies as st
from reader_checks import fixture, outcome

from bot.errors import MalformedBinary
from bot.readers import msl
from bot.readers.msl import TypeSizes

READ = msl.read
MATMUL, REDUCTION = "dense.metal-spirv.0.metal", "dense.metal-spirv.1.metal"
HEAD = b"#include <metal_stdlib>\nusing namespace metal;\n"


def test_a_struct_of_an_array_in_threadgroup_memory() -> None:
    text = fixture(REDUCTION)
    assert b"spvUnsafeArray<float, 3> _m0;" in text
    assert b"threadgroup _2 _workgroup_mem" in text
    (entry,) = READ(text).entry_points
    assert (entry.workgroup_bytes, entry.stack_bytes, entry.stack_kind) == (12, None, None)


@pytest.mark.parametrize("name", [MATMUL, REDUCTION])
def test_code_is_the_kernel_to_the_end_of_the_source(name: str) -> None:
    text = fixture(name)
    (entry,) = READ(text).entry_points
    assert entry.code_bytes == text.rindex(b"}") + 1 - text.index(b"kernel void ")
    assert entry.name.encode() in text


@pytest.mark.parametrize("name", [MATMUL, REDUCTION])
def test_the_code_is_all_but_the_name(name: str) -> None:
    text = fixture(name)
    (entry,) = READ(text).entry_points
    (renamed,) = READ(text.replace(entry.name.encode(), b"main_dispatch_7")).entry_points
    assert (renamed.name, renamed.code) == ("main_dispatch_7", entry.code)
    for at in (text.rindex(b";") - 1, text.index(b"namespace metal")):
        (changed,) = READ(text[:at] + b"_" + text[at + 1 :]).entry_points
        assert changed.code != entry.code


def test_kernels_of_one_source_differ() -> None:
    first, second = READ(HEAD + b"kernel void a() { x = 1; } kernel void b() { x = 2; }").entry_points
    assert first.code != second.code


def test_only_the_kernels_own_declarations_count() -> None:
    text = (
        HEAD
        + b"""
    template<typename T, size_t Num> struct spvUnsafeArray { T elements[Num ? Num : 1];
      threadgroup T& operator [] (size_t pos) threadgroup { return elements[pos]; } };
    struct pair { half a; float b; };
    void helper(threadgroup float* x) { }
    kernel void one(device float* out [[buffer(0)]]) {
      threadgroup float tile[8][8];  // threadgroup float no[99];
      threadgroup pair pairs[2];
      threadgroup_barrier(mem_flags::mem_threadgroup);
      threadgroup float* pointer = tile[0];
    }
    kernel void two() { }
    """
    )
    entries = READ(text.replace(b"      threadgroup float* pointer = tile[0];\n", b"")).entry_points
    assert [(entry.name, entry.workgroup_bytes) for entry in entries] == [("one", 256 + 16), ("two", 0)]


@pytest.mark.parametrize(
    "kernel",
    [
        b"kernel void k(threadgroup float* x [[threadgroup(0)]]) { }",
        b"kernel void k() { threadgroup mystery x; }",
        b"kernel void k() { threadgroup float x[n]; }",
    ],
)
def test_what_the_source_does_not_say_is_none(kernel: bytes) -> None:
    assert READ(HEAD + kernel).entry_points[0].workgroup_bytes is None


@pytest.mark.parametrize("text", [b"", b"hello", b"kernel void k() {}"])
def test_other_text_is_refused(text: bytes) -> None:
    assert not msl.accepts(text)
    with pytest.raises(MalformedBinary, match="no Metal source"):
        READ(text)


WORDS = [
    *"(){};=k",
    *("kernel ", "void ", "struct ", "s ", "threadgroup ", "float ", "x", "[4]", "spvUnsafeArray<", "half, 3>"),
    *("//", "\n", "/*", '"', "[[threadgroup(0)]]", "\0", "\x7f"),
]


@given(st.lists(st.sampled_from(WORDS), max_size=40))
def test_any_arrangement_of_words(pieces: list[str]) -> None:
    outcome(READ, HEAD + "".join(pieces).encode())


@pytest.mark.parametrize(
    "piece",
    [b"kernel void k(){}", b"threadgroup ", b"struct a{float x;};", b"kernel  ", b"threadgroup float x;"],
)
def test_time_is_linear_in_the_length(piece: bytes) -> None:
    def read(pieces: bytes) -> None:
        outcome(READ, HEAD + b"kernel void k() {" + pieces + b"}")
        outcome(READ, HEAD + pieces)

    assert cpu_growth(lambda size: piece * (size // len(piece)), read, 50_000) < LINEAR


def sizes() -> TypeSizes:
    types = TypeSizes()
    types.define_struct("inner", "char a; float4 b; half c;")
    types.define_struct("outer", "inner items[2]; uchar tail;")
    types.define_struct("strange", "texture2d<float> t;")
    return types


@pytest.mark.parametrize(
    ("declaration", "expected"),
    [
        ("float x", 4),
        ("half x[64]", 128),
        ("bfloat x[2][3]", 12),
        ("float3 x[2]", 32),
        ("packed_float3 x[2]", 24),
        ("uchar4 x", 4),
        ("half4x4 x", 32),
        ("float2x3 x", 32),
        ("bool x", 1),
        ("ulong x[3u]", 24),
        ("spvUnsafeArray<float, 32> x", 128),
        ("spvUnsafeArray<spvUnsafeArray<half4, 3>, 5> x", 120),
        ("array<uint, 4> x[2]", 32),
        ("inner x", 48),
        ("outer x", 112),
        ("float x = 1.0", 4),
        ("strange x", None),
        ("unknown x", None),
        ("float", None),
        ("float* x", None),
        ("float x[n]", None),
        ("spvUnsafeArray<float, n> x", None),
        ("float x[9999999999][9999999999]", None),
        ("packed_double3 x", None),
    ],
)
def test_sizes(declaration: str, expected: int | None) -> None:
    size = sizes().declared(declaration)
    assert (size and size.size_bytes) == expected


@given(st.text(alphabet="float4x[]<>,; =\n12spvUnsafeArray", max_size=60))
def test_any_declaration(text: str) -> None:
    size = sizes().declared(text)
    assert size is None or size.size_bytes >= 0


@pytest.mark.parametrize("piece", ["spvUnsafeArray<", "float<x,1> ", "a ", "[1]", "<,1", "::", "=", ", 1"])
def test_time_is_linear_in_the_length_of_a_declaration(piece: str) -> None:
    types = sizes()
    assert cpu_growth(lambda size: piece * size, types.declared, 20_000) < LINEAR
    assert cpu_growth(lambda size: "spvUnsafeArray<" * (3 * size) + piece * size, types.declared, 20) < LINEAR
