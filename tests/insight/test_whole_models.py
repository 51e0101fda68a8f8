"""Fusion, folding, pairs and edits of whole models with known answers, and the same with the sides exchanged."""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_lowercase

import pytest
from hypothesis import given
from hypothesis import strategies as st
from replacing import replace
from strategies import snapshots as any_snapshots

from bot.core.baseline import kept
from bot.core.json_text import counts_text
from bot.core.program import Family, Program, Site
from bot.core.snapshot import (
    PAIR_METRICS,
    Cell,
    CellKey,
    CompilerInfo,
    Dispatch,
    FoldCounts,
    Folding,
    Fusion,
    FusionCounts,
    ModelEdit,
    Pair,
    Snapshot,
    SourceInfo,
)
from bot.explain.whole_models import COMPUTE_BOUND, fold_counts, fusion_counts, model_edits, overview
from bot.readers.ir_worker import ir_kinds
from bot.store.entries import pack, unpack


def snapshot(*cells: Cell) -> Snapshot:
    return Snapshot(CompilerInfo("3.13.0", "", "0"), SourceInfo(), tuple(sorted(cells, key=lambda cell: cell.key)))


# Fusion: the split of a program's sites.

ROWS = (
    Dispatch("e0", "main_dispatch_0_conv", "conv"),
    Dispatch("e1", "main_dispatch_1_attention", "attention"),
    Dispatch("e2", "main_dispatch_2_matmul", "matmul"),
    Dispatch("e3", "main_dispatch_3_reduction", "reduction"),
    Dispatch("e3", "main_dispatch_3_pack", "pack"),
)
SITES = (
    Site("_initializer_0_pack", initializer=True),
    Site("main_dispatch_0_conv"),
    Site("main_dispatch_0_conv"),
    Site("main_dispatch_1_attention"),
    Site("main_dispatch_2_matmul", initializer=True),
    Site("main_dispatch_2_matmul"),
    Site("main_dispatch_3_reduction"),
    Site("main_dispatch_3_pack"),
)
BERT = Cell(CellKey("bert", "cuda"), "ok", {"linalg_ops": 31}, ROWS, program=Program(linalg_ops_before=97, sites=SITES))


def fusion(*cells: Cell) -> FusionCounts | None:
    return fusion_counts(snapshot(*cells)).get("bert")


def on(target: str, **changes: object) -> Cell:
    return replace(BERT, key=CellKey("bert", target), **changes)


def test_sites_are_split_by_what_bounds_them_and_by_when_they_run() -> None:
    assert fusion(BERT) == FusionCounts(97, 31, 4, 2, 2)
    assert COMPUTE_BOUND == ir_kinds.COMPUTE_BOUND, "as the classifier of the IR calls it"
    # an initializer may launch what no row knows, the steady state may not
    assert fusion(replace(BERT, dispatches=ROWS[1:])) is None
    fewer = tuple(site for site in SITES if site.entry_point != "main_dispatch_0_conv")
    assert fusion(replace(BERT, dispatches=ROWS[1:], program=Program(sites=fewer))) == FusionCounts(None, 31, 2, 2, 2)
    assert fusion(replace(BERT, program=Program())) == FusionCounts(None, 31, 0, 0, 0)
    # executables that share a name and disagree leave it unknown
    assert fusion(replace(BERT, dispatches=(*ROWS, Dispatch("e9", ROWS[0].name, "matmul")))) == fusion(BERT)
    for extra in (["pack"], ["pack", "conv"], ["conv", "pack"]):
        rows = (*ROWS, *(Dispatch(f"f{kind}", ROWS[0].name, kind) for kind in extra))
        assert fusion(replace(BERT, dispatches=rows)) is None
    # the first cell that can say it does
    unread, failed = on("aarch64", program=None), on("b", status="failed")
    second, refused = on("x86", metrics={"linalg_ops": 99}), on("c", status="over-stack-limit")
    assert fusion(unread, failed, refused, second) == FusionCounts(97, 31, 4, 2, 2)
    assert fusion(unread, failed) is None


@given(
    st.lists(st.sampled_from(["matmul", "conv", "attention", "reduction", "copy", "other"]), min_size=1, max_size=6),
    st.data(),
)
def test_the_parts_sum_to_the_sites(kinds: list[str], data: st.DataObject) -> None:
    rows = tuple(Dispatch(f"e{i}", f"d{i}", kind) for i, kind in enumerate(kinds))
    site = st.builds(Site, st.sampled_from([row.name for row in rows]), st.none(), st.booleans())
    sites = tuple(data.draw(st.lists(site, max_size=12)))
    counts = fusion_counts(snapshot(replace(BERT, dispatches=rows, program=Program(sites=sites)))).get("bert")
    assert counts is not None
    assert counts.compute_bound_sites + counts.memory_bound_sites + counts.initializer_sites == len(sites)
    heavy = sum(kinds[int(site.entry_point[1:])] in COMPUTE_BOUND for site in sites if not site.initializer)
    assert counts.compute_bound_sites == heavy


