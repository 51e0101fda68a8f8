"""The fake GitHub behaves as GitHub does, towards the libraries the bot uses, and within GitHub's own description."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import github
import pytest
import requests
from fake_github import FakeGitHub

BASE, HEAD, MERGE, LATER = (letter * 40 for letter in "abcd")
REPO = "octo/repo"


@pytest.fixture
def hub() -> Iterator[FakeGitHub]:
    """A repository with one pull request; whatever a test did must be within the contract."""
    with FakeGitHub(REPO) as hub:
        hub.add_pull(7, HEAD, base_sha=BASE, merge_sha=MERGE, files=["models/a.mlir", "b.txt"])
        yield hub
        hub.assert_contract()


def connect(hub: FakeGitHub, **token: Any) -> github.Github:
    """PyGithub as it is, only in a hurry and without retries."""
    auth = github.Auth.Token(hub.token(**token))
    return github.Github(
        base_url=hub.url, auth=auth, per_page=100, retry=None, seconds_between_requests=0, seconds_between_writes=0
    )


def repository(hub: FakeGitHub, **token: Any) -> github.Repository.Repository:
    return connect(hub, **token).get_repo(REPO)


def ask(hub: FakeGitHub, method: str, path: str, **options: Any) -> requests.Response:
    headers = {"Authorization": f"Bearer {hub.token()}"}
    return requests.request(method, hub.url + path, headers=headers, timeout=5, **options)


def test_repository_and_pull(hub: FakeGitHub) -> None:
    hub.add_pull(8, LATER, head_repo="fork/repo", head_branch="theirs", base_sha=BASE)
    hub.add_pull(9, LATER, state="closed", base_ref="release")
    repo = repository(hub)
    pull = repo.get_pull(7)
    assert (repo.full_name, repo.default_branch) == (REPO, "main")
    assert (pull.head.sha, pull.base.sha, pull.merge_commit_sha) == (HEAD, BASE, MERGE)
    assert [one.filename for one in pull.get_files()] == ["models/a.mlir", "b.txt"]
    assert repo.get_pull(8).head.repo.full_name == "fork/repo"
    assert [one.number for one in repo.get_pulls()] == [8, 7]
    assert [one.number for one in repo.get_pulls(state="all")] == [9, 8, 7]
    assert [one.number for one in repo.get_pulls(head="fork:theirs")] == [8]
    assert [one.number for one in repo.get_pulls(state="closed", base="release")] == [9]


def test_a_deleted_fork_has_no_repository(hub: FakeGitHub) -> None:
    hub.add_pull(8, LATER, fork_deleted=True)
    assert repository(hub).get_pull(8).head.repo is None


def test_comments_live(hub: FakeGitHub) -> None:
    pull = repository(hub).get_pull(7)
    first = pull.create_issue_comment("first")
    second = hub.add_comment(7, "mona", "second")
    first.edit("changed")
    assert [(one["user"]["login"], one["body"]) for one in hub.comments(7)] == [
        ("github-actions[bot]", "changed"),
        ("mona", "second"),
    ]
    assert pull.get_issue_comment(second).user.type == "User"
    assert first.user.type == "Bot" and first.id < second
    edited = pull.get_issue_comment(first.id)
    assert edited.updated_at > edited.created_at
    first.delete()
    assert [one["body"] for one in hub.comments(7)] == ["second"]


def test_a_deleted_comment_is_not_found(hub: FakeGitHub) -> None:
    comment = repository(hub).get_pull(7).create_issue_comment("gone soon")
    hub.delete_comment(comment.id)
    with pytest.raises(github.UnknownObjectException):
        comment.edit("too late")


def test_comments_of_an_unknown_issue_are_not_found(hub: FakeGitHub) -> None:
    assert ask(hub, "GET", f"/repos/{REPO}/issues/99/comments").status_code == 404


def test_pages_have_links(hub: FakeGitHub) -> None:
    """Three hundred comments: thirty a page by default, a hundred at most."""
    for number in range(305):
        hub.add_comment(7, "mona", f"comment {number}")
    comments = list(repository(hub).get_pull(7).get_issue_comments())
    assert [one.body for one in comments] == [f"comment {number}" for number in range(305)]
    assert [one.id for one in comments] == sorted(one.id for one in comments)
    path = f"/repos/{REPO}/issues/7/comments"
    default = ask(hub, "GET", path)
    assert len(default.json()) == 30 and set(default.links) == {"next", "last"}
    assert default.links["last"]["url"].endswith("page=11")
    middle = ask(hub, "GET", path, params={"per_page": 100, "page": 2})
    assert set(middle.links) == {"prev", "first", "next", "last"}
    last = requests.get(middle.links["last"]["url"], headers=middle.request.headers, timeout=5)
    assert len(last.json()) == 5 and set(last.links) == {"prev", "first"}
    assert ask(hub, "GET", path, params={"per_page": 100, "page": 9}).json() == []


@pytest.mark.parametrize(("length", "status"), [(65_536, 201), (65_537, 422), (0, 422)])
def test_comment_length(hub: FakeGitHub, length: int, status: int) -> None:
    answer = ask(hub, "POST", f"/repos/{REPO}/issues/7/comments", json={"body": "é" * length})
    assert answer.status_code == status


def test_labels_and_who_set_them(hub: FakeGitHub) -> None:
    pull = repository(hub).get_pull(7)
    given = hub.add_label(7, "code-size-approved", by="mona")
    hub.remove_label(7, "code-size-approved", by="octocat")
    pull.add_to_labels("other")
    assert [one.name for one in pull.get_labels()] == ["other"] == hub.labels(7)
    events = list(pull.get_issue_events())
    assert [(one.event, one.actor.login, one.label.name if one.label else None) for one in events] == [
        ("labeled", "mona", "code-size-approved"),
        ("unlabeled", "octocat", "code-size-approved"),
        ("labeled", "github-actions[bot]", "other"),
    ]
    assert events[0].id == given
    assert events[0].created_at < events[1].created_at


def test_labels_in_an_object(hub: FakeGitHub) -> None:
    answer = ask(hub, "POST", f"/repos/{REPO}/issues/7/labels", json={"labels": ["a", "b"]})
    assert [one["name"] for one in answer.json()] == hub.labels(7) == ["a", "b"]
    issue = ask(hub, "GET", f"/repos/{REPO}/issues/7").json()
    assert [one["name"] for one in issue["labels"]] == ["a", "b"] and "pull_request" in issue


def test_reactions(hub: FakeGitHub) -> None:
    comment = repository(hub).get_pull(7).create_issue_comment("/code-size help")
    assert comment.create_reaction("eyes").id == comment.create_reaction("eyes").id
    assert [(one["comment_id"], one["content"]) for one in hub.reactions] == [(comment.id, "eyes")]


def test_permissions_of_people(hub: FakeGitHub) -> None:
    for login, level in (("ada", "admin"), ("will", "write"), ("rita", "read"), ("nobody", "none")):
        hub.add_user(login, level)
        assert repository(hub).get_collaborator_permission(login) == level
    with pytest.raises(github.GithubException, match="not a user") as caught:
        repository(hub).get_collaborator_permission("stranger")
    assert caught.value.status == 404


def annotation(number: int) -> dict[str, Any]:
    lines = {"start_line": number + 1, "end_line": number + 1}
    return {"path": "models/a.mlir", "annotation_level": "warning", "message": f"note {number}", **lines}


def test_check_run_gathers_annotations(hub: FakeGitHub) -> None:
    repo = repository(hub)
    notes = [annotation(number) for number in range(120)]
    output = {"title": "t", "summary": "s"}
    run = repo.create_check_run("size", MERGE, output={**output, "annotations": notes[:50]})
    assert run.status == "queued" and run.conclusion is None
    run.edit(output={**output, "annotations": notes[50:100]})
    run.edit(output={**output, "annotations": notes[100:]}, conclusion="failure")
    [kept] = hub.check_runs
    assert (kept["status"], kept["conclusion"], kept["head_sha"]) == ("completed", "failure", MERGE)
    assert kept["annotations"] == notes
    assert [one.message for one in run.get_annotations()] == [one["message"] for one in notes]
    [seen] = repo.get_commit(MERGE).get_check_runs(check_name="size")
    assert (seen.output.summary, seen.output.annotations_count) == ("s", 120)
    assert repo.get_commit(HEAD).get_check_runs().totalCount == 0


def test_check_runs_of_one_name_show_the_latest(hub: FakeGitHub) -> None:
    repo = repository(hub)
    ids = [repo.create_check_run("size", MERGE).id for _ in range(2)]
    assert [one.id for one in repo.get_commit(MERGE).get_check_runs()] == ids[1:]
    assert [one.id for one in repo.get_commit(MERGE).get_check_runs(filter="all")] == ids


@pytest.mark.parametrize(
    "output",
    [
        {"title": "t", "summary": "s" * 65_536},
        {"title": "t", "summary": "s", "annotations": [annotation(number) for number in range(51)]},
    ],
)
def test_check_run_limits(hub: FakeGitHub, output: dict[str, Any]) -> None:
    body = {"name": "size", "head_sha": MERGE, "output": output}
    assert ask(hub, "POST", f"/repos/{REPO}/check-runs", json=body).status_code == 422
    assert hub.check_runs == []


def test_check_run_of_an_unknown_commit(hub: FakeGitHub) -> None:
    with pytest.raises(github.GithubException, match="No commit found") as caught:
        repository(hub).create_check_run("size", "f" * 40)
    assert caught.value.status == 422


def test_commits(hub: FakeGitHub) -> None:
    hub.set_branch("users/topic", HEAD)
    repo = repository(hub)
    assert [one.sha for one in repo.get_commit(MERGE).parents] == [BASE, HEAD]
    assert repo.get_commit("users/topic").sha == HEAD
    with pytest.raises(github.GithubException) as caught:
        repo.get_commit("f" * 40)
    assert caught.value.status == 422


def test_compare(hub: FakeGitHub) -> None:
    """BASE - HEAD and BASE - LATER: what lies between is computed from the commits."""
    hub.add_commit(LATER, [BASE])
    hub.set_branch("main", LATER)
    repo = repository(hub)
    cases = {
        (BASE, HEAD): ("ahead", 1, 0),
        (HEAD, BASE): ("behind", 0, 1),
        (HEAD, HEAD): ("identical", 0, 0),
        (HEAD, "main"): ("diverged", 1, 1),
        (BASE, MERGE): ("ahead", 2, 0),
    }
    for (base, head), expected in cases.items():
        found = repo.compare(base, head)
        assert (found.status, found.ahead_by, found.behind_by) == expected
    assert repo.compare(HEAD, LATER).merge_base_commit.sha == BASE
    assert [one.sha for one in repo.compare(BASE, MERGE).commits] == [HEAD, MERGE]
    with pytest.raises(github.UnknownObjectException):
        repo.compare(BASE, "f" * 40)


def test_an_empty_repository_conflicts() -> None:
    with FakeGitHub(REPO) as hub:
        assert ask(hub, "GET", f"/repos/{REPO}/commits/main").status_code == 409
        hub.assert_contract()


def test_artifacts(hub: FakeGitHub) -> None:
    hub.add_run(500, head_sha=HEAD, head_repo="fork/repo", pull_numbers=[7])
    old = hub.add_artifact(400, "snapshot", b"old", head_sha=BASE)
    new = hub.add_artifact(500, "snapshot", b"new", head_sha=HEAD, head_branch="topic", same_repository=False)
    hub.add_artifact(500, "log", b"text")
    repo = repository(hub)
    assert [one.id for one in repo.get_artifacts(name="snapshot")] == [new, old]
    run = repo.get_workflow_run(500)
    assert [one.name for one in run.get_artifacts()] == ["log", "snapshot"]
    assert [one["id"] for one in ask(hub, "GET", f"{run.url[len(hub.url) :]}/artifacts?name=log").json()["artifacts"]]
    found = ask(hub, "GET", f"/repos/{REPO}/actions/artifacts/{new}").json()["workflow_run"]
    assert (found["id"], found["head_sha"]) == (500, HEAD)
    assert found["head_repository_id"] != found["repository_id"] == repo.id
    assert repo.get_artifact(old).size_in_bytes == 3


def test_an_artifact_comes_from_another_host(hub: FakeGitHub) -> None:
    number = hub.add_artifact(400, "snapshot", b"PK\x03\x04\xff")
    path = f"/repos/{REPO}/actions/artifacts/{number}/zip"
    redirect = ask(hub, "GET", path, allow_redirects=False)
    assert redirect.status_code == 302 and redirect.headers["Location"].startswith(hub.blob_url)
    assert ask(hub, "GET", path).content == b"PK\x03\x04\xff"
    requests.get(redirect.headers["Location"], headers={"Authorization": "token leaked"}, timeout=5)
    assert [one["authorization"] for one in hub.blob_requests] == [None, "token leaked"]
    assert requests.get(f"{hub.blob_url}/artifacts/1.zip", timeout=5).status_code == 404


def test_an_expired_artifact_is_gone(hub: FakeGitHub) -> None:
    number = hub.add_artifact(400, "snapshot", b"PK", expired=True)
    assert repository(hub).get_artifact(number).expired
    assert ask(hub, "GET", f"/repos/{REPO}/actions/artifacts/{number}/zip").status_code == 410


def test_runs(hub: FakeGitHub) -> None:
    hub.add_run(500, head_sha=HEAD, pull_numbers=[7])
    hub.add_run(501, head_sha=LATER, head_repo="fork/repo")
    hub.add_run(502, head_sha=HEAD, event="push")
    repo = repository(hub, permissions={"actions": "write"})
    assert [one.id for one in repo.get_workflow_runs(head_sha=HEAD)] == [502, 500]
    assert [one.id for one in repo.get_workflow_runs(event="pull_request")] == [501, 500]
    run = repo.get_workflow_run(500)
    assert [one.number for one in run.pull_requests] == [7]
    assert repo.get_workflow_run(501).head_repository.full_name == "fork/repo"
    assert run.rerun() and hub.reruns == [500]
    assert repo.get_workflow_run(500).run_attempt == 2
    assert not run.rerun()
    assert hub.reruns == [500]


def test_dispatch(hub: FakeGitHub) -> None:
    workflow = repository(hub, permissions={"actions": "write"}).get_workflow("compare.yml")
    assert workflow.create_dispatch("main", {"base": "v1"})
    assert hub.dispatches == [{"workflow": "compare.yml", "ref": "main", "inputs": {"base": "v1"}}]


def test_who_a_token_is(hub: FakeGitHub) -> None:
    assert connect(hub, login="mona", kind="user").get_user().login == "mona"
    with pytest.raises(github.GithubException, match="not accessible by integration") as caught:
        assert connect(hub).get_user().login
    assert caught.value.status == 403


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic x"}])
def test_without_a_known_token(hub: FakeGitHub, headers: dict[str, str]) -> None:
    assert requests.get(f"{hub.url}/repos/{REPO}", headers=headers, timeout=5).status_code == 401


def test_a_read_only_token_cannot_write(hub: FakeGitHub) -> None:
    """The token of a fork's pull_request run."""
    repo = repository(hub, permissions={"contents": "read", "issues": "read", "pull_requests": "read"})
    writes = (
        lambda: repo.get_pull(7).create_issue_comment("no"),
        lambda: repo.get_pull(7).add_to_labels("no"),
        lambda: repo.create_check_run("no", MERGE),
    )
    for write in writes:
        with pytest.raises(github.GithubException, match="Resource not accessible by integration") as caught:
            write()
        assert caught.value.status == 403
    assert hub.comments(7) == [] == hub.check_runs


