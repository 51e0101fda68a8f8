"""bot.github.base_side: the ancestor that stands for a base whose compiler nobody knows, and what is said of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from action_stage import MODEL, Ran, Stage
from fake_github import FakeGitHub
from fake_wheels import entries, wheel_name, write_wheel
from github_runner import git
from replacing import replace
from test_reviewing import longer

from bot.store.entries import path_of

pytestmark = pytest.mark.slow

RULES = [{"metrics": ["artifact_bytes"], "fail": "0%"}, {"metrics": ["*"]}]
HEAD = "the head compiler is an input of this run"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Each compiler is a wheel built at its commit: no configuration names one."""
    with FakeGitHub("octo/repo") as hub:
        stage = Stage.create(tmp_path, hub)
        for name in ("old", "new"):
            fake = stage.compiler(name, [{"do": "grow"}] if name == "new" else [])
            library = f"the compiler {name}".encode()
            write_wheel(tmp_path / name / "dist" / wheel_name(), entries(fake, library))
        yield stage
        hub.assert_contract()


def wheel(stage: Stage, name: str) -> str:
    return str(stage.home / name / "dist")


def main(stage: Stage, **baseline: object) -> str:
    store = {"store": "directory", "directory": str(stage.home / "store"), **baseline}
    return stage.main(
        {"compiler/a.cpp": "1\n"}, compiler=None, baseline=store, thresholds=RULES
    )


def pushed(stage: Stage, sha: str) -> str:
    assert stage.push(sha, head=wheel(stage, "old")).code == 0
    return sha


def reviewed(
    stage: Stage, files: dict[str, str | None] | None = None, compiler: str = "old"
) -> Ran:
    return stage.pull(
        *stage.open_pull(files or {"notes.txt": "one\n"}), head=wheel(stage, compiler)
    )


def test_the_nearest_stored_ancestor_is_reported_with_its_distance(
    stage: Stage,
) -> None:
    first = pushed(stage, main(stage))
    stage.origin.push_main(
        "Source", {"compiler/a.cpp": "2\n", "compiler/sub/b.cpp": "2\n"}
    )
    stage.origin.push_main("Words", {"docs/a.md": "2\n"})
    base = stage.origin.push_main("Top", {"README.md": "3\n"})
    ran = reviewed(stage, compiler="new")
    assert ran.code == 0 and ran.report.broke == "", ran.error
    baseline = ran.report.baseline
    assert (baseline.sha, baseline.distance, ran.report.base.source.sha) == (
        base,
        3,
        first,
    )
    assert (
        ran.report.notes[0]
        == "changes may come from other commits: the baseline is 3 commits before the"
        " base"
    )
    (body,) = stage.comments()
    screen = body.partition("<details>")[0]
    assert f"measured 3 commits before it at `{first[:10]}`." in screen
    assert "Note: changes may come from other commits" in screen
    assert ran.states == {"a on vmvx": "changed"} and ran.outputs["verdict"] == "fail"


def test_the_base_commit_itself_comes_before_any_ancestor(stage: Stage) -> None:
    pushed(stage, main(stage))
    base = pushed(stage, stage.origin.push_main("Source", {"compiler/a.cpp": "2\n"}))
    (entry,) = [entry for entry in stage.store.entries() if entry.sha != base]
    of_ancestor = stage.store.load(entry)
    stage.store.save(
        replace(entry, sha=base),
        replace(of_ancestor, source=replace(of_ancestor.source, sha=base)),
    )
    pull = stage.open_pull({"notes.txt": "one\n"})
    ran = stage.pull(*pull, head=wheel(stage, "old"))
    assert ran.report.baseline.distance == 0 and not any(
        "other commits" in note for note in ran.report.notes
    )
    for stored in [entry for entry in stage.store.entries() if entry.sha == base]:
        path = stage.home / "store" / path_of(stored)
        path.write_bytes(path.read_bytes()[:-9])
    ran = stage.pull(*pull, head=wheel(stage, "old"))
    assert (
        ran.code == 0
        and ran.report.base.source.sha == entry.sha
        and ran.report.baseline.distance == 1
    ), ran.error
    assert ran.said.count("skipped a stored baseline that is damaged") == 1


def test_a_model_that_was_edited_since_is_not_compared_and_that_is_reported(
    stage: Stage,
) -> None:
    stage.origin.commit("Begin", {"models/b.mlir": MODEL.format("b")})
    pushed(stage, main(stage))
    stage.origin.push_main("Edit", {"models/a.mlir": longer("a")})
    ran = reviewed(stage)
    assert ran.code == 0 and ran.states == {
        "a on vmvx": "unmeasured",
        "b on vmvx": "same",
    }, ran.error
    assert any(
        "1 build not compared, because the stored ancestor has no such build" in note
        for note in ran.report.notes
    )
    assert (
        ran.outputs["verdict"] == "warn"
        and "1 of 2 builds compared: 1 not measured on base" in stage.comments()[0]
    )


