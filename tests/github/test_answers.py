"""Answers of another form than GitHub's description: each ends in one clear line."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from github_world import (
    CHECK,
    COMMENTS,
    HEAD,
    MARKER,
    MORE_OF_IT,
    ONE,
    PULL,
    World,
    check,
    write_check,
)

from bot.errors import NetworkError
from bot.github import repository
from bot.github.comments import find, publish
from bot.github.repository import labelling, open_pulls_with_head, parents, pull
from bot.system.hub import Hub

ARTIFACT = 1001  # The id of the first thing that a fake makes
CALLS: dict[str, tuple[str, str, Callable[[Hub], object]]] = {
    "pull": ("GET", PULL, lambda hub: pull(hub, 12)),
    "pulls": (
        "GET",
        r"/pulls$",
        lambda hub: open_pulls_with_head(hub, "octo/repo", "topic", HEAD),
    ),
    "permission": (
        "GET",
        r"/permission$",
        lambda hub: repository.may_write(hub, "mona"),
    ),
    "labels": ("GET", r"/labels$", lambda hub: labelling(hub, 12, "ok")),
    "events": ("GET", r"/events$", lambda hub: labelling(hub, 12, "ok")),
    "user": ("GET", r"/user$", lambda hub: hub.token_login()),
    "comments": ("GET", COMMENTS, lambda hub: find(hub, 12, MARKER)),
    "new comment": ("POST", COMMENTS, lambda hub: _published(hub)),
    "new check": ("POST", CHECK, lambda hub: write_check(hub, check(60))),
    "more of a check": ("PATCH", MORE_OF_IT, lambda hub: write_check(hub, check(60))),
    "old comment": ("PATCH", ONE, lambda hub: _published(hub)),
    "younger comment": ("DELETE", ONE, lambda hub: _published(hub)),
    "artifacts of a run": (
        "GET",
        r"/runs/7/artifacts$",
        lambda hub: repository.artifacts(hub, 7),
    ),
    "download": ("GET", r"/zip$", lambda hub: repository.download(hub, ARTIFACT, 1000)),
    "storage": (
        "GET",
        r"[.]zip$",
        lambda hub: repository.download(hub, ARTIFACT, 1000),
    ),
    "compare": (
        "GET",
        r"/compare/",
        lambda hub: repository.is_ancestor(hub, HEAD, "main"),
    ),
    "commit": ("GET", r"/commits/[^/]+$", lambda hub: parents(hub, HEAD)),
}
"""Every call that the program makes: its request, and what asks for it."""


def _published(hub: Hub) -> object:
    return publish(
        hub, 12, MARKER, f"{MARKER}\nx", create=True, still_current=lambda: True
    )


BODIES: dict[str, object] = {
    "a text": b'"Bad gateway"',
    "a number": b"7",
    "nothing": b"",
    "null": b"null",
    "scalars": [1, "two", None, [3], True],
    "an object without its fields": {},
    "fields of other types": {
        **{
            name: [{}]
            for name in (
                "id",
                "number",
                "status",
                "permission",
                "state",
                "message",
                "errors",
            )
        },
        **dict.fromkeys(
            ("head", "base", "parents", "labels", "artifacts", "check_runs"), "text"
        ),
    },
    "objects of other fields": [
        {"id": "x", "user": 7, "name": None, "event": {}, "label": 3}
    ],
    "lists of scalars": {
        name: [1, None] for name in ("parents", "labels", "artifacts", "check_runs")
    },
    "no JSON": b"<html>unicorn</html>",
    "half of it": b'{"id": 7, "head": {',
    "a deep nesting": b"[" * 100_000,
    "no text": b"\xff\xfe\x00",
    "a number without end": b"1" * 10_000,
}
UNREAD = ("user", "younger comment")
"""Calls whose answers hold nothing that is needed; `user` is asked only without a login."""
STATUSES = (200, 302, 403, 502)


def forget_comments(world: World) -> None:
    """Delete the comments of earlier turns: each would be listed in all later turns."""
    for comment in world.github.comments(12):
        world.github.delete_comment(comment["id"])


@pytest.mark.parametrize("call", CALLS)
def test_every_malformed_answer_is_accepted_or_gives_an_error_of_one_line(
    world: World, call: str
) -> None:
    method, path, ask = CALLS[call]
    assert world.github.add_artifact(7, "a", b"data") == ARTIFACT
    world.github.add_comment(12, "mona", "hello")
    world.github.add_label(12, "ok", "mona")
    token = world.github.token(
        permissions=dict.fromkeys(("issues", "pull_requests", "checks"), "write")
    )
    reached = 0
    for status in STATUSES:
        for name, body in BODIES.items():
            hub = world.connect(token, retries=0, backoff_seconds=0)
            if call in ("old comment", "younger comment"):
                forget_comments(world)
                world.ours("old", "old")
            before = sum(
                exchange["injected"] for exchange in world.github.traffic
            ) + len(world.github.blob_requests)
            world.github.fail_next(method, path, status, times=4, body=body)
            line = ""
            try:
                ask(hub)
            except NetworkError as error:
                line = error.line
                assert (
                    line.startswith("cannot ") and "\n" not in line and len(line) < 600
                ), line
            if call not in UNREAD and (status, name) in (
                (200, "scalars"),
                (502, "a text"),
            ):
                # a storage sends what it likes
                is_bytes = status == 200 and call in (
                    "storage",
                    "download",
                )
                assert (
                    is_bytes
                    or ("GitHub's answer has " if status == 200 else "502") in line
                ), (status, line)
            after = sum(
                exchange["injected"] for exchange in world.github.traffic
            ) + len(world.github.blob_requests)
            reached += after > before
            world.github.forget_faults()
            hub.close()
    assert reached == len(STATUSES) * len(BODIES), "the fault was met each time"


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        (PULL, {"number": 12}, "Object missing required field `state`"),
        (PULL, {"number": "12"}, "Expected `int`, got `str` - at `$.number`"),
        (
            "/comments$",
            [{"id": 1, "html_url": None}],
            "Expected `str`, got `null` - at `$[0].html_url`",
        ),
        ("/comments$", {}, "Expected `array`, got `object`"),
        (
            "/comments$",
            [{"id": 1, "html_url": "x", "created_at": "2026-01-01T00:00:00"}],
            "Expected `datetime` with a timezone component - at `$[0].created_at`",
        ),
    ],
)
def test_an_answer_that_does_not_fit_is_named_by_its_field(
    world: World, path: str, body: object, message: str
) -> None:
    world.github.fail_next("GET", path, 200, body=body)
    if path == PULL:
        line = world.error(lambda: pull(world.hub, 12))
    else:
        line = world.error(lambda: find(world.hub, 12, MARKER))
    assert f": GitHub's answer has unexpected data: {message}" in line
    assert line.endswith("(run it again, or check the API URL)")


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({"Retry-After": "never"}, ""),
        (
            {"X-RateLimit-Reset": "1e999"},
            "cannot be followed: OverflowError",
        ),
        ({"Link": "<<;,rel"}, ""),
        (
            {"X-RateLimit-Limit": "many", "X-RateLimit-Remaining": "x"},
            "cannot be followed: ",
        ),
        (
            {"Link": '<https://x.example/?page=2>; rel="next"'},
            "cannot be followed: its next page is at https://x.example/?page=2",
        ),
        (
            {"Link": '<http://[>; rel="next"'},
            "cannot be followed: its next page is at http://[",
        ),
    ],
)
def test_headers_of_another_form(
    world: World, headers: dict[str, str], message: str
) -> None:
    world.github.fail_next("GET", "/comments$", 200, headers=headers, body=[])
    if message:
        line = world.error(lambda: find(world.hub, 12, MARKER))
        assert line.startswith(
            f"cannot read the comments on #12: GitHub's answer {message}"
        )
    else:
        assert find(world.hub, 12, MARKER) == []
