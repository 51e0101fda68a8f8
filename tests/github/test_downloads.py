"""The download of an artifact: its bounds, its retries, and its redirect."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from github_world import World

from bot.github import repository


@pytest.fixture
def fetched(world: World) -> Callable[..., bytes]:
    number = world.github.add_artifact(7, "a", b"data")
    return lambda most_bytes=1000: repository.download(world.hub, number, most_bytes)


def test_a_download_is_bounded_and_does_not_take_the_token_along(
    world: World, fetched: Callable[..., bytes]
) -> None:
    assert fetched() == fetched(4) == b"data"
    assert [request["authorization"] for request in world.github.blob_requests] == [
        None,
        None,
    ]
    assert "has more than 3 bytes" in world.error(lambda: fetched(3))


@pytest.mark.parametrize("status", [429, 500, 503, 0])
@pytest.mark.parametrize("path", [r"/zip$", r"/artifacts/\d+[.]zip$"])
def test_a_download_is_asked_for_again(
    world: World, fetched: Callable[..., bytes], status: int, path: str
) -> None:
    world.github.fail_next(
        "GET", path, status, times=2, headers={"Retry-After": "0"} if status else {}
    )
    assert fetched() == b"data"
    world.github.fail_next(
        "GET", r"[.]zip$", 200, times=2, headers={"Content-Length": "9"}, body=b"da"
    )
    assert fetched() == b"data", "an answer that broke off"
    world.github.fail_next(
        "GET", r"[.]zip$", 200, times=3, headers={"Content-Length": "9"}, body=b"da"
    )
    assert "GitHub did not answer" in world.error(fetched)


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        (r"/zip$", 401, "github-token"),
        (r"/zip$", 403, "actions: read"),
        (r"/zip$", 404, "actions: read"),
        (r"/zip$", 410, "expired"),
        (r"/zip$", 503, "503"),
        (r"[.]zip$", 403, "names a storage that answers 403"),
    ],
)
def test_a_download_that_is_refused(
    world: World, fetched: Callable[..., bytes], path: str, status: int, message: str
) -> None:
    world.github.fail_next("GET", path, status, times=9)
    line = world.error(fetched)
    assert message in line and ("permissions" in line) == ("actions: read" in message)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/x",
        "file:///etc/passwd",
        "",
        "https://a@b/x",
        "ftp://localhost/x",
    ],
)
def test_a_redirect_to_elsewhere(
    world: World, fetched: Callable[..., bytes], url: str
) -> None:
    world.github.fail_next("GET", r"/zip$", 302, headers={"Location": url})
    assert "not https" in world.error(fetched)
