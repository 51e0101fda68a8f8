"""The connection to GitHub: what is asked again, and what the user reads when it fails."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import pytest
from github_world import BODY, COMMENTS, OURS, PULL, World
from urllib3.connection import HTTPConnection
from urllib3.exceptions import NewConnectionError, ProtocolError

from bot.github.repository import pull
from bot.system.hub import connect
from bot.system.refusals import explain
from bot.system.retrying import BoundedRetry


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What would have been waited before each further try; nobody waits."""
    seconds: list[float] = []

    def waited(retry: BoundedRetry, response: Any = None) -> None:
        seconds.append(
            (retry.get_retry_after(response) if response else None)
            or retry.get_backoff_time()
        )

    monkeypatch.setattr(BoundedRetry, "sleep", waited)
    return seconds


def test_whose_token_it_is_is_asked_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    assert world.github.traffic == []
    assert [world.hub.token_login(), world.hub.token_login()] == [
        OURS,
        OURS,
    ] and world.requests("GET", "/user") == 1
    assert not [
        record for record in caplog.records if record.name.startswith("github.")
    ], "PyGithub prints what it logs"
    assert (
        world.connect(world.github.token("mona", kind="user")).token_login() == "mona"
    )
    world.github.fail_next("GET", "/user$", 404)
    assert world.connect().token_login() == OURS
    limited = {"message": "You have exceeded a secondary rate limit. Please wait."}
    world.github.fail_next(
        "GET", "/user$", 403, headers={"Retry-After": "3600"}, body=limited
    )
    assert "limits the rate of requests" in world.error(world.connect().token_login), (
        "no workflow's token for that"
    )
    assert "the token was refused" in world.error(
        lambda: pull(world.connect(world.token[:-1] + "X"), 12)
    )


@pytest.mark.parametrize("status", [500, 502, 504, 0])
def test_reading_is_tried_again_within_bounds(world: World, status: int) -> None:
    world.github.fail_next("GET", PULL, status, times=2)
    assert pull(world.hub, 12).number == 12 and (
        world.requests("GET", "/pulls/12") == 3 or not status
    )
    world.github.fail_next("GET", PULL, status, times=9, body="<html>unicorn</html>")
    line = world.error(lambda: pull(world.hub, 12))
    assert (
        line.startswith("cannot read the pull request #12: GitHub did not answer: ")
        and "run it again" in line
    )


def test_who_is_not_there_or_silent_is_not_waited_for(world: World) -> None:
    nobody = connect(
        "http://127.0.0.1:9", world.token, "octo/repo", retries=1, backoff_seconds=0.01
    )
    world.github.delay_next("GET", PULL, 3600)
    for hub in (nobody, world.connect(timeout_seconds=1, retries=0)):
        assert "did not answer" in world.error(lambda hub=hub: pull(hub, 12))  # type: ignore[misc]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (429, "Too many requests"),
        (403, "You have exceeded a secondary rate limit and have been blocked."),
    ],
)
def test_retry_after_is_waited_for_whatever_the_request(
    world: World, waits: list[float], status: int, message: str
) -> None:
    for method, path in (("GET", PULL), ("POST", COMMENTS)):
        world.github.fail_next(
            method,
            path,
            status,
            headers={"Retry-After": "4"},
            body={"message": message},
        )
    assert pull(world.hub, 12).number == 12
    assert world.put() and world.bodies == [BODY] and waits == [4.0, 4.0]


@pytest.mark.parametrize("status", [429, 403, 503])
def test_a_wait_that_is_too_long_is_an_error_at_once(
    world: World, waits: list[float], status: int
) -> None:
    world.github.fail_next("GET", PULL, status, headers={"Retry-After": "3600"})
    line = world.error(lambda: pull(world.hub, 12))
    assert waits == [] and world.requests("GET", "/pulls/12") == 1
    assert str(status) in line and ("3600 seconds" in line or status == 503)


def test_a_secondary_limit_that_names_no_time_takes_a_minute_which_is_too_long_here(
    world: World,
) -> None:
    limited = {
        "message": (
            "You have exceeded a secondary rate limit. Please wait a few minutes before"
            " you try again."
        )
    }
    world.github.fail_next("GET", PULL, 403, body=limited)
    line = world.error(lambda: pull(world.hub, 12))
    assert (
        "GitHub limits the rate of requests: 403 You have exceeded" in line
        and "permissions" not in line
    )
    assert world.requests("GET", "/pulls/12") == 1


def test_an_exhausted_limit_is_waited_for_until_its_reset(
    world: World, waits: list[float]
) -> None:
    message = {"message": "API rate limit exceeded for x"}
    for after, longest_wait in ((30, 60), (3600, 60)):
        reset = {
            "X-RateLimit-Remaining": "0",
            "X-RateLimit-Reset": str(int(time.time()) + after),
        }
        world.github.fail_next("GET", PULL, 403, headers=reset, body=message)
        hub = world.connect(max_wait_seconds=longest_wait)
        if after < longest_wait:
            assert pull(hub, 12).number == 12
        else:
            assert "GitHub limits the rate of requests" in world.error(
                partial(pull, hub, 12)
            )
    (waited,) = waits
    assert 20 < waited <= 32
    world.github.fail_next(
        "GET", PULL, 403, headers={"X-RateLimit-Reset": "1"}, body=message, times=9
    )
    line = world.error(lambda: pull(world.hub, 12))
    assert "GitHub limits the rate of requests" in line and "permissions" not in line, (
        "a limit that does not end"
    )


def test_a_broken_connection_leaves_a_write_in_doubt_but_a_refused_one_does_not() -> (
    None
):
    retry = BoundedRetry(total=5, allowed_methods={"GET"}, max_rate_limit_wait=1)
    with pytest.raises(ProtocolError):
        retry.increment("POST", "/x", error=ProtocolError("gone"))
    refused = NewConnectionError(HTTPConnection("api.github.example"), "refused")
    assert retry.increment("POST", "/x", error=refused).total == 4
    assert retry.increment("GET", "/x", error=ProtocolError("gone")).total == 4


def test_refusals_are_one_line_in_githubs_words_with_the_missing_permission(
    world: World,
) -> None:
    assert (
        world.error(lambda: world.put(hub=world.may(issues="read")))
        == "cannot write the comment on #12: 403 Resource not accessible by integration"
        " (give the job `permissions: pull-requests: write`)"
    )
    assert world.requests("POST", "/comments") == 1
    line = world.error(lambda: pull(world.hub, 99))
    assert (
        "there is no pull request #99 in octo/repo, or the token may not see it" in line
    )
    assert "pull-requests: read" in line
    wrong = [
        {"resource": "IssueComment", "field": "body", "code": "missing_field"},
        "and\nmore",
    ]
    world.github.fail_next(
        "POST", COMMENTS, 422, body={"message": "Validation Failed", "errors": wrong}
    )
    line = world.error(world.put)
    assert "422 Validation Failed: IssueComment body missing_field, and more" in line
    echoed = {"message": f"Authorization: token {world.token} " + "long\n" * 500}
    world.github.fail_next("GET", PULL, 422, body=echoed)
    assert len(world.error(lambda: pull(world.hub, 12))) < 500
    for error in (ZeroDivisionError("ours"), KeyError("a key of the program's own")):
        with pytest.raises(type(error)), explain("divide", "none"):
            raise error
