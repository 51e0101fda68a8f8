"""Comment, page and `explain` draw one story of a build, which `report.json` carries whole."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import everyday
import pytest
import report_factory as make
from json_texts import report_to_json
from page_texts import content, render_html
from replacing import replace
from test_adoption import MODELS, adopted
from test_told_thrice import fallen, unrepeated

from bot.cli.main import main
from bot.config.configuration import load_config
from bot.core.cell_story import cell_story, report_index
from bot.core.explanation import PassChange
from bot.core.findings import Finding
from bot.core.report import Baseline, Report
from bot.core.report_reading import file_index, report_of
from bot.core.snapshot import Cell, CellKey
from bot.study.comparison import reported

MOBILENET = CellKey("mobilenet", "llvm-cpu-x86_64")
NOT_COMPILING = CellKey(MODELS[0], "llvm-cpu-x86_64")
Captured = pytest.CaptureFixture[str]


def judged_in_all_ways() -> Report:
    """A report with a failing, an accepted and a known finding of one build."""
    report = make.explained_small()
    (failing,) = [
        finding for finding in report.verdict.findings if finding.key == MOBILENET
    ]
    accepted = replace(failing, accepted="alice", reason="faster")
    known = replace(failing, known=True)
    findings = (failing, accepted, known)
    return replace(report, verdict=replace(report.verdict, findings=findings))


def traced() -> Report:
    """A report with a dispatch whose pass was printed for another target."""
    report = make.explained_small()
    ((key, explanation),) = report.explanations.items()
    first, *remaining = explanation.dispatches
    passed = PassChange(
        "iree-llvmcpu-peel",
        {"scf.for": 9, "arith.addi": -2},
        more=57,
        others=12,
        printed_for="llvm-cpu-aarch64",
    )
    dispatches = (replace(first, passed=passed), *remaining)
    explained = {key: replace(explanation, dispatches=dispatches)}
    return replace(report, explanations=explained)


def varying() -> Report:
    """A report of a compiler that gives base other sizes the second time."""
    base, head = everyday.sides("two_releases")
    varying_base = unrepeated(base, "a", 8)
    return reported(
        load_config(models=False), varying_base, head, Baseline("a test", None)
    )


def first_report() -> Report:
    """A report of a change that brings the configuration; one build fails."""

    def edit(key: CellKey, cell: Cell) -> Cell:
        if key == NOT_COMPILING:
            return make.failed(cell, "error: no")
        return cell

    return adopted(make.snapshot("3.13.0", edit, MODELS))


REPORTS: dict[str, Callable[[], Report]] = {
    "small": make.small,
    "explained": make.explained_small,
    "fallen": lambda: fallen(make.explained_small()),
    "judged": judged_in_all_ways,
    "traced": traced,
    "varying": varying,
    "first": first_report,
    "broken": make.broken,
    "no-baseline": make.no_baseline,
    **{case: partial(everyday.report, case) for case in everyday.CASES},
}


def without_failure(finding: Finding) -> Finding:
    """Return the finding without the failure, which the file has with its build."""
    return replace(finding, failure=None)


@pytest.mark.parametrize("name", REPORTS)
def test_the_file_has_the_story_that_the_page_draws(name: str) -> None:
    report = REPORTS[name]()
    index = report_index(report)
    row = report_of(report_to_json(report), "report.json", "")
    stored_index = file_index(row, list(index.deltas))
    assert index.deltas
    for key in index.deltas:
        story = cell_story(index, key)
        findings = [without_failure(finding) for finding in story.findings]
        stored = cell_story(stored_index, key)
        assert replace(stored, findings=[]) == replace(story, findings=[])
        assert list(stored.findings) == findings


def explained(
    report: Report, folder: Path, capsys: Captured, key: CellKey, *options: str
) -> str:
    """What the command `explain` prints of a build."""
    path = folder / "report.json"
    path.write_text(report_to_json(report), encoding="utf-8")
    cell = ["--model", key.model, "--target", key.target]
    assert main(["explain", str(path), *cell, *options]) == 0
    return capsys.readouterr().out


def test_accepted_and_known_findings_do_not_fail(
    tmp_path: Path, capsys: Captured
) -> None:
    """They printed `fail` before, as if nobody had accepted them."""
    report = judged_in_all_ways()
    lines = explained(report, tmp_path, capsys, MOBILENET).splitlines()
    value = "code size: +33,552 B (rule code size: 4KiB and 5%)"
    assert lines[1:4] == [
        f"fail: {value}",
        f"accepted by alice: {value}",
        f"known, base has it too: {value}",
    ]
    page = content(render_html(report))
    assert [page.count(mark) > 0 for mark in ("❌ code size", "☑️ code size")] == [
        True,
        True,
    ]


def test_a_varying_build_says_why_it_has_no_cause(
    tmp_path: Path, capsys: Captured
) -> None:
    report = varying()
    delta = next(
        delta
        for delta in report.deltas
        if delta.unstable
        and delta.state == "changed"
        and delta.key not in report.explanations
    )
    text = explained(report, tmp_path, capsys, delta.key)
    assert text.startswith(f"{delta.key}: changed; non-deterministic\n")
    assert f"\nno cause: {delta.noise}\n" in text
    assert "the report has no reason" not in text
    assert "changed; non-deterministic" in render_html(report)


def test_nothing_is_newly_failing_in_a_first_report(
    tmp_path: Path, capsys: Captured
) -> None:
    text = explained(first_report(), tmp_path, capsys, NOT_COMPILING)
    assert text.startswith(f"{NOT_COMPILING}: failing\n")


def test_the_folder_of_the_compiler_is_left_out(
    tmp_path: Path, capsys: Captured
) -> None:
    """The page cut this private path, and the command printed it."""
    report = make.small()
    text = explained(report, tmp_path, capsys, CellKey("bert", "vmvx"))
    assert "    bert.mlir:214:12: error: failed to distribute" in text
    assert "/home/runner" not in text.partition("To reproduce")[0]


def test_a_pass_printed_for_another_target_is_named_as_such(
    tmp_path: Path, capsys: Captured
) -> None:
    report = traced()
    words = (
        "after iree-llvmcpu-peel (printed for llvm-cpu-aarch64): 57 operations more"
        " (scf.for +9 and 13 more)"
    )
    text = " ".join(explained(report, tmp_path, capsys, MOBILENET).split())
    assert words in text
    assert words in render_html(report)
    dispatch = report.explanations[MOBILENET].dispatches[0].name
    text = explained(report, tmp_path, capsys, MOBILENET, "--dispatch", dispatch)
    heading = "After iree-llvmcpu-peel (printed for llvm-cpu-aarch64) the sides differ"
    assert heading in text
