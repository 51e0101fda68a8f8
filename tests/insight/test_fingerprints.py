"""Digests of executables: what changes them, and what never does."""

from __future__ import annotations

import re

import pytest
from family_texts import MODELS, binary, function, recorded
from hypothesis import given, settings
from hypothesis import strategies as st
from replacing import replace

from bot.core.program import Program, Site, Source
from bot.core.reading import ExecutableFacts, ProgramFacts, SourceText
from bot.core.snapshot import cut_program, is_whole
from bot.explain.texts import describe, fingerprint, shown_texts

ALL = [text for name in MODELS for text in recorded(name)]


def digests(generic: str) -> Source:
    """Of a text by one fixed name."""
    return fingerprint(SourceText("it", generic, ""))


def changed(text: SourceText, pattern: str, replacement: str) -> Source:
    """Digests after a change that happens."""
    generic, count = re.subn(pattern, replacement, text.generic)
    assert count
    return digests(generic)


@given(st.sampled_from(ALL), st.integers(1, 10**6), st.sampled_from(["", "_x", "cst."]))
@settings(max_examples=60, deadline=None)
def test_names_never_matter(text: SourceText, by: int, prefix: str) -> None:
    generic = re.sub(r"%([0-9]+)", lambda match: f"%{prefix}{int(match[1]) + by}", text.generic)
    generic = re.sub(r"%arg([0-9]+)", lambda match: f"%in{int(match[1]) + by}", generic)
    assert generic != text.generic
    assert digests(generic) == digests(text.generic)


@given(st.sampled_from(ALL), st.integers(0, 999))
@settings(max_examples=30, deadline=None)
def test_the_ordinal_never_matters(text: SourceText, ordinal: int) -> None:
    there = fingerprint(SourceText(f"main_dispatch_{ordinal}", text.generic, ""))
    assert there.executable == f"main_dispatch_{ordinal}"
    here = fingerprint(text)
    assert (there.source, there.structure, there.operations) == (here.source, here.structure, here.operations)


@pytest.mark.parametrize("name", ["constants", "static_shapes", "offsets"])
def test_values_shapes_and_offsets_change_the_source_and_not_the_structure(name: str) -> None:
    found = [fingerprint(text) for text in recorded(name)]
    assert len({one.source for one in found}) == len(found)
    assert len({one.structure for one in found}) == 1
    assert len({one.operations for one in found}) == 1


@pytest.mark.parametrize("name", ["operand_order", "extra_operation", "different_fusion"])
def test_other_wiring_changes_the_structure(name: str) -> None:
    found = [fingerprint(text) for text in recorded(name)]
    assert len({one.structure for one in found}) == len(found)


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [("f32", "f16"), (r"\(d0, d1\) -> \(d1\)", "(d0, d1) -> (d0)"), ("64x64x", "64x?x"), ("arith.addf", "arith.subf")],
)
def test_types_maps_dynamic_dimensions_and_operations_are_structure(pattern: str, replacement: str) -> None:
    text = recorded("extra_operation")[0]
    assert changed(text, pattern, replacement).structure != digests(text.generic).structure


def test_a_dynamic_offset_is_another_structure() -> None:
    text = recorded("offsets")[1]
    dynamic = changed(
        text, "static_offsets = array<i64: 16, 0>", "static_offsets = array<i64: -9223372036854775808, 0>"
    )
    assert dynamic.structure != digests(text.generic).structure


def test_strides_of_a_convolution_are_structure() -> None:
    text = recorded("static_shapes")[0]
    assert changed(text, r"\(d0 \+ ", "(d0 * 2 + ").structure != digests(text.generic).structure


def test_operations_add_up_when_regions_merge() -> None:
    first = [binary(0, "arith.mulf", "%arg0", "%arg1")]
    second = [binary(0, "arith.addf", "%arg0", "%arg1"), binary(1, "arith.addf", "%0", "%arg1")]
    merged = [*first, binary(1, "arith.addf", "%0", "%arg2"), binary(2, "arith.addf", "%1", "%arg2")]
    sums = [fingerprint(function("it", body)).operations for body in (first, second, merged)]
    assert sums[0] and sums[1] and (sums[0] + sums[1]) % 2**53 == sums[2]


def test_constants_and_addresses_are_no_operations() -> None:
    body = [binary(0, "arith.mulf", "%arg0", "%arg1")]
    more = [
        '  %c = "arith.constant"() <{value = 3 : index}> : () -> index',
        '  %d = "arith.addi"(%c, %c) : (index, index) -> index',
        '  %e = "arith.index_cast"(%d) : (index) -> i32',
    ]
    assert fingerprint(function("it", [*more, *body])).operations == fingerprint(function("it", body)).operations


@given(st.text())
@settings(max_examples=100, deadline=None)
def test_any_text_has_digests(text: str) -> None:
    assert digests(text) == digests(text)


def test_digests_are_what_baselines_hold() -> None:
    """Stored baselines keep these: a change here makes all of them differ."""
    found = Program(sources=tuple(fingerprint(recorded(name)[0]) for name in ("constants", "different_fusion")))
    assert list(cut_program(found).sources) == [
        Source("quantized_chain_dispatch_0", "hbI29", "SPJB", 2886699934),
        Source("different_fusion_dispatch_0", "rl3um", "jAAo", 1005999928),
    ]


def test_describe_keeps_each_part_of_what_is_bound() -> None:
    rows = [ExecutableFacts("e", f"e_{n}", "matmul", False, 1, f"b{n}", ("o", f"a{n}", "r")) for n in range(2)]
    texts = (SourceText("e", "?", ""), SourceText("f", "?", ""), SourceText("g", "?", ""))
    more = (*rows, replace(rows[0], executable="f", bound_parts=()), replace(rows[0], executable="g"))
    program = describe(ProgramFacts(1, 1, 3, more, sources=texts))
    e, f, g = program.sources
    assert (len(e.bound_parts), f.bound_parts) == (3, ())
    assert not set(e.bound_parts) & set(g.bound_parts)
    assert all(map(is_whole, e.bound_parts))
    assert [part[:4] for part in e.bound_parts] == list(cut_program(program).sources[0].bound_parts)


def test_describe_keeps_facts() -> None:
    texts = (*recorded("constants"), SourceText("odd", "?", "odd text"))
    sites = (Site("quantized_chain_dispatch_0", "layer.0"),)
    facts = ProgramFacts(7, 12, 7, (), linalg_ops_before=20, phases={"input": "abc"}, sources=texts, sites=sites)
    facts = replace(facts, operations={"math.exp": 1, "arith.addf": 2}, places={"layer.0": 3})
    program = describe(facts)
    assert (program.phases, program.linalg_ops_before, program.sites) == ({"input": "abc"}, 20, sites)
    assert (program.operations, program.places) == ("arith.addf 2 math.exp 1", {"layer.0": 3})
    assert [one.executable for one in program.sources] == [text.executable for text in texts]
    shown = shown_texts(facts, program)
    assert shown == {one.source: text.shown for one, text in zip(program.sources, texts, strict=True)}
