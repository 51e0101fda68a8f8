"""The first report of a repository: one screen that shows what is measured from now on, everywhere, and harmless."""

from __future__ import annotations

import re
from collections import Counter

import report_factory as make
from golden_files import check_golden
from harmless import assert_harmless
from page_texts import render_html
from replacing import replace
from test_comment import RUN
from test_terminal import printed

from bot.config.configuration import load_config
from bot.core.delta import diff
from bot.core.policy import judge
from bot.core.publication import wants_comment
from bot.core.report import Adoption, Baseline, Report
from bot.core.snapshot import Cell, CellKey, CompilerInfo, Snapshot, SourceInfo
from bot.show.check import check_run
from bot.show.comment import COMMENT_LIMIT, render_comment, render_summary
from bot.show.renderers import length
from bot.study.comparison import adopting

RULES = load_config(None, models=False)
MODELS = (
    "bert_l4_f32_s128",
    "mobilenet_v1_f32_224",
    "mobilenet_v1_int8_tosa",
    "vit_l4_f32_224",
)


def _head(key: CellKey, cell: Cell) -> Cell:
    if key == CellKey("vit_l4_f32_224", "rocm"):
        return make.failed(
            cell,
            "error: uses 81920 bytes of shared memory; exceeded the limit of 65536"
            " bytes",
        )
    return (
        make.over(cell, 73_728)
        if key == CellKey("bert_l4_f32_s128", "llvm-cpu-x86_64")
        else cell
    )


def adopted(head: Snapshot) -> Report:
    """The report of a change that brings the configuration for a head."""
    base = Snapshot(
        CompilerInfo("", "", ""), SourceInfo("b" * 40), (), targets=head.targets
    )
    deltas = diff(base, head)
    verdict = judge(deltas, RULES.thresholds, RULES.states)
    report = Report(
        base=base,
        head=head,
        baseline=Baseline("first parent of the merge commit", "b" * 40),
        deltas=deltas,
        verdict=verdict,
        links=RUN,
    )
    return adopting(report, Adoption("code-size.yml"))


def first() -> Report:
    return adopted(make.snapshot("3.13.0", _head, MODELS))


def first_hostile() -> Report:
    models = tuple(text for text in make.HOSTILE if text)
    snapshot = make.snapshot(
        "3.13.0", models=models, targets=dict.fromkeys(models[:3], "cuda")
    )
    return replace(adopted(snapshot), adoption=Adoption(models[0]), links=())


def test_the_comment_is_the_golden_one() -> None:
    check_golden("first.comment.md", render_comment(first()))


def test_its_headline_counts_what_is_measured() -> None:
    report = first()
    size = sum(cell.value("artifact_bytes") or 0 for cell in report.head.cells)
    headline = f"Code size is measured from now on: 4 models on 8 targets, {size:,} B"
    limits = "2 of 32 builds failing · 30 new"
    assert render_comment(report).splitlines()[1] == f"🆕 **{headline}** · {limits}"
    for text in (render_summary(report), render_html(report), printed(report, 4_000)):
        assert (
            headline in text
            and "which the base commit does not have. Nothing was compared" in text
        )
        assert not re.search(
            "What changed:|No artifact to compare|look through it", text
        )
    assert check_run(report, config_path="", model_paths={}).conclusion == "neutral"
    assert wants_comment(report, None, always=False)


def test_nothing_is_called_newly_broken_as_nothing_was_before() -> None:
    report = first()
    assert Counter(delta.state for delta in report.deltas) == {
        "new": 30,
        "newly-broken": 2,
    }
    check = check_run(
        report, config_path="", model_paths={"vit_l4_f32_224": "vit.mlir"}
    )
    messages = [
        f"{annotation.title}; {annotation.message}" for annotation in check.annotations
    ]
    assert messages == [
        "Code size: failing; vit_l4_f32_224 on rocm: failing: does not compile (exit"
        " code 1)"
    ]
    # The page has the state's name in attributes, and as what the rule forbids.
    page = (
        render_html(report)
        .replace('newly-broken"', "")
        .replace("<code>newly-broken</code>", "")
    )
    for text in (
        page,
        render_comment(report),
        render_summary(report),
        printed(report, 4_000),
    ):
        assert "Failing" in text and not re.search(
            "newly.failing", text + check.title, re.IGNORECASE
        )


def test_what_cannot_be_compiled_alone_has_no_column_and_no_part_in_the_sum() -> None:
    head = make.snapshot("3.13.0", models=MODELS)
    inline = make.unsupported(head)
    cells = (
        (
            replace(cell, metrics={"artifact_bytes": 9})
            if cell.status == "unsupported"
            else cell
        )
        for cell in inline.cells
    )
    without_inline, beside = (
        render_comment(adopted(side))
        for side in (head, replace(inline, cells=tuple(cells)))
    )
    assert (
        "4 models on 8 targets, " in beside
        and "vmvx-inline" not in beside.partition("What was compared")[0]
    )
    assert (
        beside.partition("What was compared")[0]
        == without_inline.partition("What was compared")[0]
    )


def test_no_finding_fails_it() -> None:
    report = first()
    assert report.verdict.status == "warn" and {
        finding.level for finding in report.verdict.findings
    } == {"warn"}


def test_whatever_is_in_it_is_harmless() -> None:
    assert_harmless(render_comment(first_hostile()))


def test_it_fits_and_has_few_folds() -> None:
    for report in (first(), adopted(make.huge().head)):
        text = render_comment(report)
        assert length(text) <= COMMENT_LIMIT
        assert len(re.findall(r"^<details>", text, re.M)) <= 5
