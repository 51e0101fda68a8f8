"""The workflow of commands in a comment, played in a private repository."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from action_stage import MODEL, Stage
from comment_stage import GROWN, Commands
from fake_github import FakeGitHub
from git_server import Access, header_of, serving
from github_runner import Run, git
from places import FIXTURES
from real_compilers import own_cache
from workflow_play import Play

from bot.core.snapshot import from_json

CONTENTS = {"contents": "read"}
WRITER = {
    "contents": "read",
    "issues": "write",
    "pull_requests": "write",
    "checks": "write",
}
FILE = "code-size-commands.yml"
TINY = (FIXTURES / "e2e" / "models" / "tiny.mlir").read_text()


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    with FakeGitHub("octo/repo") as hub:
        stage = Stage.create(tmp_path, hub)
        stage.compiler("one")
        yield Commands(stage)
        hub.assert_contract()


@pytest.fixture
def play(commands: Commands) -> Iterator[Play]:
    hub, home = commands.hub, commands.stage.home
    readable, writable = hub.token(permissions=CONTENTS), hub.token(permissions=WRITER)
    with serving(
        home, {"origin.git": Access({readable: False, writable: False})}
    ) as server:
        yield Play(
            home=home / "plays",
            file=FILE,
            hub=hub,
            git=server,
            readable=readable,
            writable=writable,
        )


def played(play: Play, commands: Commands, payload: dict[str, Any]) -> dict[str, Run]:
    """The jobs that a comment starts; GitHub gives them the default branch."""
    event = ("issue_comment", payload, commands.main, "refs/heads/main")
    play.play(*event, "gate")
    if play.runs["gate"].outputs.get("asked"):
        play.play(*event, "measure", "report", after=["gate"])
    return {name: play.runs[name] for name in play.results}


def test_what_the_gate_pins_is_measured_and_reported_whatever_is_pushed_later(
    commands: Commands, play: Play
) -> None:
    commands.stage.main(baseline={"store": "auto"}, states={"changed": "fail"})
    head, merge = commands.pull({"models/a.mlir": GROWN}, fork=True)
    ran = played(play, commands, commands.written("/code-size rerun")[1])
    assert [job.code for job in ran.values()] == [0, 0, 0], ran["report"].log
    (body,) = commands.reports
    assert (
        merge[:10] in body and "alice asked for this report: /code-size rerun" in body
    )
    assert commands.conclusions(head) == ["failure"]
    measure, report = play.machines["measure"], play.machines["report"]
    assert not measure.may_write and measure.handed == [] and report.may_write
    for job in ("measure", "report"):
        workspace = play.machines[job].workspace
        assert git(workspace, "rev-parse", "HEAD") == merge
        config = (workspace / ".git" / "config").read_text()
        assert (
            header_of(play.writable) not in config
            and header_of(play.readable) not in config
        )

    later = list[str]()
    play.after["gate"] = lambda: later.append(
        commands.pull({"models/a.mlir": MODEL.format("a") + "//\n"})[0]
    )
    ran = played(play, commands, commands.written("/code-size RERUN")[1])
    assert git(play.machines["measure"].workspace, "rev-parse", "HEAD") == merge
    assert (
        from_json((ran["report"].report / "head.json").read_text()).source.sha == merge
    )
    assert "no comment: the pull request has a newer head" in ran["report"].log
    assert commands.reports == [body] and commands.conclusions(later[0]) == []


@pytest.mark.compiler
def test_two_releases_are_compared_over_the_models_of_a_pull_request(
    commands: Commands, play: Play
) -> None:
    keys = {
        "schema": "code-size-config/1",
        "compiler": {"head": "3.13.0"},
        "models": ["models/*.mlir"],
        "targets": ["vmvx", "llvm-cpu-x86_64"],
    }
    commands.stage.origin.push_main(
        "The suite", {"code-size.yml": yaml.safe_dump(keys), "models/tiny.mlir": TINY}
    )
    commands.pull({"README.md": "# Models\n"})
    play.cache = own_cache(commands.stage.home / "cache", "3.11.0", "3.13.0")
    line = (
        "/code-size compare 3.11.0 3.13.0 --model tiny --target vmvx --flags"
        " --iree-opt-level=O2"
    )
    ran = played(play, commands, commands.written(line)[1])
    assert list(ran) == ["gate", "measure", "report"], ran["gate"].log
    base, head = (
        from_json((ran["report"].report / f"{side}.json").read_text())
        for side in ("base", "head")
    )
    assert [side.compiler.version.split("rc")[0] for side in (base, head)] == [
        "3.11.0",
        "3.13.0",
    ]
    for side in (base, head):
        assert [str(cell.key) for cell in side.cells] == ["tiny on vmvx"]
        assert (
            side.cells[0].status == "ok"
            and "--iree-opt-level=O2" in side.cells[0].command
        )
    (answer,) = [
        comment["body"]
        for comment in commands.hub.comments(1)
        if "<!-- code-size-bot:" in comment["body"]
    ]
    assert (
        line in answer
        and ran["report"].outputs["comment-url"]
        and commands.hub.check_runs == []
    )
