"""Stories in which something breaks that nobody foresaw: the pull request is told, and its check is completed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import action_stage
import pytest
from fake_github import FakeGitHub
from posting_stage import BASE, MERGE, NUMBER, Stage, side, sides

import bot.github.posting
import bot.github.reviewing
from bot.errors import BotError, InternalError

READS = {
    "comments": r"/issues/\d+/comments$",
    "labels": r"/issues/\d+/labels$",
    "pull": r"/pulls/\d+$",
    "artifacts": r"/runs/\d+/artifacts$",
    "zip": r"/zip$",
    "compare": r"/compare/",
    "commit": r"/commits/[^/]+$",
}
WRITES = {"comment": r"/comments$", "check": r"/check-runs$"}
FORMS: dict[str, tuple[int, object]] = {
    "502 with a JSON text": (502, b'"Bad gateway"'),
    "200 with a list of scalars": (200, [1, "two", None]),
    "200 with an object of nothing": (200, {}),
    "200 with null": (200, b"null"),
}
WITHOUT_A_COMMENT = ("comments", "labels", "pull")
"""What is there already must be known before a comment is written, and whether a newer head has it."""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Stage.opened(tmp_path) as opened:
        yield opened


@pytest.fixture
def acting(tmp_path: Path) -> Iterator[action_stage.Stage]:
    with FakeGitHub("octo/repo") as hub:
        opened = action_stage.Stage.create(tmp_path, hub)
        opened.compiler("one")
        yield opened


# --- post ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("read", "form"),
    [
        *((read, "502 with a JSON text") for read in READS),
        *(("labels", form) for form in list(FORMS)[1:]),
    ],
)
def test_post_tells_the_pull_request_whatever_github_answers(
    stage: Stage, read: str, form: str
) -> None:
    status, body = FORMS[form]
    stage.grown()
    stage.hub.fail_next("GET", READS[read], status, times=30, body=body)
    ran = stage.post()
    if (read, status) == ("zip", 200):
        assert ran.code == 3 and "does not redirect to a storage" in ran.error
    else:
        assert ran.code == 3 and "cannot " in ran.error, ran.error
    assert (
        stage.conclusions == ["failure"]
        and stage.hub.check_runs[0]["status"] == "completed"
    )
    assert len(stage.bodies) == (read not in WITHOUT_A_COMMENT)
    assert ran.outputs["comment-url"] == "".join(
        str(comment["html_url"]) for comment in stage.hub.comments(NUMBER)
    )
    assert ran.summary


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("write", WRITES)
def test_an_answer_to_a_write_that_cannot_be_read_is_settled_by_a_look(
    stage: Stage, write: str, form: str
) -> None:
    status, body = FORMS[form]
    stage.grown()
    stage.hub.fail_next("POST", WRITES[write], status, body=body, served=True)
    ran = stage.post()
    assert (
        (ran.code, ran.error) == (0, "")
        and stage.body
        and stage.conclusions == ["failure"]
    )
    assert ran.outputs["comment-url"]


@pytest.mark.parametrize("form", FORMS)
def test_pulls_that_cannot_be_listed_leave_nobody_to_tell(
    stage: Stage, form: str
) -> None:
    status, body = FORMS[form]
    stage.grown()
    stage.hub.fail_next("GET", r"/pulls$", status, times=30, body=body)
    ran = stage.post()
    assert (
        ran.code == 3
        and "cannot look for the pull request of" in ran.error
        and stage.writes == []
    )


# --- mistakes of our own ---------------------------------------------------------------------------------------------

MISTAKES = (
    MemoryError(),
    RecursionError("deep"),
    KeyError("ghs_secret"),
    AssertionError("<b>@everyone</b>"),
)


def raising(error: Exception) -> Callable[..., Any]:
    """A function that fails so; one exception must not carry the places of several tests."""

    def fail(*_: object, **__: object) -> None:
        raise type(error)(*error.args)

    return fail


@pytest.mark.parametrize("error", MISTAKES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("place", ["reported", "deliver"])
def test_a_mistake_in_post_is_reported_and_raised(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, error: Exception, place: str
) -> None:
    stage.grown()
    monkeypatch.setattr(bot.github.posting, place, raising(error))
    with pytest.raises(type(error)):
        stage.post()
    assert type(error).__name__ in stage.body and "internal error: " in stage.body
    assert "secret" not in stage.body and "everyone" not in stage.body
    assert stage.conclusions == ["failure"] and stage.state.alarming


def test_a_mistake_while_a_mistake_is_reported_hides_neither(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.upload(sides(side(BASE), side(MERGE)))
    monkeypatch.setattr(bot.github.posting, "reported", raising(MemoryError("first")))
    monkeypatch.setattr(
        "bot.github.delivering.render_broken", raising(KeyError("second"))
    )
    with pytest.raises(MemoryError, match="first"):
        stage.post()


@pytest.mark.parametrize("error", MISTAKES, ids=lambda error: type(error).__name__)
def test_a_mistake_in_review_is_reported_and_raised(
    acting: action_stage.Stage, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    acting.main()
    head, merge = acting.open_pull({"notes.txt": "one\n"})
    monkeypatch.setattr("bot.study.prepare.Work.measured", raising(error))
    assert acting.pull(head, merge).code == InternalError.exit_code
    (body,) = acting.comments()
    assert (
        type(error).__name__ in body
        and "internal error: " in body
        and acting.conclusions == ["failure"]
    )


def test_a_mistake_in_a_baseline_is_reported_in_the_summary_and_raised(
    acting: action_stage.Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = acting.main()
    monkeypatch.setattr("bot.study.prepare.Work.measured", raising(MemoryError()))
    assert acting.push(main).code == InternalError.exit_code
    for summary in acting.home.glob("run-*/summary.md"):
        assert (
            "internal error: " in summary.read_text()
            and "MemoryError" in summary.read_text()
        )


# --- review ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_review_tells_the_pull_request_whatever_github_answers(
    acting: action_stage.Stage, form: str
) -> None:
    acting.main()
    status, body = FORMS[form]
    acting.hub.fail_next("GET", READS["labels"], status, times=30, body=body)
    ran = acting.pull(
        *acting.open_pull(
            {"models/a.mlir": action_stage.MODEL.format("a") + "// longer\n"}
        )
    )
    assert ran.code == 3, ran.error
    assert (
        acting.comments() == []
        and len(acting.conclusions) == 1
        and "cannot read who labelled" in ran.error
    )


def test_a_network_that_is_gone_before_there_is_a_report_is_reported(
    acting: action_stage.Stage,
) -> None:
    acting.main()
    head, merge = acting.open_pull({"notes.txt": "one\n"})
    acting.before_act = lambda: acting.origin.bare.rename(acting.home / "away.git")
    acting.after_measuring = lambda: (acting.home / "away.git").rename(
        acting.origin.bare
    )
    ran = acting.pull(head, merge)
    assert ran.code in (2, 3) and ran.error
    (body,) = acting.comments()
    assert "Code size: unknown" in body and acting.conclusions == ["failure"]
    assert ran.outputs["comment-url"].endswith(str(acting.hub.comments(1)[0]["id"]))


@pytest.mark.parametrize(
    "text", ["thresholds: 7\n", "schema: code-size-config/1\nreport_id: [\n"]
)
def test_a_broken_configuration_reports_under_the_base_s_name(
    acting: action_stage.Stage, text: str
) -> None:
    acting.main(report_id="nightly")
    ran = acting.pull(*acting.open_pull({"code-size.yml": text}))
    assert ran.code == 2 and "code-size.yml" in ran.error
    (body,) = acting.comments("<!-- code-size-bot:nightly -->")
    assert "Code size: unknown" in body and acting.comments() == []
    assert ["nightly" in check["name"] for check in acting.hub.check_runs] == [True]


def test_errors_of_ours_are_bot_errors_and_others_are_not() -> None:
    assert not any(isinstance(error, BotError) for error in MISTAKES)