def test_reading_a_private_repository_needs_permission() -> None:
    with FakeGitHub(REPO, private=True) as hub:
        hub.add_pull(7, HEAD)
        assert repository(hub, permissions={"pull_requests": "read"}).get_pull(7).number == 7
        with pytest.raises(github.GithubException) as caught:
            repository(hub, permissions={}).get_pull(7)
        assert caught.value.status == 403
        hub.assert_contract()


def test_a_check_run_needs_an_app(hub: FakeGitHub) -> None:
    with pytest.raises(github.GithubException, match="GitHub App"):
        repository(hub, kind="user").create_check_run("size", MERGE)


def test_another_repository_is_not_found(hub: FakeGitHub) -> None:
    for name in ("octo/other", "octo/repository"):
        with pytest.raises(github.UnknownObjectException):
            connect(hub).get_repo(name)


def test_rate_limit_headers(hub: FakeGitHub) -> None:
    rates = [ask(hub, "GET", f"/repos/{REPO}").headers for _ in range(2)]
    remaining = [int(one["X-RateLimit-Remaining"]) for one in rates]
    assert remaining[0] - remaining[1] == 1 and rates[0]["X-RateLimit-Limit"] == "5000"


@pytest.mark.parametrize("status", [401, 403, 404, 409, 410, 422, 429, 500, 502, 503])
def test_faults_on_demand(hub: FakeGitHub, status: int) -> None:
    hub.fail_next("GET", r"/pulls/7$", status, times=2, headers={"Retry-After": "3"}, body={"message": "by order"})
    path = f"/repos/{REPO}/pulls/7"
    answers = [ask(hub, "GET", path) for _ in range(3)]
    assert [one.status_code for one in answers] == [status, status, 200]
    assert (answers[0].headers["Retry-After"], answers[0].json()) == ("3", {"message": "by order"})
    assert [one["status"] for one in hub.traffic] == [status, status, 200]


