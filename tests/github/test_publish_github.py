"""The connection: what is asked when, how often again, and what the user reads when it fails."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import requests
from github import GithubException
from publishing import OURS, World, opened

from bot.errors import NetworkError
from bot.github import publishing, repository
from bot.system.hub import BoundedRetry, Unexpected, connect, explain, in_doubt

PULL = r"/pulls/12$"
COMMENTS = r"/issues/12/comments$"


@pytest.fixture
def world(caplog: pytest.LogCaptureFixture) -> Iterator[World]:
    with opened(caplog) as one:
        yield one


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What would have been waited in all before each further try; nobody waits."""
    seconds: list[float] = []
    monkeypatch.setattr(BoundedRetry, "sleep", lambda retry, _response=None: seconds.append(retry.waited_seconds))
    return seconds


def test_connecting_asks_nothing(world: World) -> None:
    assert world.hub.repository == "octo/repo"
    assert world.github.traffic == []


def test_the_token_of_a_workflow_is_known_by_its_refusal_and_asked_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    assert [world.hub.token_login(), world.hub.token_login()] == [OURS, OURS]
    assert world.requests("GET", "/user") == 1
    assert not [one for one in caplog.records if one.name.startswith("github.")], "PyGithub prints what it logs"


def test_a_user_token_says_who_it_is(world: World) -> None:
    hub = world.connect(token=world.github.token("mona", kind="user"))
    assert hub.token_login() == "mona"


def test_a_token_whose_user_is_not_found_is_the_workflows(world: World) -> None:
    world.github.fail_next("GET", "/user$", 404)
    assert world.hub.token_login() == OURS


def test_a_rate_limit_is_not_taken_for_the_workflows_token(world: World) -> None:
    limited = {"message": "You have exceeded a secondary rate limit. Please wait."}
    world.github.fail_next("GET", "/user$", 403, headers={"Retry-After": "3600"}, body=limited)
    assert "limits the rate of requests" in world.error(world.hub.token_login)


def test_a_wrong_token_is_refused_and_not_shown(world: World) -> None:
    hub = world.connect(token=world.token[:-1] + "X")
    assert "the token was refused" in world.error(lambda: repository.pull(hub, 12))


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_reading_is_tried_again_when_the_server_fails(world: World, status: int) -> None:
    world.github.fail_next("GET", PULL, status, times=2)
    assert repository.pull(world.hub, 12).number == 12
    assert world.requests("GET", "/pulls/12") == 3


def test_reading_is_tried_again_when_the_connection_breaks(world: World) -> None:
    world.github.fail_next("GET", PULL, 0)
    assert repository.pull(world.hub, 12).number == 12


def test_the_tries_end(world: World) -> None:
    world.github.fail_next("GET", PULL, 502, times=9)
    line = world.error(lambda: repository.pull(world.hub, 12))
    assert line.startswith("cannot read the pull request #12: GitHub did not answer: 502") and "run it again" in line
    assert world.requests("GET", "/pulls/12") == 3


def test_a_dead_server_is_one_line(world: World) -> None:
    world.github.fail_next("GET", PULL, 0, times=9)
    assert "GitHub did not answer" in world.error(lambda: repository.pull(world.hub, 12))


def test_nobody_there_is_one_line(world: World) -> None:
    hub = connect("http://127.0.0.1:9", world.token, "octo/repo", retries=1, backoff_seconds=0.01)
    assert "GitHub did not answer" in world.error(lambda: repository.pull(hub, 12))


def test_a_silent_server_is_not_waited_for(world: World) -> None:
    hub = world.connect(timeout_seconds=1, retries=0)
    world.github.delay_next("GET", PULL, 3600)
    assert "did not answer" in world.error(lambda: repository.pull(hub, 12))


