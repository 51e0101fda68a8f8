"""What GitHub refuses or loses has its own words: a cut answer, a token, an author, a pull request."""

from __future__ import annotations

import json
from typing import Any

import pytest
from action_stage import MODEL, Ran, Stage
from github_runner import event, git, pull_event


def compiled(stage: Stage) -> bool:
    """True where any compiler was started for a model."""
    return (stage.home / "one" / "calls.jsonl").exists()


def grown(stage: Stage, number: int = 1) -> tuple[str, str]:
    """A pull request that makes the code larger."""
    stage.compiler("two", [{"do": "grow"}])
    return stage.open_pull({"code-size.yml": stage.config("two")}, number)


@pytest.mark.parametrize("path", ["/pulls/1$", "/comments$", "/labels$", "/user$"])
@pytest.mark.parametrize("kind", ["length", "JSON"])
def test_a_truncated_answer_is_asked_for_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, path: str, kind: str
) -> None:
    monkeypatch.setattr("bot.system.hub._LONGEST_PAUSE_SECONDS", 0.01)
    stage.main()
    pull = grown(stage)
    headers = {"Content-Length": "5000"} if kind == "length" else {}
    stage.hub.fail_next(
        "GET", path, 200, times=2, headers=headers, body=b'[{"id": 7, "he'
    )
    ran = stage.pull(*pull)
    assert (ran.code, ran.error) == (0, "")
    assert len(stage.comments()) == 1 and len(stage.conclusions) == 1


def test_a_refused_token_is_named(stage: Stage) -> None:
    stage.main()
    pull = grown(stage)
    stage.token = "ghs_of_somebody_else"
    ran = stage.pull(*pull)
    assert (
        ran.code == 3
        and "the token was refused (check the input `github-token`)" in ran.error
    )
    assert "permissions" not in ran.error
    assert (
        "the token was refused" in ran.summary and ran.outputs["verdict"] == "unknown"
    )


@pytest.mark.parametrize("author", ["my-app[bot]", "mona"])
def test_a_wrong_author_is_named_and_leaves_no_comment_behind(
    stage: Stage, author: str
) -> None:
    stage.main()
    pull = grown(stage)
    for _ in range(2):
        ran = stage.pull(*pull, author=author)
        message = f"the token writes as github-actions[bot], not as {author}"
        assert ran.code == 3 and message in ran.error
        assert "(set the input `author` to github-actions[bot])" in ran.error
    assert stage.comments() == [] and len(stage.conclusions) == 2
    assert stage.pull(*pull, author="GitHub-Actions[bot]").code == 0
    assert stage.pull(*pull).code == 0
    assert len(stage.comments()) == 1, "a login has no case"


def test_a_locked_conversation_is_named_before_anything_compiles(stage: Stage) -> None:
    stage.main()
    pull = grown(stage)
    stage.hub.set_pull(1, locked=True)
    ran = stage.pull(*pull, is_locked=True)
    assert ran.code == 3 and ran.error.startswith("the conversation of #1 is locked")
    assert "permissions" not in ran.error and not compiled(stage)
    assert "the conversation of #1 is locked" in ran.summary
    assert stage.conclusions == ["failure"] and "is locked" in json.dumps(
        stage.hub.check_runs
    )


def test_a_conversation_that_is_locked_meanwhile_is_no_missing_permission(
    stage: Stage,
) -> None:
    stage.main()
    pull = grown(stage)
    stage.hub.before("POST", "/comments$", lambda: stage.hub.set_pull(1, locked=True))
    ran = stage.pull(*pull)
    assert (
        ran.code == 3
        and "cannot write the comment on #1: the conversation is locked" in ran.error
    )
    assert "permissions" not in ran.error and len(stage.conclusions) == 1


def test_a_missing_pull_request_is_named(stage: Stage) -> None:
    stage.main()
    grown(stage)
    stage.origin.push_main("Second", {"models/a.mlir": MODEL.format("b")})
    ran = stage.dispatch(pull_request="99")
    assert ran.code == 3 and "there is no pull request #99 in octo/repo" in ran.error
    assert "check the number" in ran.error
    assert "there is no pull request #99" in ran.summary
    assert not compiled(stage), (
        "git says so without a token, where everybody may read the repository"
    )


def dispatched(stage: Stage, command: str, number: str) -> Ran:
    """One job of a run that a person started."""
    sha = git(stage.origin.bare, "rev-parse", "main")
    payload = event("workflow_dispatch.main")
    return stage.run(
        "workflow_dispatch",
        payload,
        sha,
        ref="refs/heads/main",
        command=command,
        pull_request=number,
    )


def test_the_job_that_prepares_names_a_missing_and_a_locked_pull_request(
    stage: Stage,
) -> None:
    stage.main()
    grown(stage)
    ran = dispatched(stage, "prepare", "1")
    assert ran.code == 0 and "the report can be posted to #1" in ran.said, ran.error
    missing = dispatched(stage, "prepare", "99")
    assert (
        missing.code == 3
        and "there is no pull request #99 in octo/repo" in missing.error
    )
    stage.hub.set_pull(1, locked=True)
    locked = dispatched(stage, "prepare", "1")
    assert locked.code == 3 and "the conversation of #1 is locked" in locked.error
    assert "the conversation of #1 is locked" in locked.summary
    assert not compiled(stage)


def test_what_git_cannot_know_stops_no_measuring(stage: Stage) -> None:
    """As in a private repository, whose refs nobody lists without a token."""
    stage.main()
    stage.origin.push_main("Second", {"models/a.mlir": MODEL.format("b")})
    hidden = stage.origin.bare.with_name("hidden.git")

    def hide() -> None:
        workspace = stage.home / f"run-{stage.runs}" / "workspace"
        git(workspace, "fetch", "-q", "--unshallow", "origin", "main")
        git(workspace, "remote", "set-url", "origin", hidden.as_uri())

    stage.before_act = hide
    assert dispatched(stage, "measure", "99").code == 0
    assert compiled(stage)


@pytest.mark.parametrize(
    "spelled", ["code-size-approved", "Code-Size-Approved", "CODE-SIZE-APPROVED"]
)
def test_a_label_has_no_case(stage: Stage, spelled: str) -> None:
    stage.main(thresholds=[{"metrics": ["*"], "fail": "0.1%"}])
    head, merge = grown(stage)
    ran = stage.pull(head, merge)
    assert ran.outputs["verdict"] == "fail", ran.error
    stage.hub.add_label(1, spelled, by="alice")
    payload: dict[str, Any] = pull_event(1, head, "octo/repo", "labeled")
    payload["label"].update(name=spelled)
    ran = stage.through(
        "report", "pull_request", payload, merge, ref="refs/pull/1/merge"
    )
    assert ran.outputs["verdict"] == "warn" and stage.conclusions[-1] == "neutral", (
        ran.said
    )
