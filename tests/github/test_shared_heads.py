"""Pull requests that share a commit: each has the check of its own base, and none wears the green check of another."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import action_stage
import pytest
from fake_github import FakeGitHub
from posting_stage import BASE, HEAD, MERGE, NUMBER, OLDER, RUN, Stage, side, sides

RELEASE = "1" * 40
RELEASE_MERGE = "2" * 40
MAIN = "code size (main)"
RELEASED = "code size (release-1)"
BACKPORT = 8
BACKPORT_RUN = 501
OTHER = 9
OTHER_RUN = 502
SAME = 100_000
GROWN = 2_000_000


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Pull request 7 of mallory's branch goes to main; release-1 has a commit of its own."""
    with Stage.opened(tmp_path) as opened_stage:
        opened_stage.hub.add_commit(RELEASE, [OLDER])
        opened_stage.hub.set_branch("release-1", RELEASE)
        opened_stage.upload(sides(side(BASE, SAME), side(MERGE, GROWN)))
        yield opened_stage


def backport(
    stage: Stage,
    onto: str = RELEASE,
    merge: str = RELEASE_MERGE,
    size_bytes: int = SAME,
) -> None:
    """A second pull request of the same branch, to release-1, and the artifact of its run."""
    stage.hub.add_commit(merge, [onto, HEAD])
    stage.hub.add_pull(
        BACKPORT,
        HEAD,
        "release-1",
        head_repo="mallory/repo",
        base_sha=onto,
        merge_sha=RELEASE_MERGE,
    )
    stage.upload(sides(side(onto, SAME), side(merge, size_bytes)), BACKPORT_RUN)


def checks(stage: Stage) -> dict[str, str]:
    """What a branch protection sees: name of a check → the conclusion of the newest one."""
    assert {check["head_sha"] for check in stage.hub.check_runs} <= {HEAD}
    return {check["name"]: check["conclusion"] for check in stage.hub.check_runs}


def title(stage: Stage) -> str:
    return str(stage.hub.check_runs[-1]["output"]["title"])


# --- one branch, several bases ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(RUN, BACKPORT_RUN), (BACKPORT_RUN, RUN)])
def test_a_branch_with_two_bases_has_a_check_for_each_and_comments_where_they_belong(
    stage: Stage, order: tuple[int, ...]
) -> None:
    backport(stage)
    for run_id in order:
        assert stage.post(run_id=run_id).error == ""
    assert checks(stage) == {MAIN: "failure", RELEASED: "success"}
    assert "2,000,000" in stage.body and BASE[:10] in stage.body
    assert stage.hub.comments(BACKPORT) == []
    backport(stage, size_bytes=3_000_000)
    body = stage.body
    assert (
        stage.post(run_id=BACKPORT_RUN).code == 0
        and checks(stage)[RELEASED] == "failure"
    )
    (comment,) = stage.hub.comments(BACKPORT)
    assert (
        "3,000,000" in comment["body"]
        and RELEASE[:10] in comment["body"]
        and stage.body == body
    )


def test_an_earlier_merge_onto_the_release_branch_is_the_release_s(
    stage: Stage,
) -> None:
    # GitHub has merged anew since; main does not have the branch's commit
    backport(stage, merge="3" * 40)
    assert stage.post(run_id=BACKPORT_RUN).code == 0 and checks(stage) == {
        RELEASED: "success"
    }


def test_a_merge_that_can_be_of_two_bases_is_reported_as_such_where_there_is_no_result(
    stage: Stage,
) -> None:
    stage.hub.set_branch("release-1", OLDER)  # which main has, too
    backport(stage, onto=OLDER, merge="3" * 40)
    ran = stage.post(run_id=BACKPORT_RUN)
    assert (
        ran.code == 2
        and "#7 with main or of #8 with release-1, and the right one is unknown"
        in ran.error
    )
    assert checks(stage) == {MAIN: "failure", RELEASED: "failure"}
    assert stage.post().code == 0 and "2,000,000" in stage.body
    assert stage.post(run_id=BACKPORT_RUN).code == 2 and "2,000,000" in stage.body, (
        "a result is not written over"
    )
    backport(stage, onto=OLDER)  # GitHub's merge of now says whose it is
    assert stage.post(run_id=BACKPORT_RUN).code == 0 and checks(stage) == {
        MAIN: "failure",
        RELEASED: "success",
    }


