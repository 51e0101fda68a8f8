"""bot.github.reporting: what a measuring job left, whatever that is.

And two configurations of one repository.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from action_stage import MODEL, Ran, Stage
from github_runner import pull_event
from places import ROOT

LONGER = MODEL.format("a") + "// longer\n"
MARKER = "<!-- code-size-bot:{} -->"


def measured(stage: Stage) -> tuple[Ran, str, str]:
    """A measured pull request, before it is reported; its head and its merge commit."""
    stage.main()
    head, merge = stage.open_pull({"models/a.mlir": LONGER})
    ran = stage.pull(head, merge, command="measure")
    assert ran.code == 0, ran.error
    return ran, head, merge


def reported(
    stage: Stage,
    folder: Path,
    head: str,
    merge: str,
    outcome: str = "success",
    **inputs: str,
) -> Ran:
    action_inputs = {
        "command": "report",
        "measured": str(folder),
        "outcome": outcome,
        "github_token": stage.token,
        **inputs,
    }
    payload = pull_event(1, head, "octo/repo")
    return stage.run(
        "pull_request", payload, merge, ref="refs/pull/1/merge", **action_inputs
    )


def assert_unknown(stage: Stage, ran: Ran, message: str) -> None:
    """The pull request hears why, and its check fails."""
    assert ran.code == 2 and message in ran.error, ran.error
    (body,) = stage.comments()
    assert "Code size: unknown" in body and message in body
    assert stage.conclusions == ["failure"] and ran.outputs["verdict"] == "unknown"


@pytest.mark.parametrize("outcome", ["failure", "cancelled", "success"])
def test_a_job_that_left_nothing_is_unknown_with_how_it_ended(
    stage: Stage, outcome: str
) -> None:
    stage.main()
    head, merge = stage.open_pull({"notes.txt": "one\n"})
    ended = "" if outcome == "success" else f" and ended with {outcome}"
    message = f"the job that measures left no result{ended}"
    assert_unknown(
        stage,
        reported(
            stage,
            folder=stage.home / "nothing",
            head=head,
            merge=merge,
            outcome=outcome,
        ),
        message,
    )


def test_what_failed_in_the_job_that_measures_is_reported_with_its_exit_code(
    stage: Stage,
) -> None:
    stage.main()
    ran = stage.pull(*stage.open_pull({"code-size.yml": stage.config("no-such-fake")}))
    assert ran.code == 4 and "is not a compiler" in ran.error, ran.error
    assert "is not a compiler" in stage.comments()[0] and stage.conclusions == [
        "failure"
    ]


def link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/hostname")


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def large(path: Path) -> None:
    os.truncate(path, (32 << 20) + 1)


def of_another_commit(path: Path) -> None:
    text = path.read_text()
    (sha,) = re.findall(r'"sha": ?"([0-9a-f]{40})"', text)
    path.write_text(text.replace(sha, "f" * 40))


def hostile_default(option: str) -> dict[str, Any]:
    """Return a changed default as a compiler could write it."""
    tried = {
        "status": "proved",
        "moved_bytes": 100,
        "restored_bytes": 100,
        "dispatch": "<b>@everyone</b>",
    }
    return {"option": option, "base": "<b>", "head": "x" * 1_000, "tried": tried}


def changed_default(path: Path, option: str) -> None:
    handed = json.loads(path.read_text())
    path.write_text(
        json.dumps({**handed, "changed_defaults": [hostile_default(option)]})
    )


CHANGES: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "a link": ("head.json", link, "artifact head.json: is not a plain file"),
    "a pipe": ("base.json", fifo, "artifact base.json: is not a plain file"),
    "too large": (
        "head.json",
        large,
        "artifact head.json: has more than 33554432 bytes",
    ),
    "missing": ("base.json", Path.unlink, "artifact base.json: is missing"),
    "not text": (
        "head.json",
        lambda path: path.write_bytes(b"\xff\xfe"),
        "artifact head.json: is not UTF-8",
    ),
    "no JSON": (
        "measured.json",
        lambda path: path.write_text("{"),
        "artifact measured.json: ",
    ),
    "a default that is no option": (
        "measured.json",
        lambda path: changed_default(path, "[click](https://evil.example)"),
        "artifact measured.json: ",
    ),
    "another schema": (
        "measured.json",
        lambda path: path.write_text("{}"),
        "its schema is missing",
    ),
    "another head": (
        "head.json",
        of_another_commit,
        "artifact head.json: is of commit ffffffffff, but ",
    ),
    "another base": (
        "base.json",
        of_another_commit,
        "artifact base.json: does not belong to the base of the merge commit",
    ),
    "no texts": (
        "texts.json",
        lambda path: path.write_text("[]"),
        "artifact texts.json: ",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_files_that_a_compiler_changed_are_refused(stage: Stage, change: str) -> None:
    ran, head, merge = measured(stage)
    name, lie, message = CHANGES[change]
    lie(ran.out / name)
    assert_unknown(stage, reported(stage, ran.out, head, merge), message)


def test_words_that_a_compiler_wrote_are_cut_and_escaped_and_no_lie_makes_a_stored_base(
    stage: Stage,
) -> None:
    ran, head, merge = measured(stage)
    path = ran.out / "measured.json"
    handed = json.loads(path.read_text())
    handed["notes"] = ["<b>@everyone</b> " + "x" * 5000] * 30
    handed["baseline"] |= {
        "rule": "**trust me**; stored snapshot",
        "sha": "f" * 40,
        "distance": 0,
    }
    handed["changed_defaults"] = [hostile_default("--iree-x")]
    path.write_text(json.dumps(handed))
    ran = reported(stage, ran.out, head, merge)
    assert ran.code == 0, ran.error
    assert [changed.option for changed in ran.report.changed_defaults] == ["--iree-x"]
    assert (
        ran.report.baseline.rule
        == "first parent of the merge commit; measured in this run"
    )
    assert len(ran.report.notes) <= 20 and max(map(len, ran.report.notes)) <= 501
    (body,) = stage.comments()
    assert "<b>" not in body and "trust me" not in body
    assert "default of --iree-x" in body and "x" * 600 not in body


def test_a_report_without_a_token_says_so(stage: Stage) -> None:
    ran, head, merge = measured(stage)
    ran = reported(stage, ran.out, head, merge, github_token="")
    assert ran.code == 2 and ran.error.startswith("input github-token: is missing"), (
        ran.error
    )


# --- two configurations ----------------------------------------------------------------------------------------------


def test_two_configurations_have_a_comment_a_check_and_a_label_of_their_own(
    stage: Stage,
) -> None:
    """The recipe of docs/github.md: each configuration has a `report_id`, and a copy of the workflow."""
    keys: dict[str, Any] = {"states": {"changed": "fail"}}
    ids = ("small", "large")
    stage.main(
        {
            f"ci/{name}.yml": stage.config(
                models=["../models/*.mlir"], report_id=name, **keys
            )
            for name in ids
        }
    )
    pull = stage.open_pull({"models/a.mlir": LONGER})

    def verdicts() -> dict[str, str]:
        return {
            name: stage.pull(*pull, config=f"ci/{name}.yml").outputs["verdict"]
            for name in ids
        }

    assert verdicts() == {"small": "fail", "large": "fail"}
    assert [len(stage.comments(MARKER.format(name))) for name in ids] == [1, 1]
    assert {check["name"] for check in stage.hub.check_runs} == {
        f"code size {name} (main)" for name in ids
    }
    stage.hub.add_label(1, "Code-Size-Approved-Small", by="alice")
    assert verdicts() == {"small": "warn", "large": "fail"}
    stage.hub.add_label(1, "code-size-approved", by="alice")
    assert verdicts() == {"small": "warn", "large": "warn"}


@pytest.mark.parametrize("label", ["code-size-approved", "CODE-SIZE-APPROVED-small"])
def test_a_label_that_accepts_some_report_starts_a_run_and_another_does_not(
    stage: Stage, label: str
) -> None:
    stage.main()
    head, merge = stage.open_pull({"models/a.mlir": LONGER})
    payload = pull_event(1, head, "octo/repo", "labeled")
    for name, starts in (
        (label, True),
        ("code-size-approvedly", False),
        ("bug", False),
    ):
        payload["label"].update(name=name)
        ran = stage.run(
            "pull_request", payload, merge, ref="refs/pull/1/merge", command="measure"
        )
        assert ran.code == 0 and ("nothing to do" not in ran.said) is starts, ran.said


def test_a_copy_of_the_workflow_with_another_name_and_report_id_shares_no_group_and_no_artifact() -> (
    None
):
    text = (ROOT / "configs/workflows/code-size.yml").read_text(encoding="utf-8")
    copy = text.replace("-default", "-small").replace(
        "name: code size\n", "name: code size small\n", 1
    )

    def names(workflow: str) -> set[str]:
        loaded = yaml.safe_load(workflow)
        jobs = loaded["jobs"].values()
        groups = {job["concurrency"]["group"] for job in jobs}
        artifact_names = {
            step["with"].get("name", "")
            for job in jobs
            for step in job["steps"]
            if "with" in step
        }
        of_run = {
            name.replace("${{ github.workflow }}", loaded["name"])
            for name in groups | artifact_names
        }
        return of_run - {""}

    assert len(names(text)) == len(names(copy)) > 5 and not names(text) & names(copy)
