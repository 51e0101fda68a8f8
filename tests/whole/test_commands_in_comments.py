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
from json_rows import read_json
from places import FIXTURES
from real_compilers import own_cache
from workflow_play import Play

from bot.cli.main import main
from bot.core.snapshot_json import from_json

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
    hub = commands.hub
    home = commands.stage.home
    readable = hub.token(permissions=CONTENTS)
    writable = hub.token(permissions=WRITER)
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
    measure = play.machines["measure"]
    report = play.machines["report"]
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


@pytest.mark.compiler
def test_the_lab_answers_with_what_the_same_experiment_gives_at_a_terminal(
    commands: Commands, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = "3.13.0"
    keys = {
        "schema": "code-size-config/1",
        "compiler": {"head": release},
        "models": ["models/*.mlir"],
        "targets": ["vmvx", "llvm-cpu-x86_64"],
    }
    suite = {"code-size.yml": yaml.safe_dump(keys), "models/other.mlir": TINY}
    commands.stage.origin.push_main("The suite", suite)
    head, _ = commands.pull({"models/tiny.mlir": TINY})
    cache = own_cache(commands.stage.home / "cache", release)
    play.cache = cache
    line = "/code-size lab aggressive-fusion --model tiny --target vmvx"
    ran = played(play, commands, commands.written(line)[1])
    assert [job.code for job in ran.values()] == [0, 0, 0], ran["report"].log
    assert not play.machines["measure"].may_write
    assert play.machines["measure"].handed == []

    monkeypatch.chdir(play.machines["measure"].workspace)
    argv = ["lab", "aggressive-fusion", "--compiler", release, "--cache", str(cache)]
    argv += ["--model", "tiny", "--target", "vmvx", "--config", "code-size.yml"]
    out = commands.stage.home / "at-a-terminal"
    assert main([*argv, "--out", str(out)]) == 0
    ours, answered = (
        read_json(folder / "lab.json") for folder in (out, ran["report"].report)
    )
    for lab in (ours, answered):
        for cell in lab.cells:
            cell["metrics"].pop("compile_cpu_ms", None)
            cell["metrics"].pop("compile_peak_rss_kib", None)
    assert answered.cells == ours.cells and len(ours.cells) == 2
    (body,) = commands.stage.comments("<!-- code-size-bot:default.")
    size = ours.cells[0].metrics["artifact_bytes"]
    assert f"| `off` | {size:,} | " in body and line in body
    assert commands.conclusions(head) == []
