"""Handing out: nothing is said without need, nothing is lost to a GitHub that refuses, nothing accepted by accident."""

from __future__ import annotations

import base64
import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from action_stage import Ran
from github_runner import MARKER
from posting_stage import BASE, HEAD, MERGE, NUMBER, RUN, WRITER, Stage, side, sides
from replacing import replace

from bot.config.configuration import load_config
from bot.core.acceptance import APPROVAL_LABEL
from bot.core.comment_state import CommentState
from bot.core.delta import STATES
from bot.core.report import Baseline
from bot.core.snapshot import Failure, Snapshot
from bot.errors import ConfigError, InputError
from bot.github.delivering import deliver, failure_delivered
from bot.github.destination import Destination
from bot.github.services import Services
from bot.show.report_files import write_report
from bot.study.comparison import reported

SAME = 100_000
GROWN = 2_000_000
MORE = 3_000_000
SIX = {
    "base.json",
    "head.json",
    "report.json",
    "comment.md",
    "summary.md",
    "report.html",
}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Stage.opened(tmp_path) as opened_stage:
        yield opened_stage


def told(stage: Stage, size_bytes: int) -> Ran:
    """The report of the head with this much code."""
    stage.upload(sides(side(BASE, SAME), side(MERGE, size_bytes)))
    return stage.post()


def direct(
    stage: Stage,
    size_bytes: int = GROWN,
    number: int | None = NUMBER,
    head: str = HEAD,
    **context: Any,
) -> Ran:
    """The same without an artifact, to any destination.

    `context` are fields of the run's context.
    """

    def story(services: Services) -> int:
        config = load_config()
        report = reported(
            config, side(BASE, SAME), side(MERGE, size_bytes), Baseline("a test", BASE)
        )
        placed = replace(services, context=replace(services.context, **context))
        return deliver(
            report, placed, Destination(number, head, 500, config, base_ref="main")
        )

    return stage.run(story, "watch", {})


def assert_handed_out(ran: Ran, verdict: str) -> None:
    """What needs no GitHub is there."""
    assert {path.name for path in ran.out.iterdir()} == SIX
    assert "Code size" in ran.summary and ran.outputs["verdict"] == verdict


def test_a_comment_links_to_the_page_where_the_configuration_says_that_it_is_published(
    stage: Stage,
) -> None:
    told(stage, GROWN)
    assert "](https://pages.example" not in stage.bodies[-1]
    stage.configure('page_url: "https://pages.example/{run_id}/{sha}/report.html"\n')
    ran = told(stage, MORE)
    page = f"https://pages.example/{RUN}/{HEAD}/report.html"
    addresses = re.findall(rf"\]\(<{re.escape(page)}#([^>]*)>\)", stage.bodies[-1])
    ids = set(
        re.findall(
            r'id="([^"]*)"', (ran.out / "report.html").read_text(encoding="utf-8")
        )
    )
    assert addresses and set(addresses) <= ids


@pytest.mark.parametrize(
    "url",
    [
        "http://pages.example/",
        "javascript:alert(1)",
        "https://pages.example/{pull}",
        "https://a b/",
    ],
)
def test_a_page_that_is_no_address_is_refused(tmp_path: Path, url: str) -> None:
    (tmp_path / "c.yml").write_text(
        f"schema: code-size-config/1\npage_url: '{url}'\n", encoding="utf-8"
    )
    with pytest.raises(ConfigError, match="an https address, in which"):
        load_config(tmp_path / "c.yml")


# --- when there is a comment -----------------------------------------------------------------------------------------


def test_nothing_changed_and_nothing_is_said(stage: Stage) -> None:
    ran = told(stage, SAME)
    assert ran.code == 0 and stage.bodies == [] and stage.conclusions == ["success"]
    assert_handed_out(ran, "pass")
    assert set(ran.outputs) == {
        "verdict",
        "findings",
        "report-path",
        "comment-url",
        *STATES,
    }
    assert (
        ran.outputs["same"],
        ran.outputs["findings"],
        ran.outputs["comment-url"],
    ) == ("1", "0", "")
    stage.configure("comment: always\n")
    ran = told(stage, SAME)
    assert ran.code == 0 and stage.body and stage.conclusions == ["success", "success"]
    assert ran.outputs["comment-url"].endswith(str(stage.hub.comments(NUMBER)[0]["id"]))


