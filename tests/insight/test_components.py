"""bot.explain.components: names as the real models have them, and parts that sum to the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from replacing import replace

from bot.core.delta import CellDelta
from bot.core.explanation import UNATTRIBUTED, Amounts, ComponentDelta
from bot.core.program import Program, Site
from bot.core.snapshot import Cell, CellKey, Dispatch
from bot.explain.components import (
    AMOUNTS,
    attribute,
    component_of,
    components,
    grouped,
    name_places,
    naming,
    split,
    tree,
    where,
)

KEY = CellKey("m", "t")
TF = "tf_mobile_bert_for_question_answering/mobilebert"

BERT = [
    "m.embeddings.LayerNorm",
    "<root>",
    *(
        f"m.encoder.layer.{layer}.{part}"
        for layer in range(4)
        for part in (
            "attention.self",
            "attention.self.query",
            "attention.self.key",
            "attention.output.dense",
            "attention.output.LayerNorm",
            "intermediate.dense",
            "output.dense",
            "output.LayerNorm",
        )
    ),
]
MOBILENET_TOSA = [
    f"mobilenet_1.00_224_1/{op}_relu_1/Relu6;mobilenet_1.00_224_1/{op}_bn_1/batchnorm/add_1"
    for op in ("conv1", *(f"conv_{kind}_{layer}" for kind in ("dw", "pw") for layer in range(1, 14)))
]
JAX = [
    *(f"jit(step)/jvp(MLP)/{layer}/dot_general" for layer in ("fc0", "fc1", "fc2", "head")),
    *(f"jit(step)/transpose(jvp(MLP))/{layer}/reduce_sum" for layer in ("fc0", "fc1", "fc2", "head")),
    "reduce_sum",
    "jit(step)/jvp(jit(log_softmax))",
]


def cell(dispatches: Iterable[Dispatch], sites: Iterable[tuple[str, str | None]], whole: int | None = None) -> Cell:
    program = Program(sites=tuple(Site(entry, place) for entry, place in sites))
    return Cell(KEY, "ok", {"executable_bytes": whole}, tuple(dispatches), program=program)


def pair(base: Cell | None, head: Cell | None) -> CellDelta:
    return CellDelta(KEY, "changed", {}, base, head)


def one(name: str, sites: int | None, code: int | None = None, **more: Any) -> Dispatch:
    return Dispatch(f"x_{name}", name, sites=sites, code_bytes=code, **more)


def total(parts: Iterable[Amounts], what: str) -> int:
    return sum(part.get(what) or 0 for part in parts)


# Names.


@pytest.mark.parametrize(
    ("path", "levels"),
    [
        ("m.encoder.layer.0.attention.self", ("m", "encoder", "layer", "0", "attention", "self")),
        (f"{TF}/encoder/layer_._0/ffn.0/output", (*TF.split("/"), "encoder", "layer_._0", "ffn.0", "output")),
        ("a/b;c/d;e", ("a", "b")),
        ("jit(step)/jvp(MLP)/fc0/dot_general", ("MLP", "fc0", "dot_general")),
        ("jit(step)/transpose(jvp(MLP))/fc0/dot_general", ("MLP", "fc0", "dot_general")),
        ("jit(step)/transpose(jvp())/div", ("div",)),
        ("jit(step)/jvp(jit(log_softmax))", ("log_softmax",)),
        ("jit(step)/jit(step)", ("step",)),
        ("<root>", ("<root>",)),
        ("", ()),
        ("..", ()),
        ("//", ()),
    ],
)
def test_split(path: str, levels: tuple[str, ...]) -> None:
    assert split(path) == levels


def test_a_name_of_many_levels_is_told_apart_to_a_depth_only() -> None:
    assert len(split("a." * 100_000 + "b")) == len(split("a/" * 100_000 + "b")) == 33


def test_bert_loses_its_wrapper_and_groups_its_layers() -> None:
    names = name_places(frozenset(BERT))
    assert names.full["m.encoder.layer.3.attention.self.query"] == "encoder.layer.*.attention.self.query"
    assert set(names.components.values()) == {
        "<root>",
        "embeddings.LayerNorm",
        "encoder.layer.*.attention",
        "encoder.layer.*.intermediate",
        "encoder.layer.*.output",
    }


def test_tflite_numbers_inside_a_level_are_grouped_but_not_those_that_never_differ() -> None:
    names = name_places(frozenset(MOBILENET_TOSA))
    assert set(names.components.values()) == {
        "conv1_relu_1.Relu6",
        "conv_dw_*_relu_1.Relu6",
        "conv_pw_*_relu_1.Relu6",
    }


def test_mobilebert_keeps_its_dotted_levels_and_an_operation_without_place_keeps_its_name() -> None:
    places = [f"{TF}/encoder/layer_._{i}/ffn.{j}/output/dense/Tensordot" for i in range(6) for j in range(3)]
    names = name_places(frozenset([*places, f"{TF}/embeddings/add", "tfl.quantize"]))
    assert set(names.full.values()) == {
        "encoder.layer_._*.ffn.*.output.dense.Tensordot",
        "embeddings.add",
        "tfl.quantize",
    }
    assert names.components[places[0]] == "encoder.layer_._*.ffn.*.output.dense"


def test_forward_and_backward_of_one_layer_are_one_component() -> None:
    names = name_places(frozenset(JAX))
    assert names.full["jit(step)/jvp(MLP)/fc0/dot_general"] == "fc*.dot_general"
    assert names.full["jit(step)/transpose(jvp(MLP))/fc0/reduce_sum"] == "fc*.reduce_sum"
    assert names.full["reduce_sum"] == "reduce_sum" and names.full[JAX[-1]] == "log_softmax"
    assert len(set(names.full.values())) == 6


def test_a_stem_with_a_number_needs_a_sibling_and_a_number_does_not() -> None:
    alone = grouped([("a", "fc0"), ("a", "7"), ("b", "fc1")])
    assert list(alone.values()) == [("a", "fc0"), ("a", "*"), ("b", "fc1")]
    both = grouped([("a", "fc0"), ("a", "fc1"), ("b", "h10x2"), ("b", "h11x2")])
    assert list(both.values()) == [("a", "fc*"), ("a", "fc*"), ("b", "h*x2"), ("b", "h*x2")]


def test_a_wrapper_is_what_all_share_and_never_the_whole_name() -> None:
    assert list(grouped([("m", "a", "x"), ("m", "a", "y"), ("root",)]).values()) == [("x",), ("y",), ("root",)]
    assert list(grouped([("m", "a"), ("m", "a", "y")]).values()) == [("a",), ("a", "y")]
    assert list(grouped([("m", "a"), ("n", "a")]).values()) == [("m", "a"), ("n", "a")]
    assert list(grouped([("m",)]).values()) == [("m",)]
    assert grouped([]) == {}


def test_many_different_names_are_cut_at_the_first_level() -> None:
    places = [f"{top}.{name}" for top in "ab" for name in map(chr, range(ord("a"), ord("a") + 20))]
    assert set(name_places(frozenset(places)).components.values()) == {"a", "b"}


def test_sections_are_tried_in_order_and_the_rest_is_named_by_the_tree() -> None:
    sections = (("queries", "*.query"), ("attention", "*.attention.*"), ("embeddings", "m.embeddings.*"))
    names = name_places(frozenset(BERT), sections).components
    assert names["m.encoder.layer.0.attention.self.query"] == "queries"
    assert names["m.encoder.layer.0.attention.self.key"] == "attention"
    assert names["m.embeddings.LayerNorm"] == "embeddings"
    assert names["m.encoder.layer.0.output.dense"] == "encoder.layer.*.output"


@pytest.mark.parametrize("glob", ["*/attention/*", "*.attention.*", "a/attention", "a.attention"])
def test_a_section_takes_slashes_for_dots_and_the_level_itself(glob: str) -> None:
    names = name_places(frozenset(["a/attention", "a/Attention"]), (("x", glob),)).components
    assert names == {"a/attention": "x", "a/Attention": "Attention"}


# Amounts.

SHARED = cell(
    [one("e0", 3, 100, stack_bytes=64), one("e1", 1, 7, alloca_bytes=80), one("e2", 2, 9, stack_bytes=8)],
    [("e0", "m.a.x"), ("e1", "m.b.y"), ("e0", "m.b.y"), ("e0", "m.a.x"), ("e2", "m.b.y"), ("e2", None)],
    whole=120,
)


def amounts(sites: int | None, code: int | None, stack: int | None) -> Amounts:
    return Amounts(sites, code, stack)


def test_a_shared_executable_is_split_over_its_sites() -> None:
    names = {"m.a.x": "a", "m.b.y": "b"}
    assert attribute(SHARED, names) == {
        "a": amounts(2, 34 + 33, 64),
        "b": amounts(3, 33 + 7 + 5, 80),
        UNATTRIBUTED: amounts(1, 4 + 4, 8),
    }, "the byte left over is the first site's; 4 bytes of the 120 belong to no entry point"
    assert component_of(SHARED.dispatches[0], SHARED, names) == "a"
    assert where(SHARED.program, names) == {"e0": "a", "e1": "b", "e2": "b"}, "of equals the first"
    assert component_of(one("e9", 1), SHARED, names) == UNATTRIBUTED


def test_sites_that_do_not_agree_are_unattributed() -> None:
    dispatches = [one("few", 3, 30), one("many", 1, 5), one("gone", 0, 2), one("unseen", 2, 4)]
    found = cell(dispatches, [("few", "m.a"), ("few", "m.a"), ("many", "m.a"), ("many", "m.b"), ("gone", "m.b")])
    assert attribute(found, {"m.a": "a", "m.b": "b"}) == {
        "a": amounts(2, 20, None),
        UNATTRIBUTED: amounts(4, 10 + 5 + 2 + 4, None),
    }


def test_sites_beyond_all_memory_are_counted() -> None:
    many = 9 * 10**15
    found = cell([one("e", many, 2 * many + 1)], [("e", "m.a")])
    assert attribute(found, {"m.a": "a"}) == {
        "a": amounts(1, 3, None),
        UNATTRIBUTED: amounts(many - 1, 2 * many - 2, None),
    }


def test_what_is_not_known_is_none() -> None:
    unread = Cell(KEY, "ok", {"executable_bytes": 50}, (one("e", None),))
    assert attribute(unread, {}) == {UNATTRIBUTED: amounts(None, 50, None)}
    assert attribute(Cell(KEY, "ok", {}, (one("e", None),)), {}) == {UNATTRIBUTED: amounts(None, None, None)}
    assert attribute(Cell(KEY, "failed"), {}) == {}
    unknown_code = cell([one("e", 1), one("f", 1, 3)], [("e", "a"), ("f", "b")])
    assert attribute(unknown_code, {"a": "a", "b": "b"}) == {"a": amounts(1, None, None), "b": amounts(1, 3, None)}


def test_parts_that_are_more_than_the_whole_are_no_parts() -> None:
    found = attribute(cell([one("e", 1, 90)], [("e", "a")], whole=60), {"a": "a"})
    assert found == {"a": amounts(1, 0, None), UNATTRIBUTED: amounts(0, 60, None)}


# Deltas.


def test_the_component_that_moved_most_is_first() -> None:
    dispatches = [one("e0", 3, 400, stack_bytes=64), *SHARED.dispatches[1:]]
    head = replace(SHARED, dispatches=tuple(dispatches), metrics={"executable_bytes": 420})
    moved = components(pair(SHARED, head))
    assert [(part.name, part.change("code_bytes")) for part in moved] == [("a.x", 200), ("b.y", 100)]
    assert components(pair(SHARED, SHARED)) == ()


def test_a_component_of_one_side_only_is_nothing_on_the_other() -> None:
    base, head = cell([one("e", 1, 5)], [("e", "m.a")]), cell([one("e", 1, 8)], [("e", "m.b")])
    assert components(pair(base, head)) == (
        ComponentDelta("b", amounts(0, 0, None), amounts(1, 8, None)),
        ComponentDelta("a", amounts(1, 5, None), amounts(0, 0, None)),
    )


@pytest.mark.parametrize("sides", [(None, SHARED), (SHARED, None), (SHARED, Cell(KEY, "failed"))])
def test_nothing_moves_against_a_side_without_numbers_but_the_tree_is_there(sides: tuple[Any, Any]) -> None:
    assert components(pair(*sides)) == ()
    assert [part.name for part in tree(pair(*sides))] == ["a.x", "b.y", UNATTRIBUTED]


def test_both_sides_share_one_naming() -> None:
    base, head = cell([one("e", 1, 5)], [("e", "m.fc0")]), cell([one("e", 1, 5)], [("e", "m.fc1")])
    assert [part.name for part in tree(pair(base, head))] == ["fc*"]
    assert components(pair(base, head)) == ()


def test_the_tree_keeps_a_section_together() -> None:
    names = ("m.z.query", "m.b.dense", "m.a.query")
    found = cell([one("e", 3, 30)], [("e", name) for name in names])
    sections = (("queries", "*.query"),)
    assert [part.name for part in tree(pair(found, found), sections)] == ["b.dense", "a.query", "z.query"]


levels = st.sampled_from(["m", "layer", "0", "1", "fc0", "fc1", "é", "jit(f)", "x y"])
places = st.lists(levels, min_size=1, max_size=4).map(".".join) | st.lists(levels, min_size=1, max_size=4).map("/".join)
counts = st.none() | st.integers(0, 4)
sizes = st.none() | st.integers(0, 1000)
entries = st.sampled_from("abcd")
dispatch = st.builds(
    Dispatch, st.just("x"), entries, sites=counts, code_bytes=sizes, stack_bytes=sizes, alloca_bytes=sizes
)
cells = st.builds(
    cell, st.lists(dispatch, max_size=6), st.lists(st.tuples(entries, st.none() | places), max_size=12), sizes
)
sections = st.lists(st.tuples(st.sampled_from(["s", "t"]), st.sampled_from(["*fc*", "m.*", "*.1.*", "*"])), max_size=2)


@given(cells, sections)
def test_parts_sum_to_the_whole(found: Cell, globs: list[tuple[str, str]]) -> None:
    known = naming(pair(None, found), globs)
    codes = sum(row.code_bytes or 0 for row in found.dispatches)
    frames = [row.alloca_bytes if row.stack_bytes is None else row.stack_bytes for row in found.dispatches]
    whole = found.value("executable_bytes")
    for names in (known.components, known.full):
        parts = attribute(found, names)
        assert total(parts.values(), "dispatch_sites") == sum(row.sites or 0 for row in found.dispatches)
        assert total(parts.values(), "code_bytes") == (codes if whole is None else whole)
        assert all((amount or 0) >= 0 for part in parts.values() for amount in map(part.get, AMOUNTS))
        stacks = [part.stack_bytes for part in parts.values() if part.stack_bytes is not None]
        assert max(stacks, default=None) == max((frame for frame in frames if frame is not None), default=None)


@given(cells, cells, sections)
def test_swapping_negates_and_names_are_the_same(base: Cell, head: Cell, globs: list[tuple[str, str]]) -> None:
    forth, back = pair(base, head), pair(head, base)
    for parts in (components, tree):
        swapped = tuple(ComponentDelta(part.name, part.head, part.base) for part in parts(back, globs))
        assert parts(forth, globs) == swapped
    assert components(pair(base, base), globs) == ()


@given(cells, cells, sections)
def test_what_moved_sums_to_the_cell(base: Cell, head: Cell, globs: list[tuple[str, str]]) -> None:
    names = naming(pair(base, head), globs)
    for parts, known in ((components, names.components), (tree, names.full)):
        sides = [attribute(side, known) for side in (base, head)]
        for what in ("dispatch_sites", "code_bytes"):
            if all(side and all(part.get(what) is not None for part in side.values()) for side in sides):
                wholes = [total(side.values(), what) for side in sides]
                assert sum(part.change(what) for part in parts(pair(base, head), globs)) == wholes[1] - wholes[0]


@given(cells, sections)
def test_a_dispatch_is_where_most_of_its_sites_are(found: Cell, globs: list[tuple[str, str]]) -> None:
    names = naming(pair(found, None), globs).components
    assert found.program is not None
    for row in found.dispatches:
        spots = [site.component for site in found.program.sites if site.entry_point == row.name]
        counted = Counter(names.get(spot, UNATTRIBUTED) if spot else UNATTRIBUTED for spot in spots)
        best = component_of(row, found, names)
        assert counted[best] == max(counted.values(), default=0)


@given(st.lists(places, max_size=8), sections)
def test_every_place_has_one_name(found: list[str], globs: list[tuple[str, str]]) -> None:
    names = name_places(frozenset(found), tuple(globs))
    assert names.components.keys() == names.full.keys() == {place for place in found if any(split(place))}
    assert all(names.full.values()) and all(names.components.values())
