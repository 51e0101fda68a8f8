"""Kernels as source text, PTX and Metal: real modules, and every kind of declaration."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reader_checks import fixture, outcome

from bot.core.reading import EntryPoint
from bot.errors import MalformedBinary
from bot.readers.metal import METAL, TypeSizes
from bot.readers.ptx import read_ptx

SHARED = fixture("dense.cuda.ptx")
LOCAL = fixture("pointwise.cuda.ptx")
HEAD = b"// made by hand\n.version 7.6\n.target sm_80\n.address_size 64\n"


def only(data: bytes) -> EntryPoint:
    (entry,) = read_ptx(data).entry_points
    return entry


def codes(data: bytes) -> list[str | None]:
    return [entry.code for entry in read_ptx(data).entry_points]


def test_static_shared_arrays_count_for_the_kernels_that_name_them() -> None:
    module = (
        HEAD
        + b"""
.shared .align 16 .b8 tile[2048];   // .shared .b8 not_there[9999];
.shared .align 8 .v2 .f32 pairs[4][8];
.global .align 4 .b8 table[4] = {1, 2, 3, 4};
.visible .entry first(.param .u64 .ptr .shared .align 16 p) { mov.u32 %r1, tile; ld.shared.b32 %r2, [%r1]; }
.visible .entry second() { .shared .f16x2 own[3], more; st.shared.b64 [pairs], %rd1; bar.sync 0; /* tile */ }
.visible .entry third() { mov.u32 %r1, tile_of_another_name; }
"""
    )
    sizes = {
        entry.name: entry.workgroup_bytes for entry in read_ptx(module).entry_points
    }
    assert [entry.stack_bytes for entry in read_ptx(module).entry_points] == [0, 0, 0]
    # A comment may name an array, too: counted, because kernels are searched as they
    # are.
    assert sizes == {"first": 2048, "second": 2048 + 256 + 16, "third": 0}


@pytest.mark.parametrize("space", [b"local", b"shared"])
def test_more_memory_than_a_snapshot_can_state_is_refused(space: bytes) -> None:
    body = b".visible .entry k() { .%b .b8 x%b; mov x; }"
    assert only(HEAD + body % (space, b"[4503599627][2000000]"))
    for extents in (
        b"[9999999999][9999999999]",
        b"[4294967296][2097153]",
        b"[9999999999]" * 8,
    ):
        with pytest.raises(
            MalformedBinary, match=r"^k: (stack|workgroup) bytes out of range"
        ):
            read_ptx(HEAD + body % (space, extents))


def test_frames_functions_and_braces() -> None:
    body = (
        b".visible .entry k() { .local .align 8 .b8 __local_depot0[16]; .local .b64 x;"
        b" ld.local.b32 %r1, [%SP]; }"
    )
    assert only(HEAD + body).stack_bytes == 24, "the sum of all local variables"
    body = b'{ // }\n /* } */ "}\\"}" .local .b8 x[4]; }'
    entry = only(
        HEAD + b".entry declared(); .entry k() " + body + b" /* .entry open() {"
    )
    assert (entry.name, entry.stack_bytes, entry.code_bytes) == (
        "k",
        4,
        len(b".entry k() " + body),
    )
    function = (
        b".func (.param .b32 out) helper(.param .b32 in)\n{ .local .b8 frame[8]; ret; }"
    )
    declaration = b".func (.param .b32 out) declared(.param .b32 in);\n"
    reading = read_ptx(HEAD + declaration + function + b"\n.entry k() { call helper; }")
    assert reading.parts["functions"] == len(function)
    assert [(entry.name, entry.stack_bytes) for entry in reading.entry_points] == [
        ("k", 0)
    ]


def test_the_code_of_a_real_kernel_has_no_names_and_no_ordinals_and_each_byte_counts_for_it_alone() -> (
    None
):
    moved = SHARED.replace(
        b"main_dispatch_1_reduction_48x96_f32", b"main_dispatch_12_other"
    ).replace(b"BB1_", b"BB34_")
    assert (
        moved.count(b"BB34_") > 2
        and codes(moved) == codes(SHARED)
        and len(set(codes(SHARED))) == 2
    )
    position = SHARED.rindex(b"st.global")
    matmul, reduction = codes(SHARED[:position] + b"ld" + SHARED[position + 2 :])
    assert matmul == codes(SHARED)[0] and reduction != codes(SHARED)[1]


@pytest.mark.parametrize(
    ("module", "same"),
    [
        (b".const .b8 c7[2] = {1, 2}; .entry k() { mov c7; }", True),
        (
            (
                b".const .b8 other[4] = {9}; .const .b8 x[2] = {1, 2}; .entry l() { mov"
                b" x; }"
            ),
            True,
        ),
        (b".const .b8 c[2] = {1, 3}; .entry k() { mov c; }", False),
        (b".const .b8 c[2] = {1, 2}; .entry k() { add c; }", False),
        (b".global .b8 c[2] = {1, 2}; .entry k() { mov c; }", False),
        (b".entry k() { mov c; }", False),
    ],
)
def test_a_constant_counts_by_its_content(module: bytes, same: bool) -> None:
    expected = codes(HEAD + b".const .b8 c[2] = {1, 2}; .entry k() { mov c; }")
    assert (codes(HEAD + module) == expected) is same


def test_what_a_kernel_calls_counts() -> None:
    inner = b".func in() { %s; }"
    outer = b".func out() { call in; }"
    kernel = b".entry k() { call out; }"
    first, second = (
        codes(HEAD + inner % body + outer + kernel) for body in (b"ret", b"trap")
    )
    assert first != second
    assert first == codes(
        HEAD + (inner % b"ret" + outer + kernel).replace(b"out", b"far")
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + b".entry k() { .local .b8 x[4]", "never closed"),
        (HEAD + b".entry k() { } }", "closes nothing"),
        (HEAD + b".entry k() { .local .b9 x[4]; }", "unknown type b.b9."),
        (HEAD + b".entry k() { .local .b8 x[y]; }", "a declaration of"),
        (HEAD + b".entry k() { .local .b8 x[99999999999]; }", "a declaration of"),
        (b".target sm_80\n.version 7.6\n", r"no \.version directive"),
    ],
)
def test_what_is_no_ptx_is_refused(text: bytes, message: str) -> None:
    with pytest.raises(MalformedBinary, match=message):
        read_ptx(text)


WORDS = [
    *"(){};=k,",
    *(
        ".visible ",
        ".entry ",
        ".func ",
        ".local ",
        ".shared ",
        ".align 8 ",
        ".b8 ",
        ".v4 ",
        ".f32 ",
        "x",
        "[4]",
        "[]",
    ),
    *(
        "kernel ",
        "void ",
        "struct ",
        "s ",
        "threadgroup ",
        "float ",
        "spvUnsafeArray<",
        "half, 3>",
    ),
    *("//", "\n", "/*", "*/", '"', "[[threadgroup(0)]]", "\0", "\x7f"),
]


@given(st.lists(st.sampled_from(WORDS), max_size=40))
def test_any_arrangement_of_words(pieces: list[str]) -> None:
    outcome(read_ptx, HEAD + "".join(pieces).encode())
    outcome(METAL.read, TOP + "".join(pieces).encode())


# Metal.

MATMUL = fixture("dense.metal-spirv.0.metal")
REDUCTION = fixture("dense.metal-spirv.1.metal")
TOP = b"#include <metal_stdlib>\nusing namespace metal;\n"


@pytest.mark.parametrize("text", [MATMUL, REDUCTION], ids=["matmul", "reduction"])
def test_code_is_the_kernel_to_the_end_of_the_source_all_but_its_name(
    text: bytes,
) -> None:
    (entry,) = METAL.read(text).entry_points
    (renamed,) = METAL.read(
        text.replace(entry.name.encode(), b"main_dispatch_7")
    ).entry_points
    assert (renamed.name, renamed.code) == ("main_dispatch_7", entry.code)
    for position in (text.rindex(b";") - 1, text.index(b"namespace metal")):
        (changed,) = METAL.read(
            text[:position] + b"_" + text[position + 1 :]
        ).entry_points
        assert changed.code != entry.code


def test_only_the_kernels_own_declarations_count() -> None:
    text = (
        TOP
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
    entries = METAL.read(
        text.replace(b"      threadgroup float* pointer = tile[0];\n", b"")
    ).entry_points
    assert [(entry.name, entry.workgroup_bytes) for entry in entries] == [
        ("one", 256 + 16),
        ("two", 0),
    ]
    assert (
        b"spvUnsafeArray<float, 3> _m0;" in REDUCTION
        and b"threadgroup _2 _workgroup_mem" in REDUCTION
    )
    assert METAL.read(REDUCTION).entry_points[0].workgroup_bytes == 12
    first, second = METAL.read(
        TOP + b"kernel void a() { x = 1; } kernel void b() { x = 2; }"
    ).entry_points
    assert first.code != second.code


@pytest.mark.parametrize(
    "kernel",
    [
        b"kernel void k(threadgroup float* x [[threadgroup(0)]]) { }",
        b"kernel void k() { threadgroup mystery x; }",
        b"kernel void k() { threadgroup float x[n]; }",
    ],
)
def test_what_the_source_does_not_say_is_none(kernel: bytes) -> None:
    assert METAL.read(TOP + kernel).entry_points[0].workgroup_bytes is None


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
        ("uchar4 x", 4),
        ("bool x", 1),
        ("ulong x[3u]", 24),
        ("spvUnsafeArray<float, 32> x", 128),
        ("spvUnsafeArray<spvUnsafeArray<half4, 3>, 5> x", 120),
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
        ("packed_float3 x", None),
        ("half4x4 x", None),
    ],
)
def test_sizes(declaration: str, expected: int | None) -> None:
    size = sizes().declared(declaration)
    assert (size and size.size_bytes) == expected


@given(st.text(alphabet="float4x[]<>,; =\n12spvUnsafeArray", max_size=60))
def test_any_declaration(text: str) -> None:
    size = sizes().declared(text)
    assert size is None or size.size_bytes >= 0
