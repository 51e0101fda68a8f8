"""The jobs of the workflows, played in a private repository and with hostile compilers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from action_stage import MODEL, Stage
from fake_github import FakeGitHub
from git_server import Access, header_of, serving
from github_runner import (
    MARKER,
    event,
    git,
    pull_event,
    push_event,
    queue_event,
    queue_ref,
)
from workflow_play import Play

CONTENTS = {"contents": "read"}
WRITER = {
    "contents": "write",
    "issues": "write",
    "pull_requests": "write",
    "checks": "write",
}
# What a compiler under review may do: it finds the workspace of the program that
# started it, as the same user.
HOSTILE = """
import os
def workspaces():
    pid = os.getpid()
    while pid > 1:
        try:
            yield os.readlink(f"/proc/{pid}/cwd")
            with open(f"/proc/{pid}/stat") as file:
                pid = int(file.read().rpartition(") ")[2].split()[1])
        except OSError:
            return
def attack(how, seen):
    for place in workspaces():
        settings = os.path.join(place, ".git", "config")
        if how == "proxy" and os.path.isfile(settings):
            with open(settings, "a") as file:
                file.write("[http]\\n\\tproxy = http://127.0.0.1:9\\n")
            return
    if how == "program":
        program = os.path.join(os.environ["PATH"].split(":")[0], "git")
        with open(program, "w") as file:
            file.write(f"#!/bin/sh\\n{{ env; echo \\"$@\\"; }} >> {seen}\\nexit 1\\n")
        os.chmod(program, 0o755)
