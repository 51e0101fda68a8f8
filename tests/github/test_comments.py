"""The one comment of a report, whatever others do meanwhile and whatever gets lost."""

from __future__ import annotations

import threading

import pytest
from github_world import BODY, COMMENTS, MARKER, ONE, World
from replacing import replace

from bot.github.comments import find


def test_the_comment_is_created_left_updated_and_found_among_others(
    world: World,
) -> None:
    for number in range(110):
        world.github.add_comment(12, "mona", f"comment {number}")
    world.github.add_comment(12, "mallory", BODY)
    world.ours(
        f"see:\n{MARKER}\nquoted",
        f"{MARKER} and more\n",
        "<!-- code-size: other -->\nother",
    )
    assert find(world.hub, 12, MARKER) == [] and world.put(create=False) == ""
    created = world.put()
    same = world.put()
    changed = world.put(f"{BODY}!", create=False)
    assert created == same == changed != ""
    assert (
        world.requests("PATCH", "") == 1
        and world.requests("POST", "") == 1
        and len(world.bodies) == 115
    )
    (crlf,) = world.ours(f"{MARKER}\r\nedited in a browser")
    assert [comment.id for comment in find(world.hub, 12, MARKER)][1:] == [crlf]
    app = world.github.add_comment(12, "my-app[bot]", f"{MARKER}\nold")
    assert [
        comment.id
        for comment in find(replace(world.hub, login="my-app[bot]"), 12, MARKER)
    ] == [app]


def test_younger_duplicates_of_ours_are_deleted_also_where_another_run_is_faster(
    world: World,
) -> None:
    world.ours("one")
    world.github.add_comment(12, "mallory", f"{MARKER}\nnot ours")
    younger = world.ours("two", BODY)
    world.github.before("DELETE", ONE, lambda: world.github.delete_comment(younger[0]))
    world.put()
    assert world.bodies == [BODY, f"{MARKER}\nnot ours"]


def test_being_current_is_asked_before_each_write(world: World) -> None:
    assert world.put(current=lambda: False) == ""
    world.ours("one", "two", "three")
    assert world.put(current=lambda: False) == ""
    assert {exchange["method"] for exchange in world.github.traffic} == {"GET"}
    answers = iter([True, True, False])
    world.put(current=lambda: next(answers))
    assert world.bodies == [BODY, f"{MARKER}\nthree"]


@pytest.mark.parametrize(("duplicates", "create"), [(0, True), (0, False), (1, False)])
def test_a_comment_deleted_in_between_is_created_again_if_one_is_wanted(
    world: World, duplicates: int, create: bool
) -> None:
    gone, *remaining = world.ours(*["old", "duplicate"][: duplicates + 1])
    world.github.before("PATCH", ONE, lambda: world.github.delete_comment(gone))
    assert bool(world.put(create=create)) == (create or duplicates > 0)
    assert world.bodies == ([BODY] if create or duplicates else [])
    assert [
        comment["id"] for comment in world.github.comments(12)
    ] == remaining or create


@pytest.mark.parametrize("is_current", [True, False])
def test_who_creates_second_gives_way(world: World, is_current: bool) -> None:
    current = iter([True, is_current])
    world.github.before("POST", COMMENTS, lambda: world.ours("first"))
    assert bool(world.put(current=lambda: next(current))) is is_current
    assert world.bodies == [BODY if is_current else f"{MARKER}\nfirst"]


def test_runs_that_race_leave_one_comment(world: World) -> None:
    barrier = threading.Barrier(4)
    # all have looked before the first creates
    world.github.before("POST", COMMENTS, barrier.wait, times=4)
    hubs = [world.connect() for _ in range(4)]
    done = list[str]()
    threads = [
        threading.Thread(target=lambda hub=hub: done.append(world.put(hub=hub)))
        for hub in hubs
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert world.bodies == [BODY]
    assert done == [world.github.comments(12)[0]["html_url"]] * 4
    for hub in hubs:
        hub.close()


@pytest.mark.parametrize("arrived", [True, False])
@pytest.mark.parametrize("fault", [502, 503, 0])
def test_a_creation_whose_answer_got_lost_is_done_once(
    world: World, fault: int, arrived: bool
) -> None:
    if arrived:
        world.github.before("POST", COMMENTS, lambda: world.ours(BODY))
    world.github.fail_next("POST", COMMENTS, fault)
    assert world.put() and world.bodies == [BODY]


def test_an_update_is_tried_again_within_bounds(world: World) -> None:
    (comment_id,) = world.ours("old")

    def happen() -> None:
        world.github.delete_comment(comment_id)
        world.ours(BODY)

    world.github.before("PATCH", ONE, happen)
    world.github.fail_next("PATCH", ONE, 502)
    assert world.put() and world.bodies == [BODY]
    world.github.fail_next("PATCH", ONE, 502, times=2)
    assert world.put(f"{BODY}!") and world.bodies == [f"{BODY}!"]
    world.github.fail_next("PATCH", ONE, 502, times=99)
    assert "GitHub did not answer: 502" in world.error(world.put)
    assert world.requests("PATCH", "") == 1 + 3 + 4