def test_an_alarm_is_called_off_in_the_same_comment(stage: Stage) -> None:
    told(stage, GROWN)
    ((comment_id, body),) = [
        (comment["id"], comment["body"]) for comment in stage.hub.comments(NUMBER)
    ]
    assert stage.state.alarming and "esolved" not in body
    ran = told(stage, SAME)
    assert ran.code == 0 and stage.hub.comments(NUMBER)[0]["id"] == comment_id
    assert (
        "esolved" in stage.body
        and not stage.state.alarming
        and stage.state.findings == ()
    )
    assert stage.conclusions == ["failure", "success"]


def test_runs_without_a_pull_request_or_that_may_not_write_ask_for_nothing(
    stage: Stage,
) -> None:
    ran = direct(stage, GROWN, number=None)
    assert_handed_out(ran, "fail")
    assert "comment-url" not in ran.outputs
    ran = direct(stage, GROWN, read_only=True)
    assert stage.hub.traffic == []
    assert_handed_out(ran, "fail")
    ran = direct(stage, SAME, head="")
    assert (
        ran.code == 0 and "bot-state" not in stage.body and stage.conclusions == []
    ), "a person asked for it"


def test_the_job_fails_only_where_it_is_asked_to(stage: Stage) -> None:
    assert told(stage, GROWN).code == 0
    stage.configure("fail_job: true\n")
    assert told(stage, GROWN).code == 1
    assert told(stage, SAME).code == 0


@pytest.mark.parametrize("length", [65_536, 65_537])
def test_the_longest_comment_is_whole(stage: Stage, length: int) -> None:
    text = "x" * (length - len(MARKER) - 2)  # the marker and the text each end a line
    templates = stage.workspace / "templates"
    templates.mkdir()
    (templates / "comment.md.j2").write_text("{{ marker.split('\\n')[0] }}\n" + text)

    def story(services: Services) -> int:
        config = replace(load_config(), templates=templates)
        report = reported(
            config, side(BASE, SAME), side(MERGE, GROWN), Baseline("a test", BASE)
        )
        return deliver(report, services, Destination(NUMBER, "", 500, config))

    ran = stage.run(story, "watch", {})
    assert ran.code == 0 and (len((ran.out / "comment.md").read_text()) == 65_536) == (
        length == 65_536
    )
    assert stage.body.rstrip() == (ran.out / "comment.md").read_text().rstrip()


# --- what GitHub refuses ---------------------------------------------------------------------------------------------


def _without(stage: Stage, *permissions: str) -> None:
    stage.token = stage.hub.token(
        permissions={**WRITER, **dict.fromkeys(permissions, "read")}
    )


@pytest.mark.parametrize(
    "missing", [("issues", "pull_requests"), ("checks",), tuple(WRITER)]
)
def test_a_token_names_all_that_is_missing_at_once_and_what_it_may_is_done(
    stage: Stage, missing: tuple[str, ...]
) -> None:
    _without(stage, *missing)
    ran = told(stage, GROWN)
    messages = {
        "pull-requests: write": (
            "cannot write the comment on #7: 403 Resource not accessible by integration"
        ),
        "checks: write": (
            "cannot write the check run on aaaaaaaaaaaa: 403 Resource not accessible by"
            " integration"
        ),
    }
    lacks = [
        name for name in messages if name.partition(":")[0].replace("-", "_") in missing
    ]
    assert ran.code == 3
    assert ran.error == "; ".join(
        f"{messages[name]} (give the job `permissions: {name}`)" for name in lacks
    )
    assert_handed_out(ran, "fail")
    assert stage.conclusions == ([] if "checks" in missing else ["failure"])
    assert (
        bool(stage.bodies)
        is bool(ran.outputs["comment-url"])
        is ("issues" not in missing)
    )


