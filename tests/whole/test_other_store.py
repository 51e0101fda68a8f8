"""The workflow whose baselines are in another, private repository, played job by job."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from action_stage import MODEL, Ran, Stage
from fake_github import FakeGitHub
from git_server import Access, serving
from github_runner import Run, git, pull_event, push_event, report_zip, run_event
from places import ROOT
from workflow_play import Play

CONTENTS = {"contents": "read"}
WRITER = {
    "contents": "read",
    "issues": "write",
    "pull_requests": "write",
    "checks": "write",
}
SECRET = "CODE_SIZE_STORE_TOKEN"
STORE_TOKEN = "github_pat_of_the_store"
SIZES = "octo/sizes.git"
GROWN = {"models/a.mlir": MODEL.format("a") + "// longer\n"}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with FakeGitHub("octo/repo") as hub:
        opened = Stage.create(tmp_path, hub)
        opened.compiler("one")
        yield opened


@pytest.fixture
def sizes(stage: Stage) -> Path:
    """The empty second repository."""
    path = stage.home / SIZES
    path.mkdir(parents=True)
    git(path, "init", "-q", "--bare", "-b", "main")
    git(path, "config", "uploadpack.allowFilter", "true")
    return path


@pytest.fixture
def play(stage: Stage, sizes: Path) -> Iterator[Play]:
    assert sizes.is_dir()
    readable = stage.hub.token(permissions=CONTENTS)
    writable = stage.hub.token(permissions=WRITER)
    access = {
        "origin.git": Access({readable: False, writable: False}),
        SIZES: Access({STORE_TOKEN: True}),
    }
    with serving(stage.home, access) as server:
        file = "code-size-other-store.yml"
        player = Play(
            home=stage.home / "plays",
            file=file,
            hub=stage.hub,
            git=server,
            readable=readable,
            writable=writable,
        )
        player.secrets[SECRET] = STORE_TOKEN
        yield player
    stage.hub.assert_contract()


def main(stage: Stage) -> str:
    return stage.main(baseline={"repository": "octo/sizes"})


def pushed(play: Play, sha: str) -> Run:
    jobs = ("prepare", "measure", "store")
    return play.play("push", push_event(sha), sha, "refs/heads/main", *jobs)


def reviewed(play: Play, stage: Stage, *jobs: str) -> Run:
    head, merge = stage.open_pull(GROWN)
    payload = pull_event(1, head, "octo/repo")
    return play.play("pull_request", payload, merge, "refs/pull/1/merge", *jobs)


def baseline_of(run: Run) -> dict[str, object]:
    report = json.loads((run.report / "report.json").read_text())
    baseline: dict[str, object] = report["baseline"]
    return baseline


def stored(repository: Path) -> list[str]:
    """The commits of the baselines in a repository; empty where it has no data branch."""
    if not git(repository, "for-each-ref", "refs/heads/code-size-data"):
        return []
    names = git(
        repository, "ls-tree", "-r", "--name-only", "code-size-data"
    ).splitlines()
    return [
        Path(name).name.partition(".")[0]
        for name in names
        if name.startswith("snapshots/")
    ]


def test_baselines_go_to_the_other_repository_and_come_back_as_files(
    stage: Stage, play: Play, sizes: Path
) -> None:
    sha = main(stage)
    first = pushed(play, sha)
    assert first.code == 0, (
        play.runs["prepare"].log + play.runs["measure"].log + first.log
    )
    assert stored(sizes) == [sha] and stored(stage.origin.bare) == []
    assert not play.machines["measure"].secrets
    assert (
        play.machines["store"].secrets == {SECRET} == play.machines["prepare"].secrets
    )
    ran = reviewed(play, stage, "prepare", "measure", "report")
    assert ran.code == 0, play.runs["prepare"].log + play.runs["measure"].log + ran.log
    assert "copied 1 baseline" in play.runs["prepare"].log
    assert (
        "stored snapshot" in str(baseline_of(ran)["rule"])
        and baseline_of(ran)["distance"] == 0
    )
    assert "could not be read" not in ran.summary
    assert not play.machines["measure"].secrets and not play.machines["report"].secrets
    assert play.git.tokens_of[SIZES] == {STORE_TOKEN}
    assert STORE_TOKEN not in play.git.tokens_of["origin.git"]
    for machine in play.machines.values():
        paths = [
            path
            for path in machine.workspace.rglob("*")
            if path.is_file() and not path.is_symlink()
        ]
        assert not [path for path in paths if STORE_TOKEN.encode() in path.read_bytes()]


def test_a_push_that_changes_nothing_finds_the_baseline_of_its_ancestor(
    stage: Stage, play: Play, sizes: Path
) -> None:
    sha = main(stage)
    pushed(play, sha)
    second = stage.origin.push_main("Words", {"README.md": "one\n"})
    ran = pushed(play, second)
    assert ran.code == 0 and "nothing to measure" in play.runs["measure"].log, ran.log
    assert stored(sizes) == [sha]


def test_an_artifact_that_a_compiler_puts_in_place_of_the_baselines_is_not_read(
    stage: Stage, play: Play
) -> None:
    pushed(play, main(stage))
    before = reviewed(play, stage, "prepare", "measure", "report")
    expected = (before.report / "base.json").read_bytes()

    def replace_artifact() -> None:
        artifact = play.artifact("code-size-baselines-default-test")
        assert (artifact / "order.txt").is_file()
        shutil.rmtree(artifact)
        artifact.mkdir()

    play.after["measure"] = replace_artifact
    ran = play.play(
        "pull_request",
        pull_event(
            1, git(stage.origin.bare, "rev-parse", "refs/pull/1/head"), "octo/repo"
        ),
        git(stage.origin.bare, "rev-parse", "refs/pull/1/merge"),
        "refs/pull/1/merge",
        "prepare",
        "measure",
        "report",
    )
    assert (ran.report / "base.json").read_bytes() == expected
    assert "stored snapshot" in str(baseline_of(ran)["rule"])


def test_a_run_without_the_secret_measures_its_base(stage: Stage, play: Play) -> None:
    """As a fork's does, where GitHub skips the job that prepares."""
    pushed(play, main(stage))
    del play.secrets[SECRET]
    ran = reviewed(play, stage, "measure", "report")
    assert ran.code == 0 and "measured in this run" in str(baseline_of(ran)["rule"]), (
        ran.log
    )
    assert play.git.tokens_of[SIZES] == {STORE_TOKEN}


