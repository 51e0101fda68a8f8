"""The PTX reader, on real modules and on every kind of declaration."""

from __future__ import annotations

import pytest
from growth import LINEAR, cpu_growth
from hypothesis import given
from hypothesis import strategies as st
from reader_checks import fixture, outcome

from bot.core.reading import EntryPoint
from bot.errors import MalformedBinary
from bot.readers import ptx
from bot.readers.ptx import read_ptx

READ = ptx.read
SHARED, LOCAL = "dense.cuda.ptx", "pointwise.cuda.ptx"
HEAD = b"// made by hand\n.version 7.6\n.target sm_80\n.address_size 64\n"


def test_the_frame_is_the_local_depot() -> None:
    assert b".local .align 4 .b8 \t__local_depot0[64];" in fixture(LOCAL)
    (entry,) = READ(fixture(LOCAL)).entry_points
    assert (entry.stack_bytes, entry.stack_kind) == (64, "static")


def test_an_extern_array_is_unknown_without_the_container() -> None:
    assert b".extern .shared .align 16 .b8 __dynamic_shared_memory__[];" in fixture(SHARED)
    assert [entry.workgroup_bytes for entry in READ(fixture(SHARED)).entry_points] == [0, None]
    known = read_ptx(fixture(SHARED), launch_known=True).entry_points
    assert [entry.workgroup_bytes for entry in known] == [0, 0]


def test_code_is_the_text_from_the_directive_to_the_closing_brace() -> None:
    text = fixture(LOCAL)
    start, end = text.index(b".visible .entry"), text.rindex(b"}") + 1
    assert READ(text).entry_points[0].code_bytes == end - start
    assert READ(text).parts == {"text": end - start, "functions": 0, "module": len(text) - (end - start)}


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
    sizes = {entry.name: entry.workgroup_bytes for entry in read_ptx(module).entry_points}
    assert [entry.stack_bytes for entry in read_ptx(module).entry_points] == [0, 0, 0]
    # A comment may name an array, too: counted, because kernels are searched as they are.
    assert sizes == {"first": 2048, "second": 2048 + 256 + 16, "third": 0}


@pytest.mark.parametrize("space", [b"local", b"shared"])
def test_more_memory_than_a_snapshot_can_state_is_refused(space: bytes) -> None:
    body = b".visible .entry k() { .%b .b8 x%b; mov x; }"
    assert only(HEAD + body % (space, b"[4503599627][2000000]"))
    for extents in (b"[9999999999][9999999999]", b"[4294967296][2097153]", b"[9999999999]" * 8):
        with pytest.raises(MalformedBinary, match=r"^k: (stack|workgroup) bytes out of range"):
            READ(HEAD + body % (space, extents))


def test_frames_are_summed_over_all_local_variables() -> None:
    body = b".visible .entry k() { .local .align 8 .b8 __local_depot0[16]; .local .b64 x; ld.local.b32 %r1, [%SP]; }"
    assert only(HEAD + body).stack_bytes == 24


def test_braces_in_comments_and_strings_do_not_count() -> None:
    body = b'{ // }\n /* } */ "}\\"}" .local .b8 x[4]; }'
    entry = only(HEAD + b".entry declared(); .entry k() " + body + b" /* .entry open() {")
    assert (entry.name, entry.stack_bytes, entry.code_bytes) == ("k", 4, len(b".entry k() " + body))


def test_functions_are_a_part_of_their_own_and_no_entry_points() -> None:
    function = b".func (.param .b32 out) helper(.param .b32 in)\n{ .local .b8 frame[8]; ret; }"
    declaration = b".func (.param .b32 out) declared(.param .b32 in);\n"
    reading = READ(HEAD + declaration + function + b"\n.entry k() { call helper; }")
    assert reading.parts["functions"] == len(function)
    assert [(entry.name, entry.stack_bytes) for entry in reading.entry_points] == [("k", 0)]


def test_the_code_of_a_real_kernel_has_no_names_and_no_ordinals() -> None:
    text = fixture(SHARED)
    moved = text.replace(b"main_dispatch_1_reduction_48x96_f32", b"main_dispatch_12_other").replace(b"BB1_", b"BB34_")
    assert moved.count(b"BB34_") > 2
    assert codes(moved) == codes(text)
    assert len(set(codes(text))) == 2


def test_each_byte_of_a_kernel_counts_for_it_alone() -> None:
    text = fixture(SHARED)
    at = text.rindex(b"st.global")
    matmul, reduction = codes(text)
    changed = codes(text[:at] + b"ld" + text[at + 2 :])
    assert changed[0] == matmul
    assert changed[1] != reduction


@pytest.mark.parametrize(
    ("module", "same"),
    [
        (b".const .b8 c7[2] = {1, 2}; .entry k() { mov c7; }", True),
        (b".const .b8 other[4] = {9}; .const .b8 x[2] = {1, 2}; .entry l() { mov x; }", True),
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
    inner, outer, kernel = b".func in() { %s; }", b".func out() { call in; }", b".entry k() { call out; }"
    first, second = (codes(HEAD + inner % body + outer + kernel) for body in (b"ret", b"trap"))
    assert first != second
    assert first == codes(HEAD + (inner % b"ret" + outer + kernel).replace(b"out", b"far"))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{ .local .b8 x[4]", "never closed"),
        (b"{ } }", "closes nothing"),
        (b"{ .local .b9 x[4]; }", "unknown type b.b9."),
        (b"{ .local .b8 x[y]; }", "a declaration of"),
        (b"{ .local .b8 x[99999999999]; }", "a declaration of"),
    ],
)
def test_what_is_no_ptx_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(MalformedBinary, match=message):
        READ(HEAD + b".entry k() " + body)


def test_text_without_a_version_is_not_accepted() -> None:
    assert not ptx.accepts(b".target sm_80\n.version 7.6\n")
    with pytest.raises(MalformedBinary, match=r"no \.version directive"):
        READ(b"hello")


WORDS = [
    *"(){};=k,",
    *(".visible ", ".entry ", ".func ", ".local ", ".shared ", ".align 8 ", ".b8 ", ".v4 ", ".f32 ", "x", "[4]", "[]"),
    *("//", "\n", "/*", "*/", '"', "\0", "\x7f"),
]


@given(st.lists(st.sampled_from(WORDS), max_size=40))
def test_any_arrangement_of_directives(pieces: list[str]) -> None:
    outcome(READ, HEAD + "".join(pieces).encode())


def test_many_kernels_and_many_arrays_take_linear_time() -> None:
    def module(size: int) -> bytes:
        arrays = b"".join(b".shared .b8 a%d[4];\n" % number for number in range(size))
        return HEAD + arrays + b".entry k() { a7 }\n" * size

    assert READ(module(2_000)).entry_points[-1].workgroup_bytes == 4
    assert cpu_growth(module, READ, 2_000) < LINEAR


@pytest.mark.parametrize(
    "piece",
    [
        b".func (",
        b".entry k(){}",
        b".shared .b8 x[4];",
        b".const x =",
        b".global x[",
        b".func f(){a}.entry k(){f}",
        b".local",
        b".visible ",
        b".entry a {x.shared .b8 y;}",
    ],
)
def test_time_is_linear_in_the_length(piece: bytes) -> None:
    growth = cpu_growth(lambda size: HEAD + piece * (size // len(piece)), lambda text: outcome(READ, text), 50_000)
    assert growth < LINEAR


def only(data: bytes) -> EntryPoint:
    (entry,) = READ(data).entry_points
    return entry


def codes(data: bytes) -> list[str | None]:
    return [entry.code for entry in READ(data).entry_points]
