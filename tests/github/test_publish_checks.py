"""The check run: complete, within GitHub's limits, and with each annotation once whatever gets lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from publishing import HEAD, World, opened

from bot.core.publication import Annotation, CheckRun
from bot.github.publishing import publish_check

DETAILS = "https://github.com/octo/repo/actions/runs/7"
POST, PATCH = r"/check-runs$", r"/check-runs/\d+$"


@pytest.fixture
def world(caplog: pytest.LogCaptureFixture) -> Iterator[World]:
    with opened(caplog) as one:
        yield one


def findings(count: int) -> tuple[Annotation, ...]:
    return tuple(Annotation("models/a.mlir", 1 + n, "failure", f"title {n}", f"message {n}") for n in range(count))


def check(count: int) -> CheckRun:
    return CheckRun("Code size", "failure", "2 findings", "## Summary", findings(count))


def lines(world: World) -> list[int]:
    (run,) = world.github.check_runs
    return [one["start_line"] for one in run["annotations"]]


def test_a_check_run_is_completed_in_one_call(world: World) -> None:
    url = publish_check(world.hub, HEAD, check(1), DETAILS)
    (run,) = world.github.check_runs
    assert (run["name"], run["head_sha"], run["status"], run["conclusion"], run["details_url"]) == (
        "Code size",
        HEAD,
        "completed",
        "failure",
        DETAILS,
    )
    assert run["output"]["title"] == "2 findings" and run["output"]["summary"] == "## Summary"
    assert run["annotations"] == [
        {
            "path": "models/a.mlir",
            "start_line": 1,
            "end_line": 1,
            "annotation_level": "failure",
            "title": "title 0",
            "message": "message 0",
        }
    ]
    assert url.startswith("http") and str(run["id"]) in url
    assert [one["method"] for one in world.github.traffic] == ["POST"]


@pytest.mark.parametrize(("count", "calls"), [(0, 1), (50, 1), (51, 2), (130, 3)])
def test_annotations_go_fifty_a_call(world: World, count: int, calls: int) -> None:
    publish_check(world.hub, HEAD, check(count), DETAILS)
    assert lines(world) == list(range(1, count + 1))
    assert len(world.github.traffic) == calls


@pytest.mark.parametrize("fault", [502, 503, 0])
def test_a_creation_that_failed_is_done_again(world: World, fault: int) -> None:
    world.github.fail_next("POST", POST, fault)
    publish_check(world.hub, HEAD, check(60), DETAILS)
    assert lines(world) == list(range(1, 61))


def test_a_creation_whose_answer_got_lost_is_found_again(world: World) -> None:
    """The server answers after the client's patience; another check of the same name must not be taken for ours."""
    publish_check(world.hub, HEAD, CheckRun("Code size", "neutral", "earlier", "s"), DETAILS)
    hub = world.connect(timeout_seconds=1, backoff_seconds=0.4)
    world.github.delay_next("POST", POST, 1.2)
    publish_check(hub, HEAD, check(60), DETAILS)
    titles = [one["output"]["title"] for one in world.github.check_runs]
    assert titles == ["earlier", "2 findings"]
    assert [len(one["annotations"]) for one in world.github.check_runs] == [0, 60]


@pytest.mark.parametrize("fault", [502, 0])
def test_annotations_that_did_not_arrive_are_sent_again(world: World, fault: int) -> None:
    world.github.fail_next("PATCH", PATCH, fault)
    publish_check(world.hub, HEAD, check(130), DETAILS)
    assert lines(world) == list(range(1, 131))


def test_annotations_whose_answer_got_lost_are_not_sent_twice(world: World) -> None:
    hub = world.connect(timeout_seconds=1, backoff_seconds=0.4)
    world.github.delay_next("PATCH", PATCH, 1.2)
    publish_check(hub, HEAD, check(130), DETAILS)
    assert lines(world) == list(range(1, 131))


def test_the_tries_end(world: World) -> None:
    world.github.fail_next("PATCH", PATCH, 500, times=99)
    line = world.error(lambda: publish_check(world.hub, HEAD, check(60), DETAILS))
    assert line.startswith("cannot write the check run on aaaaaaaaaaaa: GitHub did not answer: 500")
    assert world.requests("POST", "/check-runs") == 1


def test_texts_are_clipped_to_what_github_takes(world: World) -> None:
    long = Annotation("a.mlir", 3, "warning", "t" * 300, "ü" * 70_000)
    publish_check(world.hub, HEAD, CheckRun("Code size", "failure", "T" * 300, "ü" * 70_000, (long,)), DETAILS)
    (run,) = world.github.check_runs
    (shown,) = run["annotations"]
    assert len(run["output"]["title"]) == len(shown["title"]) == 255
    assert 65_000 < len(run["output"]["summary"].encode()) <= 65_535
    assert 65_000 < len(shown["message"].encode()) <= 64 * 1024
    assert all(text.endswith("…") for text in (run["output"]["title"], run["output"]["summary"], shown["message"]))


def test_texts_at_the_limit_stay_whole(world: World) -> None:
    publish_check(world.hub, HEAD, CheckRun("Code size", "success", "T" * 255, "s" * 65_535), DETAILS)
    output = world.github.check_runs[0]["output"]
    assert (output["title"], output["summary"]) == ("T" * 255, "s" * 65_535)


def test_a_missing_permission_is_named(world: World) -> None:
    hub = world.connect(token=world.github.token(permissions={"contents": "read"}))
    line = world.error(lambda: publish_check(hub, HEAD, check(1), DETAILS))
    assert "403" in line and "`permissions: checks: write`" in line