"""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with FakeGitHub("octo/repo") as hub:
        opened = Stage.create(tmp_path, hub)
        opened.compiler("one")
        yield opened


@pytest.fixture
def play(stage: Stage) -> Iterator[Play]:
    readable = stage.hub.token(permissions=CONTENTS)
    writable = stage.hub.token(permissions=WRITER)
    with serving(
        stage.home, {"origin.git": Access({readable: False, writable: True})}
    ) as server:
        yield Play(
            home=stage.home / "plays",
            file="code-size.yml",
            hub=stage.hub,
            git=server,
            readable=readable,
            writable=writable,
        )
    stage.hub.assert_contract()


def hostile(stage: Stage, attack: str) -> Path:
    """Make the compiler hostile; the file that has what its git saw."""
    record = stage.home / "seen"
    binary = stage.compiler("one").binary
    shebang, _, body = binary.read_text().partition("\n")
    binary.write_text(
        f"{shebang}\n{HOSTILE}\nattack({attack!r}, {str(record)!r})\n{body}"
    )
    return record


def pushed(play: Play, sha: str) -> int:
    return play.play(
        "push", push_event(sha), sha, "refs/heads/main", "measure", "store"
    ).code


def reviewed(play: Play, stage: Stage, files: dict[str, str | None]) -> tuple[int, str]:
    """The exit code of the job that reports, and the commit whose check it made."""
    head, merge = stage.open_pull(files)
    payload = pull_event(1, head, "octo/repo")
    return (
        play.play(
            "pull_request", payload, merge, "refs/pull/1/merge", "measure", "report"
        ).code,
        head,
    )


@pytest.mark.parametrize("attack", ["proxy", "program"])
def test_no_step_with_a_token_that_writes_runs_where_a_hostile_compiler_ran(
    stage: Stage, play: Play, attack: str
) -> None:
    record = hostile(stage, attack)
    main = stage.main(baseline={"store": "auto"})
    assert pushed(play, main) == 0, play.runs["store"].log
    assert pushed_entries(stage) == [main]
    code, head = reviewed(
        play, stage, {"models/a.mlir": MODEL.format("a") + "// longer\n"}
    )
    assert code == 0, play.runs["report"].log
    measured = play.machines["measure"]
    reported = play.machines["report"]
    was_attacked = {
        "proxy": (
            "proxy = http://127.0.0.1:9"
            in (measured.workspace / ".git" / "config").read_text()
        ),
        "program": (measured.programs / "git").exists(),
    }
    assert was_attacked[attack], "the compiler did what it is here for"
    assert not measured.may_write and measured.handed == []
    for machine in (reported, play.machines["store"]):
        assert machine.may_write and list(machine.programs.iterdir()) == []
        assert "proxy" not in (machine.workspace / ".git" / "config").read_text()
    stolen = record.read_text() if record.exists() else ""
    for secret in (
        play.writable,
        header_of(play.writable),
        header_of(play.readable),
        "runtime-token",
    ):
        assert secret not in stolen
    assert set(play.git.pushed_by) == {play.writable}
    assert [
        check["conclusion"]
        for check in stage.hub.check_runs
        if check["head_sha"] == head
    ] == ["success"]


def pushed_entries(stage: Stage) -> list[str]:
    """The commits of the stored baselines."""
    names = git(
        stage.origin.bare, "ls-tree", "-r", "--name-only", "code-size-data"
    ).splitlines()
    return [
        Path(name).name.partition(".")[0]
        for name in names
        if name.startswith("snapshots/")
    ]


def test_a_private_repository_works_with_a_measuring_job_that_has_no_token(
    stage: Stage, play: Play
) -> None:
    main = stage.main(baseline={"store": "auto"})
    assert pushed(play, main) == 0, play.runs["measure"].log + play.runs["store"].log
    stage.origin.push_main("Words", {"README.md": "one\n"})
    assert pushed(play, git(stage.origin.bare, "rev-parse", "main")) == 0, play.runs[
        "store"
    ].log
    assert "nothing to measure" in play.runs["measure"].log and pushed_entries(
        stage
    ) == [main]
    code, head = reviewed(
        play, stage, {"models/a.mlir": MODEL.format("a") + "// longer\n"}
    )
    assert code == 0, play.runs["report"].log
    (body,) = stage.comments(MARKER)
    assert "measured 1 commit before it" in body and "could not be read" not in body
    assert [check["head_sha"] for check in stage.hub.check_runs] == [head]


def test_a_manual_run_of_a_private_repository_asks_for_the_pull_request_first(
    stage: Stage, play: Play
) -> None:
    main = stage.main()
    stage.open_pull({"models/a.mlir": MODEL.format("a") + "// longer\n"})
    play.readable = stage.hub.token(permissions={**CONTENTS, "pull_requests": "read"})
    play.git.access["origin.git"] = Access({play.readable: False})

    def prepared(number: str) -> tuple[int, str]:
        play.inputs["pull-request"] = number
        payload = event("workflow_dispatch.main")
        ran = play.play(
            "workflow_dispatch", payload, main, "refs/heads/main", "prepare-manual"
        )
        assert not play.machines["prepare-manual"].may_write
        return ran.code, ran.log

    assert prepared("1")[0] == 0
    code, log = prepared("99")
    assert code == 3 and "there is no pull request #99 in octo/repo" in log
    stage.hub.set_pull(1, locked=True)
    code, log = prepared("1")
    assert code == 3 and "the conversation of #1 is locked" in log
    measuring = play.workflow["jobs"]["measure-manual"]
    assert measuring["needs"] == "prepare-manual"
    assert measuring["if"].endswith(
        "!cancelled() && needs.prepare-manual.result != 'failure'"
    )


@pytest.mark.parametrize("stores", [False, True])
def test_a_private_repository_hears_of_unread_baselines_only_where_there_are_any(
    stage: Stage, play: Play, stores: bool
) -> None:
    """The smallest workflow gives its measuring job no baselines, and without a token it can read none."""
    config = stage.config(models=["../models/*.mlir"], baseline={"store": "auto"})
    main = stage.main({".github/code-size.yml": config})
    if stores:
        assert pushed(play, main) == 0, play.runs["store"].log
    play.file = "minimal.yml"
    code, _ = reviewed(
        play, stage, {"models/a.mlir": MODEL.format("a") + "// longer\n"}
    )
    assert code == 0, play.runs["report"].log
    (body,) = stage.comments(MARKER)
    assert "could not be read" not in body
    assert (
        "could not read the stored baselines: give it the input baselines" in body
    ) is stores
    assert "could not be read" not in play.runs["measure"].summary
    assert "it takes a token, and this job has none" in play.runs["measure"].log


def test_a_pull_request_cannot_write_a_baseline(stage: Stage, play: Play) -> None:
    main = stage.main(baseline={"store": "auto"})
    assert pushed(play, main) == 0, play.runs["store"].log
    tip = git(stage.origin.bare, "rev-parse", "code-size-data")
    head, merge = stage.open_pull({"models/a.mlir": MODEL.format("a") + "// longer\n"})
    payload = pull_event(1, head, "octo/repo")
    ran = play.play(
        "pull_request", payload, merge, "refs/pull/1/merge", "measure", "store"
    )
    assert (
        ran.code == 2
        and "this event asks for measure or report, not for 'store'" in ran.log
    )
    assert git(stage.origin.bare, "rev-parse", "code-size-data") == tip


def test_a_merge_queue_gets_the_check_that_protection_requires_and_what_was_accepted(
    stage: Stage, play: Play
) -> None:
    main = stage.main(baseline={"store": "auto"}, states={"changed": "fail"})
    assert pushed(play, main) == 0, play.runs["store"].log
    _, head = reviewed(
        play, stage, {"models/a.mlir": MODEL.format("a") + "// longer\n"}
    )
    git(stage.origin.work, "checkout", "-q", "--detach", "main")
    git(
        stage.origin.work,
        "merge",
        "-q",
        "--no-ff",
        "-m",
        "Merge pull request #1 from octo/topic-1",
        head,
    )
    queued = git(stage.origin.work, "rev-parse", "HEAD")
    stage.hub.add_commit(main)
    stage.hub.add_commit(queued, [main, head])
    ref = queue_ref(1, main)
    git(stage.origin.work, "push", "-q", "origin", f"{queued}:{ref}")

    def conclusion() -> str:
        payload = queue_event(queued, main, 1)
        play.play("merge_group", payload, queued, ref, "measure", "report")
        checks = [
            check for check in stage.hub.check_runs if check["head_sha"] == queued
        ]
        assert checks, play.runs["measure"].log + play.runs["report"].log
        last = checks[-1]
        assert last["name"] == "code size (main)", play.runs["report"].log
        return str(last["conclusion"])

    assert conclusion() == "failure"
    stage.hub.add_label(1, "code-size-approved", by="alice")
    assert conclusion() == "neutral", (
        "what was accepted on a queued pull request counts"
    )
