"""`run: failing` on GitHub: the job *measure* runs artifacts, and *report* only shows what it left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from action_stage import MODEL, Ran, Stage
from github_runner import pull_event

RULES = [{"name": "any growth", "metrics": ["*"], "fail": {"absolute": 0}}]
GROWN = MODEL.format("a") + "// grown\n"
TIME = {
    "base_us": 100,
    "head_us": 120,
    "pairs": 12,
    "ratio": 1.2,
    "low": 1.1,
    "high": 1.3,
}
BUILD = {"model": "a", "target": "vmvx", "equal": False, "equal_note": "", "time": TIME}
HOSTILE = "<b>@everyone</b>"


def measured(stage: Stage, **keys: Any) -> tuple[Ran, str, str]:
    """A measured pull request whose only build fails the check."""
    stage.compiler("one", [{"model": "grown", "do": "grow"}])
    stage.main(thresholds=RULES, **keys)
    head, merge = stage.open_pull({"models/a.mlir": GROWN})
    ran = stage.pull(head, merge, command="measure")
    assert ran.code == 0, ran.error
    return ran, head, merge


def reported(stage: Stage, folder: Path, head: str, merge: str) -> Ran:
    inputs = {
        "command": "report",
        "measured": str(folder),
        "outcome": "success",
        "github_token": stage.token,
    }
    payload = pull_event(1, head, "octo/repo")
    return stage.run("pull_request", payload, merge, ref="refs/pull/1/merge", **inputs)


def handed(ran: Ran) -> dict[str, Any]:
    return dict(json.loads((ran.out / "measured.json").read_text()))


def test_the_job_that_measures_hands_over_why_nothing_ran(
    stage: Stage,
) -> None:
    """The fake compiler has no bindings that could read a program."""
    ran, head, merge = measured(stage, run="failing")
    (build,) = handed(ran)["run_times"]["builds"]
    assert (build["model"], build["target"]) == ("a", "vmvx")
    assert build["time_note"] and build.get("time") is None
    final = reported(stage, ran.out, head, merge)
    assert final.code == 0, final.error
    assert "running" not in final.said
    (body,) = stage.comments()
    assert "Run time n/a: " in body and "`a`" in body


def test_nothing_runs_unless_the_base_branch_asks(stage: Stage) -> None:
    stage.compiler("one", [{"model": "grown", "do": "grow"}])
    stage.main(thresholds=RULES)
    config = stage.config(thresholds=RULES, run="failing")
    head, merge = stage.open_pull({"models/a.mlir": GROWN, "code-size.yml": config})
    ran = stage.pull(head, merge, command="measure")
    assert ran.code == 0, ran.error
    assert "run_times" not in handed(ran)


def test_the_report_shows_what_was_handed_over(stage: Stage) -> None:
    ran, head, merge = measured(stage)
    path = ran.out / "measured.json"
    stranger = {**BUILD, "model": HOSTILE}
    runs = {"machine": HOSTILE, "builds": [BUILD, stranger]}
    path.write_text(json.dumps({**handed(ran), "run_times": runs}))
    final = reported(stage, ran.out, head, merge)
    assert final.code == 0, final.error
    (body,) = stage.comments()
    comment = body.replace("&nbsp;", " ").replace("\\", "")
    assert (
        "`a` on `vmvx`: run time | 1.20 [1.10, 1.30] slower, outputs differ" in comment
    )
    assert "<b>" not in body
    assert final.report.verdict.status == "fail"


LIES: dict[str, dict[str, Any]] = {
    "a ratio outside its interval": {**BUILD, "time": {**TIME, "ratio": 2.0}},
    "a ratio below zero": {**BUILD, "time": {**TIME, "low": -1.0}},
    "a long text": {**BUILD, "equal_note": "x" * 10_000},
    "a field that does not exist": {**BUILD, "verdict": "pass"},
}


@pytest.mark.parametrize("lie", LIES)
def test_a_run_time_that_cannot_be_is_refused(stage: Stage, lie: str) -> None:
    ran, head, merge = measured(stage)
    path = ran.out / "measured.json"
    runs = {"machine": "", "builds": [LIES[lie]]}
    path.write_text(json.dumps({**handed(ran), "run_times": runs}))
    final = reported(stage, ran.out, head, merge)
    assert final.code == 2 and "artifact measured.json" in final.error
    assert stage.conclusions == ["failure"]
