"""Root causes: each delta is in exactly one cluster, sums agree, words are true of all members."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from replacing import replace

from bot.core.delta import CellDelta
from bot.core.explanation import (
    UNATTRIBUTED,
    DispatchDelta,
    Explanation,
    PartDelta,
    PassChange,
    RootCause,
)
from bot.core.snapshot import Cell, CellKey, Dispatch
from bot.explain.knobs import knobs, turned
from bot.explain.root_causes import root_causes
from bot.explain.strategies import configured_parts

KEYS = [
    CellKey(model, target)
    for model in ("bert", "mobilenet")
    for target in ("cpu", "gpu")
]
BASE = (
    "DoubleTilingExpert {enable_loop_peeling} | distribution = [64, 64],"
    " vector_common_parallel = [1, 4]"
)
STRATEGIES = (
    BASE,
    BASE.replace("[1, 4]", "[8, 4]"),
    BASE.replace("[1, 4]", "[1, 16]"),
    BASE.replace("64, 64", "32, 64"),
    "Distribute workgroup_size = [32, 1, 1] | {thread = [4], workgroup = [128]}",
)


def pair(
    cause: str | None,
    base_bytes: int,
    head_bytes: int,
    base: str = BASE,
    head: str = BASE,
    component: str = UNATTRIBUTED,
) -> DispatchDelta:
    """A convolution with so much code on base and on head, under these configurations."""
    rows = [
        Dispatch("d", "d", "conv", code_bytes=size, strategy=strategy)
        for size, strategy in zip((base_bytes, head_bytes), (base, head), strict=True)
    ]
    return DispatchDelta(
        base=rows[0],
        head=rows[1],
        matched="same-source",
        cause=cause,
        component=component,
    )


deltas = st.builds(
    pair,
    st.sampled_from(
        [
            None,
            "input",
            "fusion",
            "dedup-lost",
            "dedup-won",
            "strategy",
            "codegen",
            "packaging",
        ]
    ),
    st.integers(0, 500),
    st.integers(0, 500),
    st.sampled_from(STRATEGIES),
    st.sampled_from(STRATEGIES),
)
parts = st.builds(
    PartDelta,
    st.sampled_from(["container", "host"]),
    st.sampled_from(["names", "VM"]),
    st.integers(-9, 9),
)
drawn_explanations = st.builds(
    lambda dispatches, component_parts: Explanation(
        None, None, "", tuple(dispatches), parts=tuple(component_parts)
    ),
    st.lists(deltas, max_size=4),
    st.lists(parts, max_size=2),
)


def found_in(explanations: dict[CellKey, Explanation]) -> tuple[RootCause, ...]:
    cell = Cell(KEYS[0].model, KEYS[0].target, "ok", command="iree-compile -")
    return root_causes(
        [
            CellDelta(key=key, state="changed", metrics={}, base=cell, head=cell)
            for key in KEYS
        ],
        explanations,
    )


@given(st.dictionaries(st.sampled_from(KEYS), drawn_explanations))
def test_clusters_partition_the_deltas_and_swapping_the_sides_negates(
    explanations: dict[CellKey, Explanation],
) -> None:
    roots = found_in(explanations)
    dispatches = [
        delta
        for explanation in explanations.values()
        for delta in explanation.dispatches
    ]
    all_parts = [
        part for explanation in explanations.values() for part in explanation.parts
    ]
    moved = [
        (d.head.code_bytes or 0) - (d.base.code_bytes or 0)
        for d in dispatches
        if d.base and d.head
    ]
    moved += [part.change_bytes for part in all_parts]
    assert sum(root.total.deltas for root in roots) == len(dispatches) + len(all_parts)
    assert sum(root.dispatches for root in roots) == len(dispatches)
    assert sum(root.total.net_bytes for root in roots) == sum(moved)
    assert sum(root.total.absolute_bytes for root in roots) == sum(map(abs, moved))
    assert Counter(d.cause for d in dispatches) + Counter(
        p.cause for p in all_parts
    ) == sum((Counter({root.cause: root.total.deltas}) for root in roots), Counter())
    for root in roots:
        assert tuple(root.by_target) == root.targets
        assert (
            sum(tally.net_bytes for tally in root.by_target.values())
            == root.total.net_bytes
        )
        assert abs(root.example.change_bytes) <= root.total.absolute_bytes
    shares = [root.share for root in roots if root.share is not None]
    assert not shares or abs(sum(shares) - 1) < 1e-9
    amounts = [root.total.absolute_bytes for root in roots]
    assert amounts == sorted(amounts, reverse=True)
    back = found_in(
        {key: _swapped(explanation) for key, explanation in explanations.items()}
    )
    assert Counter(
        (r.cause, r.total.net_bytes, r.dispatches) for r in roots
    ) == Counter((r.cause, -r.total.net_bytes, r.dispatches) for r in back)


def _swapped(explanation: Explanation) -> Explanation:
    dispatches = tuple(
        replace(delta, base=delta.head, head=delta.base)
        for delta in explanation.dispatches
    )
    return replace(
        explanation,
        dispatches=dispatches,
        parts=tuple(
            replace(p, change_bytes=-p.change_bytes) for p in explanation.parts
        ),
    )


def test_one_knob_over_several_models_is_one_root_cause_with_numbers_of_each_target() -> (
    None
):
    wider = BASE.replace("[1, 4]", "[8, 4]")
    explanations = {
        KEYS[0]: Explanation(
            None,
            None,
            "",
            (pair("strategy", 100, 900, head=wider, component="layer.0"),),
        ),
        KEYS[2]: Explanation(
            None, None, "", (pair("strategy", 100, 150, head=wider),) * 2
        ),
    }
    (root,) = found_in(explanations)
    assert (root.cause, root.what) == ("strategy", "vector_common_parallel 1 → 8")
    assert (root.dispatches, root.models, root.targets) == (
        3,
        ("bert", "mobilenet"),
        ("cpu",),
    )
    assert (root.total.net_bytes, root.share) == (900, 1.0)
    assert (
        root.example.component,
        root.example.base_bytes,
        root.example.head_bytes,
    ) == ("layer.0", 100, 900)
    assert root.command == "iree-compile -"


def test_other_values_of_one_knob_are_other_root_causes() -> None:
    configurations = [BASE.replace("[1, 4]", f"[{size}, 4]") for size in (8, 8, 16)]
    roots = found_in(
        {
            KEYS[0]: Explanation(
                None,
                None,
                "",
                tuple(
                    pair("strategy", 1, 2, head=configuration)
                    for configuration in configurations
                ),
            )
        }
    )
    assert {(root.what, root.dispatches) for root in roots} == {
        ("vector_common_parallel 1 → 8", 2),
        ("vector_common_parallel 1 → 16", 1),
    }
    once, twice = (
        f"Tile | {'; '.join(['vector_reduction = [0, 8]'] * times)}" for times in (1, 2)
    )
    (root,) = found_in(
        {
            KEYS[0]: Explanation(
                None,
                None,
                "",
                (pair("strategy", base_bytes=1, head_bytes=2, base=once, head=twice),),
            )
        }
    )
    assert root.what == "vector_reduction [0, 8] in 1 configuration more"


def test_a_knob_of_a_cpu_is_not_that_of_a_gpu() -> None:
    wider = pair("strategy", 100, 150, head=BASE.replace("[1, 4]", "[8, 4]"))
    explanations_of_keys = {
        key: Explanation(None, None, "", (wider,)) for key in KEYS[:2]
    }
    cell = Cell(KEYS[0].model, KEYS[0].target, "ok")
    deltas = [
        CellDelta(key=key, state="changed", metrics={}, base=cell, head=cell)
        for key in KEYS
    ]
    same_backend = root_causes(
        deltas, explanations_of_keys, backends={"cpu": "llvm-cpu", "gpu": "llvm-cpu"}
    )
    different_backends = root_causes(
        deltas, explanations_of_keys, backends={"cpu": "llvm-cpu", "gpu": "rocm"}
    )
    assert [root.targets for root in same_backend] == [("cpu", "gpu")]
    assert sorted(root.targets for root in different_backends) == [("cpu",), ("gpu",)]


def test_other_code_is_reported_by_the_pass_that_makes_it_and_only_where_it_was_traced() -> (
    None
):
    def traced(base_bytes: int, head_bytes: int, **counts: int) -> DispatchDelta:
        return replace(
            pair("codegen", base_bytes, head_bytes),
            passed=PassChange("iree-peel", counts),
        )

    traced_pairs = (
        traced(146344, 57406, delin=-1440),
        traced(100, 90, delin=-64),
        traced(10, 90, addi=3),
        pair("codegen", 1, 3),
    )
    roots = found_in({KEYS[0]: Explanation(None, None, "", traced_pairs)})
    assert [(root.what, root.dispatches, root.traced) for root in roots] == [
        ("iree-peel: 64 to 1,440 delin fewer", 2, (2, 88948)),
        ("iree-peel: 3 addi more", 1, (1, 80)),
        ("other code; not traced", 1, (0, 0)),
    ]
    assert roots[0].passed == PassChange("iree-peel", {"delin": -1440})
    (root,) = found_in({KEYS[0]: Explanation(None, None, "", (traced(1, 2),))})
    assert root.what == "iree-peel: operations of other types"


def test_what_another_target_s_passes_show_is_counted_apart_from_what_was_traced() -> (
    None
):
    region = PassChange("form-regions", {"flow.dispatch.region": -1})
    deltas = (
        replace(pair("fusion", 100, 40), passed=region),
        replace(pair("fusion", 100, 90), passed=replace(region, printed_for="vmvx")),
    )
    (root,) = found_in({KEYS[0]: Explanation(None, None, "", deltas)})
    assert (root.dispatches, root.traced) == (2, (1, 60))


@given(
    st.text(alphabet="ab =[],1{}|.:", max_size=200),
    st.text(alphabet="ab =[],1{}|.:", max_size=200),
)
def test_knobs_of_a_configuration(base: str, head: str) -> None:
    assert set(turned(base, head)) == set(turned(head, base))
    assert knobs(configured_parts(BASE)) == {
        "pipeline": ("DoubleTilingExpert",),
        "enable_loop_peeling": ("set",),
        "distribution": ("[64, 64]",),
        "vector_common_parallel": ("[1, 4]",),
    }
    assert turned(BASE, STRATEGIES[4])["pipeline"] == "DoubleTilingExpert → Distribute"
    assert turned(BASE, BASE.replace(" {enable_loop_peeling}", "")) == {
        "enable_loop_peeling": "set → not set"
    }
    assert turned(BASE, BASE) == {}


def test_regions_are_formed_differently_only_where_a_side_lacks_one() -> None:
    key = KEYS[0]
    cell = CellDelta(
        key=key,
        state="changed",
        metrics={},
        base=Cell(key.model, key.target, "ok"),
        head=Cell(key.model, key.target, "ok"),
    )
    encoded = replace(pair("fusion", 100, 140), matched="same-kind-and-component")
    unpaired = DispatchDelta(
        None, Dispatch("e", "e", "matmul", code_bytes=9), "added", "fusion"
    )
    for deltas_of_cell, expected in (
        ((encoded, encoded), "other IR in regions of the same kinds: conv (2)"),
        ((encoded, unpaired), "regions formed differently: conv (1), matmul (1)"),
    ):
        [root] = root_causes([cell], {key: Explanation(None, None, "", deltas_of_cell)})
        assert root.what == expected