@pytest.mark.parametrize("path", ["/comments$", "/check-runs$"])
def test_a_github_that_is_down(stage: Stage, path: str) -> None:
    stage.hub.fail_next("*", path, 500, times=30)
    stage.hub.fail_next("*", path, 0, times=30)
    ran = told(stage, GROWN)
    assert ran.code == 3 and "did not answer" in ran.error
    assert_handed_out(ran, "fail")
    assert (bool(stage.bodies), bool(stage.conclusions)) == (
        path == "/check-runs$",
        path == "/comments$",
    )


# --- what was accepted -----------------------------------------------------------------------------------------------


@pytest.fixture
def accepted(stage: Stage) -> Stage:
    """With a failing report that alice accepted."""
    told(stage, GROWN)
    stage.hub.add_label(NUMBER, APPROVAL_LABEL, by="alice")
    assert (
        told(stage, GROWN).outputs["verdict"] == "warn"
        and stage.conclusions[-1] == "neutral"
    )
    return stage


@pytest.mark.parametrize("unread", ["comments", "labels"])
def test_what_cannot_be_read_is_not_overwritten_and_accepts_nothing(
    accepted: Stage, unread: str
) -> None:
    body = accepted.body
    state = accepted.state
    accepted.hub.fail_next("GET", rf"/issues/\d+/{unread}$", 500, times=2)
    ran = told(accepted, MORE)
    assert ran.code == 3 and accepted.body == body and state.acceptance
    assert_handed_out(ran, "fail")
    assert accepted.conclusions[-1] == "failure"
    accepted.hub.fail_next("GET", rf"/issues/\d+/{unread}$", 500, times=2)
    accepted.upload(b"broken")
    ran = accepted.post()
    assert ran.code == 2 and accepted.body == body and "did not answer" in ran.said
    assert accepted.conclusions[-1] == "failure"
    # as soon as it can be read again
    assert told(accepted, GROWN).outputs["verdict"] == "warn"


def test_what_grew_since_it_was_accepted_is_shown_with_the_growth(
    accepted: Stage,
) -> None:
    assert "Grown since" not in accepted.body
    ran = told(accepted, MORE)
    assert accepted.conclusions[-1] == "failure"
    assert re.search(r"Grown since the acceptance: .*[+]1,000,000 B", accepted.body)
    page = (ran.out / "report.html").read_text(encoding="utf-8")
    assert "Grown since the acceptance: " in page
    findings = json.loads((ran.out / "report.json").read_text(encoding="utf-8"))[
        "verdict"
    ]["findings"]
    assert MORE - GROWN in [finding.get("grown_since") for finding in findings]
    told(accepted, GROWN)
    assert "Grown since" not in accepted.body and accepted.conclusions[-1] == "neutral"


def test_an_acceptance_survives_updates_and_what_breaks(accepted: Stage) -> None:
    for size_bytes in (SAME, MORE):
        told(accepted, size_bytes)
    accepted.pull(HEAD, "1" * 40)  # GitHub merges anew, and nothing is known of that
    accepted.upload(b"broken")
    assert accepted.post().code == 2
    assert accepted.state == CommentState(True, (), accepted.state.acceptance)
    assert accepted.state.acceptance and accepted.state.acceptance.who == "alice"
    assert (
        told(accepted, GROWN).outputs["verdict"] == "warn"
        and "Accepted by `alice`" in accepted.body
    )