def test_a_wrong_token_ends_the_job_that_prepares_and_the_report_says_so(
    stage: Stage, play: Play
) -> None:
    pushed(play, main(stage))
    play.secrets[SECRET] = "github_pat_of_somebody_else"
    ran = reviewed(play, stage, "prepare", "report")
    prepared = play.runs["prepare"]
    assert prepared.code == 3 and "the token may not read" in prepared.log
    assert "`store-token`" in prepared.log
    (check,) = stage.hub.check_runs
    assert check["conclusion"] != "success" and ran.outputs["verdict"] == "unknown"
    assert "the job that measures was skipped" in ran.log


class PostWithBaselines(Play):
    """The workflow for forks, changed as docs/github.md describes it."""

    @property
    def workflow(self) -> dict[str, Any]:
        folder = ROOT / "configs" / "workflows"
        post, store = (
            yaml.safe_load((folder / name).read_text(encoding="utf-8"))
            for name in ("code-size-post.yml", "code-size-other-store.yml")
        )
        prepare = store["jobs"]["prepare"]
        del prepare["if"]
        steps = post["jobs"]["post"]["steps"]
        (download,) = (
            step
            for step in store["jobs"]["report"]["steps"]
            if "artifact-ids" in step.get("with", {})
        )
        steps.insert(1, download)
        steps[2]["with"]["baselines"] = download["with"]["path"]
        jobs = {"prepare": prepare, "post": post["jobs"]["post"]}
        return {**post, "jobs": jobs}


