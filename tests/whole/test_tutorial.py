"""Follow the tutorial: write its files, run its commands, and play its pull request."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from documents import Block, blocks
from fake_github import FakeGitHub
from git_server import Access, serving
from github_runner import MARKER, Origin, git, pull_event
from places import ROOT
from real_compilers import own_cache
from workflow_play import BOT, Play

TUTORIAL = ROOT / "docs" / "tutorial.md"
WORKFLOW = ROOT / "configs" / "workflows" / "minimal.yml"
WRITER = {
    "contents": "read",
    "issues": "write",
    "pull_requests": "write",
    "checks": "write",
}
PROGRAM = (
    f"#!{sys.executable}\nimport sys\nfrom bot.cli.main import main\nsys.exit(main())\n"
)
PERSON = {
    f"GIT_{role}_{part}": "tester"
    for role in ("AUTHOR", "COMMITTER")
    for part in ("NAME", "EMAIL")
}


@dataclass
class Reader:
    """Somebody who follows the tutorial in a clone, block after block."""

    clone: Path
    environment: dict[str, str]
    blocks: list[Block] = field(default_factory=lambda: blocks(TUTORIAL))

    def write_file(self) -> Path:
        """Write the file that the next block names in its first line."""
        block = self.blocks.pop(0)
        assert block.language in ("mlir", "yaml"), block
        path = self.clone / block.text.splitlines()[0].lstrip("/# ")
        path.write_text(block.text, encoding="utf-8")
        return path

    def run_commands(self, expected_code: int = 0) -> str:
        """Run the next block; only its last command may end with another exit code than 0."""
        block = self.blocks.pop(0)
        assert block.language == "sh", block
        done = subprocess.run(
            ["sh", "-e", "-c", block.text],
            cwd=self.clone,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert done.returncode == expected_code, (
            f"{block.text}\n{done.stdout}\n{done.stderr}"
        )
        return done.stdout

    def expect_lines(self, text: str) -> None:
        """Check that the text has every line of the next block, in this order."""
        block = self.blocks.pop(0)
        assert block.language == "text", block
        lines = iter(text.splitlines())
        for line in block.text.splitlines():
            assert line in lines, f"{line!r} is not, or not in this order, in\n{text}"


@pytest.fixture
def hub() -> Iterator[FakeGitHub]:
    with FakeGitHub("octo/repo") as hub:
        hub.add_user("alice", permission="write")
        yield hub
        hub.assert_contract()


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    return Origin.create(tmp_path)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return own_cache(tmp_path / "cache", "3.13.0")


@pytest.fixture
def play(
    tmp_path: Path, hub: FakeGitHub, origin: Origin, cache: Path
) -> Iterator[Play]:
    readable = hub.token(permissions={"contents": "read"})
    writable = hub.token(permissions=WRITER)
    access = Access({readable: False, writable: True}, public=True)
    with serving(origin.bare.parent, {origin.bare.name: access}) as server:
        yield Play(
            home=tmp_path / "plays",
            file=WORKFLOW.name,
            hub=hub,
            git=server,
            readable=readable,
            writable=writable,
            cache=cache,
        )


@pytest.fixture
def reader(tmp_path: Path, origin: Origin, cache: Path) -> Reader:
    program = tmp_path / "bin" / "code-size-bot"
    program.parent.mkdir()
    program.write_text(PROGRAM, encoding="utf-8")
    program.chmod(0o755)
    environment = {
        **os.environ,
        **PERSON,
        "HOME": str(tmp_path),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "CODE_SIZE_CACHE": str(cache),
    }
    return Reader(origin.work, environment)


def open_pull(hub: FakeGitHub, origin: Origin, branch: str) -> tuple[str, str]:
    """Open pull request 1 of a pushed branch; returns its head and its merge commit."""
    base = git(origin.bare, "rev-parse", "main")
    head = git(origin.bare, "rev-parse", branch)
    git(origin.work, "switch", "-q", "--detach", "main")
    git(origin.work, "merge", "-q", "--no-ff", "-m", f"Merge {head}", head)
    merge = git(origin.work, "rev-parse", "HEAD")
    git(origin.work, "push", "-q", "origin", f"{merge}:refs/pull/1/merge")
    hub.add_pull(1, head, merge_sha=merge, base_sha=base)
    return head, merge


def comment_of(hub: FakeGitHub) -> str:
    bodies = [str(comment["body"]) for comment in hub.comments(1)]
    (body,) = [body for body in bodies if body.startswith(MARKER)]
    return body


@pytest.mark.slow
@pytest.mark.compiler
def test_every_step_of_the_tutorial_runs_and_shows_what_the_page_shows(
    hub: FakeGitHub, origin: Origin, play: Play, reader: Reader
) -> None:
    # 1 and 2: two models, the pin, the configuration
    reader.run_commands()
    assert reader.write_file().name == "classifier.mlir"
    assert reader.write_file().name == "transpose.mlir"
    reader.run_commands()
    assert reader.write_file() == origin.work / ".github" / "code-size.yml"
    assert "llvm-cpu-x86_64" in reader.run_commands()

    # 3: the workflow
    workflow = origin.work / ".github" / "workflows" / "code-size.yml"
    text = WORKFLOW.read_text(encoding="utf-8")
    assert BOT in text and "config: .github/code-size.yml" in text
    workflow.write_text(text, encoding="utf-8")
    reader.run_commands()

    # 4: a larger model, compared on the machine
    reader.run_commands()
    assert reader.write_file().name == "classifier.mlir"
    printed = reader.run_commands(expected_code=1)
    reader.expect_lines(printed)

    # 5: the pull request fails
    reader.run_commands()
    head, merge = open_pull(hub, origin, "softmax")
    event = pull_event(1, head, "octo/repo")

    def run_workflow() -> str:
        """Run both jobs; returns the conclusion of the newest check of the head commit."""
        ran = play.play(
            "pull_request", event, merge, "refs/pull/1/merge", "measure", "report"
        )
        assert ran.code == 0, play.runs["measure"].log + ran.log
        checks = [check for check in hub.check_runs if check["head_sha"] == head]
        assert checks[-1]["name"] == "code size (main)"
        return str(checks[-1]["conclusion"])

    assert run_workflow() == "failure"
    reader.expect_lines(comment_of(hub))

    # 6: a maintainer accepts it
    hub.add_label(1, "code-size-approved", by="alice")
    assert run_workflow() == "neutral"
    reader.expect_lines(comment_of(hub))
    assert reader.blocks == []
