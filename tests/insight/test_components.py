"""bot.explain.components: names as the real models have them, and parts that sum to the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from replacing import replace

from bot.core.explanation import UNATTRIBUTED, Amounts, ComponentDelta
from bot.core.program import Program, Site
from bot.core.snapshot import Cell, CellKey, Dispatch
from bot.explain.components import (
    AMOUNTS,
    Sections,
    components,
    grouped,
    name_places,
    naming,
    split,
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
    for op in (
        "conv1",
        *(f"conv_{kind}_{layer}" for kind in ("dw", "pw") for layer in range(1, 14)),
    )
]
JAX = [
    *(
        f"jit(step)/jvp(MLP)/{layer}/dot_general"
        for layer in ("fc0", "fc1", "fc2", "head")
    ),
    *(
        f"jit(step)/transpose(jvp(MLP))/{layer}/reduce_sum"
        for layer in ("fc0", "fc1", "fc2", "head")
    ),
    "reduce_sum",
    "jit(step)/jvp(jit(log_softmax))",
]


def cell(
    dispatches: Iterable[Dispatch],
    sites: Iterable[tuple[str, str | None]],
    whole: int | None = None,
) -> Cell:
    program = Program(sites=tuple(Site(entry, place) for entry, place in sites))
    return Cell(
        KEY.model,
        KEY.target,
        "ok",
        {"executable_bytes": whole},
        tuple(dispatches),
        program=program,
    )


def one(
    name: str, sites: int | None, code: int | None = None, **fields: Any
) -> Dispatch:
    return Dispatch(f"x_{name}", name, sites=sites, code_bytes=code, **fields)


def parts_of(measured_cell: Cell) -> dict[str, Amounts]:
    """By full name."""
    return {part.name: part.head for part in tree(measured_cell, measured_cell)}


def moved(base: Cell, head: Cell, globs: Sections = ()) -> tuple[ComponentDelta, ...]:
    return components(base, head, naming(base, head, globs))[0]


def tree(base: Cell, head: Cell, globs: Sections = ()) -> tuple[ComponentDelta, ...]:
    return components(base, head, naming(base, head, globs))[1]


# Names.


@pytest.mark.parametrize(
    ("path", "levels"),
    [
        (
            "m.encoder.layer.0.attention.self",
            ("m", "encoder", "layer", "0", "attention", "self"),
        ),
        (
            f"{TF}/encoder/layer_._0/ffn.0/output",
            (*TF.split("/"), "encoder", "layer_._0", "ffn.0", "output"),
        ),
        ("a/b;c/d;e", ("a", "b")),
        ("jit(step)/jvp(MLP)/fc0/dot_general", ("MLP", "fc0", "dot_general")),
        (
            "jit(step)/transpose(jvp(MLP))/fc0/dot_general",
            ("MLP", "fc0", "dot_general"),
        ),
        ("jit(step)/transpose(jvp())/div", ("div",)),
        ("jit(step)/jvp(jit(log_softmax))", ("log_softmax",)),
        ("jit(step)/jit(step)", ("step",)),
        ("<root>", ("<root>",)),
        ("", ()),
        ("..", ()),
        ("//", ()),
        ("a." * 100_000 + "b", (*["a"] * 32, "a." * 99_968 + "b")),
    ],
    ids=str,
)
def test_split(path: str, levels: tuple[str, ...]) -> None:
    assert split(path) == levels


def test_the_names_of_real_models() -> None:
    bert = name_places(frozenset(BERT))
    assert (
        bert["m.encoder.layer.3.attention.self.query"][1]
        == "encoder.layer.*.attention.self.query"
    )
    parts = {
        f"encoder.layer.*.{part}" for part in ("attention", "intermediate", "output")
    }
    assert {name for name, _ in bert.values()} == {
        "<root>",
        "embeddings.LayerNorm",
        *parts,
    }
    mobilenet = {name for name, _ in name_places(frozenset(MOBILENET_TOSA)).values()}
    assert mobilenet == {
        "conv1_relu_1.Relu6",
        "conv_dw_*_relu_1.Relu6",
        "conv_pw_*_relu_1.Relu6",
    }
    places = [
        f"{TF}/encoder/layer_._{i}/ffn.{j}/output/dense/Tensordot"
        for i in range(6)
        for j in range(3)
    ]
    mobilebert = name_places(
        frozenset([*places, f"{TF}/embeddings/add", "tfl.quantize"])
    )
    ffn = "encoder.layer_._*.ffn.*.output.dense"
    assert {full for _, full in mobilebert.values()} == {
        f"{ffn}.Tensordot",
        "embeddings.add",
        "tfl.quantize",
    }
    assert mobilebert[places[0]][0] == ffn
    jax = name_places(frozenset(JAX))
    assert jax["jit(step)/jvp(MLP)/fc0/dot_general"][1] == "fc*.dot_general"
    assert jax["jit(step)/transpose(jvp(MLP))/fc0/reduce_sum"][1] == "fc*.reduce_sum"
    assert (jax["reduce_sum"][1], jax[JAX[-1]][1]) == ("reduce_sum", "log_softmax")
    assert len({full for _, full in jax.values()}) == 6


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        # a stem with a number needs a sibling, a number does not
        (
            "a.fc0 a.7 b.fc1",
            "a.fc0 a.* b.fc1",
        ),
        ("a.fc0 a.fc1 b.h10x2 b.h11x2", "a.fc* a.fc* b.h*x2 b.h*x2"),
        # a wrapper is what all share, and never the whole name
        (
            "m.a.x m.a.y root",
            "x y root",
        ),
        ("m.a m.a.y", "a a.y"),
        ("m.a n.a", "m.a n.a"),
        ("m", "m"),
        ("", ""),
    ],
)
def test_repeated_layers_are_one_and_a_wrapper_is_left_out(
    paths: str, names: str
) -> None:
    names_of_paths = grouped(tuple(path.split(".")) for path in paths.split())
    assert " ".join(map(".".join, names_of_paths.values())) == names


def test_many_different_names_are_cut_at_the_first_level() -> None:
    places = [
        f"{top}.{name}"
        for top in "ab"
        for name in map(chr, range(ord("a"), ord("a") + 20))
    ]
    assert {name for name, _ in name_places(frozenset(places)).values()} == {"a", "b"}


def test_sections_are_tried_in_order_and_the_rest_is_named_by_the_tree() -> None:
    sections = (
        ("queries", "*.query"),
        ("attention", "*.attention.*"),
        ("embeddings", "m.embeddings.*"),
    )
    names = name_places(frozenset(BERT), sections)
    layer = "m.encoder.layer.0"
    places = (
        f"{layer}.attention.self.query",
        f"{layer}.attention.self.key",
        "m.embeddings.LayerNorm",
    )
    assert [names[place][0] for place in places] == [
        "queries",
        "attention",
        "embeddings",
    ]
    assert names[f"{layer}.output.dense"][0] == "encoder.layer.*.output"
    # and the level itself
    for glob in (
        "*/attention/*",
        "*.attention.*",
        "a/attention",
        "a.attention",
    ):
        names = name_places(frozenset(["a/attention", "a/Attention"]), (("x", glob),))
        assert {place: name for place, (name, _) in names.items()} == {
            "a/attention": "x",
            "a/Attention": "Attention",
        }


# Amounts.

SHARED = cell(
    [
        one("e0", 3, 100, stack_bytes=64),
        one("e1", 1, 7, alloca_bytes=80),
        one("e2", 2, 9, stack_bytes=8),
    ],
    [
        ("e0", "m.a.x"),
        ("e1", "m.b.y"),
        ("e0", "m.b.y"),
        ("e0", "m.a.x"),
        ("e2", "m.b.y"),
        ("e2", None),
    ],
    whole=120,
)
AB = [("few", "m.a"), ("few", "m.a"), ("many", "m.a"), ("many", "m.b"), ("gone", "m.b")]
MANY = 9 * 10**15


@pytest.mark.parametrize(
    ("measured_cell", "parts"),
    [
        # the byte left over is the first part's; 4 bytes of the 120 belong to no entry
        # point
        (
            SHARED,
            {
                "a.x": (2, 34 + 33, 64),
                "b.y": (3, 33 + 7 + 5, 80),
                UNATTRIBUTED: (1, 4 + 4, 8),
            },
        ),
        (
            cell(
                [one("e", 4, 40)],
                [("e", place) for place in ("m.a", "m.b", "m.c", "m.c")],
            ),
            {"a": (1, 10, None), "b": (1, 10, None), "c": (2, 20, None)},
        ),
        # sites that do not agree are unattributed, however many are told
        (
            cell(
                [
                    one("few", 3, 30),
                    one("many", 1, 5),
                    one("gone", 0, 2),
                    one("unseen", MANY, 4),
                ],
                AB,
            ),
            {UNATTRIBUTED: (MANY + 4, 30 + 5 + 2 + 4, None)},
        ),
        # what is not known is None
        (
            Cell(
                KEY.model, KEY.target, "ok", {"executable_bytes": 50}, (one("e", None),)
            ),
            {UNATTRIBUTED: (None, 50, None)},
        ),
        (
            Cell(KEY.model, KEY.target, "ok", {}, (one("e", None),)),
            {UNATTRIBUTED: (None, None, None)},
        ),
        (
            cell([one("e", 1), one("f", 1, 3)], [("e", "a"), ("f", "b")]),
            {"a": (1, None, None), "b": (1, 3, None)},
        ),
        # parts that are more than the whole are no parts
        (
            cell([one("e", 1, 90)], [("e", "a")], whole=60),
            {"a": (1, 0, None), UNATTRIBUTED: (0, 60, None)},
        ),
    ],
)
def test_amounts_of_one_cell(
    measured_cell: Cell, parts: dict[str, tuple[int | None, ...]]
) -> None:
    assert parts_of(measured_cell) == {
        name: Amounts(*amounts) for name, amounts in parts.items()
    }


def test_an_entry_point_is_where_most_of_its_sites_are_of_equals_the_first() -> None:
    assert where(SHARED.program, naming(SHARED, SHARED)) == {
        "e0": "a.x",
        "e1": "b.y",
        "e2": "b.y",
    }


def test_what_moved_most_is_first_and_of_one_side_only_nothing_on_the_other() -> None:
    dispatches = [one("e0", 3, 400, stack_bytes=64), *SHARED.dispatches[1:]]
    head = replace(
        SHARED, dispatches=tuple(dispatches), metrics={"executable_bytes": 420}
    )
    assert [(part.name, part.change("code_bytes")) for part in moved(SHARED, head)] == [
        ("a.x", 200),
        ("b.y", 100),
    ]
    base = cell([one("e", 1, 5)], [("e", "m.a")])
    head = cell([one("e", 1, 8)], [("e", "m.b")])
    assert moved(base, head) == (
        ComponentDelta("b", Amounts(0, 0, None), Amounts(1, 8, None)),
        ComponentDelta("a", Amounts(1, 5, None), Amounts(0, 0, None)),
    )


def test_both_sides_share_one_naming_and_the_tree_keeps_a_section_together() -> None:
    base = cell([one("e", 1, 5)], [("e", "m.fc0")])
    head = cell([one("e", 1, 5)], [("e", "m.fc1")])
    assert ([part.name for part in tree(base, head)], moved(base, head)) == (
        ["fc*"],
        (),
    )
    nested = cell(
        [one("e", 3, 30)],
        [("e", name) for name in ("m.z.query", "m.b.dense", "m.a.query")],
    )
    names = [part.name for part in tree(nested, nested, (("queries", "*.query"),))]
    assert names == ["b.dense", "a.query", "z.query"]


levels = st.sampled_from(["m", "layer", "0", "1", "fc0", "fc1", "é", "jit(f)", "x y"])
places = st.lists(levels, min_size=1, max_size=4).map(".".join) | st.lists(
    levels, min_size=1, max_size=4
).map("/".join)
counts = st.none() | st.integers(0, 4)
sizes = st.none() | st.integers(0, 1000)
entries = st.sampled_from("abcd")
dispatch = st.builds(
    Dispatch,
    st.just("x"),
    entries,
    sites=counts,
    code_bytes=sizes,
    stack_bytes=sizes,
    alloca_bytes=sizes,
)
cells = st.builds(
    cell,
    st.lists(dispatch, max_size=6),
    st.lists(st.tuples(entries, st.none() | places), max_size=12),
    sizes,
)
sections = st.lists(
    st.tuples(
        st.sampled_from(["s", "t"]), st.sampled_from(["*fc*", "m.*", "*.1.*", "*"])
    ),
    max_size=2,
)


@given(cells, cells, sections)
def test_parts_sum_to_the_whole_and_swapping_negates(
    base: Cell, head: Cell, globs: list[tuple[str, str]]
) -> None:
    names = naming(base, head, globs)
    forward = components(base, head, names)
    back = components(head, base, names)
    assert [
        tuple(ComponentDelta(part.name, part.head, part.base) for part in parts)
        for parts in back
    ] == list(forward)
    assert moved(base, base, globs) == ()
    for side, parts in (
        (base, [part.base for part in forward[1]]),
        (head, [part.head for part in forward[1]]),
    ):
        codes = sum(row.code_bytes or 0 for row in side.dispatches)
        whole = side.value("executable_bytes")
        frames = [
            row.alloca_bytes if row.stack_bytes is None else row.stack_bytes
            for row in side.dispatches
        ]
        assert sum(part.dispatch_sites or 0 for part in parts) == sum(
            row.sites or 0 for row in side.dispatches
        )
        assert sum(part.code_bytes or 0 for part in parts) == (
            codes if whole is None else whole
        )
        assert all(
            (amount or 0) >= 0 for part in parts for amount in map(part.get, AMOUNTS)
        )
        stacks = [part.stack_bytes for part in parts if part.stack_bytes is not None]
        assert max(stacks, default=None) == max(
            (frame for frame in frames if frame is not None), default=None
        )
    for amount_name in ("dispatch_sites", "code_bytes"):
        if all(
            None not in (part.base.get(amount_name), part.head.get(amount_name))
            for part in forward[1]
        ):
            changes = [
                sum(part.change(amount_name) for part in parts) for parts in forward
            ]
            wholes = [
                sum(getattr(part, side).get(amount_name) for part in forward[1])
                for side in ("base", "head")
            ]
            assert changes == [wholes[1] - wholes[0]] * 2


@given(st.lists(places, max_size=8), cells, sections)
def test_every_place_has_one_name_and_every_dispatch_most_of_its_sites(
    place_names: list[str], measured_cell: Cell, globs: list[tuple[str, str]]
) -> None:
    names = name_places(frozenset(place_names), tuple(globs))
    assert names.keys() == {
        place for place in place_names if any(split(place))
    } and all(map(all, names.values()))
    names = naming(measured_cell, measured_cell, globs)
    assert measured_cell.program is not None
    for entry, best in where(measured_cell.program, names).items():
        spots = [
            site.component or ""
            for site in measured_cell.program.sites
            if site.entry_point == entry
        ]
        counted = Counter(
            names[spot][0] if spot in names else UNATTRIBUTED for spot in spots
        )
        assert counted[best] == max(counted.values())
