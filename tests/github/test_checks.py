"""The check run of a report: its annotations, its limits, and answers that get lost."""

from __future__ import annotations

import pytest
from github_world import CHECK, DETAILS, HEAD, MORE_OF_IT, World, check, write_check

from bot.core.check_run import Annotation, CheckRun


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
