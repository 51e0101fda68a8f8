"""Pairs of models: side by side, sorted, and the same with the sides exchanged."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from replacing import replace

from bot.core.program import Program, Site
from bot.core.snapshot import (
    PAIR_METRICS,
    Cell,
    CellKey,
    CompilerInfo,
    Dispatch,
    Folding,
    Fusion,
    Pair,
    Snapshot,
    SourceInfo,
)
from bot.explain.whole_models import measured_pairs, overview

BERT = ("bert_s128", "bert_dyn")


def cell(model: str, target: str, status: str = "ok", **metrics: int | None) -> Cell:
    return Cell(CellKey(model, target), status, metrics=metrics)


def snapshot(*cells: Cell) -> Snapshot:
    return Snapshot(CompilerInfo("3.13.0", "", "0"), SourceInfo(), tuple(sorted(cells, key=lambda cell: cell.key)))


def row(**known: int) -> dict[str, int | None]:
    return {**dict.fromkeys(PAIR_METRICS), **known}


def test_both_versions_are_side_by_side_on_both_sides() -> None:
    base = snapshot(cell("bert_s128", "cuda", executables=20, artifact_bytes=9), cell("bert_dyn", "cuda"))
    head = snapshot(cell("bert_s128", "cuda", executables=20), cell("bert_dyn", "cuda", executables=22))
    assert measured_pairs(base, head, [BERT]) == (
        Pair(
            *BERT,
            "cuda",
            base={"static": row(executables=20), "dynamic": row()},
            head={"static": row(executables=20), "dynamic": row(executables=22)},
        ),
    )


def test_one_side_must_have_measured_both_and_the_other_shows_what_it_has() -> None:
    both = snapshot(cell("bert_s128", "cuda"), cell("bert_dyn", "cuda", "over-stack-limit"))
    half = snapshot(cell("bert_s128", "cuda"), cell("bert_dyn", "cuda", "failed"))
    other = snapshot(cell("bert_dyn", "cuda"))
    (pair,) = measured_pairs(half, both, [BERT])
    assert (list(pair.base), list(pair.head)) == (["static"], ["static", "dynamic"])
    assert not measured_pairs(half, other, [BERT]), "each side has another half"
    assert not measured_pairs(both, both, [("gpt2_s8", "gpt2_dyn")])


def test_pairs_are_sorted_and_named_once() -> None:
    models, targets = ("a", "b", "c"), ("vmvx", "cuda")
    side = snapshot(*(cell(model, target) for model in models for target in targets))
    found = measured_pairs(side, side, [("b", "c"), ("a", "c"), ("b", "c")])
    assert [(p.static, p.dynamic, p.target) for p in found] == [
        *(("a", "c", target) for target in sorted(targets)),
        *(("b", "c", target) for target in sorted(targets)),
    ]


# The whole overview.


def modelled(model: str, target: str) -> Cell:
    program = Program(linalg_ops_before=5, sites=(Site("d"),))
    found = cell(model, target, linalg_ops=3, compile_cpu_ms=100, dispatch_regions=1, executables=1)
    return replace(found, dispatches=(Dispatch("e", "d", "conv"),), program=program)


def test_the_overview_is_sorted_and_leaves_out_what_no_side_knows() -> None:
    base = snapshot(modelled("m", "vmvx"), cell("x", "vmvx", "failed"))
    head = snapshot(modelled("m", "cuda"), modelled("a", "cuda"), cell("x", "vmvx", "failed"))
    found = overview(base, head, [("a", "m")])
    assert [each.model for each in found.fusion] == ["a", "m"]
    assert found.fusion[0] == Fusion("a", None, found.fusion[1].head)
    assert found.fusion[1].base == found.fusion[1].head
    assert [(str(each.key), bool(each.base), bool(each.head)) for each in found.folding] == [
        ("a on cuda", False, True),
        ("m on cuda", False, True),
        ("m on vmvx", True, False),
    ]
    assert [each.target for each in found.pairs] == ["cuda"]


values = st.fixed_dictionaries(
    {name: st.none() | st.integers(0, 3000) for name in ("linalg_ops", "compile_cpu_ms", "executables")}
)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    chosen = draw(st.sets(st.tuples(st.sampled_from("abcd"), st.sampled_from("tu"))))
    found = []
    for model, target in sorted(chosen):
        status = draw(st.sampled_from(["ok", "ok", "over-stack-limit", "failed"]))
        program = draw(st.none() | st.just(Program(sites=(Site("d"), Site("d", initializer=True)))))
        rows = (Dispatch("e", draw(st.sampled_from("de")), draw(st.sampled_from(["conv", "copy"]))),)
        found.append(Cell(CellKey(model, target), status, draw(values), rows, program=program))
    return snapshot(*found)


@given(snapshots(), snapshots(), st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd")), max_size=3))
def test_swapping_the_sides_swaps(base: Snapshot, head: Snapshot, named: list[tuple[str, str]]) -> None:
    there, back = (overview(*sides, named) for sides in ((base, head), (head, base)))
    assert [Fusion(each.model, each.head, each.base) for each in there.fusion] == list(back.fusion)
    assert [Folding(each.key, each.head, each.base) for each in there.folding] == list(back.folding)
    assert [replace(each, base=each.head, head=each.base) for each in there.pairs] == list(back.pairs)
    assert overview(base, base, named).fusion == tuple(
        replace(each, head=each.base) for each in there.fusion if each.base
    )
