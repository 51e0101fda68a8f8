"""The three measures by target: code size, executables, and stack or registers."""

from __future__ import annotations

import pytest
import report_factory as make
from hypothesis import given
from replacing import replace
from strategies import snapshots

from bot.core.findings import Finding, Verdict
from bot.core.record import difference, ends
from bot.core.report import Report
from bot.core.snapshot import Cell, CellKey, Snapshot
from bot.show.blocks import plain
from bot.show.comment import render_comment
from bot.show.facts import build_facts
from bot.show.measures import measures_table
from bot.show.totals import Total, everything, sum_of, target_deltas

TWO_MODELS = ("bert", "vit")
TWO_TARGETS = {"cuda": "cuda", "vmvx": "vmvx"}
BERT = CellKey("bert", "vmvx")
CPU = {"llvm-cpu-x86_64": "llvm-cpu"}


def of_two(
    base: make.Edit, head: make.Edit, targets: dict[str, str] = TWO_TARGETS
) -> Report:
    return make.report(
        make.snapshot("1", base, TWO_MODELS, targets),
        make.snapshot("2", head, TWO_MODELS, targets),
    )


def with_values(**values: dict[str, int] | None) -> make.Edit:
    """Every build with these metrics of its model; None is a build that does not compile."""

    def edit(key: CellKey, cell: Cell) -> Cell:
        metrics = values[key.model]
        return (
            make.failed(cell, "error")
            if metrics is None
            else make.with_metrics(cell, **metrics)
        )

    return edit


def sized(**sizes: int | None) -> make.Edit:
    """Every build with the code size of its model."""
    return with_values(
        **{
            model: None if size is None else {"artifact_bytes": size}
            for model, size in sizes.items()
        }
    )


def sums(report: Report) -> dict[str, Total]:
    facts = build_facts(report)
    return {
        target: sum_of(target, deltas)
        for target, deltas in target_deltas(facts).items()
    }


def table(report: Report) -> dict[str, tuple[str, ...]]:
    """The first column of each row → the others, in words."""
    rows, _ = measures_table(build_facts(report))
    printed = [tuple(plain(cell) for cell in texts) for texts in rows.texts]
    return {name: values for name, *values in printed}  # type: ignore[misc]


def quiet(report: Report) -> str:
    return plain(measures_table(build_facts(report))[1])


def test_sums_are_over_the_builds_that_both_sides_measured() -> None:
    report = of_two(sized(bert=1_000, vit=2_000), sized(bert=None, vit=2_500))
    row = sums(report)["vmvx"]
    assert (row.cells, row.base, row.head, row.larger, row.smaller) == (
        1,
        2_000,
        2_500,
        1,
        0,
    )
    total = everything(report)
    assert (total.cells, total.base, total.head, total.planned, total.broken) == (
        2,
        4_000,
        5_000,
        4,
        2,
    )
    assert (
        table(report)["vmvx (1 of 2)"][0]
        == "2,000 → 2,500 B (+25.0 %), 1 newly failing"
    )


def test_a_target_of_which_nothing_changed_has_no_row() -> None:
    still = of_two(sized(bert=1, vit=1), sized(bert=1, vit=1))
    assert (table(still), quiet(still)) == ({}, "2 targets: no change.")
    targets = {"vmvx": "vmvx"}
    assert list(table(of_two(sized(bert=1, vit=1), sized(bert=1, vit=2), targets))) == [
        "vmvx"
    ]
    assert (table(make.usual()), quiet(make.usual())) == (
        {},
        "8 targets: no change.",
    ), "vmvx-inline was not measured"


def test_a_change_below_the_tolerance_is_one_line_which_names_the_tolerance() -> None:
    small = of_two(sized(bert=500_000, vit=500_000), sized(bert=500_999, vit=500_000))
    assert (table(small), quiet(small)) == (
        {},
        "2 targets: code size changed by less than 0.1 %, nothing else.",
    )
    assert list(
        table(
            of_two(sized(bert=500_000, vit=500_000), sized(bert=501_000, vit=500_000))
        )
    ) == [
        "cuda",
        "vmvx",
        "all",
    ]


def test_another_number_of_executables_has_a_row_whatever_the_sizes_do() -> None:
    base = with_values(bert={"executables": 10}, vit={"executables": 7})
    head = with_values(bert={"executables": 12}, vit={"executables": 7})
    rows = table(of_two(base, head))
    assert rows["vmvx"][2] == "17 → 19" and rows["all"][2] == "34 → 38"