def test_a_run_from_before_the_pull_request_was_opened_is_not_its_own(
    stage: Stage,
) -> None:
    """A green run of a closed pull request to release-1, which is at a commit that main has."""
    stage.hub.set_branch("release-1", OLDER)
    backport(stage, onto=OLDER)
    stage.hub.set_pull(BACKPORT, state="closed")
    stage.pull(created_at="2026-03-01T12:00:01Z")
    ran = stage.post(run_id=BACKPORT_RUN, started_at="2026-03-01T12:00:00Z")
    assert ran.code == 0 and "dropped" in ran.said and stage.writes == []
    assert stage.post(started_at="2026-03-01T12:00:01Z").code == 0 and checks(
        stage
    ) == {MAIN: "failure"}


def test_a_run_from_before_the_base_was_changed_is_of_the_former_base(
    stage: Stage,
) -> None:
    stage.hub.change_base(NUMBER, "main", changed_at="2026-03-01T12:00:00Z")
    ran = stage.post(started_at="2026-03-01T11:59:59Z")
    assert ran.code == 0 and "dropped" in ran.said and stage.writes == []
    assert stage.post(started_at="2026-03-01T12:00:00Z").code == 0 and checks(
        stage
    ) == {MAIN: "failure"}


def test_a_base_that_is_changed_meanwhile_gets_no_comment_of_the_former_one(
    stage: Stage,
) -> None:
    changed = {"base_sha": RELEASE, "merge_sha": RELEASE_MERGE}
    stage.hub.before(
        "GET",
        r"/artifacts$",
        lambda: stage.hub.change_base(
            NUMBER, "release-1", "2027-01-01T00:00:00Z", **changed
        ),
    )
    ran = stage.post()
    assert ran.code == 0 and stage.bodies == [] and "another base" in ran.said
    assert checks(stage) == {MAIN: "failure"}


@pytest.mark.parametrize("conclusion", ["timed_out", "startup_failure"])
def test_a_run_that_left_nothing_is_reported_and_fails_the_check(
    stage: Stage, conclusion: str
) -> None:
    ran = stage.post(run_id=600, conclusion=conclusion)
    assert ran.code == 2 and ran.outputs["verdict"] == "unknown"
    assert (
        f"the run ended with {conclusion.replace('_', ' ')}" in stage.body
        and "has no artifact" in stage.body
    )
    assert checks(stage) == {MAIN: "failure"}


def test_a_run_that_left_nothing_takes_no_result_from_another_base(
    stage: Stage,
) -> None:
    backport(stage)
    assert stage.post(run_id=BACKPORT_RUN).code == 0
    assert stage.post(run_id=600, conclusion="timed_out").code == 2
    assert checks(stage) == {MAIN: "failure", RELEASED: "success"}
    assert "timed out" in stage.body and stage.hub.comments(BACKPORT) == []


# --- several accounts, one commit and base ---------------------------------------------------------------------------


def other(stage: Stage, size_bytes: int = SAME) -> None:
    """Eve's pull request with the very commit of pull request 7, to the same branch, and the artifact of its run."""
    stage.hub.add_pull(
        OTHER, HEAD, head_repo="eve/repo", base_sha=BASE, merge_sha="4" * 40
    )
    stage.upload(sides(side(BASE, SAME), side("4" * 40, size_bytes)), OTHER_RUN)


def write_check(stage: Stage, conclusion: str, external_id: str) -> None:
    """A check of the same name, by whoever may write."""
    body = {
        "name": MAIN,
        "head_sha": HEAD,
        "conclusion": conclusion,
        "external_id": external_id,
    }
    request = urllib.request.Request(  # noqa: S310 - to the fake on this machine
        f"{stage.hub.url}/repos/octo/repo/check-runs",
        json.dumps({**body, "output": {"title": "t", "summary": "s"}}).encode(),
        {"Authorization": f"Bearer {stage.token}", "Content-Type": "application/json"},
    )
    urllib.request.urlopen(request).close()  # noqa: S310


def post_other(stage: Stage) -> None:
    assert stage.post(run_id=OTHER_RUN, fork="eve/repo").error == ""


