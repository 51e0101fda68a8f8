"""bot.github.reviewing: what a push to main is told, where, and when nothing is said."""

from __future__ import annotations

from action_stage import MODEL, Ran, Stage

GROWN = MODEL.format("a") + "// longer\n" * 400
WISH = {"states": {"changed": "fail"}}


def started(stage: Stage) -> str:
    """A first commit of main, measured and stored."""
    main = stage.main(baseline={"store": "directory", "directory": str(stage.home / "store")}, **WISH)
    assert stage.push(main).code == 0
    return main


def merged(stage: Stage, number: int, files: dict[str, str]) -> Ran:
    """The push of a pull request's merge, squashed to one commit."""
    sha = stage.origin.push_main(f"Merge #{number}", files)
    stage.hub.add_commit(sha)
    stage.hub.set_pull(number, state="closed", merge_sha=sha, merged_at="2026-01-02T00:00:00Z")
    return stage.push(sha)


def checks(stage: Stage) -> list[tuple[str, str]]:
    return [(str(one["name"]), str(one["conclusion"])) for one in stage.hub.check_runs]


def test_a_limit_that_breaks_only_with_the_merge_is_told_on_the_commit(stage: Stage) -> None:
    started(stage)
    passed = stage.pull(*stage.open_pull({"README.md": "words\n"}))
    assert passed.report.verdict.status == "pass" and checks(stage) == [("code size (main)", "success")]
    before = len(stage.comments())
    ran = merged(stage, 1, {"models/a.mlir": GROWN})  # what was merged meanwhile, on which it was not measured
    assert ran.code == 0 and ran.states == {"a on vmvx": "changed"}, ran.error
    assert checks(stage)[1:] == [("code size (main), merged", "failure")]
    assert ran.summary and len(stage.comments()) == before
    baseline = ran.report.baseline
    assert (baseline.rule, baseline.distance) == ("parent of the pushed commit; stored snapshot", 0)
    assert len(list(stage.store.entries())) == 2


def test_what_was_accepted_is_accepted_after_the_merge(stage: Stage) -> None:
    started(stage)
    head, merge = stage.open_pull({"models/a.mlir": GROWN})
    stage.pull(head, merge)
    stage.hub.add_label(1, "code-size-approved", by="alice")
    assert stage.pull(head, merge).report.verdict.status == "warn"
    ran = merged(stage, 1, {"models/a.mlir": GROWN})
    assert ran.report.verdict.status == "warn" and checks(stage)[-1] == ("code size (main), merged", "neutral")


def test_a_push_that_overtook_another_says_so(stage: Stage) -> None:
    """Two merges at once: the run of the second is first, and its baseline is older than both."""
    started(stage)
    first = stage.origin.push_main("Merge #1", {"models/a.mlir": GROWN})
    sha = stage.origin.push_main("Merge #2", {"models/b.mlir": MODEL.format("b")})
    stage.hub.add_commit(sha)
    ran = stage.push(sha)
    assert ran.report.verdict.status == "fail"
    assert ran.report.baseline.distance == 1
    assert "what changed may come from other commits" in "".join(ran.report.notes)
    stage.hub.add_commit(first)
    assert stage.push(first).states == {"a on vmvx": "changed"}


def test_a_push_of_nobodys_pull_request_has_a_check(stage: Stage) -> None:
    started(stage)
    sha = stage.origin.push_main("By hand", {"models/a.mlir": GROWN})
    stage.hub.add_commit(sha)
    stage.hub.add_pull(7, sha)  # an open one that happens to be at this commit
    assert stage.push(sha).report.verdict.status == "fail"
    assert checks(stage) == [("code size (main), merged", "failure")]


def test_a_token_without_these_permissions_stores_the_baseline_and_says_what_it_lacks(stage: Stage) -> None:
    started(stage)
    stage.token = stage.hub.token(permissions={"contents": "write", "metadata": "read"})
    sha = stage.origin.push_main("By hand", {"models/a.mlir": GROWN})
    stage.hub.add_commit(sha)
    ran = stage.push(sha)
    assert ran.code == 0 and ran.error == "" and "checks: write" in ran.said, ran.error
    assert len(list(stage.store.entries())) == 2 and checks(stage) == []
    assert ran.summary
