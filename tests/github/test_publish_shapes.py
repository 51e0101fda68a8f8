"""Whatever GitHub or a proxy in between answers, each call ends with a value or with one line that names the call."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from publishing import HEAD, OURS, World, opened

from bot.core.publication import Annotation, CheckRun
from bot.errors import NetworkError
from bot.github import publishing, repository
from bot.github.publishing import publish_check
from bot.system.hub import Hub

MARKER = "<!-- m -->"
NOTES = tuple(Annotation(f"m/{n}.mlir", 1, "failure", "t", "m") for n in range(60))
CHECK = CheckRun("Code size", "failure", "t", "s", NOTES)
ARTIFACT = 1001
"""The id of the first thing that a fake makes."""


def _publish(hub: Hub) -> object:
    return publishing.publish(hub, 12, MARKER, f"{MARKER}\nx", create=True, still_current=lambda: True)


CALLS: dict[str, tuple[str, str, Callable[[Hub], object]]] = {
    "pull": ("GET", r"/pulls/12$", lambda hub: repository.pull(hub, 12)),
    "pulls": ("GET", r"/pulls$", lambda hub: repository.open_pulls_with_head(hub, "octo/repo", "topic", HEAD)),
    "permission": ("GET", r"/permission$", lambda hub: repository.may_write(hub, "mona")),
    "labels": ("GET", r"/labels$", lambda hub: repository.labelling(hub, 12, "ok")),
    "events": ("GET", r"/events$", lambda hub: repository.labelling(hub, 12, "ok")),
    "user": ("GET", r"/user$", lambda hub: hub.token_login()),
    "comments": ("GET", r"/issues/12/comments$", lambda hub: publishing.find(hub, 12, MARKER)),
    "new comment": ("POST", r"/issues/12/comments$", _publish),
    "reply": ("POST", r"/issues/12/comments$", lambda hub: publishing.reply(hub, 12, "x")),
    "reaction": ("POST", r"/reactions$", lambda hub: publishing.react(hub, ARTIFACT + 1, "+1")),
    "new check": ("POST", r"/check-runs$", lambda hub: publish_check(hub, HEAD, CHECK, "https://x.example")),
    "more of a check": ("PATCH", r"/check-runs/\d+$", lambda hub: publish_check(hub, HEAD, CHECK, "https://x.example")),
    "old comment": ("PATCH", r"/issues/comments/\d+$", _publish),
    "younger comment": ("DELETE", r"/issues/comments/\d+$", _publish),
    "runs": ("GET", r"/actions/runs$", lambda hub: repository.newest_run(hub, HEAD, None)),
    "rerun": ("POST", r"/rerun$", lambda hub: repository.rerun(hub, 7)),
    "dispatch": ("POST", r"/dispatches$", lambda hub: repository.dispatch(hub, "x.yml", "main", {})),
    "artifacts of a run": ("GET", r"/runs/7/artifacts$", lambda hub: repository.artifacts(hub, 7)),
    "artifacts": ("GET", r"repo/actions/artifacts$", lambda hub: repository.RepositoryArtifacts(hub).listed()),
    "download": ("GET", r"/zip$", lambda hub: repository.download(hub, ARTIFACT, 1000)),
    "storage": ("GET", r"[.]zip$", lambda hub: repository.download(hub, ARTIFACT, 1000)),
    "compare": ("GET", r"/compare/", lambda hub: repository.is_ancestor(hub, HEAD, "main")),
    "commit": ("GET", r"/commits/[^/]+$", lambda hub: repository.parents(hub, HEAD)),
}
"""Every call that the program makes: its request, and what asks for it."""

BODIES: dict[str, object] = {
    "a text": b'"Bad gateway"',
    "a number": b"7",
    "nothing": b"",
    "null": b"null",
    "scalars": [1, "two", None, [3], True],
    "an object without its fields": {},
    "fields of other types": {
        **{name: [{}] for name in ("id", "number", "status", "permission", "state", "message", "errors")},
        **dict.fromkeys(("head", "base", "parents", "labels", "workflow_runs", "artifacts", "check_runs"), "text"),
    },
    "objects of other fields": [{"id": "x", "user": 7, "name": None, "event": {}, "label": 3}],
    "lists of scalars": {name: [1, None] for name in ("parents", "labels", "workflow_runs", "artifacts", "check_runs")},
    "no JSON": b"<html>unicorn</html>",
    "half of it": b'{"id": 7, "head": {',
    "a deep nesting": b"[" * 100_000,
    "no text": b"\xff\xfe\x00",
    "a number without end": b"1" * 10_000,
}
UNREAD = ("user", "reaction", "rerun", "dispatch", "younger comment")
"""Calls whose answers hold nothing that is needed; `user` is asked only without a login."""
STATUSES = (200, 302, 403, 502)


@pytest.fixture
def world(caplog: pytest.LogCaptureFixture) -> Iterator[World]:
    with opened(caplog) as one:
        assert one.github.add_artifact(7, "a", b"data") == ARTIFACT
        one.github.add_comment(12, "mona", "hello")
        one.github.add_label(12, "ok", "mona")
        yield one


def _two_old_comments(world: World, call: str) -> None:
    """Where the call needs some: it changes the one and deletes the other."""
    if call in ("old comment", "younger comment"):
        for _ in range(2):
            world.github.add_comment(12, OURS, f"{MARKER}\nold")


@pytest.mark.parametrize("call", CALLS)
def test_no_answer_to_any_call_ends_otherwise_than_in_one_line(world: World, call: str) -> None:
    method, path, ask = CALLS[call]
    token = world.github.token(permissions=dict.fromkeys(("issues", "pull_requests", "checks", "actions"), "write"))
    reached = 0
    for status in STATUSES:
        for body in BODIES.values():
            hub = world.connect(token=token, retries=0, backoff_seconds=0)
            _two_old_comments(world, call)
            before = sum(one["injected"] for one in world.github.traffic) + len(world.github.blob_requests)
            world.github.fail_next(method, path, status, times=4, body=body)
            try:
                ask(hub)
            except NetworkError as error:
                assert error.line.startswith("cannot ") and "\n" not in error.line and len(error.line) < 600, error.line
            after = sum(one["injected"] for one in world.github.traffic) + len(world.github.blob_requests)
            reached += after > before
            world.github.forget_faults()
            hub.close()
    assert reached == len(STATUSES) * len(BODIES), "the fault was met each time"


@pytest.mark.parametrize("call", [call for call in CALLS if call not in UNREAD])
@pytest.mark.parametrize(("status", "body"), [(200, "scalars"), (502, "a text")])
def test_a_form_that_is_not_github_s_is_an_error_that_names_what_was_asked(
    world: World, call: str, status: int, body: str
) -> None:
    method, path, ask = CALLS[call]
    if call in ("storage", "download") and status == 200:
        pytest.skip("what a storage sends is bytes, whatever they are")
    hub = world.connect(token=world.github.token(), retries=0, backoff_seconds=0)
    _two_old_comments(world, call)
    world.github.fail_next(method, path, status, times=9, body=BODIES[body])
    line = world.error(lambda: ask(hub))
    said = "GitHub's answer has " if status == 200 else "502"
    assert line.startswith("cannot ") and said in line


@pytest.mark.parametrize("headers", [{"Retry-After": "never"}, {"Link": "<<;,rel"}])
def test_headers_of_another_form_change_nothing(world: World, headers: dict[str, str]) -> None:
    world.github.fail_next("GET", "/comments$", 200, headers=headers, body=[])
    assert publishing.find(world.hub, 12, MARKER) == []


def test_a_limit_that_is_no_number_is_one_line(world: World) -> None:
    headers = {"X-RateLimit-Limit": "many", "X-RateLimit-Remaining": "x"}
    world.github.fail_next("GET", "/comments$", 200, headers=headers, body=[])
    line = world.error(lambda: publishing.find(world.hub, 12, MARKER))
    assert line.startswith("cannot read the comments on #12: GitHub's answer cannot be followed: ")


def test_a_page_at_another_host_is_not_asked_for(world: World) -> None:
    more = {"Link": '<https://x.example/?page=2>; rel="next"'}
    world.github.fail_next("GET", "/labels$", 200, headers=more, body=[{"name": "x"}])
    line = world.error(lambda: repository.labelling(world.hub, 12, "ok"))
    assert line.startswith(
        "cannot read who labelled #12: GitHub's answer cannot be followed: AssertionError: x.example"
    )