# Folding: what deduplication left behind.

CELL = Cell(
    CellKey("m", "vmvx"),
    "ok",
    metrics={"dispatch_regions": 40, "executables": 10},
    dispatches=(
        Dispatch("a", "a0", code_bytes=100),
        Dispatch("a", "a1", code_bytes=20),
        Dispatch("b", "b0", code_bytes=130),
        Dispatch("c", "c0", code_bytes=50),
        Dispatch("x", "x0", code_bytes=7),
        Dispatch("y", "y0", code_bytes=7),
        Dispatch("z", "z0"),
    ),
    families=(Family("constants", ("a", "b", "c")), Family("static-shapes", ("x", "y"))),
)


def alone(row: Dispatch) -> Dispatch:
    """The same on vulkan: with 400 bytes of tables around its code."""
    return replace(row, executable_bytes=None if row.code_bytes is None else row.code_bytes + 400)


def test_the_surplus_is_all_but_the_largest_member_of_each_family() -> None:
    counts = fold_counts(CELL)
    assert counts == FoldCounts(40, 10, 2, 3, 120 + 50 + 7) and counts.folded == 0.75
    # a member whose bytes are not known leaves the sum unknown
    for family in (Family("constants", ("a", "z")), Family("constants", ("a", "absent"))):
        assert fold_counts(replace(CELL, families=(*CELL.families, family))) == FoldCounts(40, 10, 3, 4, None)
    half = replace(CELL, dispatches=(*CELL.dispatches, Dispatch("a", "a2"), Dispatch("a", "a3", code_bytes=1)))
    assert fold_counts(half) == FoldCounts(40, 10, 2, 3, None)
    # a cell without families left nothing, and an unmeasured one says nothing
    assert fold_counts(replace(CELL, families=(), metrics={})) == FoldCounts(None, None, 0, 0, 0)
    unread = replace(CELL, families=(), reasons={"families": "there are no bindings"})
    assert fold_counts(unread) == FoldCounts(40, 10, None, None, None)
    assert fold_counts(replace(CELL, status="failed")) is None
    assert fold_counts(replace(CELL, status="over-stack-limit")) == counts


@pytest.mark.parametrize(
    ("rows", "size_bytes"),
    [
        (tuple(map(alone, CELL.dispatches[:2])), 920),  # two entry points are two executables, and each is saved
        ((alone(CELL.dispatches[0]), CELL.dispatches[1]), 120),  # whole but for one entry point: its code counts
        ((Dispatch("a", "a0", executable_bytes=500),), 500),  # code that was not read
        ((Dispatch("a", "a0", code_bytes=9, executable_bytes=0),), 0),
    ],
)
def test_whole_executables_count_where_each_entry_point_has_one_of_its_own(
    rows: tuple[Dispatch, ...], size_bytes: int
) -> None:
    larger = Dispatch("b", "b0", code_bytes=1000)
    counts = fold_counts(replace(CELL, dispatches=(*rows, larger), families=(Family("constants", ("a", "b")),)))
    assert counts is not None and counts.surplus_bytes == size_bytes


@given(st.lists(st.integers(0, 999), min_size=2, max_size=9), st.permutations(range(9)))
def test_surplus_and_representative_sum_to_the_family_in_any_order(sizes: list[int], order: list[int]) -> None:
    names = [f"e{i}" for i in range(len(sizes))]
    found = tuple(Dispatch(name, name, code_bytes=size) for name, size in zip(names, sizes, strict=True))
    members = tuple(f"e{i}" for i in order if i < len(sizes))
    counts = fold_counts(replace(CELL, dispatches=found, families=(Family("offsets", members),)))
    assert counts is not None and counts.surplus_bytes is not None
    assert counts.surplus_bytes + max(sizes) == sum(sizes)
    assert counts.surplus_executables == len(sizes) - 1


# Pairs, and the whole overview.

PAIR = ("bert_s128", "bert_dyn")


def cell(model: str, target: str, status: str = "ok", **metrics: int | None) -> Cell:
    return Cell(CellKey(model, target), status, metrics=metrics)


def pairs(base: Snapshot, head: Snapshot, *named: tuple[str, str]) -> tuple[Pair, ...]:
    return overview(base, head, named).pairs