def test_the_report_of_a_fork_has_the_stored_base_of_the_other_repository(
    stage: Stage, play: Play
) -> None:
    sha = main(stage)
    pushed(play, sha)
    del play.secrets[SECRET]
    head, merge = stage.open_pull(GROWN)
    fork = {"head_repo": "mallory/repo", "merge_sha": merge, "base_sha": sha}
    stage.hub.add_pull(1, head, **fork)
    payload = pull_event(1, head, "mallory/repo")
    place = (payload, merge, "refs/pull/1/merge")
    assert play.play("pull_request", *place, "measure").code == 0
    for commit, parents in ((sha, []), (head, [sha]), (merge, [sha, head])):
        stage.hub.add_commit(commit, parents)
    stage.hub.set_branch("main", sha)
    measured = play.machines["measure"].workspace / "code-size-measured"
    name = "code-size-measured-default-test"
    stage.hub.add_artifact(500, name, report_zip(measured))

    writable = stage.hub.token(permissions={**WRITER, "actions": "read"})
    readers = {play.readable: False, writable: False}
    play.git.access["origin.git"] = Access(readers)
    posting = PostWithBaselines(
        home=stage.home / "posting",
        file="code-size-post.yml",
        hub=stage.hub,
        git=play.git,
        readable=play.readable,
        writable=writable,
        secrets={SECRET: STORE_TOKEN},
    )
    ended = ("workflow_run", run_event(500, head), sha, "refs/heads/main")
    ran = posting.play(*ended, "prepare", "post")
    assert ran.code == 0, posting.runs["prepare"].log + ran.log
    assert "copied 1 baseline" in posting.runs["prepare"].log
    assert "stored snapshot" in str(baseline_of(ran)["rule"])
    assert posting.machines["post"].secrets == set()
    (body,) = stage.comments()
    assert "could not be read" not in body and "own workflow run" in body


@pytest.mark.parametrize("command", ["measure", "report", "post", "plan", "pages"])
def test_other_commands_refuse_the_token_of_the_store(
    stage: Stage, command: str
) -> None:
    sha = main(stage)
    inputs = {"command": command, "store_token": STORE_TOKEN}
    ran = stage.run("push", push_event(sha), sha, ref="refs/heads/main", **inputs)
    if command in ("report", "post"):
        head, merge = stage.open_pull(GROWN)
        ran = stage.run(
            "pull_request",
            pull_event(1, head, "octo/repo"),
            merge,
            ref="refs/pull/1/merge",
            **inputs,
        )
    assert ran.code == 2, ran.error
    assert "store-token" in ran.error or "not for 'post'" in ran.error
    assert STORE_TOKEN not in ran.error + ran.summary


def test_a_store_elsewhere_needs_its_token_and_the_token_needs_a_store_elsewhere(
    stage: Stage,
) -> None:
    def run(sha: str, **inputs: str) -> Ran:
        return stage.run("push", push_event(sha), sha, ref="refs/heads/main", **inputs)

    sha = main(stage)
    measured = run(sha, command="measure", baselines="none")
    ran = run(sha, command="store", measured=str(measured.out))
    assert ran.code == 2 and "input store-token: is missing" in ran.error, (
        measured.error + ran.error
    )
    assert "octo/sizes" in ran.error
    next_sha = stage.origin.push_main(
        "Here", {"code-size.yml": stage.config(baseline={"store": "auto"})}
    )
    measured = run(next_sha, command="measure")
    for command in ("prepare", "store"):
        ran = run(
            next_sha,
            command=command,
            measured=str(measured.out),
            store_token=STORE_TOKEN,
        )
        assert (
            ran.code == 2 and "no other repository stores the baselines" in ran.error
        ), ran.error
