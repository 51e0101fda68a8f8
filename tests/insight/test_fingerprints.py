"""Digests of executables: what changes them, and what never does."""

from __future__ import annotations

import re

import pytest
from family_texts import MODELS, recorded
from hypothesis import given, settings
from hypothesis import strategies as st
from replacing import replace

from bot.core.digest import is_digest
from bot.core.program import Site, Source
from bot.core.reading import ExecutableFacts, ProgramFacts, SourceText
from bot.explain.fingerprints import describe, fingerprint
from bot.explain.texts import shown_texts

ALL = [text for name in MODELS for text in recorded(name)]


def digests(generic: str, name: str = "it") -> Source:
    return replace(fingerprint(SourceText(name, generic, "")), executable="")


@given(
    st.sampled_from(ALL),
    st.integers(1, 10**6),
    st.sampled_from(["", "_x", "cst."]),
    st.text(),
)
@settings(max_examples=60, deadline=None)
def test_names_and_ordinals_never_matter_and_any_text_has_digests(
    text: SourceText, by: int, prefix: str, odd: str
) -> None:
    generic = re.sub(
        r"%([0-9]+)", lambda match: f"%{prefix}{int(match[1]) + by}", text.generic
    )
    generic = re.sub(r"%arg([0-9]+)", lambda match: f"%in{int(match[1]) + by}", generic)
    assert generic != text.generic
    assert (
        digests(generic)
        == digests(text.generic)
        == digests(text.generic, f"main_dispatch_{by}")
    )
    assert digests(odd) == digests(odd)


PACK = """
%0 = "arith.constant"() <{value = 1 : i32}> : () -> i32
%1 = "arith.constant"() <{value = 1 : i32}> : () -> i32
%2:2 = "linalg.generic"(%arg0, %arg0, %0) : (f32, f32, i32) -> (f32, f32)
"x.y"(%2#0, %0) : (f32, i32) -> ()
"""


def test_operands_of_an_operation_with_several_results_are_not_its_results() -> None:
    other_operand = PACK.replace("(%arg0, %arg0,", "(%arg0, %arg1,")
    assert digests(PACK).structure != digests(other_operand).structure
    equal_constant = PACK.replace("(%2#0, %0)", "(%2#0, %1)")
    assert digests(PACK).structure == digests(equal_constant).structure


def test_values_shapes_and_offsets_change_the_source_alone_and_other_wiring_the_structure() -> (
    None
):
    for name in ("constants", "static_shapes", "offsets"):
        identities = [fingerprint(text) for text in recorded(name)]
        assert len({identity.source for identity in identities}) == len(identities)
        assert len({identity.structure for identity in identities}) == 1
    for name in ("operand_order", "extra_operation", "different_fusion"):
        identities = [fingerprint(text) for text in recorded(name)]
        assert len({identity.structure for identity in identities}) == len(identities)


@pytest.mark.parametrize(
    ("model", "number", "pattern", "replacement"),
    [
        ("extra_operation", 0, "f32", "f16"),
        ("extra_operation", 0, r"\(d0, d1\) -> \(d1\)", "(d0, d1) -> (d0)"),
        ("extra_operation", 0, "64x64x", "64x?x"),
        ("extra_operation", 0, "arith.addf", "arith.subf"),
        (
            "offsets",
            1,
            "static_offsets = array<i64: 16, 0>",
            "static_offsets = array<i64: -9223372036854775808, 0>",
        ),
        ("static_shapes", 0, r"\(d0 \+ ", "(d0 * 2 + "),  # the strides of a convolution
    ],
)
def test_types_maps_dynamic_dimensions_strides_and_operations_are_structure(
    model: str, number: int, pattern: str, replacement: str
) -> None:
    generic = recorded(model)[number].generic
    changed, count = re.subn(pattern, replacement, generic)
    assert count and digests(changed).structure != digests(generic).structure


def test_digests_are_what_baselines_hold() -> None:
    """Stored baselines keep these: a change here makes all of them differ."""
    identities = [
        fingerprint(recorded(name)[0]) for name in ("constants", "different_fusion")
    ]
    assert [
        (identity.executable, identity.source[:5], identity.structure[:4])
        for identity in identities
    ] == [
        ("quantized_chain_dispatch_0", "hbI29", "SPJB"),
        ("different_fusion_dispatch_0", "rl3um", "jAAo"),
    ]


def test_describe_keeps_facts_and_what_is_bound() -> None:
    rows = [
        ExecutableFacts(
            executable="e",
            entry_point=f"e_{n}",
            kind="matmul",
            memory_bound=False,
            sites=1,
            bound=f"b{n}",
        )
        for n in range(2)
    ]
    bound = tuple(SourceText(name, "?", "") for name in "efg")
    dispatches = (
        *rows,
        replace(rows[0], executable="f", bound=""),
        replace(rows[0], executable="g"),
    )
    program = describe(ProgramFacts(1, 1, 3, dispatches, sources=bound))
    e, f, g = program.sources
    assert (
        e.bound
        and g.bound
        and is_digest(e.bound)
        and is_digest(g.bound)
        and e.bound != g.bound
        and f.bound is None
    )
    texts = (*recorded("constants"), SourceText("odd", "?", "odd text"))
    sites = (Site("quantized_chain_dispatch_0", "layer.0"),)
    facts = ProgramFacts(
        7, 12, 7, (), phases={"input": "ab" * 32}, sources=texts, sites=sites
    )
    facts = replace(
        facts, operations={"math.exp": 1, "arith.addf": 2}, places={"layer.0": 3}
    )
    program = describe(facts)
    assert (program.phases, program.sites) == ({"input": "q6urq6urq6urq6ur"}, sites)
    assert (program.operations, program.places) == (
        "arith.addf 2 math.exp 1",
        {"layer.0": 3},
    )
    assert [source.executable for source in program.sources] == [
        text.executable for text in texts
    ]
    expected = {
        source.source: text.shown
        for source, text in zip(program.sources, texts, strict=True)
    }
    assert shown_texts(facts, program) == expected