def test_both_versions_are_side_by_side_on_both_sides() -> None:
    def row(**known: int) -> dict[str, int | None]:
        return {**dict.fromkeys(PAIR_METRICS), **known}

    base = snapshot(cell("bert_s128", "cuda", executables=20, artifact_bytes=9), cell("bert_dyn", "cuda"))
    head = snapshot(cell("bert_s128", "cuda", executables=20), cell("bert_dyn", "cuda", executables=22))
    sides = ({"static": row(executables=20), "dynamic": row(executables=more)} for more in (0, 22))
    before, after = sides
    assert pairs(base, head, PAIR) == (Pair(*PAIR, "cuda", {**before, "dynamic": row()}, after),)
    both = snapshot(cell("bert_s128", "cuda"), cell("bert_dyn", "cuda", "over-stack-limit"))
    half = snapshot(cell("bert_s128", "cuda"), cell("bert_dyn", "cuda", "failed"))
    (pair,) = pairs(half, both, PAIR)
    assert (list(pair.base), list(pair.head)) == (["static"], ["static", "dynamic"])
    assert not pairs(half, snapshot(cell("bert_dyn", "cuda")), PAIR), "each side has another half"
    assert not pairs(both, both, ("gpt2_s8", "gpt2_dyn"))
    side = snapshot(*(cell(model, target) for model in "abc" for target in ("vmvx", "cuda")))
    found = pairs(side, side, ("b", "c"), ("a", "c"), ("b", "c"))
    assert [f"{p.static}{p.dynamic} {p.target}" for p in found] == ["ac cuda", "ac vmvx", "bc cuda", "bc vmvx"]


def modelled(model: str, target: str) -> Cell:
    program = Program(linalg_ops_before=5, sites=(Site("d"),))
    found = cell(model, target, linalg_ops=3, compile_cpu_ms=100, dispatch_regions=1, executables=1)
    return replace(found, dispatches=(Dispatch("e", "d", "conv"),), program=program)


def test_the_overview_is_sorted_and_leaves_out_what_no_side_knows() -> None:
    base = snapshot(modelled("m", "vmvx"), cell("x", "vmvx", "failed"))
    head = snapshot(modelled("m", "cuda"), modelled("a", "cuda"), cell("x", "vmvx", "failed"))
    found = overview(base, head, [("a", "m")])
    counts = found.fusion[1].head
    assert list(found.fusion) == [Fusion("a", None, counts), Fusion("m", counts, counts)]
    assert [(str(each.key), bool(each.base), bool(each.head)) for each in found.folding] == [
        ("a on cuda", False, True),
        ("m on cuda", False, True),
        ("m on vmvx", True, False),
    ]
    assert [each.target for each in found.pairs] == ["cuda"]


values = st.fixed_dictionaries({name: st.none() | st.integers(0, 3000) for name in ("linalg_ops", "executables")})


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    found = []
    for model, target in sorted(draw(st.sets(st.tuples(st.sampled_from("abcd"), st.sampled_from("tu"))))):
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


COMPILER = CompilerInfo("3.13.0", "", "c" * 64)
CLASSIFIER, STEM = "m.net.classifier", "m.net.stem.conv"
PLACES = {CLASSIFIER: 4, STEM: 2, "m.net.layer.0": 3, "m.net.layer.1": 3, "": 5}
NET = Program(
    operations=counts_text({"linalg.generic": 12, "arith.addf": 9, "linalg.matmul": 1}),
    places=PLACES,
    sites=(Site("d", CLASSIFIER), Site("e", STEM)),
)
EDITED = replace(
    NET,
    operations=counts_text({"linalg.generic": 13, "arith.maximumf": 1, "arith.addf": 9, "linalg.matmul": 1}),
    places={**PLACES, CLASSIFIER: 5},
)
CAME = {"arith.maximumf": 1, "linalg.generic": 1}


def read(model: str, program: Program | None, target: str = "vmvx", command: str = "") -> Cell:
    status = "ok" if program else "failed"
    return Cell(CellKey(model, target), status, program=program, command=command or f"iree-compile - < {model}.mlir")


def side(*cells: Cell, compiler: CompilerInfo = COMPILER, **models: str) -> Snapshot:
    return Snapshot(compiler, SourceInfo(), tuple(sorted(cells, key=lambda one: one.key)), models=models)


NET_BASE, NET_HEAD = side(read("net", NET), net="1" * 64), side(read("net", EDITED), net="2" * 64)


def only(base: Snapshot, head: Snapshot) -> ModelEdit:
    (edit,) = model_edits(base, head)
    return edit


