"""The compiler's own repository: what a pull request changes is said first, and a refusal is a line of the report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from action_stage import MODEL, Ran
from action_stage import Stage as Reviewing
from compiler_history import Clone, explained
from fake_github import FakeGitHub
from json_texts import to_json
from posting_stage import NUMBER, RUN, Stage, sides
from replacing import replace

from bot.core.baseline import Entry
from bot.core.snapshot import SourceInfo
from bot.core.snapshot_json import from_json


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Stage.opened(tmp_path) as stage:
        stage.configure("compiler: {repository: octo/repo}\n")
        yield stage


def posted(stage: Stage) -> tuple[Ran, str]:
    """The report of a pull request that changes a pass, of the compilers of its base and its merge.

    And its head.
    """
    clone = Clone(stage.workspace)
    base = clone.commit("Start", lowering="int a;\n", choice="c0\n")
    head = clone.commit("Make affine.delinearize_index cheap", lowering="int b;\n")
    clone.git("checkout", "--quiet", "--detach", base)
    clone.git("merge", "--quiet", "--no-ff", "--message", "Merge", head)
    merge = clone.git("rev-parse", "HEAD")
    stage.hub.add_commit(base)
    stage.hub.set_branch("main", base)
    stage.hub.add_pull(
        NUMBER, head, base_sha=base, merge_sha=merge, head_repo="mallory/repo"
    )
    stage.hub.set_history(stage.workspace)
    data = sides(
        *(
            explained(side, sha, source=SourceInfo(sha))
            for side, sha in (("base", base), ("head", merge))
        )
    )
    stage.hub.add_artifact(RUN, "code-size-measured-default-test", data)
    return stage.post(head=head), head


def roots(ran: Ran) -> dict[str, Any]:
    report = json.loads((ran.out / "report.json").read_text())
    return {
        root["what"].partition(" ")[0].rstrip(":"): root
        for root in report["root_causes"]
    }


def test_that_the_pull_request_changes_the_file_is_said_first(stage: Stage) -> None:
    ran, head = posted(stage)
    assert not ran.error
    root = roots(ran)["iree-llvmcpu-lowering"]
    knob = roots(ran)["unroll"]
    assert root["looked_up"]["this_pull_request"] == root["looked_up"]["files"] and [
        suspect["commit"] for suspect in root["suspects"]
    ] == [head]
    assert (
        not knob["looked_up"]["this_pull_request"] and knob["looked_up"]["commits"] == 0
    )
    (line,) = [line for line in stage.body.splitlines() if "suspect: " in line]
    suspect_text = line.partition(
        "<sub>this pull request changes `LLVMCPULowering.cpp`; suspect: "
    )[2]
    assert suspect_text.startswith(f"[`{head[:10]}`](<https://"), line


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({}, "403"),
        (
            {"X-RateLimit-Remaining": "0", "Retry-After": "3600"},
            "GitHub limits the rate of requests",
        ),
    ],
)
def test_a_refusal_is_one_line_and_the_pull_request_s_own_file_is_said_still(
    stage: Stage, headers: dict[str, str], reason: str
) -> None:
    stage.hub.fail_next("GET", "/git/trees", 403, headers=headers, times=9)
    ran, _ = posted(stage)
    assert not ran.error and stage.conclusions
    (line,) = [
        line
        for line in stage.body.splitlines()
        if line.startswith("<sub>Note: the search for compiler commits")
    ]
    assert reason in line
    assert stage.body.count("this pull request changes `LLVMCPULowering.cpp`") == 1
    assert (
        len([call for call in stage.hub.traffic if "/git/trees" in call["path"]]) == 1
    )


def test_a_manual_run_over_two_snapshots_names_suspects_too(tmp_path: Path) -> None:
    with FakeGitHub("octo/repo") as hub:
        stage = Reviewing.create(tmp_path, hub)
        stage.compiler("one")
        main = stage.main(
            compiler={"head": stage.spec("one"), "repository": "octo/repo"}
        )
        clone = Clone(tmp_path / "iree")
        base = clone.commit("Start", lowering="int a;\n", choice="c0\n")
        head = clone.commit("Make affine.delinearize_index cheap", lowering="int b;\n")
        hub.set_history(clone.directory)
        files = {}
        for side, sha in (("base", base), ("head", head)):
            files[side] = str(tmp_path / f"{side}.json")
            Path(files[side]).write_text(to_json(explained(side, sha)))
        ran = stage.dispatch(main, **files)
        assert not ran.error
        root = roots(ran)["iree-llvmcpu-lowering"]
        assert [suspect["commit"] for suspect in root["suspects"]] == [head]
        assert (
            not root["looked_up"]["this_pull_request"]
            and root["looked_up"]["commits"] == 1
        )
        assert f"suspect: [`{head[:10]}`]" in ran.summary


def test_a_push_names_the_passes_that_both_baselines_have_and_their_suspects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # it has traces
    monkeypatch.setattr(
        "bot.github.measuring_push.with_largest_traced", lambda _plan, side, _work: side
    )
    with FakeGitHub("octo/repo") as hub:
        stage = Reviewing.create(tmp_path, hub)
        stage.compiler("one")
        clone = Clone(tmp_path / "iree")
        base = clone.commit("Start", lowering="int a;\n", choice="c0\n")
        head = clone.commit("Make affine.delinearize_index cheap", lowering="int b;\n")
        hub.set_history(clone.directory)
        baseline = {"store": "directory", "directory": str(tmp_path / "store")}
        compiler = {"head": stage.spec("one"), "repository": "octo/repo"}
        keys = {
            "compiler": compiler,
            "baseline": baseline,
            "targets": ["llvm-cpu-x86_64"],
            "models": ["models/m.mlir"],
        }
        main = stage.main({"models/m.mlir": MODEL.format("m")}, **keys)
        stage.store.save(Entry("default", main, "0" * 64), explained("base", base))
        sha = stage.origin.push_main("Raise the pin", {"notes.txt": "words\n"})
        hub.add_commit(sha)
        part = stage.push(sha, command="measure", shard="1/1").out / "head-1-of-1.json"
        snapshot = explained("head", head, source=SourceInfo(sha))
        # the fake says otherwise
        often = tuple(replace(cell, compiles=9) for cell in snapshot.cells)
        compiler_info = replace(
            snapshot.compiler, digest=from_json(part.read_text()).compiler.digest
        )
        part.write_text(to_json(replace(snapshot, cells=often, compiler=compiler_info)))
        ran = stage.push(sha, parts=str(part))
        assert not ran.error, ran.error
        root = roots(ran)["iree-llvmcpu-lowering"]
        assert root["pass"] == "iree-llvmcpu-lowering" and [
            suspect["commit"] for suspect in root["suspects"]
        ] == [head]
        assert (
            not root["looked_up"]["this_pull_request"]
            and f"suspect: [`{head[:10]}`]" in ran.summary
        )
