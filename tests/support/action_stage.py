"""A stage for the action in this process: a repository, fake compilers, a GitHub over HTTP, and the events on it."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from fake_compiler import TEMPLATES, FakeCompiler, install, install_native
from fake_github import FakeGitHub
from github_runner import (
    MARKER,
    Origin,
    event,
    git,
    input_variables,
    outputs,
    pull_event,
    push_event,
    report_zip,
    run_event,
    runner_variables,
)

from bot.cli.commented import read_command
from bot.core.report import Report
from bot.core.snapshot import Snapshot
from bot.core.snapshot_json import from_json
from bot.errors import BotError
from bot.github.action import act
from bot.store.directory import DirectoryStore
from bot.study.resources import Progress
from bot.system.cancel import Cancel

MODEL = "// model {}\nfunc.func @main()\n"
Files = Mapping[str, str | None]
WITH_TOKEN = ("prepare", "report", "store", "post", "pages", "weekly", "gate")
"""The commands whose jobs get a token. A job that may compile gets none."""


class Silence:
    """Progress that nobody looks at."""

    def __getattr__(self, name: str) -> Any:
        """A method of any name that does nothing."""
        return lambda *_, **__: None


@dataclass
class News:
    """What a run printed and reported."""

    said: list[str] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)

    def say(self, line: str) -> None:
        self.said.append(line)

    def report(self, report: Report, _files: Sequence[Path]) -> None:
        self.reports.append(report)

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        yield Silence()


def files_with(word: str, home: Path) -> list[Path]:
    """Return the files below `home` that hold `word`.

    Links and files of 4 MiB or more, such as a compiler's libraries, are skipped.
    """
    files = (
        path for path in home.rglob("*") if path.is_file() and not path.is_symlink()
    )
    return [
        path
        for path in files
        if path.stat().st_size < 1 << 22 and word.encode() in path.read_bytes()
    ]


@dataclass
class Ran:
    """One run of the action; `error` is the line of the BotError that ended it."""

    code: int
    error: str
    news: News
    printed: str
    outputs: dict[str, str]
    summary: str
    out: Path

    @property
    def said(self) -> str:
        return "\n".join(self.news.said)

    @property
    def report(self) -> Report:
        (report,) = self.news.reports
        return report

    @property
    def states(self) -> dict[str, str]:
        """`model on target` → state, for each build that at least one side has."""
        return {
            str(delta.key): delta.state
            for delta in self.report.deltas
            if delta.base or delta.head
        }

    def snapshot(self, name: str) -> Snapshot:
        return from_json((self.out / name).read_text())


def run_in_process(
    act: Callable[[], int], *, home: Path, workspace: Path, out: Path, news: News
) -> Ran:
    """Run one call as the action would, in this process.

    Args:
        act: returns the exit code.
        home: has the run's outputs and summary.
        workspace: the checkout in which it runs.
        out: where it writes the report.
        news: what it prints and reports.
    """
    printed = io.StringIO()
    back = Path.cwd()
    os.chdir(workspace)
    try:
        with redirect_stdout(printed):
            code = act()
        error = ""
    except BotError as problem:
        code = problem.exit_code
        error = problem.line
    finally:
        os.chdir(back)
    summary = home / "summary.md"
    return Ran(
        code=code,
        error=error,
        news=news,
        printed=printed.getvalue(),
        outputs=outputs(home / "output"),
        summary=summary.read_text() if summary.exists() else "",
        out=out,
    )


@dataclass
class Stage:
    """Everything a run needs; `configuration` and `models` are what main is made of."""

    home: Path
    hub: FakeGitHub
    origin: Origin
    token: str
    runs: int = 0
    before_act: Callable[[], object] = lambda: None  # runs once the checkout is there
    after_measuring: Callable[[], object] = lambda: None  # runs between the two jobs
    # what the runner sets besides
    environ: dict[str, str] = field(default_factory=dict)
    cancel: Callable[[], Cancel] = Cancel

    @classmethod
    def create(cls, home: Path, hub: FakeGitHub) -> Stage:
        hub.add_user("alice", permission="write")
        return cls(home, hub, Origin.create(home), hub.token())

    def compiler(
        self,
        name: str,
        rules: Sequence[dict[str, str]] = (),
        version: str = "3.13.0rc1",
    ) -> FakeCompiler:
        """A fake compiler called `name`; its SPEC is `spec(name)`."""
        fake = install(self.home / name, rules, version=version, templates=TEMPLATES)
        install_native(self.home / name / "bin" / "iree-compile", fake)
        return fake

    def spec(self, name: str) -> str:
        return str(self.home / name / "bin" / "iree-compile")

    def config(self, fake: str = "one", **keys: Any) -> str:
        """A configuration of one target, with baselines in a directory.

        A key that is None is left out.
        """
        plain = {
            "schema": "code-size-config/1",
            "compiler": {"head": self.spec(fake)},
            "models": ["models/*.mlir"],
            "targets": ["vmvx"],
            "baseline": {"store": "directory", "directory": str(self.home / "store")},
            **keys,
        }
        return yaml.safe_dump(
            {key: value for key, value in plain.items() if value is not None},
            sort_keys=False,
        )

    def main(self, files: Files | None = None, **keys: Any) -> str:
        """The first commit of main: a configuration and model `a`."""
        first = {
            "code-size.yml": self.config(**keys),
            "models/a.mlir": MODEL.format("a"),
            **(files or {}),
        }
        return self.origin.push_main("The suite", first)

    @property
    def store(self) -> DirectoryStore:
        return DirectoryStore(self.home / "store")

    def run(
        self,
        event: str,
        payload: Mapping[str, Any],
        sha: str,
        *,
        ref: str = "",
        chosen: str = "auto",
        **inputs: str,
    ) -> Ran:
        """The action, once, as the one job of a workflow, in a checkout of `sha` alone.

        A job that may compile gets no token.
        """
        command = inputs.get("command", "auto") if chosen == "auto" else chosen
        if command not in WITH_TOKEN and event != "workflow_run":
            inputs = {**inputs, "github_token": ""}
        self.runs += 1
        home = self.home / f"run-{self.runs}"
        workspace = home / "workspace"
        out = home / "out"
        workspace.mkdir(parents=True)
        if sha:
            self.origin.checkout(workspace, sha)
        (home / "event.json").write_text(json.dumps(payload))
        action_inputs = {
            "github_token": self.token,
            "cache": str(self.home / "cache"),
            "out": str(out),
            "jobs": "2",
            **inputs,
        }
        variables = (
            runner_variables(
                home,
                hub=self.hub,
                name=event,
                sha=sha,
                ref=ref,
                run_id=100 + self.runs,
                workspace=workspace,
            )
            if event
            else {}
        )
        environ = {**variables, **input_variables(action_inputs), **self.environ}
        news = News()
        if command not in ("report", "store"):
            self.before_act()

        def acted() -> int:
            return act(
                environ,
                command=chosen,
                show=news,
                cancel=self.cancel(),
                read_command=read_command,
            )

        ran = run_in_process(acted, home=home, workspace=workspace, out=out, news=news)
        random_name = "code-size-bot-tree-"
        assert random_name not in ran.error + ran.summary + ran.said
        assert not list((workspace / ".git" / "worktrees").glob("*"))
        assert self.token not in ran.error + ran.summary + ran.said + ran.printed
        assert not files_with(self.token, self.home)
        return ran

    def through(
        self,
        follower: str,
        event: str,
        payload: Mapping[str, Any],
        sha: str,
        *,
        ref: str,
        **inputs: str,
    ) -> Ran:
        """The jobs of a workflow in their order: one measures, and the follower takes its files, with its own checkout.

        An input `command` names one job alone; where `github_token` is empty, there is
        no follower.
        """
        token = inputs.pop("github_token", self.token)
        if inputs.get("command", "auto") != "auto":
            return self.run(event, payload, sha, ref=ref, **inputs)
        measured = self.run(
            event, payload, sha, ref=ref, **{**inputs, "command": "measure"}
        )
        if not token or "nothing to do" in measured.said:
            return measured
        self.after_measuring()
        workspace = self.home / f"run-{self.runs}" / "workspace"
        shared_inputs = {
            name: value
            for name, value in inputs.items()
            if name not in ("parts", "plan", "jobs", "cache")
        }
        handed = workspace / inputs["out"] if "out" in inputs else measured.out
        outcome = "failure" if measured.code else "success"
        reported = self.run(
            event,
            payload,
            sha,
            ref=ref,
            **{
                **shared_inputs,
                "command": follower,
                "measured": str(handed),
                "outcome": outcome,
                "github_token": token,
            },
        )
        news = News([*measured.news.said, *reported.news.said], reported.news.reports)
        return replace(reported, news=news, printed=measured.printed + reported.printed)

    # --- events ---

    def push(self, sha: str, **inputs: str) -> Ran:
        return self.through(
            "store", "push", push_event(sha), sha, ref="refs/heads/main", **inputs
        )

    def dispatch(self, sha: str = "", **inputs: str) -> Ran:
        sha = sha or git(self.origin.bare, "rev-parse", "main")
        payload = event("workflow_dispatch.main")
        return self.through(
            "report", "workflow_dispatch", payload, sha, ref="refs/heads/main", **inputs
        )

    def pull(
        self,
        tip: str,
        merge: str,
        /,
        *,
        fork: bool = False,
        number: int = 1,
        is_locked: bool = False,
        **inputs: str,
    ) -> Ran:
        payload = pull_event(number, tip, "mallory/repo" if fork else "octo/repo")
        payload["pull_request"].update(locked=is_locked)
        action_inputs = {"github_token": "", **inputs} if fork else inputs
        return self.through(
            "report",
            "pull_request",
            payload,
            merge,
            ref=f"refs/pull/{number}/merge",
            **action_inputs,
        )

    def fork_pull(
        self, files: Files, compiler: str, line: Sequence[str], config: str = ""
    ) -> tuple[Ran, Ran]:
        """A fork's run, and the trusted half after it, which has its artifact.

        `line` is main, oldest first.

        `config`: the input of the fork's own run, whose workflow it may change.
        """
        head, merge = self.open_pull(files)
        self.hub.add_pull(
            1, head, merge_sha=merge, base_sha=line[-1], head_repo="mallory/repo"
        )
        measured = self.pull(head, merge, fork=True, head=compiler, config=config)
        assert measured.code == 0 and self.comments() == [], measured.error
        for older, sha in zip(["", *line], [*line, head], strict=True):
            self.hub.add_commit(sha, [older] if older else [])
        self.hub.add_commit(merge, [line[-1], head])
        self.hub.set_branch("main", line[-1])
        self.hub.add_artifact(
            500, "code-size-measured-default-test", report_zip(measured.out)
        )
        return measured, self.run(
            "workflow_run", run_event(500, head), line[-1], ref="refs/heads/main"
        )

    def open_pull(self, files: Files, number: int = 1) -> tuple[str, str]:
        """A commit on the pull request's branch, and GitHub's merge of it."""
        head, merge = self.origin.push_pull(number, files)
        base = git(self.origin.bare, "rev-parse", "main")
        self.hub.add_pull(number, head, merge_sha=merge, base_sha=base)
        return head, merge

    def comments(self, marker: str = MARKER, number: int = 1) -> list[str]:
        bodies = [str(comment["body"]) for comment in self.hub.comments(number)]
        return [body for body in bodies if body.startswith(marker)]

    @property
    def conclusions(self) -> list[str]:
        return [str(check["conclusion"]) for check in self.hub.check_runs]
