"""From an event and the inputs to one story, its outputs and its exit code."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
import yaml
from action_stage import MODEL, Ran, Stage
from github_runner import Runner, event, git, push_event
from places import ROOT

from bot.config.events import COMMANDS

NAMES = set(
    yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["outputs"]
)
MEASURE = "measure one with: code-size-bot measure --compiler SPEC --out FILE"


def test_without_an_event_there_is_nothing_to_do(stage: Stage) -> None:
    ran = stage.run("", {}, "")
    assert ran.code == 0 and ran.news.said == [
        "no event: nothing (this is not a run of GitHub Actions)",
        "nothing to do",
    ]
    stage.main()
    head, merge = stage.open_pull({"notes.txt": "one\n"})
    payload = event("pull_request.synchronize")
    payload["pull_request"]["head"].update(sha=head)
    ran = stage.run("pull_request", payload | {"action": "closed"}, merge)
    assert ran.code == 0 and "nothing to do" in ran.said and ran.outputs == {}


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "auto"])
def test_without_an_event_no_command_can_be_done(stage: Stage, command: str) -> None:
    ran = stage.run("", {}, "", command=command, shards="2")
    assert (
        ran.code == 2 and f"not for {command!r}" in ran.error and "\n" not in ran.error
    ), ran.error


def test_a_push_is_no_review(stage: Stage) -> None:
    main = stage.main()
    for ran in (stage.push(main, command="post"), asked(stage, main, "post")):
        assert ran.code == 2, ran.error
        assert ran.error.startswith(
            "event: this event asks for measure, store or report, not for 'post': push"
            " to the"
        )
        assert ran.outputs["verdict"] == "unknown" and list(stage.store.entries()) == []
    assert stage.push(main).code == 0 and len(stage.store.entries()) == 1
    assert "nothing to measure" in stage.push(main, command="measure").said


def asked(stage: Stage, sha: str, command: str) -> Ran:
    """As `code-size-bot COMMAND` instead of the input."""
    return stage.run(
        "push", push_event(sha), sha, ref="refs/heads/main", chosen=command
    )


def test_outputs_of_a_review_are_those_of_the_table(stage: Stage) -> None:
    stage.main({"models/b.mlir": MODEL.format("b")})
    ran = stage.pull(
        *stage.open_pull({"models/a.mlir": MODEL.format("a") + "// longer\n"})
    )
    assert ran.code == 0 and set(ran.outputs) == NAMES - {
        "matrix",
        "asked",
        "sha",
    }, ran.error
    assert ran.outputs["verdict"] == ran.report.verdict.status
    assert ran.outputs["report-path"] == str(ran.out)
    assert (ran.outputs["changed"], ran.outputs["same"], ran.outputs["removed"]) == (
        "1",
        "1",
        "0",
    )
    assert ran.outputs["comment-url"].endswith(str(stage.hub.comments(1)[0]["id"]))
    stage.hub.assert_contract()


def test_outputs_of_the_other_stories_are_in_the_table(stage: Stage) -> None:
    main = stage.main()
    planned = stage.push(main, command="plan", shards="3")
    assert set(planned.outputs) == {"matrix"} and json.loads(
        planned.outputs["matrix"]
    ) == {"include": [{"shard": "1/3", "cells": 1, "assigned": {"a": ["vmvx"]}}]}
    assert stage.push(main).outputs == {}
    broken = stage.dispatch(base="no-such-ref")
    assert set(broken.outputs) <= NAMES and broken.outputs["verdict"] == "unknown"


@pytest.mark.parametrize("settings", [{"github_token": ""}, {"fork": True}])
def test_without_a_token_that_may_write_everything_is_measured_and_written(
    stage: Stage, settings: dict[str, Any]
) -> None:
    stage.main()
    head, merge = stage.open_pull({"models/a.mlir": MODEL.format("a") + "// longer\n"})
    ran = stage.pull(head, merge, **settings)
    assert ran.code == 0, ran.error
    names = {
        "base.json",
        "head.json",
        "report.json",
        "report.html",
        "comment.md",
        "summary.md",
    }
    assert {path.name for path in ran.out.iterdir()} == {*names, "measured.json"}
    assert ran.outputs["changed"] == "1" and "comment-url" not in ran.outputs
    assert bool(ran.summary) is bool(settings.get("fork")), (
        "elsewhere the job that reports writes it"
    )
    assert stage.hub.comments(1) == [] and stage.hub.check_runs == []


@pytest.mark.parametrize(
    ("inputs", "line"),
    [
        (
            {"pull_request": "abc"},
            "input pull-request: 'abc' is not a number from 1 to 2147483647",
        ),
        ({"base": "--x"}, "input base: '--x' begins with a dash"),
        (
            {"command": "post"},
            (
                "event: this event asks for measure or report, not for 'post': started"
                " manually"
            ),
        ),
        (
            {"targets": "vvmx"},
            "input targets vvmx: matches no target (did you mean 'vmvx'?)",
        ),
        ({"models": "b*"}, "input models b*: matches no model"),
        (
            {"base": "gone.json"},
            f"gone.json: cannot be read: No such file or directory ({MEASURE})",
        ),
        ({"command": "plan"}, "input shards: is missing"),
        ({"command": "pages"}, "main: no baseline is stored"),
    ],
)
def test_what_breaks_before_there_is_a_report_is_in_the_summary_with_the_verdict(
    stage: Stage, inputs: dict[str, str], line: str
) -> None:
    stage.main()
    stage.origin.push_main("More", {"notes.txt": "one"})
    assert_told(stage.dispatch(**inputs), line)


def assert_told(ran: Ran, line: str) -> None:
    assert ran.code in (2, 5) and ran.error.startswith(line), ran.error
    assert ran.outputs["verdict"] == "unknown"
    assert ran.summary.count("Code size: unknown") == 1 and f"`{line}" in ran.summary


def test_events_and_inputs_that_do_not_go_together_are_reported_on_their_run(
    stage: Stage,
) -> None:
    main = stage.main()
    ran = stage.run("push", {"ref": "refs/heads/main"}, main, ref="refs/heads/main")
    assert_told(ran, "event payload: repository.default_branch: is missing")
    payload = event("workflow_run.completed")
    payload["workflow_run"].update(event="pull_request")
    payload["workflow_run"]["head_repository"].update(full_name="mallory/repo")
    ran = stage.run(
        "workflow_run", payload, main, ref="refs/heads/main", github_token=""
    )
    assert_told(ran, "input github-token: is missing")
    head = stage.open_pull({"notes.txt": "one\n"})
    pages = (
        "event: pages are made only for the default branch, not for refs/pull/1/merge"
    )
    assert_told(stage.pull(*head, command="pages"), pages)
    assert stage.comments() == [] and stage.conclusions == []


@pytest.mark.parametrize(
    ("branch", "line"),
    [
        (
            "HEAD",
            (
                "code-size.yml:10: baseline.branch: 'HEAD' does not fit: a branch name"
                " has only letters"
            ),
        ),
        (
            "main/x",
            (
                "baseline: branch: branch main/x cannot be created, because there is a"
                " branch main (choose another name"
            ),
        ),
        (
            "code",
            (
                "baseline: branch: branch code cannot be created, because there is a"
                " branch code/size (choose another name"
            ),
        ),
        (
            "main",
            (
                "baseline: branch: branch main is the default branch, so the bot does"
                " not change it (name a branch"
            ),
        ),
    ],
)
def test_a_branch_that_cannot_hold_baselines_is_refused_by_name_before_the_first_compile(
    stage: Stage, branch: str, line: str
) -> None:
    main = stage.main(baseline={"store": "data-branch", "branch": branch})
    git(stage.origin.bare, "branch", "code/size", main)
    ran = stage.push(main)
    assert_told(ran, line)
    assert not [
        call
        for call in (stage.home / "one").glob("calls.jsonl")
        if ".vmfb" in call.read_text()
    ]
    assert git(stage.origin.bare, "for-each-ref", "--format=%(refname)").split() == [
        "refs/heads/code/size",
        "refs/heads/main",
    ]


def test_a_directory_that_cannot_be_written_is_found_out_before_the_first_compile(
    stage: Stage,
) -> None:
    (stage.home / "file").write_text("in the way\n")
    ran = stage.push(stage.main(), out=str(stage.home / "file"))
    assert ran.code == 2 and "cannot be written to" in ran.error
    assert not (stage.home / "one" / "calls.jsonl").exists()


def test_the_action_as_a_process(stage: Stage) -> None:
    """Once from outside: exit codes, the one red line, and a token that is nowhere."""
    main = stage.main(fail_job=True, states={"removed": "fail"})
    runner = Runner(stage.home, stage.hub, stage.origin, stage.home / "cache")
    place = {"sha": main, "ref": "refs/heads/main"}
    run = partial(
        runner.run,
        "push",
        push_event(main),
        sha=main,
        ref="refs/heads/main",
        token=stage.token,
        run_id=7,
    )
    ran = runner.job("push", push_event(main), **place, run_id=7, command="post")
    assert (
        ran.code == 2
        and "code-size-bot: event: this event asks for measure, store or report"
        in ran.log
    ), ran.log
    assert "Traceback" not in ran.log
    ran = run()
    assert ran.code == 0 and len(stage.store.entries()) == 1, ran.log
