"""From an event and the inputs to one story, its outputs and its exit code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from action_stage import MODEL, Ran, Stage, event
from fake_github import FakeGitHub
from github_runner import Runner

from bot.github.action import _STORIES_OF
from bot.inputs.action_inputs import COMMANDS, OUTPUTS

NAMES = {output.name for output in OUTPUTS}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with FakeGitHub("octo/repo") as hub:
        stage = Stage.create(tmp_path, hub)
        stage.compiler("one")
        yield stage


def test_without_an_event_there_is_nothing_to_do(stage: Stage) -> None:
    ran = stage.run("", {}, "")
    assert ran.code == 0 and ran.news.said == ["no event: nothing (not a run of GitHub Actions)", "nothing to do"]


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "auto"])
def test_without_an_event_no_command_can_be_done(stage: Stage, command: str) -> None:
    ran = stage.run("", {}, "", command=command, shards="2")
    assert ran.code == 2 and f"not for {command!r}" in ran.error and "\n" not in ran.error, ran.error


@pytest.mark.parametrize("command", ["review", "post"])
def test_a_push_is_no_review(stage: Stage, command: str) -> None:
    main = stage.main()
    for ran in (stage.push(main, command=command), asked(stage, main, command)):
        assert ran.code == 2, ran.error
        assert ran.error.startswith(f"event: this event asks for 'baseline', not for {command!r}: push to the default")
        assert ran.outputs["verdict"] == "unknown" and list(stage.store.entries()) == []


def asked(stage: Stage, sha: str, command: str) -> Ran:
    """As `code-size-bot COMMAND` instead of the input."""
    payload = event("push.branch") | {"ref": "refs/heads/main", "after": sha, "deleted": False}
    return stage.run("push", payload, sha, ref="refs/heads/main", asked=command)


def test_a_push_is_a_baseline_by_any_name(stage: Stage) -> None:
    main = stage.main()
    assert asked(stage, main, "baseline").code == 0 and len(stage.store.entries()) == 1
    assert "nothing to measure" in stage.push(main, command="baseline").said


def test_every_command_is_known() -> None:
    assert set(_STORIES_OF) == set(COMMANDS) - {"auto"}


def test_a_closed_pull_request_is_nothing_to_do(stage: Stage) -> None:
    stage.main()
    head, merge = stage.open_pull({"notes.txt": "one\n"})
    payload = event("pull_request.synchronize")
    payload["pull_request"]["head"].update(sha=head)
    ran = stage.run("pull_request", payload | {"action": "closed"}, merge)
    assert ran.code == 0 and "nothing to do" in ran.said and ran.outputs == {}


def test_outputs_of_a_review_are_those_of_the_table(stage: Stage) -> None:
    stage.main({"models/b.mlir": MODEL.format("b")})
    ran = stage.pull(*stage.open_pull({"models/a.mlir": MODEL.format("a") + "// longer\n"}))
    assert ran.code == 0 and set(ran.outputs) == NAMES - {"matrix", "baseline-artifact"}, ran.error
    assert ran.outputs["verdict"] == ran.report.verdict.status
    assert ran.outputs["report-path"] == str(ran.out)
    assert (ran.outputs["changed"], ran.outputs["same"], ran.outputs["removed"]) == ("1", "1", "0")
    assert ran.outputs["comment-url"].endswith(str(stage.hub.comments(1)[0]["id"]))
    stage.hub.assert_contract()


def test_outputs_of_the_other_stories_are_in_the_table(stage: Stage) -> None:
    main = stage.main(baseline={"store": "artifact"})
    pushed = stage.push(main)
    assert set(pushed.outputs) == {"baseline-artifact"} <= NAMES
    (file,) = (pushed.out / "baseline").iterdir()
    report_id, _, rest = file.name.partition("--")
    digest = rest.split(".")[1]
    assert pushed.outputs["baseline-artifact"] == f"code-size-baseline-{report_id}-{digest}"
    planned = stage.push(main, command="plan", shards="3")
    assert set(planned.outputs) == {"matrix"} and json.loads(planned.outputs["matrix"]) == {
        "include": [{"shard": "1/3", "cells": 1}]
    }
    broken = stage.dispatch(base="no-such-ref")
    assert set(broken.outputs) <= NAMES and broken.outputs["verdict"] == "unknown"


def test_without_a_token_everything_is_measured_and_written(stage: Stage) -> None:
    stage.main()
    head, merge = stage.open_pull({"models/a.mlir": MODEL.format("a") + "// longer\n"})
    ran = stage.pull(head, merge, github_token="")
    assert ran.code == 0, ran.error
    names = {"base.json", "head.json", "report.json", "report.html", "comment.md", "summary.md"}
    assert {path.name for path in ran.out.iterdir()} == names
    assert ran.outputs["changed"] == "1" and "comment-url" not in ran.outputs and ran.summary
    assert stage.hub.comments(1) == [] and stage.hub.check_runs == []


def test_a_forks_run_measures_and_writes_and_does_not_publish(stage: Stage) -> None:
    stage.main()
    head, merge = stage.open_pull({"models/a.mlir": MODEL.format("a") + "// longer\n"})
    ran = stage.pull(head, merge, fork=True)
    assert ran.code == 0 and ran.outputs["changed"] == "1" and (ran.out / "head.json").is_file()
    assert stage.hub.comments(1) == [] and stage.hub.check_runs == []


def test_a_wrong_input_is_one_line(stage: Stage) -> None:
    ran = stage.push(stage.main(), shard="nine")
    assert ran.code == 2 and ran.error.startswith("input shard: ") and "\n" not in ran.error


def test_a_directory_that_cannot_be_written_is_found_out_before_the_first_compile(stage: Stage) -> None:
    (stage.home / "file").write_text("in the way\n")
    ran = stage.push(stage.main(), out=str(stage.home / "file"))
    assert ran.code == 2 and "cannot be written to" in ran.error
    assert not (stage.home / "one" / "calls.jsonl").exists()


def test_the_action_as_a_process(stage: Stage) -> None:
    """Once from outside: exit codes, the one red line, and a token that is nowhere."""
    main = stage.main(fail_job=True, states={"removed": "fail"})
    runner = Runner(stage.home, stage.hub, stage.origin, stage.home / "cache")
    payload = event("push.branch") | {"ref": "refs/heads/main", "after": main, "deleted": False}
    run = partial(runner.run, "push", payload, sha=main, ref="refs/heads/main", token=stage.token, run_id=7)
    ran = run(command="review")
    assert ran.code == 2 and "code-size-bot: event: this event asks for 'baseline'" in ran.log, ran.log
    assert "Traceback" not in ran.log
    ran = run()
    assert ran.code == 0 and len(stage.store.entries()) == 1, ran.log