def test_what_broke_is_reported_by_a_comment_even_where_all_was_quiet(
    stage: Stage,
) -> None:
    told(stage, SAME)
    assert stage.bodies == []
    ran = broken(stage)
    assert ran.outputs["comment-url"].endswith(str(stage.hub.comments(NUMBER)[0]["id"]))
    assert "is no model" in stage.body and stage.state.alarming
    told(stage, SAME)
    assert "esolved" in stage.body
    _without(stage, *WRITER)
    ran = broken(stage)
    assert (
        ran.code == 2
        and "is no model" in ran.summary
        and ran.outputs["verdict"] == "unknown"
    )
    for permission in ("pull-requests: write", "checks: write"):
        assert (
            f"`permissions: {permission}`" in ran.said
            and ran.outputs["comment-url"] == ""
        )


def broken(stage: Stage) -> Ran:
    def story(services: Services) -> int:
        to = Destination(NUMBER, HEAD, 500, load_config(), base_ref="main")
        with failure_delivered(services, lambda: [to]):
            raise InputError("is no model")

    return stage.run(story, "watch", {})


def failed(message: str) -> Snapshot:
    """A head that the compiler fails in these words."""
    broken = replace(
        side(MERGE).cells[0],
        status="failed",
        metrics={},
        artifact_digest=None,
        dispatches=(),
    )
    return replace(
        side(MERGE), cells=(replace(broken, failure=Failure("compile", message, 1)),)
    )


def test_an_accepted_failure_covers_no_other_error_of_the_same_stage(
    stage: Stage,
) -> None:
    def verdict_of(message: str) -> str:
        stage.upload(sides(side(BASE), failed(message)))
        return stage.post().outputs["verdict"]

    then = (
        "/tmp/a/m.mlir:12:3: error: 'linalg.pack' op too wide\n/x/Pass.cpp:88: at"
        " 0x7ffd1234"
    )
    assert verdict_of(then) == "fail"
    stage.hub.add_label(NUMBER, APPROVAL_LABEL, by="alice")
    assert verdict_of(then) == "warn"
    assert (
        verdict_of(
            "/srv/b/m.mlir:140:33: error: 'linalg.pack' op too wide\n/y/z/Pass.cpp:9:"
            " at 0x5"
        )
        == "warn"
    )
    assert (
        verdict_of(
            "m.mlir:12:3: error: 'linalg.generic' op is no longer legal\nPass.cpp:88:"
            " at 0x7ffd1234"
        )
        == "fail"
    )
    assert verdict_of(then) == "warn"


def test_a_label_that_is_taken_off_takes_its_acceptance_along_and_a_stranger_s_accepts_nothing(
    accepted: Stage,
) -> None:
    accepted.hub.remove_label(NUMBER, APPROVAL_LABEL)
    assert (
        told(accepted, GROWN).outputs["verdict"] == "fail"
        and accepted.state.acceptance is None
    )
    accepted.hub.add_label(NUMBER, APPROVAL_LABEL, by="mallory")
    assert told(accepted, GROWN).outputs["verdict"] == "fail"


def test_a_deleted_comment_does_not_void_an_acceptance_silently(
    accepted: Stage,
) -> None:
    """The label is still set, and the acceptance was in the comment: the new comment says what to do."""
    accepted.hub.delete_comment(accepted.hub.comments(NUMBER)[0]["id"])
    for _ in range(2):
        ran = told(accepted, GROWN)
        assert ran.outputs["verdict"] == "fail"
        for text in (accepted.body, ran.summary):
            assert "The label code-size-approved accepts none of these findings" in text
            assert "comment that it accepted was deleted" in text
            assert "remove the label and add it again" in text
    accepted.hub.remove_label(NUMBER, APPROVAL_LABEL)
    accepted.hub.add_label(NUMBER, APPROVAL_LABEL, by="alice")
    assert told(accepted, GROWN).outputs["verdict"] == "warn"
    assert "accepts none" not in accepted.body


def test_a_label_of_a_stranger_is_said_to_accept_nothing(stage: Stage) -> None:
    told(stage, GROWN)
    stage.hub.add_label(NUMBER, APPROVAL_LABEL, by="mallory")
    assert told(stage, GROWN).outputs["verdict"] == "fail"
    assert "nobody with write access set it" in stage.body


