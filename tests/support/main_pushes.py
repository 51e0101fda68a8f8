"""Pushes to main, each measured, stored and judged by the three jobs of its workflow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from action_stage import MODEL, Ran, Stage
from github_runner import event, git, push_event

A = MODEL.format("a")
GROWN = f"{A}// grown\n"
LARGEST = f"{A}// largest\n"
GROWS = [{"model": "grown", "do": "grow"}, {"model": "largest", "do": "grow grow"}]
NO_GROWTH = [
    {"name": "code size", "metrics": ["artifact_bytes"], "fail": "0%"},
    {"metrics": ["*"]},
]


def jobs(stage: Stage, sha: str, *, event_name: str = "push", **inputs: str) -> Ran:
    """Run the three jobs of a push, and return the last: measure, store and report."""
    parents = git(stage.origin.bare, "log", "-1", "--format=%P", sha).split()
    stage.hub.add_commit(sha, parents)
    payload = push_event(sha) if event_name == "push" else event("schedule")
    place: Mapping[str, Any] = {"ref": "refs/heads/main"}
    measured = stage.run(event_name, payload, sha, command="measure", **place)
    assert measured.code == 0, measured.error
    handed = {"measured": str(measured.out)}
    stored = stage.run(event_name, payload, sha, command="store", **handed, **place)
    assert stored.code == 0, stored.error
    return stage.run(
        event_name, payload, sha, command="report", **{**handed, **inputs}, **place
    )


def started(stage: Stage, **keys: Any) -> str:
    """Push the first commit of main, measure and store it, and return its SHA."""
    stage.compiler("one", GROWS)
    main = stage.main(**{"thresholds": NO_GROWTH, "after_merge": "issue", **keys})
    ran = jobs(stage, main)
    assert (
        ran.code == 0
        and "no baseline is stored for a commit before this one" in ran.said
    )
    return main


def merge(
    stage: Stage, text: str, number: int = 0, title: str = "A change", label: str = ""
) -> str:
    """Push a commit to main; with a number it is the merge of that pull request."""
    sha = stage.origin.push_main(f"Merge {number}", {"models/a.mlir": text})
    if number:
        base = git(stage.origin.bare, "rev-parse", f"{sha}^")
        stage.hub.add_pull(number, f"{number:040x}", base_sha=base, title=title)
        stage.hub.merge_pull(number, sha, [base])
        if label:
            stage.hub.add_label(number, label, by="alice")
    return sha


def push_without_growth(stage: Stage) -> str:
    """Push a second model to main, which changes no build of the first."""
    return stage.origin.push_main("Another model", {"models/b.mlir": MODEL.format("b")})
