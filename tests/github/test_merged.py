"""bot.github.storing: what a push to main is told, in the summary of its run alone."""

from __future__ import annotations

from action_stage import MODEL, Stage

GROWN = MODEL.format("a") + "// longer\n" * 400


def started(stage: Stage) -> str:
    """A first commit of main, measured and stored, whose rules forbid each change."""
    main = stage.main(states={"changed": "fail"}, fail_job=True)
    assert stage.push(main).code == 0
    return main


def test_a_limit_that_breaks_only_with_the_merge_is_reported_and_stops_nothing(
    stage: Stage,
) -> None:
    started(stage)
    sha = stage.origin.push_main("Merge #1", {"models/a.mlir": GROWN})
    ran = stage.push(sha)
    assert (ran.code, ran.report.verdict.status) == (0, "fail") and ran.states == {
        "a on vmvx": "changed"
    }, ran.error
    baseline = ran.report.baseline
    assert (baseline.rule, baseline.distance) == (
        "parent of the pushed commit; stored snapshot",
        0,
    )
    assert ran.outputs["verdict"] == "fail" and "a on vmvx" in ran.summary.replace(
        "`", ""
    )
    requests = [
        f"{exchange['method']} {exchange['path']}" for exchange in stage.hub.traffic
    ]
    assert len(stage.store.entries()) == 2 and requests == [
        f"GET /repos/octo/repo/commits/{sha}/pulls"
    ]


def test_a_push_that_overtook_another_says_so(stage: Stage) -> None:
    """Two merges at once: the run of the second is first, and its baseline is older than both."""
    started(stage)
    first = stage.origin.push_main("Merge #1", {"models/a.mlir": GROWN})
    ran = stage.push(
        stage.origin.push_main("Merge #2", {"models/b.mlir": MODEL.format("b")})
    )
    assert ran.report.verdict.status == "fail"
    assert ran.report.baseline.distance == 1
    assert "changes may come from other commits" in "".join(ran.report.notes)
    assert stage.push(first).states == {"a on vmvx": "changed"}
