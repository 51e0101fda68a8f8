"""Sizes of Metal types."""

from __future__ import annotations

import pytest
from growth import LINEAR, cpu_growth
from hypothesis import given
from hypothesis import strategies as st

from bot.readers.msl import TypeSizes


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
