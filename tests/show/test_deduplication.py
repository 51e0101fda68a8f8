"""What a comment, a summary and a page say of deduplication: before and after, and never what was not measured."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import report_factory as make
from page_tables import rows_below
from replacing import replace

from bot.core.deduplication import MORE_EXECUTABLES, VARIES, deduplication_of
from bot.core.program import Family, Program
from bot.core.record import Spread
from bot.core.report import Report
from bot.core.snapshot import Cell, CellKey, CompileOutcome, Dispatch, Snapshot
from bot.show.comment import render_comment, render_summary
from bot.show.filters import shares
from bot.show.page import html_pieces

TARGETS = {name: make.TARGETS[name] for name in ("cuda", "llvm-cpu-x86_64", "vmvx")}
MODELS = ("bert", "vit")


def counted(regions: int | None, executables: int | None, **fields: Any) -> Any:
    """What makes a side of these counts in every build."""

    def edit(_key: CellKey, cell: Cell) -> Cell:
        counts = make.with_metrics(
            cell, dispatch_regions=regions, executables=executables
        )
        return replace(counts, program=Program(), **fields)

    return edit


def side(version: str, edit: Any) -> Snapshot:
    return make.snapshot(version, edit, MODELS, TARGETS)


def line(report: Report) -> str:
    lines = [
        line
        for line in render_comment(report).splitlines()
        if line.startswith("**Deduplication:**")
    ]
    return lines[0] if lines else ""


def rows(report: Report, folder: Path) -> list[dict[str, str]]:
    path = folder / "summary.md"
    path.write_text(render_summary(report), encoding="utf-8")
    return rows_below(path, "<summary>Deduplication")


def test_fewer_folded_regions_are_a_line_and_the_sides_swapped_say_the_opposite() -> (
    None
):
    base = side("3.11.0", counted(100, 32))
    head = side("3.13.0", counted(82, 32))
    printed = line(make.report(base, head))
    # A model has the same program on its three targets, which counts once.
    assert (
        printed
        == "**Deduplication:** 36 fewer regions are folded: 68 % → 61 % in every model"
        " on every target."
    )
    opposite = line(make.report(head, base))
    assert (
        opposite
        == "**Deduplication:** 36 more regions are folded: 61 % → 68 % in every model"
        " on every target."
    )


def test_as_many_folded_regions_of_more_are_a_line_too() -> None:
    report = make.report(
        side("3.11.0", counted(50, 30)), side("3.13.0", counted(54, 34))
    )
    assert (
        "as many regions are folded, of 100 → 108: 40 % → 37 % in every model"
        in line(report)
    )


def test_programs_that_differ_by_target_count_each() -> None:
    def edit(key: CellKey, cell: Cell) -> Cell:
        return counted(10, 9 if key.target == "cuda" else 8)(key, cell)  # type: ignore[no-any-return]

    report = make.report(side("3.11.0", counted(10, 5)), side("3.13.0", edit))
    # Of each model 4 on cuda, and 3 on the two other targets together.
    assert "14 fewer regions are folded: 50 % → 15 % in " in line(report)


def test_no_change_has_no_line_and_one_value_for_both_sides(tmp_path: Path) -> None:
    report = make.report(
        side("3.11.0", counted(100, 32)), side("3.13.0", counted(100, 32))
    )
    assert not line(report)
    for row in rows(report, tmp_path):
        assert [row["dispatch regions"], row["executables"], row["regions folded"]] == [
            "100",
            "32",
            "68",
        ]
        assert row["share folded"] == "68 %" and row["near-duplicates"] == "0"


@pytest.mark.parametrize(
    ("is_base", "expected"), [(True, "n/a¹ → 68"), (False, "68 → n/a¹")]
)
def test_a_side_without_the_build_is_not_known_there(
    tmp_path: Path, is_base: bool, expected: str
) -> None:
    key = CellKey("bert", "vmvx")
    for lost in (None, "error: does not distribute in /srv/somebody/work/model.mlir"):

        def edit(
            edited_key: CellKey, original: Cell, lost: str | None = lost
        ) -> Cell | None:
            cell: Cell = counted(100, 32)(edited_key, original)
            if edited_key != key:
                return cell
            return make.failed(original, lost) if lost else None

        lacking = side("3.11.0", edit)
        whole = side("3.13.0", counted(100, 32))
        report = make.report(lacking, whole) if is_base else make.report(whole, lacking)
        (row,) = [
            row
            for row in rows(report, tmp_path)
            if (row["model"], row["target"]) == ("bert", "vmvx")
        ]
        assert row["regions folded"] == expected
        text = (tmp_path / "summary.md").read_text(encoding="utf-8")
        assert "/srv/somebody" not in text
        assert (
            "error: does not distribute" if lost else "not measured on this side"
        ) in text
        assert not line(report)


def test_more_executables_than_regions_have_no_share(tmp_path: Path) -> None:
    def edit(key: CellKey, cell: Cell) -> Cell:
        counts = (2, 3) if key.model == "bert" else (0, 0)
        return counted(*counts)(key, cell)  # type: ignore[no-any-return]

    report = make.report(side("3.11.0", edit), side("3.13.0", counted(4, 2)))
    by_model = {row["model"]: row for row in rows(report, tmp_path)}
    assert (
        by_model["bert"]["regions folded"] == "n/a¹ → 2"
        and by_model["bert"]["share folded"] == "n/a → 50 %"
    )
    assert (
        by_model["vit"]["regions folded"] == "0 → 2"
        and by_model["vit"]["share folded"] == "– → 50 %"
    )
    assert "more executables than dispatch regions" in (
        tmp_path / "summary.md"
    ).read_text(encoding="utf-8")


def test_ranges_that_overlap_do_not_say_that_there_are_more_executables() -> None:
    cell = make.snapshot("1").cells[0]
    overlapping = deduplication_of(cell, Spread(10, 12), Spread(9, 11))
    assert overlapping.reason == VARIES
    apart = deduplication_of(cell, 4, Spread(5, 6))
    assert apart.reason == MORE_EXECUTABLES


ENTRIES = (("a", 10), ("a", 5), ("b", 40), ("c", 7), ("d", 9), ("e", 100))
"""Executable and code of each entry point."""
FAMILIES = (Family("constants", ("a", "b", "c")), Family("offsets", ("d", "e")))


def with_families(**changed: int | None) -> dict[str, Any]:
    """Executables of two families; `changed`: the code of all entry points of one."""
    sizes = [(name, changed.get(name, size)) for name, size in ENTRIES]
    dispatches = (
        Dispatch(name, f"{name}_{place}", code_bytes=size)
        for place, (name, size) in enumerate(sizes)
    )
    return {"families": FAMILIES, "dispatches": tuple(dispatches)}


def test_the_code_of_all_but_the_largest_member_is_the_bound(tmp_path: Path) -> None:
    report = make.report(
        side("3.11.0", counted(9, 5, **with_families())),
        side("3.13.0", counted(9, 5, **with_families(d=200))),
    )
    for row in rows(report, tmp_path):
        assert row["near-duplicates"] == "3"
        # Of the first family 15 and 7; of the second 9 of base, and 100 of head.
        text_form = " of PTX text" if row["target"] == "cuda" else ""
        assert row["their code, at most"] == f"31 B → 122 B{text_form}"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (with_families(c=None), "the code size of a member is unknown"),
        (
            {"families": FAMILIES, "dispatches": ()},
            "the code size of a member is unknown",
        ),
        (
            {**with_families(), "others": (CompileOutcome("failed", {}, None),)},
            "the build is non-deterministic",
        ),
    ],
)
def test_a_bound_that_is_not_known_has_its_reason(
    tmp_path: Path, fields: dict[str, Any], reason: str
) -> None:
    report = make.report(
        side("3.11.0", counted(9, 5, **fields)), side("3.13.0", counted(9, 5, **fields))
    )
    for row in rows(report, tmp_path):
        assert (row["near-duplicates"], row["their code, at most"]) == ("3", "n/a¹")
    assert reason in (tmp_path / "summary.md").read_text(encoding="utf-8")


def test_unknown_families_are_not_none(tmp_path: Path) -> None:
    fields = {"reasons": {"families": "another release writes it otherwise"}}
    report = make.report(
        side("3.11.0", counted(9, 5, **fields)), side("3.13.0", counted(9, 5, **fields))
    )
    assert {row["near-duplicates"] for row in rows(report, tmp_path)} == {"n/a¹"}
    assert "another release writes it otherwise" in (tmp_path / "summary.md").read_text(
        encoding="utf-8"
    )


def test_compilers_without_regions_have_no_table() -> None:
    report = make.report(
        side("3.11.0", counted(None, None)), side("3.13.0", counted(None, None))
    )
    assert "Deduplication" not in render_summary(report)
    assert "Deduplication" not in "".join(html_pieces(report))


def test_the_page_has_the_line_and_the_table() -> None:
    report = make.report(
        side("3.11.0", counted(100, 32)), side("3.13.0", counted(82, 32))
    )
    page = "".join(html_pieces(report))
    assert "36 fewer regions are folded" in page and "Deduplication: 6 builds" in page


@pytest.mark.parametrize(
    ("parts", "texts"),
    [
        (((68, 100), (61, 100)), ["68 %", "61 %"]),
        (((684, 1000), (681, 1000)), ["68.4 %", "68.1 %"]),
        (((999, 1000), (1, 1)), ["99.9 %", "100.0 %"]),
        (((0, 1), (1, 1000)), ["0.0 %", "0.1 %"]),
        (((1, 2), (1, 2)), ["50 %", "50 %"]),
        ((), []),
    ],
)
def test_shares_have_the_digits_that_tell_them_apart(
    parts: Any, texts: list[str]
) -> None:
    assert shares(*(Fraction(*part) for part in parts)) == texts
