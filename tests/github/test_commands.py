"""Commands in a comment: what people who may write ask for, and what nobody can ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from action_stage import MODEL
from comment_stage import GROWN, Commands, commands_of, line_of
from github_runner import git, queue_event, queue_ref


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    with commands_of(tmp_path) as opened_commands:
        yield opened_commands


def test_compare_answers_each_command_in_its_own_comment_without_a_check(
    commands: Commands,
) -> None:
    head, _ = commands.pull(
        {"models/a.mlir": GROWN, "models/b.mlir": MODEL.format("b")}
    )
    git(commands.stage.origin.work, "push", "-q", "origin", "main:older")
    commands.hub.set_branch("older", commands.main)
    (first,) = commands.say("/code-size compare ref:older head --model a --target vm*")
    (second,) = commands.say(
        "/code-size compare base head --flags='--iree-opt-level=O2'"
    )
    for body in (first, second):
        assert (
            body.startswith("<!-- code-size-bot:default.")
            and commands.main[:10] in body
        )
    assert first.partition("\n")[0] != second.partition("\n")[0]
    assert {
        cell.key.model for cell in commands.ran["measure"].snapshot("head.json").cells
    } == {
        "a",
        "b",
    }
    assert "--iree-opt-level=O2" in commands.ran["measure"].snapshot("head.json").flags
    assert commands.conclusions(head) == [] and commands.reports == []


@pytest.mark.slow
def test_two_commands_at_once_both_get_their_answer(commands: Commands) -> None:
    commands.pull({"models/a.mlir": GROWN})
    answers = list[str]()
    _, second = commands.written("/code-size compare head base")
    _, first = commands.written("/code-size compare base head")

    def other() -> None:
        commands.after_gate = lambda: None
        ran = commands.ran
        answers.extend(commands.start(second))
        commands.ran = ran

    commands.after_gate = other
    commands.start(first)
    answers = [
        comment["body"]
        for comment in commands.hub.comments(1)
        if "<!-- code-size" in comment["body"]
    ]
    assert len({answer.partition("\n")[0] for answer in answers}) == 2


@pytest.mark.slow
def test_accept_keeps_the_reason_until_its_comment_is_deleted(
    commands: Commands,
) -> None:
    head, _ = commands.pull({"models/a.mlir": GROWN})
    (answer,) = commands.say("/code-size accept too early")
    assert "there is nothing to accept" in line_of(answer) and list(commands.ran) == [
        "gate"
    ]
    commands.say("/code-size rerun")
    assert commands.conclusions(head) == ["failure"]
    number, payload = commands.written(
        "/code-size accept It's <b>needed</b> for @octocat's FP8 kernels"
    )
    (body,) = commands.start(payload)
    assert (
        "Accepted by `alice`" in body
        and "Reason: `It's <b>needed</b> for @octocat's FP8 kernels`" in body
    )
    assert "@octocat" not in re.sub("`[^`]*`", "", body), "nobody is called"
    assert commands.conclusions(head)[-1] == "neutral"
    report = (commands.ran["report"].out / "report.json").read_text()
    assert '"reason":"It\'s <b>needed</b> for @octocat\'s FP8 kernels"' in report
    page = (commands.ran["report"].out / "report.html").read_text()
    assert "FP8 kernels" in page and "<b>needed</b>" not in page

    # It stands in later runs, as long as its comment does, and covers what was shown.
    commands.say("/code-size rerun")
    assert (
        commands.conclusions(head)[-1] == "neutral"
        and "FP8 kernels" in commands.reports[0]
    )
    commands.hub.delete_comment(number)
    commands.say("/code-size rerun")
    assert (
        commands.conclusions(head)[-1] == "failure"
        and "Accepted by" not in commands.reports[0]
    )


@pytest.mark.slow
def test_what_a_command_accepted_counts_in_a_merge_queue(commands: Commands) -> None:
    head, _ = commands.pull({"models/a.mlir": GROWN})
    commands.say("/code-size rerun")
    commands.say("/code-size accept as discussed")
    work = commands.stage.origin.work
    ref = queue_ref(1, commands.main)
    git(work, "checkout", "-q", "--detach", "main")
    git(
        work,
        "merge",
        "-q",
        "--no-ff",
        "-m",
        "Merge pull request #1 from octo/topic-1",
        head,
    )
    queued = git(work, "rev-parse", "HEAD")
    git(work, "push", "-q", "origin", f"{queued}:{ref}")
    commands.hub.add_commit(queued, [commands.main, head])
    event = queue_event(queued, commands.main, 1)
    ran = commands.stage.through("report", "merge_group", event, queued, ref=ref)
    assert commands.conclusions(queued) == ["neutral"], ran.error
    assert "Reason: `as discussed`" in ran.summary


@pytest.mark.slow
def test_a_later_label_replaces_the_acceptance_of_a_command(commands: Commands) -> None:
    head, _ = commands.pull({"models/a.mlir": GROWN})
    commands.say("/code-size rerun")
    commands.say("/code-size accept as discussed")
    commands.hub.add_label(1, "code-size-approved", by="alice")
    commands.say("/code-size rerun")
    assert (
        commands.conclusions(head)[-1] == "neutral"
        and "as discussed" not in commands.reports[0]
    )
    commands.hub.remove_label(1, "code-size-approved")
    commands.say("/code-size rerun")
    assert commands.conclusions(head)[-1] == "failure"


@pytest.mark.slow
def test_a_report_that_changed_after_the_command_is_not_accepted(
    commands: Commands,
) -> None:
    head, _ = commands.pull({"models/a.mlir": GROWN})
    commands.say("/code-size rerun")
    (report,) = [
        comment
        for comment in commands.hub.comments(1)
        if comment["body"] == commands.reports[0]
    ]
    edited = f"{report['body']}\nedited"
    _, payload = commands.written("/code-size accept as discussed")
    commands.after_gate = lambda: commands.hub.edit_comment(report["id"], edited)
    (body,) = commands.start(payload)
    assert (
        "accepts none of these findings" in body
        and commands.conclusions(head)[-1] == "failure"
    )
    commands.after_gate = lambda: None
    (answer,) = commands.start(payload)
    assert "the report changed after this command" in line_of(answer)


def test_help_and_a_mistake_are_answered_once(commands: Commands) -> None:
    commands.pull({"models/a.mlir": GROWN})
    (answer,) = commands.say("/code-size help")
    assert (
        "`/code-size rerun`" in answer
        and list(commands.ran) == ["gate"]
        and commands.gate.code == 0
    )
    _, payload = commands.written("/code-size comapre base head @mallory")
    (answer,) = commands.start(payload)
    mistake = "/code-size: unknown command 'comapre' (did you mean /code-size compare?)"
    assert line_of(answer) == f"⚠️ The command was not carried out: `{mistake}`"
    assert (
        commands.gate.code == 2
        and commands.gate.error == mistake
        and mistake in commands.gate.summary
    )
    assert commands.start(payload) == [], (
        "a run that is started again gives no second answer"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("ref:main../x head", "is neither a branch nor a tag"),
        ("ref:refs/pull/1/head head", "is neither a branch nor a tag"),
        ("ref:0123456789 head", "is neither a branch nor a tag"),
        ("ref:code-size-measured/base.json head", "is neither a branch nor a tag"),
        ("base /etc/passwd", "is not a side for a comment"),
        (
            "base head --flags=--iree-hal-dump-executable-files-to=/tmp",
            "may read or write files",
        ),
        ("base head `@mallory` $(id) ${{ github.token }}", "unexpected argument"),
    ],
)
def test_an_argument_that_names_a_file_is_refused_before_anything_is_measured(
    commands: Commands, arguments: str, message: str
) -> None:
    commands.pull({"models/a.mlir": GROWN})
    (answer,) = commands.say(f"/code-size compare {arguments}")
    assert (
        message in line_of(answer)
        and list(commands.ran) == ["gate"]
        and commands.gate.code == 2
    )


def test_a_person_without_write_access_starts_nothing_and_hears_nothing(
    commands: Commands,
) -> None:
    commands.pull({"models/a.mlir": GROWN}, fork=True)
    for body, person in [
        ("/code-size rerun", "mallory"),
        ("/code-size nonsense", "stranger"),
        ("/code-size accept I say so", "mallory"),
        ("/code-size help", "mallory"),
    ]:
        assert commands.say(body, by=person) == []
        assert list(commands.ran) == ["gate"] and commands.gate.code == 0
        assert f"command ignored: {person} has no write access" in commands.gate.said
    assert commands.hub.check_runs == []


def test_a_maintainer_commands_on_the_pull_request_of_a_fork_by_the_rules_of_its_base(
    commands: Commands,
) -> None:
    configuration = commands.stage.config(
        templates="templates", states={"changed": "pass"}, report_id="mine"
    )
    evil = {
        "code-size.yml": configuration,
        "templates/comment.md.j2": "{{ marker }}\nLooks good.\n",
    }
    head, _ = commands.pull({"models/a.mlir": GROWN, **evil}, fork=True)
    (body,) = commands.say("/code-size rerun")
    assert body in commands.reports, commands.ran["measure"].error
    assert "this report cannot check its numbers" in body
    assert commands.conclusions(head) == ["failure"], (
        "the configuration of the base judges"
    )
    (body,) = commands.say("/code-size compare base head")
    assert (
        body.startswith("<!-- code-size-bot:default.")
        and "this report cannot check its numbers" in body
    )
    assert (
        "Looks good" not in body
        and commands.ran["report"].report.verdict.status == "fail"
    )


@pytest.mark.parametrize(
    ("change", "message", "code"),
    [
        ("deleted", "command ignored: the comment was deleted", 0),
        ("edited", "command ignored: the comment was edited", 0),
        ("locked", "the conversation of #1 is locked", 3),
        ("closed", "#1: the pull request is closed", 2),
        ("conflict", "GitHub has no merge commit of its head", 2),
    ],
)
def test_what_changed_since_the_comment_ends_the_run_before_anything_is_measured(
    commands: Commands, change: str, message: str, code: int
) -> None:
    commands.pull({"models/a.mlir": GROWN})
    number, payload = commands.written("/code-size rerun")
    if change == "deleted":
        commands.hub.delete_comment(number)
    elif change == "edited":
        commands.hub.edit_comment(number, "/code-size help")
    elif change == "locked":
        commands.hub.set_pull(1, locked=True)
    elif change == "closed":
        commands.hub.set_pull(1, state="closed")
    else:
        commands.hub.set_pull(1, merge_sha=None)
    answers = commands.start(payload)
    assert list(commands.ran) == ["gate"] and commands.gate.code == code
    assert message in commands.gate.said + commands.gate.error
    assert len(answers) == (1 if code == 2 else 0)


def test_other_comments_and_events_start_no_command(commands: Commands) -> None:
    commands.pull({"models/a.mlir": GROWN})
    _, payload = commands.written("/code-size rerun")
    bodies = [
        "> /code-size rerun",
        "```\n/code-size rerun\n```",
        "Thanks!\n/code-size rerun",
    ]
    variants = [
        payload | {"comment": payload["comment"] | {"body": body}} for body in bodies
    ]
    on_issue = {
        name: value
        for name, value in payload["issue"].items()
        if name != "pull_request"
    }
    variants += [
        payload | {"action": "edited"},
        payload | {"action": "deleted"},
        payload | {"issue": on_issue},
    ]
    start = len(commands.hub.traffic)
    for variant in variants:
        assert commands.start(variant) == []
        assert (
            list(commands.ran) == ["gate"]
            and commands.gate.code == 0
            and "nothing to do" in commands.gate.said
        )
    assert commands.hub.traffic[start:] == [], "GitHub is not even asked"


def test_a_job_takes_its_command_from_the_gate_of_its_own_comment(
    commands: Commands,
) -> None:
    commands.pull({"models/a.mlir": GROWN})
    commands.say("/code-size help")
    _, payload = commands.written("/code-size rerun")
    commands.start(payload)
    command = commands.gate.outputs["asked"]
    _, later_payload = commands.written("/code-size rerun")
    ordinary = payload | {"comment": payload["comment"] | {"body": "Thanks"}}
    for event, inputs, message in [
        (later_payload, {"asked": command}, "input asked: is of another comment"),
        (payload, {"asked": "{}"}, "input asked"),
        (
            payload,
            {"asked": command.replace(commands.gate.outputs["sha"], "main")},
            "input asked",
        ),
        (payload, {}, "this event asks for gate, not for 'measure'"),
        (ordinary, {"asked": command}, "this event has no command"),
    ]:
        ran = commands.stage.run(
            "issue_comment",
            event,
            commands.main,
            ref="refs/heads/main",
            command="measure",
            **inputs,
        )
        assert ran.code == 2 and message in ran.error