@pytest.mark.parametrize(
    ("status", "message"),
    [(429, "Too many requests"), (403, "You have exceeded a secondary rate limit and have been blocked.")],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_retry_after_is_waited_for_whatever_the_request(
    world: World, waits: list[float], status: int, message: str, method: str
) -> None:
    path = PULL if method == "GET" else COMMENTS
    world.github.fail_next(method, path, status, headers={"Retry-After": "4"}, body={"message": message})
    if method == "GET":
        assert repository.pull(world.hub, 12).number == 12
    else:
        publishing.reply(world.hub, 12, "hello")
        assert [one["body"] for one in world.github.comments(12)] == ["hello"]
    assert waits == [4.0]


@pytest.mark.parametrize("status", [429, 403, 503])
def test_a_long_retry_after_is_an_error_at_once(world: World, waits: list[float], status: int) -> None:
    world.github.fail_next("GET", PULL, status, headers={"Retry-After": "3600"}, times=9)
    line = world.error(lambda: repository.pull(world.hub, 12))
    assert waits == []
    assert world.requests("GET", "/pulls/12") == 1
    assert str(status) in line
    assert "3600 seconds" in line or status == 503


def test_all_waits_together_are_bounded(world: World, waits: list[float]) -> None:
    hub = world.connect(retries=9, max_wait_seconds=100)
    world.github.fail_next("GET", PULL, 429, headers={"Retry-After": "40"}, times=9)
    assert "429" in world.error(lambda: repository.pull(hub, 12))
    assert waits == [40.0, 80.0]
    assert world.requests("GET", "/pulls/12") == 3


def test_a_secondary_limit_that_names_no_time_takes_a_minute_which_is_too_long_here(world: World) -> None:
    limited = {"message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}
    world.github.fail_next("GET", PULL, 403, body=limited)
    assert "GitHub limits the rate of requests: 403 You have exceeded" in world.error(
        lambda: repository.pull(world.hub, 12)
    )
    assert world.requests("GET", "/pulls/12") == 1


def test_an_exhausted_primary_limit_is_waited_for_until_its_reset(world: World) -> None:
    reset = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()))}
    world.github.fail_next("GET", PULL, 403, headers=reset, body={"message": "API rate limit exceeded for x"})
    assert repository.pull(world.hub, 12).number == 12


def test_a_refusal_is_not_repeated_and_names_the_permission(world: World) -> None:
    hub = world.connect(token=world.github.token(permissions={"contents": "read", "issues": "read"}))
    line = world.error(
        lambda: publishing.publish(hub, 12, "<!-- m -->", "<!-- m -->\nx", create=True, still_current=lambda: True)
    )
    assert line == (
        "cannot write the comment on #12: 403 Resource not accessible by integration"
        " (give the job `permissions: pull-requests: write`)"
    )
    assert world.requests("POST", "/comments") == 1


def test_what_is_not_there_may_be_a_missing_permission(world: World) -> None:
    line = world.error(lambda: repository.pull(world.hub, 99))
    assert "not found, or the token may not see it" in line and "pull-requests: read" in line


def test_what_has_expired_says_so(world: World) -> None:
    world.github.fail_next("GET", "/artifacts", 410)
    assert "expired" in world.error(lambda: repository.artifacts(world.hub, 7))


def test_a_validation_error_is_given_in_githubs_words(world: World) -> None:
    said = {
        "message": "Validation Failed",
        "errors": [{"resource": "IssueComment", "field": "body", "code": "missing_field"}, "and\nmore"],
    }
    world.github.fail_next("POST", COMMENTS, 422, body=said)
    line = world.error(lambda: publishing.reply(world.hub, 12, "x"))
    assert "422 Validation Failed: IssueComment body missing_field, and more" in line


def test_a_servers_text_is_clipped_and_loses_what_looks_like_a_token(world: World) -> None:
    said = {"message": f"Authorization: token {world.token} " + "long\n" * 500}
    world.github.fail_next("GET", PULL, 422, body=said)
    assert len(world.error(lambda: repository.pull(world.hub, 12))) < 500


def test_a_page_instead_of_json_is_one_line(world: World) -> None:
    world.github.fail_next("GET", PULL, 502, body="<html>unicorn</html>", times=9)
    assert "GitHub did not answer: 502" in world.error(lambda: repository.pull(world.hub, 12))


def test_other_errors_pass_through() -> None:
    with pytest.raises(ZeroDivisionError), explain("divide", "none"):
        _ = 1 // 0
    with pytest.raises(NetworkError, match=r"^mine$"), explain("divide", "none"):
        raise NetworkError("mine")
    with pytest.raises(KeyError), explain("count", "none"):
        raise KeyError("a key of the program's own")


def test_in_doubt_is_what_may_have_been_done() -> None:
    doubted = [GithubException(502), GithubException(500), Unexpected("is no JSON"), requests.ReadTimeout()]
    known = [GithubException(422), GithubException(404), GithubException(429), ZeroDivisionError()]
    assert [in_doubt(one) for one in doubted + known] == [True] * 4 + [False] * 4
