"""bot.explain.whole_models: the split of a program's sites, with known answers, and what makes it unknown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from replacing import replace

from bot.core.program import Program, Site
from bot.core.snapshot import Cell, CellKey, CompilerInfo, Dispatch, FusionCounts, Snapshot, SourceInfo
from bot.explain.whole_models import COMPUTE_BOUND, fusion_counts
from bot.readers.ir_worker import ir_kinds

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
CELL = Cell(
    CellKey("bert", "cuda"),
    "ok",
    metrics={"linalg_ops": 31},
    dispatches=ROWS,
    program=Program(linalg_ops_before=97, sites=SITES),
)


def snapshot(*cells: Cell) -> Snapshot:
    return Snapshot(CompilerInfo("3.13.0", "", "0"), SourceInfo(), tuple(sorted(cells, key=lambda cell: cell.key)))


def on(target: str, cell: Cell = CELL) -> Cell:
    return replace(cell, key=CellKey("bert", target))


def test_sites_are_split_by_what_bounds_them_and_by_when_they_run() -> None:
    assert fusion_counts(snapshot(CELL)).get("bert") == FusionCounts(97, 31, 4, 2, 2)


def test_what_is_compute_bound_is_what_the_classifier_of_the_ir_calls_so() -> None:
    assert COMPUTE_BOUND == ir_kinds.COMPUTE_BOUND


def test_an_initializer_may_launch_what_no_row_knows_the_steady_state_may_not() -> None:
    assert fusion_counts(snapshot(replace(CELL, dispatches=ROWS[1:]))).get("bert") is None
    kept = tuple(site for site in SITES if site.entry_point != "main_dispatch_0_conv")
    fewer = replace(CELL, dispatches=ROWS[1:], program=Program(sites=kept))
    assert fusion_counts(snapshot(fewer)).get("bert") == FusionCounts(None, 31, 2, 2, 2)


def test_executables_that_share_a_name_and_disagree_leave_it_unknown() -> None:
    alike = replace(CELL, dispatches=(*ROWS, Dispatch("e9", ROWS[0].name, "matmul")))
    assert fusion_counts(snapshot(alike)).get("bert") == fusion_counts(snapshot(CELL)).get("bert")
    for extra in (["pack"], ["pack", "conv"], ["conv", "pack"]):
        rows = (*ROWS, *(Dispatch(f"f{kind}", ROWS[0].name, kind) for kind in extra))
        assert fusion_counts(snapshot(replace(CELL, dispatches=rows))).get("bert") is None


def test_the_first_cell_that_can_say_it_does() -> None:
    unread = replace(on("aarch64"), program=None)
    failed = replace(on("b"), status="failed")
    second = replace(on("x86"), metrics={"linalg_ops": 99})
    refused = replace(on("c"), status="over-stack-limit")
    assert fusion_counts(snapshot(unread, failed, refused, second)).get("bert") == FusionCounts(97, 31, 4, 2, 2)
    assert fusion_counts(snapshot(unread, failed)).get("bert") is None
    assert fusion_counts(snapshot(CELL)).get("gpt2") is None


def test_a_program_without_sites_has_none_of_any_kind() -> None:
    assert fusion_counts(snapshot(replace(CELL, program=Program()))).get("bert") == FusionCounts(None, 31, 0, 0, 0)


kinds = st.sampled_from(["matmul", "conv", "attention", "reduction", "copy", "other"])


@given(st.lists(kinds, min_size=1, max_size=6), st.data())
def test_the_parts_sum_to_the_sites(kinds: list[str], data: st.DataObject) -> None:
    rows = tuple(Dispatch(f"e{i}", f"d{i}", kind) for i, kind in enumerate(kinds))
    site = st.builds(Site, st.sampled_from([row.name for row in rows]), st.none(), st.booleans())
    sites = tuple(data.draw(st.lists(site, max_size=12)))
    counts = fusion_counts(snapshot(replace(CELL, dispatches=rows, program=Program(sites=sites)))).get("bert")
    assert counts is not None
    assert counts.compute_bound_sites + counts.memory_bound_sites + counts.initializer_sites == len(sites)
    heavy = sum(kinds[int(site.entry_point[1:])] in COMPUTE_BOUND for site in sites if not site.initializer)
    assert counts.compute_bound_sites == heavy


@pytest.mark.parametrize("kind", ["elementwise", "reduction", "transpose", "pack", "copy", "other", "softmax"])
def test_everything_else_is_memory_bound(kind: str) -> None:
    cell = replace(CELL, dispatches=(Dispatch("e", "d", kind),), program=Program(sites=(Site("d"),)))
    assert fusion_counts(snapshot(cell)).get("bert") == FusionCounts(None, 31, 0, 1, 0)
