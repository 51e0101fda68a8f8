"""Which requests are sent again, and when: the rules without a server."""

from __future__ import annotations

import io
import time

import pytest
from urllib3 import HTTPResponse
from urllib3.connection import HTTPConnection
from urllib3.exceptions import MaxRetryError, NewConnectionError, ProtocolError

from bot.system.hub import BoundedRetry


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
    assert BoundedRetry(total=5).is_retry(method, status, after) is again


def test_a_broken_connection_leaves_a_creation_in_doubt_but_a_failed_one_does_not() -> None:
    with pytest.raises(ProtocolError):
        BoundedRetry(total=5).increment("POST", "/x", error=ProtocolError("gone"))
    assert BoundedRetry(total=5).increment("GET", "/x", error=ProtocolError("gone")).total == 4
    refused = NewConnectionError(HTTPConnection("api.github.example"), "refused")
    assert BoundedRetry(total=5).increment("POST", "/x", error=refused).total == 4


def test_waits_are_added_up_and_bounded() -> None:
    retry, waited = BoundedRetry(total=9, backoff_factor=1, max_wait_seconds=14), []
    for _ in range(4):
        retry = retry.increment("GET", "/x", error=ProtocolError("gone"))
        waited.append(retry.waited_seconds)
    assert waited == [0, 2, 6, 14]
    with pytest.raises(MaxRetryError):
        retry.increment("GET", "/x", error=ProtocolError("gone"))


def test_the_tries_are_counted() -> None:
    retry = BoundedRetry(total=1).increment("GET", "/x", error=ProtocolError("gone"))
    with pytest.raises(MaxRetryError):
        retry.increment("GET", "/x", error=ProtocolError("gone"))


@pytest.mark.parametrize("status", [403, 429])
def test_an_exhausted_limit_is_waited_for_until_its_reset(status: int) -> None:
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + 30)}
    said = b'{"message": "API rate limit exceeded for x"}'
    answer = HTTPResponse(
        io.BytesIO(said), {**headers, "Content-Type": "application/json"}, status, preload_content=False
    )
    retry = BoundedRetry(total=3).increment("POST", "/x", answer)
    assert 25 < retry.waited_seconds <= 32 and retry.get_backoff_time() == retry.waited_seconds
