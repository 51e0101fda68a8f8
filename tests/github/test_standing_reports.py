"""Which report stays: runs without a verdict, and runs again of an older merge commit, replace nothing better."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import posting_stage
import pytest
from action_stage import MODEL, Stage
from github_runner import git
from posting_stage import BASE, HEAD, MERGE, OLDER, RUN, side, sides


@pytest.fixture
def fork(tmp_path: Path) -> Iterator[posting_stage.Stage]:
    with posting_stage.Stage.opened(tmp_path) as opened_stage:
        yield opened_stage


def grown(stage: Stage) -> tuple[str, str]:
    """A pull request that makes the code larger."""
    stage.compiler("two", [{"do": "grow"}])
    return stage.open_pull({"code-size.yml": stage.config("two")})


def merged_anew(stage: Stage, head: str, files: dict[str, str | None]) -> str:
    """Main goes on, and GitHub merges the same head onto it; returns the new merge commit."""
    base = stage.origin.push_main("Main goes on", files)
    work = stage.origin.work
    git(work, "checkout", "-q", "--detach", "main")
    git(work, "merge", "-q", "--no-ff", "-m", "Merge anew", head)
    merge = git(work, "rev-parse", "HEAD")
    git(work, "push", "-q", "-f", "origin", f"{merge}:refs/pull/1/merge")
    stage.hub.add_pull(1, head, merge_sha=merge, base_sha=base)
    return merge


def test_a_lost_run_replaces_no_verdict_of_the_same_merge_commit(stage: Stage) -> None:
    stage.main()
    pull = grown(stage)
    assert stage.pull(*pull).code == 0
    comments = stage.hub.comments(1)
    checks = stage.hub.check_runs
    lost = stage.pull(*pull, parts="parts/*.json")
    assert lost.code == 2 and "match no file" in lost.error
    assert (stage.hub.comments(1), stage.hub.check_runs) == (comments, checks)
    assert (
        "no check: run 102 has a verdict of the same merge commit, and this run has"
        " none" in lost.said
    )
    assert "match no file" in lost.summary and lost.outputs["verdict"] == "unknown"


def test_a_lost_run_after_a_lost_run_and_a_verdict_after_it_are_reported(
    stage: Stage,
) -> None:
    stage.main()
    pull = grown(stage)
    for _ in range(2):
        assert stage.pull(*pull, parts="parts/*.json").code == 2
    assert (
        stage.conclusions == ["failure", "failure"]
        and "match no file" in stage.comments()[0]
    )
    assert stage.pull(*pull).code == 0
    assert len(stage.conclusions) == 3 and "match no file" not in stage.comments()[0]


def test_a_lost_run_of_a_new_merge_commit_is_reported(stage: Stage) -> None:
    stage.main()
    head, merge = grown(stage)
    assert stage.pull(head, merge).code == 0
    newer = merged_anew(stage, head, {"README.md": "words\n"})
    assert stage.pull(head, newer, parts="parts/*.json").code == 2
    assert stage.conclusions[-1] == "failure" and "match no file" in stage.comments()[0]


def test_a_run_again_of_an_older_merge_commit_does_not_replace_the_newer_report(
    stage: Stage,
) -> None:
    stage.main()
    head, older = grown(stage)
    assert stage.pull(head, older).code == 0
    newer = merged_anew(
        stage, head, {"models/a.mlir": MODEL.format("a") + "// longer\n"}
    )
    assert stage.pull(head, newer).code == 0
    comments = stage.hub.comments(1)
    checks = stage.hub.check_runs
    again = stage.pull(head, older)
    assert (
        again.code == 0 and f"reported a newer merge commit, {newer[:10]}" in again.said
    )
    assert (stage.hub.comments(1), stage.hub.check_runs) == (comments, checks)
    assert stage.pull(head, newer).code == 0
    assert len(stage.conclusions) == len(checks) + 1


def test_a_base_that_was_moved_back_is_the_newer_one(stage: Stage) -> None:
    """Whatever GitHub merges the head onto now is right, also where the base branch lost commits."""
    stage.main()
    head, first = grown(stage)
    second = merged_anew(
        stage, head, {"models/a.mlir": MODEL.format("a") + "// longer\n"}
    )
    assert stage.pull(head, second).code == 0
    stage.hub.set_pull(1, merge_sha=first)
    assert stage.pull(head, first).code == 0
    assert len(stage.conclusions) == 2


@pytest.mark.parametrize("conclusion", ["cancelled", "timed_out", "failure"])
def test_a_fork_s_lost_run_replaces_no_verdict(
    fork: posting_stage.Stage, conclusion: str
) -> None:
    fork.grown()
    assert fork.post().code == 0
    body = fork.body
    ran = fork.post(run_id=RUN + 1, conclusion=conclusion)
    assert ran.code == 2 and "has no artifact" in ran.error
    assert fork.body == body and fork.conclusions == ["failure"]
    assert f"the run ended with {conclusion.replace('_', ' ')}" in ran.summary
    fork.hub.add_commit(OLDER, [])
    fork.pull(HEAD, "1" * 40)
    fork.post(run_id=RUN + 2, conclusion=conclusion)
    assert fork.body != body and fork.conclusions == [
        "failure",
        "failure",
    ], "GitHub has merged anew"


def test_a_fork_s_older_report_replaces_no_newer_one(fork: posting_stage.Stage) -> None:
    newer = "1" * 40
    fork.upload(sides(side(BASE), side(MERGE)), RUN)
    fork.upload(sides(side(BASE), side(newer, 2_000_000)), RUN + 1)
    fork.pull(HEAD, newer)
    assert fork.post(run_id=RUN + 1).code == 0
    body = fork.body
    assert fork.post(run_id=RUN).code == 0
    assert fork.body == body and fork.conclusions == ["failure"]
