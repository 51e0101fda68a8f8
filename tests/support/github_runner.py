"""A runner as GitHub Actions is one: a checkout, an event, an environment, the bot as a process, and what it left."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fake_github import FakeGitHub
from places import FIXTURES, ROOT

REPOSITORY = ROOT
MARKER = "<!-- code-size-bot:default -->"
LATE = "2026-06-01T00:00:00Z"  # After everything else that happens on a stage
Payload = dict[str, Any]


def event(name: str) -> Payload:
    """An event as GitHub sends it, moved to our repository."""
    payload: Payload = json.loads((FIXTURES / f"events/{name}.json").read_text())
    payload["repository"].update(full_name="octo/repo", default_branch="main")
    return payload


def push_event(sha: str) -> Payload:
    return event("push.branch") | {
        "ref": "refs/heads/main",
        "after": sha,
        "deleted": False,
    }


def pull_event(
    number: int, head: str, repository: str, action: str = "synchronize"
) -> Payload:
    payload = event(
        "pull_request.labeled" if action == "labeled" else "pull_request.synchronize"
    )
    payload.update(action=action, number=number)
    if action == "labeled":
        payload["label"].update(name="code-size-approved")
    pull = payload["pull_request"]
    pull.update(number=number)
    pull["head"].update(sha=head)
    pull["head"]["repo"].update(full_name=repository)
    pull["base"].update(ref="main")
    return payload


def queue_event(head: str, base: str, number: int) -> Payload:
    """A merge queue asks for checks of its commit; `number`: of the last pull request in it."""
    payload = event("push.branch")
    queue = {
        "head_sha": head,
        "head_ref": queue_ref(number, base),
        "base_sha": base,
        "base_ref": "refs/heads/main",
    }
    return {
        "action": "checks_requested",
        "merge_group": queue,
        "repository": payload["repository"],
    }


def queue_ref(number: int, base: str) -> str:
    """The branch of a merge queue's commit."""
    return f"refs/heads/gh-readonly-queue/main/pr-{number}-{base}"


def comment_event(comment: Payload, number: int, locked: bool = False) -> Payload:
    """Somebody wrote a comment on a pull request; `comment`: as GitHub answers with it."""
    payload = event("issue_comment.created")
    payload["issue"].update(
        number=number, locked=locked, pull_request={"url": f"{comment['url']}/{number}"}
    )
    payload["comment"].update(comment)
    payload["sender"].update(login=comment["user"]["login"])
    return payload


def run_event(
    run_id: int,
    head: str,
    conclusion: str = "success",
    fork: str = "mallory/repo",
    started_at: str = LATE,
) -> Payload:
    """A run of a pull request's workflow ended."""
    payload = event("workflow_run.completed")
    run = payload["workflow_run"]
    run.update(
        id=run_id,
        head_sha=head,
        head_branch="topic",
        event="pull_request",
        conclusion=conclusion,
    )
    run["head_repository"].update(full_name=fork)
    run["created_at"] = started_at
    run["actor"].update(login="mallory")
    return payload


def input_variables(inputs: Mapping[str, str]) -> dict[str, str]:
    return {
        f"INPUT_{name.replace('_', '-').upper()}": value
        for name, value in inputs.items()
    }


def runner_variables(
    home: Path,
    hub: FakeGitHub,
    name: str,
    sha: str,
    ref: str,
    run_id: int,
    workspace: Path,
) -> dict[str, str]:
    """What a runner sets for an event of that name; its files are in `home`."""
    return {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": name,
        "GITHUB_EVENT_PATH": str(home / "event.json"),
        "GITHUB_REPOSITORY": "octo/repo",
        "GITHUB_SHA": sha,
        "GITHUB_REF": ref,
        "GITHUB_RUN_ID": str(run_id),
        "GITHUB_API_URL": hub.url,
        "GITHUB_SERVER_URL": "https://github.example",
        "GITHUB_ACTOR": "octocat",
        "GITHUB_WORKFLOW": "test",
        "GITHUB_WORKSPACE": str(workspace),
        "GITHUB_OUTPUT": str(home / "output"),
        "GITHUB_STEP_SUMMARY": str(home / "summary.md"),
    }


def git(directory: Path, *arguments: str) -> str:
    """One git command of the test's own, as nobody in particular."""
    person = {
        f"GIT_{who}_{field_name}": "tester"
        for who in ("AUTHOR", "COMMITTER")
        for field_name in ("NAME", "EMAIL")
    }
    environment = {
        **os.environ,
        **person,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TEMPLATE_DIR": "",  # without copies of the sample hooks
    }
    done = subprocess.run(
        ["git", "-c", "maintenance.auto=false", "-c", "gc.auto=0", *arguments],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stderr}"
    return done.stdout.strip()


