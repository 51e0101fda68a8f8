"""Pull requests: found by what GitHub says of them, not by what a run claims."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from publishing import HEAD, World, opened

from bot.github.repository import head_repository_of, labelling, may_write, open_pulls_with_head, pull
from bot.system.hub import Hub

LABEL = "code-size-approved"


@pytest.fixture
def world(caplog: pytest.LogCaptureFixture) -> Iterator[World]:
    with opened(caplog) as one:
        yield one


def set_by(hub: Hub, number: int, label: str) -> tuple[int, str] | None:
    event = labelling(hub, number, label)
    return (event.id, event.actor.login) if event else None


def test_a_pull_request_is_read_in_one_request(world: World) -> None:
    world.github.add_pull(13, "b" * 40, "release", "fork/repo", "fix", merge_sha="c" * 40, base_sha="d" * 40)
    one = pull(world.hub, 13)
    assert (one.number, one.head.sha, one.base.ref, one.merge_commit_sha) == (13, "b" * 40, "release", "c" * 40)
    assert (head_repository_of(one), one.created_at.isoformat()) == ("fork/repo", "2026-01-01T00:00:00+00:00")
    assert len(world.github.traffic) == 1


def test_a_deleted_fork_and_a_conflict_leave_gaps(world: World) -> None:
    world.github.add_pull(13, "b" * 40, fork_deleted=True, state="closed")
    info = pull(world.hub, 13)
    assert head_repository_of(info) == "" and info.merge_commit_sha is None


def test_the_pull_request_of_a_commit_is_of_that_branch_repository_and_commit(world: World) -> None:
    mine = "e" * 40
    world.github.add_pull(20, mine, head_repo="fork/repo", head_branch="fix")
    world.github.add_pull(21, mine, head_repo="fork/repo", head_branch="other")
    world.github.add_pull(22, mine, head_repo="fork/another", head_branch="fix")
    world.github.add_pull(23, "f" * 40, head_repo="fork/repo", head_branch="fix")
    world.github.add_pull(24, mine, head_repo="fork/repo", head_branch="fix", state="closed")
    world.github.add_pull(25, mine, head_branch="fix")
    world.github.add_pull(26, mine, "release", head_repo="Fork/Repo", head_branch="fix")
    found = open_pulls_with_head(world.hub, "fork/repo", "fix", mine)
    assert [one.number for one in found][:1] == [20] and {one.number for one in found} <= {20, 26}
    assert open_pulls_with_head(world.hub, "fork/repo", "fix", HEAD) == []


def test_a_head_that_github_ignores_finds_nothing_foreign(world: World) -> None:
    assert open_pulls_with_head(world.hub, "", "", HEAD) == []


@pytest.mark.parametrize(("permission", "may"), [("admin", True), ("write", True), ("read", False), ("none", False)])
def test_who_may_write(world: World, permission: str, may: bool) -> None:
    world.github.add_user("mona", permission)
    assert may_write(world.hub, "mona") is may


def test_a_stranger_may_not_write_and_a_silent_server_is_no_answer(world: World) -> None:
    assert may_write(world.hub, "nobody") is False
    world.github.fail_next("GET", "/permission$", 500, times=9)
    assert "cannot ask whether mona may write" in world.error(lambda: may_write(world.hub, "mona"))


def test_the_newest_setting_of_a_label_counts_while_it_is_set(world: World) -> None:
    assert labelling(world.hub, 12, LABEL) is None
    world.github.add_label(12, LABEL, "mona")
    world.github.remove_label(12, LABEL)
    assert labelling(world.hub, 12, LABEL) is None
    world.github.add_label(12, "bug", "mallory")
    newest = world.github.add_label(12, LABEL, "hubot")
    world.github.add_label(12, "late", "mallory")
    assert set_by(world.hub, 12, LABEL) == (newest, "hubot")
    assert set_by(world.hub, 12, LABEL.upper()) == (newest, "hubot")


def test_the_setting_is_found_on_later_pages(world: World) -> None:
    for number in range(60):
        world.github.add_label(12, f"label {number}", "mona")
        world.github.remove_label(12, f"label {number}")
    newest = world.github.add_label(12, LABEL, "hubot")
    assert set_by(world.hub, 12, LABEL) == (newest, "hubot")


def test_a_failure_is_not_a_missing_label(world: World) -> None:
    world.github.fail_next("GET", "/labels$", 502, times=9)
    assert "cannot read who labelled #12" in world.error(lambda: labelling(world.hub, 12, LABEL))