def test_what_came_is_told_with_its_place_and_what_went_the_other_way_round() -> None:
    assert only(NET_BASE, NET_HEAD) == ModelEdit("net", "1" * 64, "2" * 64, CAME, {"classifier": 1})
    back = only(NET_HEAD, NET_BASE)
    assert back.operations == {"arith.maximumf": -1, "linalg.generic": -1} and back.components == {"classifier": -1}
    assert model_edits(NET_BASE, replace(NET_HEAD, models=NET_BASE.models)) == (), "the text is the same"
    none = only(NET_BASE, replace(NET_BASE, models=NET_HEAD.models))
    assert (none.operations, none.components) == ({}, {}), "an edit of no operation is one all the same"
    stored = unpack(pack(NET_BASE), "stored")
    assert stored == kept(NET_BASE) and only(stored, NET_HEAD) == only(NET_BASE, NET_HEAD)
    (named,) = model_edits(NET_BASE, NET_HEAD, (("the end", "*.classifier"),))
    assert named.components == {"the end": 1}
    one, other = (replace(side(), models=dict.fromkeys("cab", digit * 64)) for digit in "12")
    assert [edit.model for edit in model_edits(one, other)] == ["a", "b", "c"]


def test_what_a_side_does_not_say_is_not_known() -> None:
    earlier, uncounted = replace(NET, operations=None, places={}), replace(EDITED, operations="2 arith.addf")
    for base, head in ((None, EDITED), (NET, None), (earlier, EDITED), (NET, uncounted)):
        edit = only(side(read("net", base), net="1" * 64), side(read("net", head), net="2" * 64))
        assert (edit.base, edit.head, edit.operations, edit.components) == ("1" * 64, "2" * 64, None, None)
    untold = side(read("net", NET))  # which text it measured
    assert model_edits(untold, NET_HEAD) == () == model_edits(NET_HEAD, untold)
    # another compiler may read the same text otherwise
    assert only(NET_BASE, replace(NET_HEAD, compiler=replace(COMPILER, digest="d" * 64))).operations is None
    unknown = replace(COMPILER, digest="")
    assert only(replace(NET_BASE, compiler=unknown), replace(NET_HEAD, compiler=unknown)).operations is None


def test_a_model_of_one_side_alone_came_or_went_as_a_whole() -> None:
    """Also between two compilers: there is nothing that they could read differently."""
    without = side(compiler=replace(COMPILER, digest="d" * 64))
    came, went = only(without, NET_HEAD), only(NET_HEAD, without)
    assert (came.base, came.head) == (None, "2" * 64) == (went.head, went.base)
    assert came.operations == {"arith.addf": 9, "arith.maximumf": 1, "linalg.generic": 13, "linalg.matmul": 1}
    assert came.components == {"classifier": 5, "layer.*": 6, "stem.conv": 2, "unattributed": 5}
    assert went.operations == {name: -count for name, count in came.operations.items()}
    assert only(without, side(read("net", None), net="2" * 64)).operations is None


def test_the_programs_are_of_one_target_and_of_one_command_if_there_is_one() -> None:
    """Flags may decide what is read: on `cuda` they changed, and `rocm` is on one side alone."""
    odd = replace(NET, operations="tosa.add 99")
    base = side(
        read("net", odd, "cuda", "with a"),
        read("net", NET, "vmvx"),
        read("net", odd, "rocm"),
        net="1" * 64,
    )
    head = side(read("net", EDITED, "cuda", "with b"), read("net", EDITED, "vmvx"), net="2" * 64)
    assert only(base, head).operations == CAME
    assert only(side(read("net", NET, "rocm"), net="1" * 64), head).operations is None


def test_places_are_called_what_the_components_of_cells_are_called() -> None:
    """A tree of all places would be cut above `stem.conv`, as there are so many that no dispatch is named after."""
    places = {f"m.net.{letter}.part": 1 for letter in ascii_lowercase}
    edit = only(NET_BASE, side(read("net", replace(NET, places={**PLACES, **places, STEM: 3})), net="2" * 64))
    assert edit.components == {**dict.fromkeys(ascii_lowercase, 1), "stem.conv": 1}


def negated(changes: Mapping[str, int] | None) -> dict[str, int] | None:
    return None if changes is None else {name: -change for name, change in changes.items()}


@given(any_snapshots(), any_snapshots())
def test_swapping_the_sides_negates(base: Snapshot, head: Snapshot) -> None:
    assert model_edits(base, base) == ()
    there, back = model_edits(base, head), model_edits(head, base)
    assert list(back) == [
        ModelEdit(one.model, one.head, one.base, negated(one.operations), negated(one.components)) for one in there
    ]
    assert all((one.operations is None) == (one.components is None) for one in there)
