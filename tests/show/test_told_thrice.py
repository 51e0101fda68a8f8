"""One story, drawn three times: what the comment, the page and `explain` say of a cell is the same."""

from __future__ import annotations

import io
import re
from html import unescape
from pathlib import Path

import everyday
import pytest
import report_factory as make
from json_texts import report_to_json
from msgspec.structs import replace
from page_texts import content, render_html
from rich.console import Console

from bot.config.configuration import load_config
from bot.core.explanation import PartDelta
from bot.core.report import Baseline, Report
from bot.core.snapshot import Cell, CompileOutcome, Snapshot
from bot.show.comment import render_comment, render_summary
from bot.show.explained import explain
from bot.study.comparison import reported

FALLS = {"codegen": -120, "host": 900, "strategy": 32_772}
PARTS = (
    PartDelta("host", "VM [bytecode]", 1_000),
    PartDelta("host", "constants", -100),
)
REPORT = make.explained_small()


def fallen(report: Report) -> Report:
    """The report with a change by cause, in another order than by size, as a file has it.

    Of a first compile.
    """
    ((key, explanation),) = report.explanations.items()
    return replace(
        report,
        explanations={
            key: replace(explanation, waterfall=FALLS, parts=PARTS, first_compiles=True)
        },
    )


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return words_of(fallen(REPORT), tmp_path_factory.mktemp("told") / "report.json")


def words_of(report: Report, path: Path) -> list[str]:
    """The words of each place, without marks, on one line."""
    path.write_text(report_to_json(report), encoding="utf-8")
    out = io.StringIO()
    explain(
        path,
        model="mobilenet",
        target="*x86*",
        dispatch=None,
        console=Console(file=out, width=400, color_system=None),
    )
    comment = re.sub(r"</?\w+>|[`*\\|]", "", render_summary(report))
    page = unescape(re.sub(r"<[^>]+>", " ", content(render_html(report))))
    return [
        re.sub(r"\s+", " ", text.replace("\u2060", ""))
        for text in (comment, page, out.getvalue())
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        (
            "; the sides first differ in configuration; the build is non-deterministic,"
            " but sizes and counts are the same each time: cause and parts come from"
            " one compile of each side."
        ),
        (
            "24 other dispatches did not change; 2 other dispatches have the same"
            " numbers, but the program binds "
        ),
        "What deduplication left behind",
        "constants keep 6 executables apart",
        "arith.constant i32 → arith.muli: 3, 5, 7, 11",
        "stack frame",
        "main_dispatch_1_matmul_128x768x768_f32",
        "encoder.layer.1.attention",
        "2,001 → 3,990 B",
        "– → 900 B",
        "dispatch sites",
    ],
)
def test_all_three_say(drawn: list[str], sentence: str) -> None:
    assert [sentence in re.sub(r" ([;.,:)])", r"\1", text) for text in drawn] == [
        True
    ] * 3


@pytest.mark.parametrize(
    ("backend", "size_name"),
    [
        ("cuda", "PTX text"),
        ("metal-spirv", "shader source"),
        ("vmvx", "code"),
        ("", "code"),
    ],
)
def test_code_has_the_name_of_what_the_target_holds(
    tmp_path: Path, backend: str, size_name: str
) -> None:
    targets = {**REPORT.head.targets, "llvm-cpu-x86_64": backend}
    base, head = (replace(side, targets=targets) for side in (REPORT.base, REPORT.head))
    comment, page, terminal = words_of(
        replace(REPORT, base=base, head=head), tmp_path / "report.json"
    )
    assert f"dispatch component {size_name} stack frame" in comment
    assert f" change {size_name} stack frame what differs" in page
    assert (
        f"in encoder.layer.1.attention: {size_name} 2,001 → 3,990 B, stack frame"
        in terminal
    )
    assert [
        f"dispatch sites {size_name}, base → head" in text
        for text in (comment, page, terminal)
    ] == [True] * 3


def test_the_largest_part_of_the_change_comes_first(drawn: list[str]) -> None:
    comment, page, terminal = drawn
    assert (
        "By cause: strategy +32,772 B, VM [bytecode] +1,000 B, codegen −120 B,"
        " constants −100 B." in comment
    )
    table = (
        "strategy +32,772 B host program +900 B VM [bytecode] +1,000 B{} constants −100"
        " B codegen −120 B all +33,552 B"
    )
    assert table.format(",") in page
    assert table.format("") in terminal


def unrepeated(side: Snapshot, digest: str, grown_bytes: int = 0) -> Snapshot:
    """The side as measured with a compiler that gave other bytes the second time, of so many more."""

    def again(cell: Cell) -> Cell:
        metrics = {
            **cell.metrics,
            "artifact_bytes": (cell.value("artifact_bytes") or 0) + grown_bytes,
        }
        outcome = CompileOutcome(cell.status, metrics, digest * 64)
        return replace(cell, compiles=2, others=(outcome,)) if cell.measured else cell

    return replace(side, cells=tuple(map(again, side.cells)))


def test_what_does_not_repeat_itself_has_its_root_causes_and_says_of_which_compiles_they_are() -> (
    None
):
    base, head = everyday.sides("two_releases")
    plain = everyday.report("two_releases")
    config = load_config(models=False)
    report = reported(
        config, unrepeated(base, "a"), unrepeated(head, "b"), Baseline("a test", None)
    )
    assert [root.total for root in report.root_causes] == [
        root.total for root in plain.root_causes
    ]
    assert any(
        note.endswith("cause and parts come from one compile of each side")
        for note in report.notes
    )
    comment = render_comment(report)
    assert (
        "B (one compile of each side)" in comment
        and "(one compile of each side)" not in render_comment(plain)
    )


def test_where_the_sizes_vary_no_cause_is_reported() -> None:
    base, head = everyday.sides("two_releases")
    report = reported(
        load_config(models=False),
        unrepeated(base, "a", 8),
        head,
        Baseline("a test", None),
    )
    stable = {delta.key for delta in report.deltas if not delta.unstable}
    assert set(report.explanations) <= stable and "one compile" not in render_comment(
        report
    )
    assert any(
        note.endswith("; reported and judged as a range") for note in report.notes
    )