def test_a_fault_without_a_body_and_one_that_is_text(hub: FakeGitHub) -> None:
    hub.fail_next("*", ".", 500)
    hub.fail_next("*", ".", 502, body="<html>Bad gateway</html>")
    assert set(ask(hub, "GET", "/user").json()) == {"message", "documentation_url"}
    assert ask(hub, "GET", "/user").text == "<html>Bad gateway</html>"


def test_a_fault_hits_only_what_it_names(hub: FakeGitHub) -> None:
    hub.fail_next("PATCH", r"/issues/comments/\d+$", 500)
    comment = repository(hub).get_pull(7).create_issue_comment("fine")
    with pytest.raises(github.GithubException):
        comment.edit("not this time")
    comment.edit("but now")
    assert hub.comments(7)[0]["body"] == "but now"


def test_a_broken_connection(hub: FakeGitHub) -> None:
    hub.fail_next("GET", ".", 0)
    with pytest.raises(requests.ConnectionError):
        ask(hub, "GET", f"/repos/{REPO}")
    assert ask(hub, "GET", f"/repos/{REPO}").status_code == 200


@pytest.mark.parametrize("status", [0, 502])
def test_an_answer_is_lost_after_the_effect(hub: FakeGitHub, status: int) -> None:
    """What makes a blind second try a second comment."""
    hub.fail_next("POST", "/comments$", status, served=True)
    with pytest.raises((github.GithubException, requests.ConnectionError)):
        repository(hub).get_pull(7).create_issue_comment("there")
    assert [one["body"] for one in hub.comments(7)] == ["there"]


