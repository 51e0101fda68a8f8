"""The check run: conclusion, title, summary within the limit, annotations on lines that are there."""

from __future__ import annotations

import pytest
import report_factory as make
from hypothesis import given
from hypothesis import strategies as st
from replacing import replace
from test_comment import RUN, accepted, assert_harmless, pulled

from bot.core.policy import Verdict, judge
from bot.core.publication import CheckRun
from bot.core.report import Report
from bot.core.snapshot import CellKey
from bot.errors import BotError
from bot.show.comment import (
    ANNOTATIONS_LIMIT,
    CHECK_SUMMARY_LIMIT,
    broken_check,
    check_run,
    model_paths,
)
from bot.show.renderers import length

CONFIG = "configs/code-size.yml"
PATHS = {"bert": "models/bert.mlir", "mobilenet": "models/mobilenet.mlir"}


def check(report: Report, paths: dict[str, str] | None = None) -> CheckRun:
    return check_run(report, config_path=CONFIG, model_paths=PATHS if paths is None else paths)


def test_the_conclusion_is_the_verdict() -> None:
    small = pulled(make.small())
    conclusions = {
        "pass": check(make.none()).conclusion,
        "known": check(make.usual()).conclusion,
        "warn": check(make.partly()).conclusion,
        "fail": check(small).conclusion,
        "accepted": check(accepted(small, 2)).conclusion,
        "one accepted": check(accepted(small, 1)).conclusion,
        "broke": check(replace(make.none(), broke="a shard was lost")).conclusion,
    }
    assert conclusions == {
        "pass": "success",
        "known": "success",
        "warn": "neutral",
        "fail": "failure",
        "accepted": "neutral",
        "one accepted": "failure",
        "broke": "failure",
    }


def test_name_and_title() -> None:
    made = check(make.small())
    assert (made.name, made.title) == (
        "code size",
        "❌ Code size: 1 of 4 builds newly broken · 1 of 4 builds over the limit · +33,552 B (+8.7 %) in all · "
        "1 larger",
    )
    assert check(replace(make.small(), report_id="nightly")).name == "code size nightly"
    assert check(replace(make.none(), broke="it\nbroke")).title.startswith(
        "the analysis broke: it broke; ⚪ Code size: "
    )


def test_the_summary_is_the_job_summary_within_the_limit() -> None:
    assert "**Over the limit** (1 of 4 builds)" in check(make.small()).summary
    assert "Shortened to fit" not in check(make.small()).summary
    huge = check(make.huge()).summary
    assert 10_000 < length(huge) <= CHECK_SUMMARY_LIMIT
    assert "the job summary, report.html and report.json have everything" in huge


def test_a_finding_is_told_on_its_model() -> None:
    broken, grown = check(make.small()).annotations
    assert (broken.path, broken.line, broken.level, broken.title, broken.message) == (
        "models/bert.mlir",
        1,
        "failure",
        "Code size: newly-broken",
        "bert on vmvx is newly broken: does not compile (exit code 1)",
    )
    assert (grown.path, grown.title, grown.message) == (
        "models/mobilenet.mlir",
        "Code size rule: code size",
        "artifact, mobilenet on x86_64: 50,438 → 83,990 B, +66.5 %; limit: the larger of +4 KiB and +5 %",
    )


def test_without_the_model_a_finding_is_told_on_its_rule() -> None:
    (one,) = check(make.small(), {}).annotations  # the state has no line of the configuration
    assert (one.path, one.line, one.title) == (CONFIG, 12, "Code size rule: code size")
    assert not check_run(make.small(), config_path="", model_paths={}).annotations


def test_a_warning_warns_and_an_accepted_finding_is_silent() -> None:
    warned = replace(make.small(), verdict=judge(make.small().deltas, [], {"newly-broken": "warn"}))
    assert {one.level for one in check(warned).annotations} == {"warning"}
    assert not check(make.usual(), {}).annotations, "what base had is no news"
    assert not check(accepted(make.small(), 2)).annotations
    assert len(check(accepted(make.small(), 1)).annotations) == 1


