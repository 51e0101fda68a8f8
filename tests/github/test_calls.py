"""What is asked of GitHub and written to it: whatever others do meanwhile, gets lost or is of another form."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from fake_github import FakeGitHub
from replacing import replace
from urllib3.connection import HTTPConnection
from urllib3.exceptions import NewConnectionError, ProtocolError

from bot.core.check_run import Annotation, CheckRun
from bot.errors import NetworkError
from bot.github import repository
from bot.github.publishing import Result, find, publish, publish_check
from bot.github.repository import labelling, open_pulls_with_head, parents, pull
from bot.system.hub import BoundedRetry, Hub, connect, explain

OURS, HEAD, LABEL = "github-actions[bot]", "a" * 40, "code-size-approved"
MARKER = "<!-- code-size: default -->"
BODY = f"{MARKER}\n## Code size\n\nall the same"
COMMENTS, ONE, PULL = r"/issues/12/comments$", r"/issues/comments/\d+$", r"/pulls/12$"
CHECK, MORE_OF_IT, DETAILS = (
    r"/check-runs$",
    r"/check-runs/\d+$",
    "https://github.com/octo/repo/actions/runs/7",
)


@dataclass(frozen=True)
class World:
    """A server with pull request 12, its token for us, and our connection."""

    github: FakeGitHub
    token: str
    hub: Hub

    def connect(self, token: str = "", **settings: float) -> Hub:
        defaults = {
            "timeout_seconds": 10,
            "retries": 2,
            "max_wait_seconds": 5,
            "backoff_seconds": 0.01,
        }
        return connect(
            self.github.url,
            token or self.token,
            "octo/repo",
            **{**defaults, **settings},  # type: ignore[arg-type]
        )

    def may(self, **permissions: str) -> Hub:
        return self.connect(
            self.github.token(permissions={"contents": "read", **permissions})
        )

    def error(self, action: Callable[[], object]) -> str:
        """The line of the NetworkError that the action ends with.

        The token is in nothing that could be printed.
        """
        with pytest.raises(NetworkError) as caught:
            action()
        error = caught.value
        texts = [
            str(error),
            repr(error),
            repr(error.args),
            repr(vars(error)),
            *traceback.format_exception(error),
        ]
        assert (
            error.__suppress_context__
            and error.__cause__ is None
            and "\n" not in error.line
        )
        assert self.token not in "".join(texts)
        return error.line

    def requests(self, method: str, path_end: str) -> int:
        return sum(
            exchange["method"] == method and exchange["path"].endswith(path_end)
            for exchange in self.github.traffic
        )

    def put(
        self,
        body: str = BODY,
        *,
        create: bool = True,
        current: Callable[[], bool] = lambda: True,
        hub: Hub | None = None,
    ) -> str:
        return publish(
            hub or self.hub, 12, MARKER, body, create=create, still_current=current
        )

    def ours(self, *texts: str) -> list[int]:
        return [
            self.github.add_comment(
                12, OURS, text if "<" in text else f"{MARKER}\n{text}"
            )
            for text in texts
        ]

    @property
    def bodies(self) -> list[str]:
        return [comment["body"] for comment in self.github.comments(12)]

    @property
    def lines(self) -> list[int]:
        """Of the annotations of the newest check."""
        return [run["start_line"] for run in self.github.check_runs[-1]["annotations"]]


@pytest.fixture
def world(caplog: pytest.LogCaptureFixture) -> Iterator[World]:
    """At its end the traffic is checked against GitHub's own description, and the log searched for the token."""
    caplog.set_level(logging.DEBUG)
    with FakeGitHub("octo/repo") as github:
        github.add_pull(12, HEAD)
        token = github.token()
        opened_world = World(github, token, connect(github.url, token, "octo/repo"))
        opened_world = replace(opened_world, hub=opened_world.connect())
        yield opened_world
        opened_world.hub.close()
        assert token not in repr(opened_world.hub) and token not in caplog.text
        github.assert_contract()


# --- the one comment -------------------------------------------------------------------------------------------------


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
    created, same, changed = (
        world.put(),
        world.put(),
        world.put(f"{BODY}!", create=False),
    )
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


@pytest.mark.parametrize(("rest", "create"), [(0, True), (0, False), (1, False)])
def test_a_comment_deleted_in_between_is_created_again_if_one_is_wanted(
    world: World, rest: int, create: bool
) -> None:
    gone, *remaining = world.ours(*["old", "duplicate"][: rest + 1])
    world.github.before("PATCH", ONE, lambda: world.github.delete_comment(gone))
    assert bool(world.put(create=create)) == (create or rest > 0)
    assert world.bodies == ([BODY] if create or rest else [])
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
    hubs, done = [world.connect() for _ in range(4)], list[str]()
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


# --- the check run ---------------------------------------------------------------------------------------------------


def check(count: int) -> CheckRun:
    notes = (
        Annotation(
            path="models/a.mlir",
            line=1 + n,
            level="failure",
            title=f"title {n}",
            message=f"message {n}",
        )
        for n in range(count)
    )
    return CheckRun(
        name="Code size",
        conclusion="failure",
        title="2 findings",
        summary="## Summary",
        annotations=tuple(notes),
    )


def write_check(hub: Hub, written: CheckRun) -> None:
    publish_check(
        hub,
        head_sha=HEAD,
        check=written,
        details_url=DETAILS,
        result=Result(12, written.conclusion),
    )


