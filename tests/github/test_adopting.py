"""The pull request that brings the configuration: what is measured from now on, and that nothing was compared."""

from __future__ import annotations

import re

import pytest
from action_stage import MODEL, Stage
from harmless import assert_harmless

pytestmark = pytest.mark.slow

A = MODEL.format("a")
B = MODEL.format("b")


def first_line(stage: Stage) -> str:
    (body,) = stage.comments()
    return next(line for line in body.splitlines() if not line.startswith("<!--"))


def test_without_a_model_on_base_nothing_is_compared_and_that_is_said(
    stage: Stage,
) -> None:
    main = stage.origin.push_main("Nothing yet", {"README.md": "# Hello\n"})
    files = {
        "code-size.yml": stage.config(targets=["vmvx", "llvm-cpu-x86_64"]),
        "models/a.mlir": A,
        "models/b.mlir": B,
    }
    ran = stage.pull(*stage.open_pull(files))
    assert ran.code == 0, ran.error
    assert set(ran.states.values()) == {"new"} and len(ran.states) == 4
    assert ran.outputs["verdict"] == "warn" and stage.conclusions == ["neutral"]
    size = sum(cell.value("artifact_bytes") or 0 for cell in ran.report.head.cells)
    assert (
        first_line(stage)
        == f"🆕 **Code size is measured from now on: 2 models on 2 targets, {size:,}"
        " B** · 4 new"
    )
    (body,) = stage.comments()
    assert (
        "brings the configuration `code-size.yml`, which the base commit does not"
        " have. " in body
    )
    assert "nothing changed" not in body and "identical" not in body
    assert "Every build: code size, executables and stack" in body
    assert ran.report.baseline.sha == main
    assert_harmless(re.sub(r"<!--.*?-->|\[workflow run\]\(<[^>]*>\)", "", body))
    assert stage.hub.check_runs[0]["output"]["title"].startswith(
        "🆕 Code size is measured from now on: 2 models"
    )


def test_where_nothing_else_changes_there_is_a_comment_all_the_same(
    stage: Stage,
) -> None:
    stage.origin.push_main("Models", {"models/a.mlir": A})
    ran = stage.pull(
        *stage.open_pull(
            {".github/code-size.yml": stage.config(models=["../models/*.mlir"])}
        )
    )
    assert ran.states == {"a on vmvx": "new"} and ran.code == 0, ran.error
    assert ran.outputs[
        "verdict"
    ] == "warn" and "measured from now on: 1 model on 1 target" in first_line(stage)


def test_what_does_not_compile_from_the_start_does_not_fail_it_unless_nothing_does(
    stage: Stage,
) -> None:
    stage.compiler("two", [{"model": "bad", "do": "fail"}])
    stage.origin.push_main("Nothing yet", {"README.md": "# Hello\n"})
    files = {
        "code-size.yml": stage.config("two"),
        "models/a.mlir": A,
        "models/bad.mlir": MODEL.format("bad"),
    }
    ran = stage.pull(*stage.open_pull(files))
    assert ran.code == 0 and ran.outputs["verdict"] == "warn", ran.error
    assert (
        "· 1 of 2 builds failing" in first_line(stage)
        and "| `bad` | `vmvx` | n/a |" in stage.comments()[0]
    )
    ran = stage.pull(*stage.open_pull({"models/a.mlir": None}))
    assert (
        ran.code == 5
        and ran.outputs["verdict"] == "unknown"
        and stage.conclusions == ["neutral", "failure"]
    )
    assert first_line(stage).startswith("⚪ **Code size: unknown")


def test_a_run_by_hand_with_a_commit_that_has_none_is_refused(stage: Stage) -> None:
    first = stage.origin.push_main("Models", {"models/a.mlir": A})
    stage.origin.push_main(
        "The bot", {"code-size.yml": stage.config(), "models/a.mlir": A + "// longer\n"}
    )
    for inputs, rule in (
        ({"base": first}, f"input base: {first}"),
        ({}, "first parent of the head commit"),
    ):
        ran = stage.dispatch(**inputs)
        expected = (
            f"{rule}: has no code-size.yml, so the bot does not know what to measure"
            " (name a commit with"
        )
        assert (
            ran.code == 2
            and ran.error.startswith(expected)
            and ran.outputs["verdict"] == "unknown"
        ), ran.error


@pytest.mark.parametrize(
    ("place", "models", "named", "verdict"),
    [
        (".github/code-size.yml", "../models/*.mlir", "", "fail"),
        ("fork.yml", "models/*.mlir", "fork.yml", "unknown"),
    ],
)
def test_a_fork_that_moves_the_configuration_is_judged_by_that_of_the_default_branch(
    stage: Stage, place: str, models: str, named: str, verdict: str
) -> None:
    """Even where its workflow names the new place, so that its own run finds none on base and compares nothing."""
    stage.compiler("two", [{"do": "differ"}])
    main = stage.main(
        thresholds=[{"metrics": ["artifact_bytes"], "fail": "0%"}, {"metrics": ["*"]}]
    )
    stage.push(main)
    lax = stage.config(models=[models], thresholds=[{"name": "lax", "metrics": ["*"]}])
    _, ran = stage.fork_pull(
        {"code-size.yml": None, place: lax}, stage.spec("two"), [main], named
    )
    assert (ran.outputs["verdict"], stage.conclusions) == (
        verdict,
        ["failure"],
    ), ran.error
    assert (
        "No baseline: the pull request's own run found none" in first_line(stage)
    ) == bool(named)
