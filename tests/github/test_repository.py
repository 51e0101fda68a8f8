"""What is asked of a repository: pull requests, labels, artifacts and ancestry."""

from __future__ import annotations

from github_world import HEAD, LABEL, World

from bot.github import repository
from bot.github.repository import labelling, open_pulls_with_head, parents, pull


def test_the_pull_request_of_a_commit_is_of_that_branch_repository_and_commit(
    world: World,
) -> None:
    fork_head = "e" * 40
    world.github.add_pull(20, fork_head, head_repo="fork/repo", head_branch="fix")
    world.github.add_pull(21, fork_head, head_repo="fork/repo", head_branch="other")
    world.github.add_pull(22, fork_head, head_repo="fork/another", head_branch="fix")
    world.github.add_pull(23, "f" * 40, head_repo="fork/repo", head_branch="fix")
    world.github.add_pull(
        24, fork_head, head_repo="fork/repo", head_branch="fix", state="closed"
    )
    world.github.add_pull(25, fork_head, head_branch="fix")
    numbers = [
        found_pull.number
        for found_pull in open_pulls_with_head(world.hub, "fork/repo", "fix", fork_head)
    ]
    assert numbers == [20] and open_pulls_with_head(world.hub, "", "", HEAD) == []
    world.github.add_pull(13, "b" * 40, head_repo=None, state="closed")
    info = pull(world.hub, 13)
    assert info.head_repository == "" and info.merge_commit_sha is None


def test_who_may_write(world: World) -> None:
    for login, permission in (
        ("ada", "admin"),
        ("will", "write"),
        ("rita", "read"),
        ("nils", "none"),
    ):
        world.github.add_user(login, permission)
        assert repository.may_write(world.hub, login) is (
            permission in ("admin", "write")
        )
    assert repository.may_write(world.hub, "nobody") is False


def test_the_newest_setting_of_a_label_counts_while_it_is_set_also_on_later_pages(
    world: World,
) -> None:
    assert labelling(world.hub, 12, LABEL) is None
    for number in range(60):
        world.github.add_label(12, f"label {number}", "mona")
        world.github.remove_label(12, f"label {number}")
    world.github.add_label(12, LABEL, "mona")
    world.github.remove_label(12, LABEL)
    assert labelling(world.hub, 12, LABEL) is None
    newest = world.github.add_label(12, LABEL, "hubot")
    world.github.add_label(12, "late", "mallory")
    for spelled in (LABEL, LABEL.upper()):
        event = labelling(world.hub, 12, spelled)
        assert event and event.actor
        assert (event.id, event.actor.login) == (newest, "hubot")


def test_artifacts_over_all_pages(world: World) -> None:
    ids = [
        world.github.add_artifact(7, f"part {n}", b"x" * n, expired=n == 3)
        for n in range(105)
    ]
    world.github.add_artifact(8, "foreign", b"y")
    infos = repository.artifacts(world.hub, 7)
    assert [info.id for info in infos] == ids and len(world.github.traffic) == 2
    assert (infos[3].name, infos[3].size_in_bytes, infos[3].expired) == (
        "part 3",
        3,
        True,
    )


def test_descent(world: World) -> None:
    old = "1" * 40
    middle = "2" * 40
    new = "3" * 40
    side = "4" * 40
    alien = "5" * 40
    for sha, above in (
        (old, ()),
        (middle, (old,)),
        (new, (middle, side)),
        (side, (old,)),
        (alien, ()),
    ):
        world.github.add_commit(sha, above)
    world.github.set_branch("main", new)
    descends = {
        (old, new): True,
        (new, new): True,
        (old, "main"): True,
        (new, old): False,
        (middle, side): False,
    }
    descends |= {(alien, new): False, ("6" * 40, new): False}
    assert {
        pair: repository.is_ancestor(world.hub, *pair) for pair in descends
    } == descends
    assert parents(world.hub, new) == (middle, side) and parents(world.hub, old) == ()
