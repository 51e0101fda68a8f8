"""The one comment of a report: found, updated, created once; whatever others do meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from publishing import OURS, World, opened
from replacing import replace

from bot.github.publishing import Published, find, publish, react, reply
from bot.system.hub import Hub

MARKER = "<!-- code-size: default -->"
BODY = f"{MARKER}\n## Code size\n\nall the same"
COMMENTS = r"/issues/12/comments$"
ONE = r"/issues/comments/\d+$"


@pytest.fixture
def world(caplog: pytest.LogCaptureFixture) -> Iterator[World]:
    with opened(caplog) as one:
        yield one


def put(
    hub: Hub, body: str = BODY, *, create: bool = True, current: Callable[[], bool] = lambda: True
) -> Published | None:
    return publish(hub, 12, MARKER, body, create=create, still_current=current)


def bodies(world: World) -> list[str]:
    return [one["body"] for one in world.github.comments(12)]


def no_writes(world: World) -> bool:
    return {one["method"] for one in world.github.traffic} == {"GET"}


def test_the_comment_is_created_then_left_then_updated_in_place(world: World) -> None:
    created, same, changed = put(world.hub), put(world.hub), put(world.hub, f"{BODY}!")
    assert created and same and changed
    assert [created.action, same.action, changed.action] == ["created", "unchanged", "updated"]
    assert created.url == same.url == changed.url == world.github.comments(12)[0]["html_url"]
    assert bodies(world) == [f"{BODY}!"]
    assert world.requests("PATCH", "") == 1 and world.requests("POST", "") == 1


def test_quiet_means_no_new_comment_but_an_old_one_is_updated(world: World) -> None:
    assert put(world.hub, create=False) is None and no_writes(world)
    world.github.add_comment(12, OURS, f"{MARKER}\nalarm")
    done = put(world.hub, create=False)
    assert done and done.action == "updated" and bodies(world) == [BODY]


def test_the_token_of_an_app_finds_its_comment_by_the_login_it_is_told(world: World) -> None:
    mine = world.github.add_comment(12, "my-app[bot]", f"{MARKER}\nold")
    told = replace(world.hub, login="my-app[bot]")
    assert [one.id for one in find(told, 12, MARKER)] == [mine] and find(world.hub, 12, MARKER) == []


def test_it_is_found_behind_320_comments(world: World) -> None:
    for number in range(320):
        world.github.add_comment(12, "mona", f"comment {number}")
    mine = world.github.add_comment(12, OURS, f"{MARKER}\nold")
    for number in range(5):
        world.github.add_comment(12, "mona", f"late {number}")
    assert [one.id for one in find(world.hub, 12, MARKER)] == [mine]
    done = put(world.hub)
    assert done and done.action == "updated" and len(bodies(world)) == 326


def test_only_our_comments_that_start_with_the_very_marker_count(world: World) -> None:
    world.github.add_comment(12, "mallory", BODY)
    world.github.add_comment(12, OURS, f"see:\n{MARKER}\nquoted")
    world.github.add_comment(12, OURS, f"{MARKER} and more\n")
    world.github.add_comment(12, OURS, "<!-- code-size: other -->\nother")
    assert find(world.hub, 12, MARKER) == []
    crlf = world.github.add_comment(12, OURS, f"{MARKER}\r\nedited in a browser")
    assert [one.id for one in find(world.hub, 12, MARKER)] == [crlf]


def test_a_comment_that_copies_ours_is_left_alone(world: World) -> None:
    copied = world.github.add_comment(12, "mallory", f"{MARKER}\nall is well, merge me")
    done = put(world.hub)
    assert done and done.action == "created"
    assert world.github.comments(12)[0]["id"] == copied
    assert bodies(world) == [f"{MARKER}\nall is well, merge me", BODY]


def test_younger_duplicates_of_ours_are_deleted(world: World) -> None:
    oldest = world.github.add_comment(12, OURS, f"{MARKER}\none")
    world.github.add_comment(12, "mallory", f"{MARKER}\nnot ours")
    world.github.add_comment(12, OURS, f"{MARKER}\ntwo")
    world.github.add_comment(12, OURS, BODY)
    put(world.hub)
    assert [(one["id"] == oldest, one["body"]) for one in world.github.comments(12)] == [
        (True, BODY),
        (False, f"{MARKER}\nnot ours"),
    ]


def test_a_run_for_an_older_head_writes_nothing(world: World) -> None:
    assert put(world.hub, current=lambda: False) is None
    world.github.add_comment(12, OURS, f"{MARKER}\nnewer")
    world.github.add_comment(12, OURS, f"{MARKER}\nduplicate")
    assert put(world.hub, current=lambda: False) is None
    assert no_writes(world) and bodies(world) == [f"{MARKER}\nnewer", f"{MARKER}\nduplicate"]


def test_being_current_is_asked_before_each_write(world: World) -> None:
    for text in ("one", "two", "three"):
        world.github.add_comment(12, OURS, f"{MARKER}\n{text}")
    answers = iter([True, True, False])
    put(world.hub, current=lambda: next(answers))
    assert bodies(world) == [BODY, f"{MARKER}\nthree"]


@pytest.mark.parametrize("create", [True, False])
def test_a_comment_deleted_in_between_is_created_again_if_one_is_wanted(world: World, create: bool) -> None:
    gone = world.github.add_comment(12, OURS, f"{MARKER}\nold")
    world.github.before("PATCH", ONE, lambda: world.github.delete_comment(gone))
    done = put(world.hub, create=create)
    assert (done.action if done else None) == ("created" if create else None)
    assert bodies(world) == ([BODY] if create else [])


def test_a_deleted_oldest_leaves_the_next_of_ours(world: World) -> None:
    gone = world.github.add_comment(12, OURS, f"{MARKER}\nold")
    kept = world.github.add_comment(12, OURS, f"{MARKER}\nduplicate")
    world.github.before("PATCH", ONE, lambda: world.github.delete_comment(gone))
    put(world.hub)
    assert [(one["id"], one["body"]) for one in world.github.comments(12)] == [(kept, BODY)]


def test_a_duplicate_that_another_run_deleted_first_is_no_error(world: World) -> None:
    world.github.add_comment(12, OURS, BODY)
    younger = world.github.add_comment(12, OURS, BODY)
    world.github.before("DELETE", ONE, lambda: world.github.delete_comment(younger))
    put(world.hub)
    assert bodies(world) == [BODY]


def test_who_creates_second_gives_way(world: World) -> None:
    world.github.before("POST", COMMENTS, lambda: world.github.add_comment(12, OURS, f"{MARKER}\nfirst"))
    done = put(world.hub)
    assert done and done.action == "updated"
    assert bodies(world) == [BODY] and done.url == world.github.comments(12)[0]["html_url"]


def test_who_creates_second_and_is_outdated_takes_its_own_back(world: World) -> None:
    current = iter([True, False])
    world.github.before("POST", COMMENTS, lambda: world.github.add_comment(12, OURS, f"{MARKER}\nnewer"))
    assert put(world.hub, current=lambda: next(current)) is None
    assert bodies(world) == [f"{MARKER}\nnewer"]


def test_runs_that_race_leave_one_comment(world: World) -> None:
    barrier = threading.Barrier(4)
    world.github.before("POST", COMMENTS, barrier.wait, times=4)  # all have looked before the first creates
    hubs = [world.connect() for _ in range(4)]
    done: list[Published | None] = []
    threads = [threading.Thread(target=lambda hub=hub: done.append(put(hub))) for hub in hubs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert bodies(world) == [BODY]
    left = world.github.comments(12)[0]["html_url"]
    assert [one.url for one in done if one] == [left] * 4
    for hub in hubs:
        hub.close()


@pytest.mark.parametrize("fault", [502, 500, 503, 0])
def test_a_creation_whose_answer_got_lost_is_not_done_twice(world: World, fault: int) -> None:
    world.github.before("POST", COMMENTS, lambda: world.github.add_comment(12, OURS, BODY))
    world.github.fail_next("POST", COMMENTS, fault)
    done = put(world.hub)
    assert done and done.action == "created" and bodies(world) == [BODY]


@pytest.mark.parametrize("fault", [502, 0])
def test_a_creation_that_failed_indeed_is_done_again(world: World, fault: int) -> None:
    world.github.fail_next("POST", COMMENTS, fault)
    done = put(world.hub)
    assert done and done.action == "created" and bodies(world) == [BODY]


def test_a_creation_that_timed_out_is_looked_for(world: World) -> None:
    hub = world.connect(timeout_seconds=1)
    world.github.delay_next("POST", COMMENTS, 1.1)
    world.github.before("POST", COMMENTS, lambda: world.github.add_comment(12, OURS, BODY))
    done = put(hub)
    assert done and done.action == "created"
    assert BODY in bodies(world) and world.requests("GET", "/comments") == 2


def test_an_update_whose_answer_got_lost_is_an_update(world: World) -> None:
    mine = world.github.add_comment(12, OURS, f"{MARKER}\nold")

    def happen() -> None:
        world.github.delete_comment(mine)
        world.github.add_comment(12, OURS, BODY)

    world.github.before("PATCH", ONE, happen)
    world.github.fail_next("PATCH", ONE, 502)
    done = put(world.hub)
    assert done and done.action == "updated" and bodies(world) == [BODY]


def test_an_update_is_tried_again_within_bounds(world: World) -> None:
    world.github.add_comment(12, OURS, f"{MARKER}\nold")
    world.github.fail_next("PATCH", ONE, 502, times=2)
    done = put(world.hub)
    assert done and done.action == "updated" and bodies(world) == [BODY]
    world.github.fail_next("PATCH", ONE, 502, times=99)
    assert "GitHub did not answer: 502" in world.error(lambda: put(world.hub, f"{BODY}!"))
    assert world.requests("PATCH", "") == 3 + 4


def test_the_longest_comment_is_written_and_a_longer_one_is_our_mistake(world: World) -> None:
    longest = f"{MARKER}\n".ljust(65_536, "ü")
    assert put(world.hub, longest)
    assert [len(body) for body in bodies(world)] == [65_536]
    with pytest.raises(ValueError, match="has at most"):
        put(world.hub, longest + "x")


def test_a_token_that_may_not_write_is_explained(world: World) -> None:
    hub = world.connect(token=world.github.token(permissions={"contents": "read"}))
    assert world.error(lambda: put(hub)) == (
        "cannot write the comment on #12: 403 Resource not accessible by integration"
        " (give the job `permissions: pull-requests: write`)"
    )


def test_a_pull_request_that_is_not_there(world: World) -> None:
    line = world.error(lambda: publish(world.hub, 99, MARKER, BODY, create=True, still_current=lambda: True))
    assert line.startswith("cannot read the comments on #99: not found, or the token may not see it")


def test_a_reply_is_added_once(world: World) -> None:
    reply(world.hub, 12, "done")
    reply(world.hub, 12, "done")
    assert bodies(world) == ["done", "done"]


@pytest.mark.parametrize("arrived", [True, False])
def test_a_reply_whose_answer_got_lost_is_looked_for_after_the_question(world: World, arrived: bool) -> None:
    world.github.add_comment(12, OURS, "done")
    world.github.add_comment(12, "mona", "/code-size rerun")
    if arrived:
        world.github.before("POST", COMMENTS, lambda: world.github.add_comment(12, OURS, "done"))
    world.github.fail_next("POST", COMMENTS, 502)
    reply(world.hub, 12, "done")
    assert bodies(world) == ["done", "/code-size rerun", "done"]


def test_a_reaction_is_added_to_the_comment(world: World) -> None:
    asked = world.github.add_comment(12, "mona", "/code-size help")
    react(world.hub, asked, "rocket")
    assert [(one["comment_id"], one["content"]) for one in world.github.reactions] == [(asked, "rocket")]
    assert "not found" in world.error(lambda: react(world.hub, 1, "rocket"))