def cut(line: str, count: int) -> str:
    """The hidden line of a comment without the last bytes of what it remembers."""
    match = re.fullmatch(r"(<!-- code-size-bot-state:1:)(\S+)( -->)", line)
    assert match
    data = base64.b64decode(match[2])[:-count]
    return match[1] + base64.b64encode(data).decode() + match[3]


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_truncated_acceptance_accepts_nothing(accepted: Stage, count: int) -> None:
    """All of its text is there, but the checksum at its end is not: somebody changed the comment."""
    first, state, visible = accepted.body.split("\n", 2)
    (comment,) = accepted.hub.state.comments.values()
    comment.body = "\n".join([first, cut(state, count), visible])
    assert (
        told(accepted, GROWN).outputs["verdict"] == "fail"
        and accepted.conclusions[-1] == "failure"
    )
    assert "Accepted by" not in accepted.body


@pytest.mark.parametrize("first", [None, SAME])
def test_a_label_accepts_what_the_comment_shows_and_is_no_blank_cheque(
    stage: Stage, first: int | None
) -> None:
    """One that was set before there was anything to accept accepts nothing, in this run and in all later ones."""
    if first is not None:
        stage.configure("comment: always\n")
        told(stage, first)
    stage.hub.add_label(NUMBER, APPROVAL_LABEL, by="alice")
    for _ in range(3):
        assert told(stage, GROWN).outputs["verdict"] == "fail"
    stage.hub.remove_label(NUMBER, APPROVAL_LABEL)
    event = stage.hub.add_label(NUMBER, APPROVAL_LABEL, by="alice")
    assert (
        told(stage, GROWN).outputs["verdict"] == "warn"
        and stage.conclusions[-1] == "neutral"
    )
    acceptance = stage.state.acceptance
    assert acceptance and (acceptance.who, acceptance.event_id) == ("alice", event)
    for _ in range(2):  # the label is still there, and was taken already
        assert told(stage, MORE).outputs["verdict"] == "fail"
    assert told(stage, GROWN).outputs["verdict"] == "warn"


def test_a_label_that_is_set_while_a_run_posts_accepts_nothing_that_nobody_saw(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(stage, GROWN)

    def labelled_meanwhile(*arguments: Any) -> list[Path]:
        stage.hub.add_label(NUMBER, APPROVAL_LABEL, by="alice")
        return write_report(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr("bot.github.delivering.write_report", labelled_meanwhile)
        # has asked for the label already, and writes its comment later
        told(stage, MORE)
    for size_bytes in (MORE, GROWN):
        assert told(stage, size_bytes).outputs["verdict"] == "fail"


# --- the token -------------------------------------------------------------------------------------------------------


def test_no_child_sees_the_token(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = stage.home / "tools"
    log = stage.home / "seen"
    tools.mkdir()
    fake = tools / "git"
    fake.write_text(f'#!/bin/sh\n{{ env; echo "$@"; }} >> "{log}"\nexit 1\n')
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    for name in ("INPUT_GITHUB-TOKEN", "GITHUB_TOKEN", "ACTIONS_RUNTIME_TOKEN"):
        monkeypatch.setenv(name, stage.token)
    (stage.workspace / "code-size.yml").write_text(
        "schema: code-size-config/1\nbaseline: {store: data-branch}\n"
    )
    ran = told(stage, GROWN)
    assert ran.code == 0 and "could not be read" in stage.body
    encoded = base64.b64encode(f"x-access-token:{stage.token}".encode()).decode()
    lines = log.read_text().splitlines()
    assert stage.token not in log.read_text() and any(
        line.startswith("PATH=") for line in lines
    )
    assert not [
        line
        for line in lines
        if line.startswith(("ACTIONS_", "GITHUB_TOKEN", "INPUT_"))
    ]
    with_secret = {line.partition("=")[0] for line in lines if encoded in line}
    assert with_secret == {"GIT_CONFIG_VALUE_1"}, (
        "git alone gets the header, and in no argument"
    )