@pytest.mark.parametrize(("count", "calls"), [(0, 1), (50, 1), (51, 2), (130, 3)])
def test_a_check_run_is_completed_with_fifty_annotations_a_call(
    world: World, count: int, calls: int
) -> None:
    write_check(world.hub, check(count))
    (run,) = world.github.check_runs
    stated = (
        run["name"],
        run["head_sha"],
        run["status"],
        run["conclusion"],
        run["details_url"],
    )
    assert stated == ("Code size", HEAD, "completed", "failure", DETAILS)
    assert (run["output"]["title"], run["output"]["summary"]) == (
        "2 findings",
        "## Summary",
    )
    place = {
        "path": "models/a.mlir",
        "start_line": 1,
        "end_line": 1,
        "annotation_level": "failure",
    }
    assert (
        run["annotations"][:1]
        == [{**place, "title": "title 0", "message": "message 0"}][:count]
    )
    assert (
        world.lines == list(range(1, count + 1)) and len(world.github.traffic) == calls
    )


@pytest.mark.parametrize("fault", [502, 503, 0])
@pytest.mark.parametrize(("method", "path"), [("POST", CHECK), ("PATCH", MORE_OF_IT)])
def test_what_of_a_check_did_not_arrive_is_sent_again(
    world: World, method: str, path: str, fault: int
) -> None:
    world.github.fail_next(method, path, fault)
    write_check(world.hub, check(130))
    assert world.lines == list(range(1, 131)) and len(world.github.check_runs) == 1


@pytest.mark.parametrize(("method", "path"), [("POST", CHECK), ("PATCH", MORE_OF_IT)])
def test_what_of_a_check_got_no_answer_is_not_sent_twice(
    world: World, method: str, path: str
) -> None:
    """The server answers after the client's patience.

    Another check of the same name must not be taken for ours.
    """
    write_check(world.hub, CheckRun("Code size", "neutral", "earlier", "s"))
    world.github.delay_next(method, path, 1.2)
    write_check(world.connect(timeout_seconds=1, backoff_seconds=0.4), check(130))
    assert [run["output"]["title"] for run in world.github.check_runs] == [
        "earlier",
        "2 findings",
    ]
    assert (
        world.lines == list(range(1, 131))
        and world.github.check_runs[0]["annotations"] == []
    )


def test_the_tries_of_a_check_end(world: World) -> None:
    world.github.fail_next("PATCH", MORE_OF_IT, 500, times=99)
    line = world.error(lambda: write_check(world.hub, check(60)))
    assert line.startswith(
        "cannot write the check run on aaaaaaaaaaaa: GitHub did not answer: 500"
    )
    assert world.requests("POST", "/check-runs") == 1


def test_texts_are_clipped_to_what_github_takes(world: World) -> None:
    write_check(world.hub, CheckRun("Code size", "success", "T" * 255, "s" * 65_535))
    output = world.github.check_runs[0]["output"]
    assert (output["title"], output["summary"]) == ("T" * 255, "s" * 65_535)
    long = Annotation(
        path="a.mlir", line=3, level="warning", title="t" * 300, message="ü" * 70_000
    )
    write_check(
        world.hub,
        CheckRun(
            name="Code size",
            conclusion="failure",
            title="T" * 300,
            summary="ü" * 70_000,
            annotations=(long,),
        ),
    )
    run = world.github.check_runs[1]
    (annotation,) = run["annotations"]
    assert (
        run["output"]["title"] == "T" * 252 + "…"
        and annotation["title"] == "t" * 252 + "…"
    )
    assert 65_000 < len(run["output"]["summary"].encode()) <= 65_535
    assert 65_000 < len(annotation["message"].encode()) <= 64 * 1024
    assert all(
        text.endswith("…")
        for text in (
            run["output"]["title"],
            run["output"]["summary"],
            annotation["message"],
        )
    )


# --- pull requests, runs, descent ------------------------------------------------------------------------------------


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
    assert repository.head_repository_of(info) == "" and info.merge_commit_sha is None


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
        assert event and (event.id, event.actor.login) == (newest, "hubot")


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
    old, middle, new, side, alien = ("1" * 40, "2" * 40, "3" * 40, "4" * 40, "5" * 40)
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


# --- downloads -------------------------------------------------------------------------------------------------------


@pytest.fixture
def fetched(world: World) -> Callable[..., bytes]:
    number = world.github.add_artifact(7, "a", b"data")
    return lambda most=1000: repository.download(world.hub, number, most)


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
    ("path", "status", "said"),
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
    world: World, fetched: Callable[..., bytes], path: str, status: int, said: str
) -> None:
    world.github.fail_next("GET", path, status, times=9)
    line = world.error(fetched)
    assert said in line and ("permissions" in line) == ("actions: read" in said)


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


# --- the connection: what is asked again, and what the user reads when it fails ---------------------------------------


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


# --- answers of another form -----------------------------------------------------------------------------------------

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


@pytest.mark.parametrize("call", CALLS)
def test_no_answer_to_any_call_ends_otherwise_than_in_one_line(
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
    ("headers", "said"),
    [
        ({"Retry-After": "never"}, ""),
        ({"Link": "<<;,rel"}, ""),
        (
            {"X-RateLimit-Limit": "many", "X-RateLimit-Remaining": "x"},
            "cannot be followed: ",
        ),
        (
            {"Link": '<https://x.example/?page=2>; rel="next"'},
            "cannot be followed: AssertionError: x.example",
        ),
    ],
)
def test_headers_of_another_form(
    world: World, headers: dict[str, str], said: str
) -> None:
    world.github.fail_next(
        "GET", "/comments$", 200, headers=headers, body=[{"id": 1}] if said else []
    )
    if said:
        line = world.error(lambda: find(world.hub, 12, MARKER))
        assert line.startswith(
            f"cannot read the comments on #12: GitHub's answer {said}"
        )
    else:
        assert find(world.hub, 12, MARKER) == []
