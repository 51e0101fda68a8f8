"""Workflow runs, artifacts and descent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from publishing import HEAD, World, opened

from bot.core.publication import ArtifactInfo
from bot.github.repository import (
    artifacts,
    dispatch,
    download,
    is_ancestor,
    newest_run,
    parents,
    rerun,
    unfinished_push,
)

WRITER = {"contents": "read", "actions": "write"}


@pytest.fixture
def world(caplog: pytest.LogCaptureFixture) -> Iterator[World]:
    with opened(caplog) as one:
        yield one


def test_a_run_is_started_again(world: World) -> None:
    world.github.add_run(7)
    rerun(world.connect(token=world.github.token(permissions=WRITER)), 7)
    assert world.github.reruns == [7]


def test_a_run_under_way_is_refused_without_advice_on_permissions(world: World) -> None:
    world.github.add_run(7, status="in_progress", conclusion=None)
    hub = world.connect(token=world.github.token(permissions=WRITER))
    line = world.error(lambda: rerun(hub, 7))
    assert line == "cannot run 7 again: 403 This workflow is already running"


def test_starting_again_needs_a_permission(world: World) -> None:
    world.github.add_run(7)
    assert "`permissions: actions: write`" in world.error(lambda: rerun(world.hub, 7))


def test_a_rerun_that_may_have_begun_is_not_repeated(world: World) -> None:
    world.github.fail_next("POST", "/rerun$", 502)
    assert "502" in world.error(lambda: rerun(world.hub, 7))
    assert world.requests("POST", "/rerun") == 1


def test_the_newest_run_of_a_commit(world: World) -> None:
    for run_id in (5, 9, 7):
        world.github.add_run(run_id, head_sha=HEAD)
    world.github.add_run(11, head_sha=HEAD, path=".github/workflows/lint.yml")
    world.github.add_run(12, head_sha="b" * 40)
    assert newest_run(world.hub, HEAD, None) == 11
    assert newest_run(world.hub, HEAD, "code-size.yml") == 9
    assert newest_run(world.hub, HEAD, "size.yml") is None
    assert newest_run(world.hub, "c" * 40, None) is None


def test_the_push_run_that_has_not_ended(world: World) -> None:
    file = ".github/workflows/pkgci.yml"
    for run_id, status in ((5, "queued"), (7, "in_progress"), (9, "completed")):
        world.github.add_run(run_id, HEAD, "push", status=status, conclusion=None, path=f"{file}@refs/heads/main")
    world.github.add_run(11, HEAD, "push", status="in_progress", conclusion=None, path=".github/workflows/lint.yml")
    world.github.add_run(12, HEAD, "pull_request", status="in_progress", conclusion=None, path=file)
    assert unfinished_push(world.hub, HEAD, "pkgci.yml") == (7, "in_progress")
    assert unfinished_push(world.hub, "c" * 40, "pkgci.yml") is None


def test_a_workflow_is_started_with_its_inputs(world: World) -> None:
    hub = world.connect(token=world.github.token(permissions=WRITER))
    dispatch(hub, "code-size.yml", "main", {"base": "3.11.0", "head": "3.13.0"})
    assert world.github.dispatches == [
        {"workflow": "code-size.yml", "ref": "main", "inputs": {"base": "3.11.0", "head": "3.13.0"}}
    ]


def test_a_dispatch_that_github_cannot_carry_out(world: World) -> None:
    said = {"message": "Workflow does not have 'workflow_dispatch' trigger"}
    world.github.fail_next("POST", "/dispatches$", 422, body=said)
    line = world.error(lambda: dispatch(world.hub, "code-size.yml", "main", {}))
    assert line == "cannot start the workflow code-size.yml: 422 Workflow does not have 'workflow_dispatch' trigger"


def test_artifacts_over_all_pages(world: World) -> None:
    ids = [world.github.add_artifact(7, f"part {n}", b"x" * n, expired=n == 3) for n in range(105)]
    world.github.add_artifact(8, "foreign", b"y")
    found = artifacts(world.hub, 7)
    assert [one.id for one in found] == ids
    assert found[3] == ArtifactInfo(ids[3], "part 3", 3, True, "0" * 40, "main", True)
    assert found[4] == ArtifactInfo(ids[4], "part 4", 4, False, "0" * 40, "main", True)
    assert len(world.github.traffic) == 2


def test_descent(world: World) -> None:
    old, middle, new, side, alien = ("1" * 40, "2" * 40, "3" * 40, "4" * 40, "5" * 40)
    for sha, above in ((old, ()), (middle, (old,)), (new, (middle, side)), (side, (old,)), (alien, ())):
        world.github.add_commit(sha, above)
    world.github.set_branch("main", new)
    assert is_ancestor(world.hub, old, new) and is_ancestor(world.hub, new, new) and is_ancestor(world.hub, old, "main")
    assert not is_ancestor(world.hub, new, old)
    assert not is_ancestor(world.hub, middle, side)
    assert not is_ancestor(world.hub, alien, new)
    assert not is_ancestor(world.hub, "6" * 40, new)
    assert parents(world.hub, new) == (middle, side) and parents(world.hub, old) == ()


def test_a_silent_server_is_not_a_missing_ancestor(world: World) -> None:
    world.github.fail_next("GET", "/compare/", 502, times=9)
    assert "cannot compare" in world.error(lambda: is_ancestor(world.hub, HEAD, "main"))
    world.github.fail_next("GET", "/commits/", 500, times=9)
    assert "cannot read the commit" in world.error(lambda: parents(world.hub, HEAD))


# Downloads


def test_a_download_does_not_take_the_token_along(world: World) -> None:
    number = world.github.add_artifact(7, "a", b"data")
    assert download(world.hub, number, 1000) == b"data"
    assert [one["authorization"] for one in world.github.blob_requests] == [None]


@pytest.mark.parametrize(
    ("status", "line"), [(401, "github-token"), (403, "actions: read"), (404, "actions: read"), (410, "expired")]
)
def test_a_download_that_is_refused(world: World, status: int, line: str) -> None:
    world.github.fail_next("GET", r"/zip$", status)
    number = world.github.add_artifact(7, "a", b"data")
    assert line in world.error(lambda: download(world.hub, number, 1000))


@pytest.mark.parametrize(
    ("headers", "requests"), [({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "4000000000"}, 1), ({}, 3)]
)
def test_an_exhausted_rate_limit_is_no_missing_permission(world: World, headers: dict[str, str], requests: int) -> None:
    said = {"message": "API rate limit exceeded for installation ID 7."}
    world.github.fail_next("GET", r"/zip$", 403, headers=headers, body=said, times=9)
    number = world.github.add_artifact(7, "a", b"data")
    line = world.error(lambda: download(world.hub, number, 1000))
    assert "GitHub limits the rate of requests" in line and "run it again later" in line and "permissions" not in line
    assert world.requests("GET", "/zip") == requests


@pytest.mark.parametrize("status", [429, 500, 502, 503, 0])
@pytest.mark.parametrize("path", [r"/zip$", r"/artifacts/\d+[.]zip$"])
def test_a_download_is_asked_for_again(world: World, status: int, path: str) -> None:
    number = world.github.add_artifact(7, "a", b"data")
    world.github.fail_next("GET", path, status, times=2, headers={"Retry-After": "0"} if status else {})
    assert download(world.hub, number, 1000) == b"data"


def test_an_answer_that_breaks_off_is_asked_for_again(world: World) -> None:
    number = world.github.add_artifact(7, "a", b"data")
    world.github.fail_next("GET", r"[.]zip$", 200, headers={"Content-Length": "9"}, body=b"da")
    assert download(world.hub, number, 1000) == b"data"


def test_a_fault_that_stays(world: World) -> None:
    world.github.fail_next("GET", r"/zip$", 503, times=9)
    number = world.github.add_artifact(7, "a", b"data")
    assert "503" in world.error(lambda: download(world.hub, number, 1000))
    assert world.requests("GET", "/zip") == 3


def test_a_storage_that_refuses_is_no_missing_permission(world: World) -> None:
    number = world.github.add_artifact(7, "a", b"data")
    world.github.fail_next("GET", r"[.]zip$", 403)
    line = world.error(lambda: download(world.hub, number, 1000))
    assert "names a storage that answers 403" in line and "permissions" not in line


def test_more_bytes_than_allowed(world: World) -> None:
    number = world.github.add_artifact(7, "a", b"x" * 1001)
    assert "has more than 1000 bytes" in world.error(lambda: download(world.hub, number, 1000))
    assert len(download(world.hub, number, 1001)) == 1001


@pytest.mark.parametrize(
    "url", ["http://example.org/x", "file:///etc/passwd", "", "https://a@b/x", "ftp://localhost/x"]
)
def test_a_redirect_to_elsewhere(world: World, url: str) -> None:
    world.github.fail_next("GET", r"/zip$", 302, headers={"Location": url})
    number = world.github.add_artifact(7, "a", b"data")
    assert "not https" in world.error(lambda: download(world.hub, number, 1000))