def test_the_build_whose_stack_frame_changed_most_is_named() -> None:
    base = with_values(bert={"stack_max_bytes": 376}, vit={"stack_max_bytes": 64})
    head = with_values(bert={"stack_max_bytes": 1_176}, vit={"stack_max_bytes": 80})
    assert table(of_two(base, head, CPU))["x86_64"][1] == "frame 376 → 1,176 B in bert"
    assert table(of_two(head, base, CPU))["x86_64"][1] == "frame 1,176 → 376 B in bert"


def test_the_largest_growth_is_there_where_another_build_shrank_by_more() -> None:
    base = with_values(bert={"stack_max_bytes": 376}, vit={"stack_max_bytes": 9_000})
    head = with_values(bert={"stack_max_bytes": 1_176}, vit={"stack_max_bytes": 8_000})
    assert (
        table(of_two(base, head, CPU))["x86_64"][1]
        == "frame 376 → 1,176 B in bert; frame 9,000 → 8,000 B in vit"
    )


def test_allocations_are_there_where_they_changed_with_the_compilers_limit_where_they_exceed_it() -> (
    None
):
    base = with_values(bert={"stack_alloca_bytes": 64}, vit={})
    head = with_values(bert={"stack_alloca_bytes": 36_864}, vit={})
    printed = table(of_two(base, head, CPU))["x86_64"][1]
    assert (
        printed == "⚠️ allocations 64 → 36,864 B (the compiler allows 32,768 B) in bert"
    )


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("vgpr_spills", "VGPR spills 0 → 12 in bert"),
        ("registers_max", "registers 0 → 12 in bert"),
    ],
)
def test_spills_and_registers_stand_in_the_place_of_the_stack(
    metric: str, expected: str
) -> None:
    base = with_values(bert={"stack_max_bytes": 0, metric: 0}, vit={})
    head = with_values(bert={"stack_max_bytes": 800, metric: 12}, vit={})
    assert table(of_two(base, head, {"rocm": "rocm"}))["rocm"][1] == expected


def test_a_mark_stands_beside_the_number_that_it_is_about() -> None:
    base = with_values(bert={"stack_max_bytes": 376}, vit={})
    head = with_values(bert={"stack_max_bytes": 1_176}, vit={})
    report = of_two(base, head, CPU)
    key = CellKey("bert", "llvm-cpu-x86_64")
    about_stack = Finding(
        key=key,
        level="fail",
        metric="stack_max_bytes",
        rule="r",
        kind="change",
        limit="5%",
        actual="+",
        base=376,
        head=1_176,
        allowed=50,
    )
    about_size = replace(about_stack, metric="artifact_bytes")
    marked = table(replace(report, verdict=Verdict("fail", (about_stack,))))["x86_64"]
    assert marked[1] == "❌ frame 376 → 1,176 B in bert"
    assert "❌" not in " ".join(
        table(replace(report, verdict=Verdict("fail", (about_size,))))["x86_64"]
    )


def test_a_target_without_a_measured_build_has_no_sums() -> None:
    def broken(key: CellKey, cell: Cell) -> Cell:
        return (
            make.failed(cell, "error")
            if key.target == "vmvx"
            else make.grown(cell, artifact_bytes=8)
        )

    report = of_two(lambda _key, cell: cell, broken)
    row = sums(report)["vmvx"]
    assert (row.cells, row.base, row.head) == (0, None, None)
    assert "| `vmvx`: 2 newly failing | no change |" in render_comment(report)


def test_where_no_target_has_one_there_is_a_sentence_and_no_table() -> None:
    report = of_two(sized(bert=1, vit=1), sized(bert=None, vit=None))
    assert table(report) == {}
    assert (
        "No artifact to compare: no build was measured on both sides."
        in render_comment(report)
    )


@given(snapshots(), snapshots())
def test_targets_add_up_to_all(base: Snapshot, head: Snapshot) -> None:
    report = make.report(base, head)
    by_target = list(sums(report).values())
    total = everything(report)
    moved = [
        ends(difference(row.base or 0, row.head or 0) or 0)
        for row in (*by_target, total)
    ]
    assert moved[-1] == (
        sum(low for low, _ in moved[:-1]),
        sum(high for _, high in moved[:-1]),
    )
    assert (total.larger, total.smaller) == (
        sum(r.larger for r in by_target),
        sum(r.smaller for r in by_target),
    )
    assert all(
        (row.base is None) == (row.head is None) == (row.cells == 0)
        for row in (*by_target, total)
    )
