"""Which requests are sent again, and when: the rules without a server."""

from __future__ import annotations

import email.utils

import pytest
from urllib3.connection import HTTPConnection
from urllib3.exceptions import MaxRetryError, NewConnectionError, ProtocolError

from bot.system.retrying import BoundedRetry, asked_wait_seconds

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "0"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": email.utils.formatdate(NOW + 30, usegmt=True)}, 30.0),
        ({"Retry-After": email.utils.formatdate(NOW - 30, usegmt=True)}, 0.0),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(NOW) + 9)}, 10.0),
        ({"X-RateLimit-Remaining": "3", "X-RateLimit-Reset": str(int(NOW) + 9)}, None),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "tomorrow"}, None),
    ],
)
def test_the_wait_that_github_asks_for(headers: dict[str, str], seconds: float | None) -> None:
    assert asked_wait_seconds(headers, NOW) == seconds


@pytest.mark.parametrize(
    ("method", "status", "after", "again"),
    [
        ("GET", 502, False, True),
        ("DELETE", 500, False, True),
        ("POST", 502, False, False),
        ("PATCH", 500, True, False),
        ("POST", 503, False, False),
        ("POST", 503, True, True),
        ("POST", 429, False, True),
        ("PATCH", 403, True, True),
        ("GET", 404, True, False),
        ("GET", 200, False, False),
    ],
)
def test_only_what_was_not_done_is_done_again(method: str, status: int, after: bool, again: bool) -> None:
    assert BoundedRetry().is_retry(method, status, after) is again


def test_a_broken_connection_leaves_a_creation_in_doubt_but_a_failed_one_does_not() -> None:
    with pytest.raises(ProtocolError):
        BoundedRetry().increment("POST", "/x", error=ProtocolError("gone"))
    assert BoundedRetry().increment("GET", "/x", error=ProtocolError("gone")).total == 4
    refused = NewConnectionError(HTTPConnection("api.github.example"), "refused")
    assert BoundedRetry().increment("POST", "/x", error=refused).total == 4


def test_waits_double_and_are_added_up() -> None:
    retry, waits = BoundedRetry(9, backoff_seconds=1, max_wait_seconds=100), []
    for _ in range(4):
        retry = retry.increment("GET", "/x", error=ProtocolError("gone"))
        waits.append((retry.wait_seconds, retry.waited_seconds))
    assert waits == [(1, 1), (2, 3), (4, 7), (8, 15)]


def test_the_tries_are_counted() -> None:
    retry = BoundedRetry(1, backoff_seconds=0).increment("GET", "/x", error=ProtocolError("gone"))
    with pytest.raises(MaxRetryError):
        retry.increment("GET", "/x", error=ProtocolError("gone"))


def test_a_wait_beyond_the_bound_ends_it() -> None:
    retry = BoundedRetry(9, backoff_seconds=4, max_wait_seconds=10).increment("GET", "/x", error=ProtocolError("gone"))
    with pytest.raises(MaxRetryError):
        retry.increment("GET", "/x", error=ProtocolError("gone"))
