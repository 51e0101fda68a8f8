"""A runner as GitHub Actions is one: a checkout, an event, an environment, the bot as a process, and what it left."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fake_github import FakeGitHub
from places import ROOT

REPOSITORY = ROOT
Payload = dict[str, Any]


def git(directory: Path, *arguments: str) -> str:
    """One git command of the test's own, as nobody in particular."""
    person = {f"GIT_{who}_{what}": "tester" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **person, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *arguments], cwd=directory, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stderr}"
    return done.stdout.strip()


@dataclass
class Origin:
    """The repository on the server, and a clone to work in."""

    bare: Path
    work: Path

    @classmethod
    def create(cls, home: Path) -> Origin:
        bare, work = home / "origin.git", home / "work"
        git(home, "init", "-q", "--bare", "-b", "main", str(bare))
        git(bare, "config", "uploadpack.allowAnySHA1InWant", "true")
        git(bare, "config", "uploadpack.allowFilter", "true")
        git(home, "clone", "-q", bare.as_uri(), str(work))
        git(work, "symbolic-ref", "HEAD", "refs/heads/main")
        return cls(bare, work)

    def commit(self, message: str, files: Mapping[str, str | None]) -> str:
        """Write (None: delete) files in the working clone and commit them; returns the SHA."""
        for name, text in files.items():
            path = self.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink() if text is None else path.write_text(text)
        git(self.work, "add", "-A")
        git(self.work, "commit", "-q", "-m", message)
        return git(self.work, "rev-parse", "HEAD")

    def push_main(self, message: str, files: Mapping[str, str | None]) -> str:
        """A commit on main."""
        if git(self.work, "branch", "--list", "main"):
            git(self.work, "checkout", "-q", "main")
        sha = self.commit(message, files)
        git(self.work, "push", "-q", "origin", "main")
        return sha

    def push_pull(self, number: int, files: Mapping[str, str | None]) -> tuple[str, str]:
        """A commit on the branch of a pull request; returns its SHA and that of GitHub's merge commit."""
        branch = f"topic-{number}"
        known = git(self.work, "branch", "--list", branch)
        git(self.work, "checkout", "-q", *([branch] if known else ["-b", branch, "main"]))
        head = self.commit(f"change of #{number}", files)
        git(self.work, "checkout", "-q", "--detach", "main")
        git(self.work, "merge", "-q", "--no-ff", "-m", f"Merge {head}", head)
        merge = git(self.work, "rev-parse", "HEAD")
        git(
            self.work,
            "push",
            "-q",
            "-f",
            "origin",
            f"{head}:refs/pull/{number}/head",
            f"{merge}:refs/pull/{number}/merge",
        )
        return head, merge


@dataclass
class Run:
    """One finished run of the action."""

    code: int
    log: str
    outputs: dict[str, str]
    summary: str
    report: Path

    def files(self) -> bytes:
        """The report directory as upload-artifact would zip it."""
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(self.report.glob("*")):
                archive.write(path, path.name)
        return made.getvalue()


@dataclass
class Runner:
    """Starts the action in fresh checkouts, all with one cache as `actions/cache` gives it."""

    home: Path
    hub: FakeGitHub
    origin: Origin
    cache: Path
    runs: int = 0
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, event: str, payload: Payload, *, sha: str, ref: str, token: str, run_id: int, **inputs: str) -> Run:
        """The action, once, in a shallow checkout of `sha`."""
        self.runs += 1
        home = self.home / f"run-{self.runs}"
        workspace = home / "workspace"
        workspace.mkdir(parents=True)
        git(workspace, "init", "-q")
        git(workspace, "remote", "add", "origin", self.origin.bare.as_uri())
        git(workspace, "fetch", "-q", "--depth=1", "origin", sha)
        git(workspace, "checkout", "-q", "--detach", sha)
        (home / "event.json").write_text(json.dumps(payload))
        given = {
            "github-token": token,
            "cache": str(self.cache),
            "command": "auto",
            "out": "code-size-report",
            **inputs,
        }
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "INPUT_"))},
            **{f"INPUT_{name.replace('_', '-').upper()}": value for name, value in given.items()},
            "PYTHONPATH": str(REPOSITORY),
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_NAME": event,
            "GITHUB_EVENT_PATH": str(home / "event.json"),
            "GITHUB_REPOSITORY": "octo/repo",
            "GITHUB_SHA": sha,
            "GITHUB_REF": ref,
            "GITHUB_RUN_ID": str(run_id),
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_WORKFLOW_REF": "octo/repo/.github/workflows/code-size.yml@refs/heads/main",
            "GITHUB_API_URL": self.hub.url,
            "GITHUB_SERVER_URL": "https://github.example",
            "GITHUB_ACTOR": "octocat",
            "GITHUB_WORKSPACE": str(workspace),
            "GITHUB_OUTPUT": str(home / "output"),
            "GITHUB_STEP_SUMMARY": str(home / "summary.md"),
            **self.environment,
        }
        argv = [sys.executable, "-m", "bot", "action"]
        done = subprocess.run(argv, cwd=workspace, env=environment, capture_output=True, text=True, timeout=900)
        log = done.stdout + done.stderr
        assert token not in log
        summary = home / "summary.md"
        report = workspace / given["out"]
        made = Run(
            done.returncode, log, outputs(home / "output"), summary.read_text() if summary.exists() else "", report
        )
        assert not any(token.encode() in path.read_bytes() for path in report.glob("*"))
        return made


def outputs(path: Path) -> dict[str, str]:
    """What a step wrote to `$GITHUB_OUTPUT`, read as the runner reads it."""
    found: dict[str, str] = {}
    lines = iter(path.read_text().splitlines() if path.exists() else [])
    for line in lines:
        name, mark, delimiter = line.partition("<<")
        if not mark:
            name, _, found[name.partition("=")[0]] = line.partition("=")
            continue
        value: list[str] = []
        for text in lines:
            if text == delimiter:
                break
            value.append(text)
        found[name] = "\n".join(value)
    return found