def test_a_fault_of_the_other_host(hub: FakeGitHub) -> None:
    number = hub.add_artifact(400, "snapshot", b"PK")
    hub.fail_next("GET", r"\.zip$", 503, body=b"\xff")
    path = f"/repos/{REPO}/actions/artifacts/{number}/zip"
    assert [ask(hub, "GET", path).content for _ in range(2)] == [b"\xff", b"PK"]


def test_a_delay(hub: FakeGitHub) -> None:
    hub.delay_next("GET", "/pulls", 3600)
    with pytest.raises(requests.Timeout):
        requests.get(f"{hub.url}/repos/{REPO}/pulls", timeout=0.05)
    assert ask(hub, "GET", f"/repos/{REPO}/pulls").status_code == 200


def test_something_happens_just_before(hub: FakeGitHub) -> None:
    """Two runs race: the other one creates its comment between our look and our write."""
    hub.before("POST", "/comments$", lambda: hub.add_comment(7, "github-actions[bot]", "other run"))
    pull = repository(hub).get_pull(7)
    assert list(pull.get_issue_comments()) == []
    pull.create_issue_comment("our run")
    pull.create_issue_comment("and again")
    assert [one["body"] for one in hub.comments(7)] == ["other run", "our run", "and again"]


def test_a_changed_pull(hub: FakeGitHub) -> None:
    hub.set_pull(7, head_sha=LATER, state="closed")
    pull = repository(hub).get_pull(7)
    assert (pull.head.sha, pull.state) == (LATER, "closed")
    assert [one.sha for one in repository(hub).get_commit(LATER).parents] == [BASE]


def test_a_request_it_does_not_foresee_is_loud() -> None:
    with FakeGitHub(REPO) as hub:
        hub.add_pull(7, HEAD)
        answer = ask(hub, "POST", f"/repos/{REPO}/check-runs", json={"head_sha": 3})
        assert (answer.status_code, "Traceback" in answer.json()["message"]) == (418, True)
        with pytest.raises(AssertionError, match="status 418 is not described"):
            hub.assert_contract()