def test_cells_that_say_the_same_are_told_together_worst_first() -> None:
    report = make.many()
    notes = check(report, {}).annotations
    assert [one.level for one in notes] == sorted((one.level for one in notes), key=["failure", "warning"].index)
    assert len({(one.path, one.line, one.title) for one in notes}) == len(notes)
    told = sum(one.message.count("\n") + 1 for one in notes)
    assert told <= len(report.verdict.news) < len(report.verdict.findings) and any("\n" in one.message for one in notes)


def test_very_many_are_capped() -> None:
    report = make.huge()
    paths = model_paths(report)
    made = check(report, paths)
    assert len(paths) > ANNOTATIONS_LIMIT == len(made.annotations)
    everything = check(report, {}).annotations
    assert everything[0].message.splitlines()[-1].endswith("more findings")
    assert max(one.message.count("\n") for one in everything) == 20


def test_hostile_words_are_plain_text_in_single_lines() -> None:
    report = make.hostile()
    made = check(report, {delta.key.model: "m.mlir" for delta in report.deltas})
    assert made.annotations and made.title.isprintable() and len(made.title) <= 255
    assert_harmless(made.summary)
    for one in made.annotations:
        assert one.title.isprintable() and len(one.title) <= 255 and one.path == "m.mlir"
        assert one.message.replace("\n", "").isprintable() and one.message.count("\n") <= 20
        assert len(one.message.encode()) < 64 * 1024


def commanded(command: str) -> Report:
    report = make.small()
    cells = tuple(replace(cell, command=command) for cell in report.head.cells if cell.key == CellKey("bert", "vmvx"))
    return replace(report, head=replace(report.head, cells=cells), verdict=Verdict("pass"))


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("iree-compile - -o bert.vmfb < models/bert.mlir", "models/bert.mlir"),
        ("iree-compile - -o bert.vmfb < 'my models/bert.mlir'", "my models/bert.mlir"),
        ("iree-import-onnx models/b.onnx -o b.mlir && iree-compile - -o b.vmfb < b.mlir", "models/b.onnx"),
        ("iree-compile - < /etc/passwd", None),
        ("iree-compile - < ../bert.mlir", None),
        ("iree-compile - < a/../../bert.mlir", None),
        ("iree-compile - < ./bert.mlir", None),
        ("iree-compile - < a//b.mlir", None),
        ("iree-compile - < 'a\nb.mlir'", None),
        ("iree-compile - < 'a\x1b[31m.mlir'", None),
        ("iree-compile - < 'a\\b.mlir'", None),
        ("iree-compile - < https://example.com/b.mlir", None),
        ("iree-compile - <", None),
        ("iree-compile - < ''", None),
        ("iree-compile - < 'unclosed", None),
        ("iree-import-onnx", None),
        ("", None),
        (f"iree-compile - < {'a' * 500}", None),
    ],
)
def test_only_files_inside_the_repository_count(command: str, path: str | None) -> None:
    assert model_paths(commanded(command)).get("bert") == path


@given(st.text())
def test_any_command_is_survived(command: str) -> None:
    for path in model_paths(commanded(command)).values():
        assert path.isprintable() and not path.startswith("/") and ".." not in path.split("/")


def test_an_analysis_that_broke_at_once_fails() -> None:
    made = broken_check("default", "main", BotError("no MLIR\n@octocat" + "x" * 900), RUN[0][1])
    assert (made.name, made.conclusion, made.annotations) == ("code size (main)", "failure", ())
    assert (
        made.title.startswith("Code size: not known, the analysis broke: no MLIR @octocatx") and len(made.title) == 255
    )
    assert made.summary.startswith("⚠️ **Code size: not known** — the analysis broke: `no MLIR @octocatx")
    assert f"[workflow run](<{RUN[0][1]}>)" in made.summary and "<!--" not in made.summary
    assert "workflow run" not in broken_check("nightly", "main", BotError("x"), "").summary