def test_the_green_check_of_another_account_does_not_replace_the_red_one(
    stage: Stage,
) -> None:
    other(stage)
    stage.post()
    post_other(stage)
    assert checks(stage) == {MAIN: "failure"}
    assert title(stage).startswith(
        "#7, which has the same commit and base, fails; by itself: "
    )
    assert (
        "close it and run this workflow again"
        in stage.hub.check_runs[-1]["output"]["summary"]
    )
    assert stage.hub.comments(OTHER) == [] and "2,000,000" in stage.body
    stage.hub.set_pull(NUMBER, state="closed")
    post_other(stage)
    assert checks(stage) == {MAIN: "success"}
    stage.hub.set_pull(NUMBER, state="open")
    stage.hub.change_base(
        NUMBER,
        "release-1",
        "2026-01-01T00:00:00Z",
        base_sha=RELEASE,
        merge_sha=RELEASE_MERGE,
    )
    post_other(stage)
    assert checks(stage) == {MAIN: "success"}


def test_a_fork_does_not_answer_for_a_pull_request_without_a_result(
    stage: Stage,
) -> None:
    other(stage)
    post_other(stage)
    assert checks(stage) == {MAIN: "failure"} and title(stage).startswith(
        "#7, which has the same commit and base, has no"
    )
    stage.upload(sides(side(BASE, SAME), side(MERGE, SAME)))
    stage.post()
    assert checks(stage) == {MAIN: "success"}


def test_what_is_accepted_or_mended_on_one_is_no_longer_the_other_s_failure(
    stage: Stage,
) -> None:
    other(stage)
    stage.post()
    post_other(stage)
    stage.hub.add_label(NUMBER, "code-size-approved", by="alice")
    stage.post()
    assert checks(stage) == {MAIN: "neutral"}
    post_other(stage)
    assert checks(stage) == {
        MAIN: "neutral"
    } and "#7, which has the same commit and base, warns" in title(stage)


def test_two_that_write_at_once_end_with_the_worse(stage: Stage) -> None:
    other(stage)
    stage.upload(sides(side(BASE, SAME), side(MERGE, SAME)))
    stage.post()
    worse = f"code-size:{NUMBER}:failure:{'0' * 16}"
    stage.hub.before(
        "POST", "/check-runs$", lambda: write_check(stage, "failure", worse)
    )
    post_other(stage)
    assert [check["conclusion"] for check in stage.hub.check_runs[1:]] == [
        "failure",
        "success",
        "failure",
    ]


@pytest.mark.parametrize(
    "external_id", ["", "7", "code-size:7:success", f"code-size:7:good:{'0' * 16}"]
)
def test_a_job_of_the_same_name_is_no_result(stage: Stage, external_id: str) -> None:
    other(stage)
    write_check(stage, "success", external_id)
    post_other(stage)
    assert title(stage).startswith(
        "#7, which has the same commit and base, has no result yet"
    )


# --- a run that may write --------------------------------------------------------------------------------------------


def test_a_review_names_its_check_by_its_base_and_does_not_comment_on_another(
    tmp_path: Path,
) -> None:
    with FakeGitHub("octo/repo") as hub:
        stage = action_stage.Stage.create(tmp_path, hub)
        stage.compiler("one")
        stage.main(states={"changed": "fail"})
        head, merge = stage.open_pull(
            {"models/a.mlir": action_stage.MODEL.format("a") + "// longer\n"}
        )
        ran = stage.pull(head, merge)
        assert ran.code == 0 and len(stage.comments()) == 1, ran.error
        assert [check["name"] for check in hub.check_runs] == [
            MAIN
        ] and stage.conclusions == ["failure"]
        hub.delete_comment(hub.comments(1)[0]["id"])
        hub.set_pull(1, base_ref="release-1")
        ran = stage.pull(head, merge)
        assert ran.code == 0 and stage.comments() == [] and "another base" in ran.said
        assert {check["name"] for check in hub.check_runs} == {MAIN}
        hub.assert_contract()


def test_the_report_id_stands_before_the_base(stage: Stage) -> None:
    stage.configure("report_id: nightly\n")
    stage.hub.add_artifact(
        RUN, "code-size-measured-nightly-test", sides(side(BASE), side(MERGE))
    )
    assert stage.post().code == 0 and checks(stage) == {
        "code size nightly (main)": "success"
    }