@dataclass
class Origin:
    """The repository on the server, and a clone to work in."""

    bare: Path
    work: Path

    @classmethod
    def create(cls, home: Path) -> Origin:
        bare = home / "origin.git"
        work = home / "work"
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

    def checkout(self, workspace: Path, sha: str) -> None:
        """A shallow clone of one commit, as actions/checkout makes it."""
        workspace.mkdir(parents=True, exist_ok=True)
        git(workspace, "init", "-q")
        git(workspace, "remote", "add", "origin", self.bare.as_uri())
        git(workspace, "fetch", "-q", "--depth=1", "origin", sha)
        git(workspace, "checkout", "-q", "--detach", sha)

    def push_main(self, message: str, files: Mapping[str, str | None]) -> str:
        """A commit on main."""
        if git(self.work, "branch", "--list", "main"):
            git(self.work, "checkout", "-q", "main")
        sha = self.commit(message, files)
        git(self.work, "push", "-q", "origin", "main")
        return sha

    def push_pull(
        self, number: int, files: Mapping[str, str | None]
    ) -> tuple[str, str]:
        """A commit on the branch of a pull request.

        Returns its SHA and that of GitHub's merge commit.
        """
        branch = f"topic-{number}"
        local_branch = git(self.work, "branch", "--list", branch)
        git(
            self.work,
            "checkout",
            "-q",
            *([branch] if local_branch else ["-b", branch, "main"]),
        )
        head = self.commit(f"change of #{number}", files)
        git(self.work, "checkout", "-q", "--detach", "main")
        git(self.work, "merge", "-q", "--no-ff", "-m", f"Merge {head}", head)
        merge = git(self.work, "rev-parse", "HEAD")
        pull = f"refs/pull/{number}"
        git(
            self.work,
            "push",
            "-q",
            "-f",
            "origin",
            f"{head}:{pull}/head",
            f"{merge}:{pull}/merge",
        )
        return head, merge


def report_zip(report: Path) -> bytes:
    """The report directory as upload-artifact would zip it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(report.glob("*")):
            archive.write(path, path.name)
    return buffer.getvalue()


@dataclass
class Run:
    """One finished run of the action."""

    code: int
    log: str
    outputs: dict[str, str]
    summary: str
    report: Path


@dataclass
class Runner:
    """Starts the action in fresh checkouts, all with one cache as `actions/cache` gives it."""

    home: Path
    hub: FakeGitHub
    origin: Origin
    cache: Path
    runs: int = 0
    environment: dict[str, str] = field(default_factory=dict)

    def run(
        self,
        event: str,
        payload: Payload,
        *,
        sha: str,
        ref: str,
        token: str,
        run_id: int,
        writes: bool = True,
    ) -> Run:
        """The jobs of a workflow in their order: one measures without a token, and another reports or stores.

        `writes`: False for the run of a fork, which measures alone.
        """
        place = {"sha": sha, "ref": ref}
        if event == "workflow_run":
            return self.job(
                event, payload, **place, token=token, run_id=run_id, command="post"
            )
        measured = self.job(
            event,
            payload,
            **place,
            run_id=run_id,
            command="measure",
            out="code-size-measured",
        )
        if not writes:
            return measured
        action_inputs = {
            "command": "store" if event == "push" else "report",
            "measured": str(measured.report),
            "outcome": "failure" if measured.code else "success",
        }
        ran = self.job(
            event, payload, **place, token=token, run_id=run_id, **action_inputs
        )
        return replace(ran, log=measured.log + ran.log)

    def job(
        self,
        event: str,
        payload: Payload,
        *,
        sha: str,
        ref: str,
        run_id: int,
        token: str = "",
        **inputs: str,
    ) -> Run:
        """The action, once, as a job of its own with a shallow checkout of `sha`."""
        self.runs += 1
        home = self.home / f"run-{self.runs}"
        workspace = home / "workspace"
        self.origin.checkout(workspace, sha)
        (home / "event.json").write_text(json.dumps(payload))
        action_inputs = {
            "github-token": token,
            "cache": str(self.cache),
            "out": "code-size-report",
            **inputs,
        }
        variables = runner_variables(
            home,
            hub=self.hub,
            name=event,
            sha=sha,
            ref=ref,
            run_id=run_id,
            workspace=workspace,
        )
        run = run_action(
            home,
            workspace,
            inputs=action_inputs,
            variables=variables | self.environment,
        )
        assert not token or token not in run.log
        assert not token or not any(
            token.encode() in path.read_bytes() for path in run.report.glob("*")
        )
        return run


def run_action(
    home: Path,
    workspace: Path,
    *,
    inputs: Mapping[str, str],
    variables: Mapping[str, str],
) -> Run:
    """Run the action as a process; its event, outputs and summary are files in `home`.

    Args:
        home: the folder of this run.
        workspace: the checkout in which it starts.
        inputs: the action's inputs, by name.
        variables: what the runner sets besides.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GITHUB_", "INPUT_"))
    }
    environment |= input_variables(inputs)
    environment |= {"PYTHONPATH": str(REPOSITORY), **variables}
    done = subprocess.run(
        [sys.executable, "-m", "bot", "action"],
        cwd=workspace,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    summary = home / "summary.md"
    return Run(
        code=done.returncode,
        log=done.stdout + done.stderr,
        outputs=outputs(home / "output"),
        summary=summary.read_text() if summary.exists() else "",
        report=workspace / inputs.get("out", "code-size-report"),
    )


def outputs(path: Path) -> dict[str, str]:
    """What a step wrote to `$GITHUB_OUTPUT`: `key=value`, or `key<<DELIMITER` up to a line that is the delimiter."""
    values: dict[str, str] = {}
    lines = path.read_bytes().decode().split("\n") if path.exists() else []
    while lines:
        line = lines.pop(0)
        if heredoc := re.fullmatch(r"([^=<]+)<<(.+)", line):
            end = lines.index(heredoc[2])
            values[heredoc[1]] = "\n".join(lines[:end])
            del lines[: end + 1]
        elif line:
            key, _, values[key] = line.partition("=")
    return values
