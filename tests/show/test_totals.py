"""Totals of each target: sums over the cells that both sides measured, and the worst cell in words."""

from __future__ import annotations

import pytest
import report_factory as make
from hypothesis import given
from replacing import replace
from strategies import snapshots

from bot.core.policy import Accepted, Finding, Verdict
from bot.core.record import difference, ends
from bot.core.report import Report
from bot.core.snapshot import Cell, CellKey, Snapshot
from bot.show.comment import render_comment
from bot.show.facts import build_facts
from bot.show.report import Total, everything, totals

MODELS, TARGETS = ("bert", "vit"), {"cuda": "cuda", "vmvx": "vmvx"}
BERT, VIT = CellKey("bert", "vmvx"), CellKey("vit", "vmvx")


def rows(report: Report) -> dict[str, Total]:
    return {row.target: row for row in totals(build_facts(report)).rows}


def of(base: make.Edit, head: make.Edit, targets: dict[str, str] = TARGETS) -> Report:
    return make.report(make.snapshot("1", base, MODELS, targets), make.snapshot("2", head, MODELS, targets))


def sized(**sizes: int | None) -> make.Edit:
    """Every cell with the artifact of its model; None is a cell that fails."""

    def edit(key: CellKey, found: Cell) -> Cell:
        size = sizes[key.model]
        return make.failed(found, "error") if size is None else make.with_metrics(found, artifact_bytes=size)

    return edit


def worst(report: Report, *findings: Finding) -> tuple[str, str]:
    row = rows(replace(report, verdict=Verdict("fail", findings)))["vmvx"]
    return row.mark, row.level


CALM = of(sized(bert=1_000, vit=2_000), sized(bert=1_100, vit=1_900))
GROWN = Finding(BERT, "fail", "artifact_bytes", "r", "change", "5%", "+100 B", 1_000, 1_100, allowed=50)


def test_sums_are_over_the_cells_that_both_sides_measured() -> None:
    report = of(sized(bert=1_000, vit=2_000), sized(bert=None, vit=2_500))
    row = rows(report)["vmvx"]
    assert (row.cells, row.base, row.head, row.larger, row.smaller) == (1, 2_000, 2_500, 1, 0)
    assert rows(report)[""] == everything(build_facts(report)) == Total("", 2, 4_000, 5_000, 2, 0, 0, 4, 2)


def test_a_target_without_such_a_cell_has_no_sums() -> None:
    def broken(key: CellKey, found: Cell) -> Cell:
        return make.failed(found, "error") if key.target == "vmvx" else make.grown(found, artifact_bytes=8)

    report = of(lambda _key, found: found, broken)
    row = rows(report)["vmvx"]
    assert (row.cells, row.base, row.head) == (0, None, None)
    assert "| `vmvx` | 2&nbsp;broken | n/a |" in render_comment(report)


def test_where_no_target_has_one_there_is_a_sentence_and_no_table() -> None:
    report = of(sized(bert=1, vit=1), sized(bert=None, vit=None))
    assert rows(report) == {}
    assert "No artifact to compare: no build was measured on both sides." in render_comment(report)


def test_larger_and_smaller_are_counted_apart() -> None:
    row = rows(CALM)["vmvx"]
    assert (row.base, row.head, row.larger, row.smaller) == (3_000, 3_000, 1, 1)


def test_one_target_needs_no_row_for_all() -> None:
    assert list(rows(of(sized(bert=1, vit=1), sized(bert=1, vit=2), {"vmvx": "vmvx"}))) == ["vmvx"]


def test_a_target_that_was_not_measured_has_no_row() -> None:
    found = totals(build_facts(make.usual()))
    assert "vmvx-inline" not in found.still and (found.rows, len(found.still)) == ((), 8)


def test_a_target_without_a_change_has_no_row_and_is_named_as_such() -> None:
    still = of(sized(bert=1, vit=1), sized(bert=1, vit=1))
    assert (list(rows(still)), totals(build_facts(still)).still) == ([], ("cuda", "vmvx"))


@pytest.mark.parametrize(
    ("findings", "mark", "level"),
    [
        ((GROWN,), "❌", "fail"),
        ((replace(GROWN, level="warn"),), "⚠️", "warn"),
        ((replace(GROWN, accepted=Accepted("a", "")),), "☑️", "warn"),
        ((replace(GROWN, metric=None, kind="state", limit="newly-broken"),), "💥", "fail"),
        ((replace(GROWN, metric=None, kind="state", limit="removed", level="warn"),), "⚠️", "warn"),
        ((replace(GROWN, known=True),), "", ""),
        ((replace(GROWN, accepted=Accepted("a", "")), replace(GROWN, key=VIT)), "❌", "fail"),
        ((replace(GROWN, known=True), replace(GROWN, key=VIT, level="warn")), "⚠️", "warn"),
    ],
)
def test_a_row_has_the_mark_of_the_worst_that_is_news(findings: tuple[Finding, ...], mark: str, level: str) -> None:
    assert worst(CALM, *findings) == (mark, level)
    assert rows(replace(CALM, verdict=Verdict("fail", findings)))["cuda"].mark == "", "they are of another target"


@given(snapshots(), snapshots())
def test_targets_add_up_to_all(base: Snapshot, head: Snapshot) -> None:
    facts = build_facts(make.report(base, head))
    found = totals(facts)
    each, total = [row for row in found.rows if row.target], everything(facts)
    moved = [ends(difference(row.base or 0, row.head or 0) or 0) for row in (*each, total)]
    assert moved[-1] == tuple(map(sum, zip(*moved[:-1], strict=True))) or (0, 0), "what is still has no change"
    assert (total.larger, total.smaller) == (sum(r.larger for r in each), sum(r.smaller for r in each))
    assert all((row.base is None) == (row.head is None) == (row.cells == 0) for row in (*each, total))
    assert {row.target for row in each}.isdisjoint(found.still)