OTHER_KEYS: dict[str, dict[str, Any]] = {
    "the flags": {"flags": ["--iree-opt-level=O2"]},
    "the flags of the target": {
        "targets": {"vmvx": {"backend": "vmvx", "flags": ["--iree-vmvx-skip"]}}
    },
}


@pytest.mark.parametrize("change", ["the model", "the distance", *OTHER_KEYS])
def test_nothing_comparable_is_unknown_and_no_pass(stage: Stage, change: str) -> None:
    pushed(stage, main(stage, ancestors=1))
    store = {
        "store": "directory",
        "directory": str(stage.home / "store"),
        "ancestors": 1,
    }
    keys = OTHER_KEYS.get(change)
    configured = (
        {"code-size.yml": stage.config(compiler=None, baseline=store, **keys)}
        if keys
        else {}
    )
    if change == "the distance":
        stage.origin.push_main("Words", {"docs/a.md": "1\n"})
        configured = {"docs/a.md": "2\n"}
    stage.origin.push_main("Change", configured or {"models/a.mlir": longer("a")})
    ran = reviewed(stage)
    assert (
        ran.code == 5
        and ran.outputs["verdict"] == "unknown"
        and stage.conclusions == ["failure"]
    ), ran.error
    assert ran.report.broke.startswith(
        f"No baseline: {HEAD}, no snapshot of the base commit or of a matching ancestor"
    )
    assert (
        set(ran.states.values()) == {"unmeasured"} and "✅" not in stage.comments()[0]
    )


def test_the_baseline_of_another_report_or_of_a_side_branch_is_none(
    stage: Stage,
) -> None:
    first = main(stage)
    git(stage.origin.work, "checkout", "-q", "-b", "side", first)
    side = stage.origin.commit("Side", {"compiler/a.cpp": "3\n"})
    git(stage.origin.work, "push", "-q", "origin", "side")
    pushed(stage, first)
    (entry,) = stage.store.entries()
    snapshot = stage.store.load(entry)
    (stage.home / "store" / "snapshots").rename(stage.home / "aside")
    stage.store.save(replace(entry, sha=side), snapshot)
    stage.store.save(replace(entry, report_id="other"), snapshot)
    git(stage.origin.work, "checkout", "-q", "main")
    stage.origin.push_main("Words", {"docs/a.md": "1\n"})
    assert reviewed(stage).outputs["verdict"] == "unknown"


def test_a_pinned_compiler_is_known_and_needs_no_ancestor_with_another(
    stage: Stage,
) -> None:
    spec = stage.spec("old")
    store = {"store": "directory", "directory": str(stage.home / "store")}
    stage.push(
        stage.main({"compiler/a.cpp": "1\n"}, compiler={"head": spec}, baseline=store)
    )
    stage.origin.push_main("Source", {"compiler/a.cpp": "2\n"})
    ran = stage.pull(*stage.open_pull({"notes.txt": "one\n"}))
    assert ran.report.baseline.distance == 1 and not any(
        "other commits" in note for note in ran.report.notes
    )


def posted(stage: Stage, *line: str) -> Ran:
    """What the trusted half tells after a fork's run without a word of its own.

    `line` is main, oldest first.
    """
    return stage.fork_pull({"notes.txt": "one\n"}, wheel(stage, "new"), line)[1]


def test_the_trusted_half_finds_the_ancestor_and_its_distance_itself(
    stage: Stage,
) -> None:
    first = pushed(stage, main(stage))
    base = stage.origin.push_main("Source", {"compiler/a.cpp": "2\n"})
    ran = posted(stage, first, base)
    assert ran.code == 0 and ran.report.base.source.sha == first, ran.error
    baseline = ran.report.baseline
    assert baseline.distance == 1 and "stored snapshot" in baseline.rule
    assert "other commits" in ran.report.notes[0] and ran.report.untrusted
    (body,) = stage.comments()
    assert f"measured 1 commit before it at `{first[:10]}`" in body


def test_the_trusted_half_compares_no_model_that_was_edited_since(stage: Stage) -> None:
    stage.origin.commit("Begin", {"models/b.mlir": MODEL.format("b")})
    first = pushed(stage, main(stage))
    base = stage.origin.push_main("Edit", {"models/a.mlir": longer("a")})
    ran = posted(stage, first, base)
    assert ran.code == 0 and ran.states == {
        "a on vmvx": "unmeasured",
        "b on vmvx": "changed",
    }, ran.error
