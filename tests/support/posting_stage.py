"""A stage for the trusted half: a GitHub over HTTP, a checkout of the default branch, artifacts made by hand."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from action_stage import News, Ran, files_with, run_in_process
from fake_github import FakeGitHub
from github_runner import (
    LATE,
    MARKER,
    input_variables,
    run_event,
    runner_variables,
)
from json_texts import to_json
from replacing import replace
from strategies import plain_snapshot

from bot.cli.showing import TerminalShow
from bot.config.events import read_inputs, run_context
from bot.core.baseline import Entry
from bot.core.comment_state import CommentState, decode
from bot.core.report import Report
from bot.core.snapshot import Snapshot, SourceInfo
from bot.github.posting import post
from bot.github.services import Services, open_services
from bot.store.directory import DirectoryStore
from bot.study.resources import Progress
from bot.system.cancel import Cancel
from bot.system.hub import connect

BASE, HEAD, MERGE, OLDER, FOREIGN = (letter * 40 for letter in "bacdf")
NUMBER = 7
RUN = 500
WRITER = {
    "contents": "read",
    **dict.fromkeys(("issues", "pull_requests", "checks"), "write"),
    "actions": "read",
}
OURS = "github-actions[bot]"
CONFIG = 'schema: code-size-config/1\nbaseline: {store: directory, directory: "%s"}\n'


def side(sha: str | None, size_bytes: int = 100_000, **changes: Any) -> Snapshot:
    """One model on one target."""
    snapshot = plain_snapshot(
        ("bert", "vmvx", "ok"), **{"source": SourceInfo(sha), **changes}
    )
    cells = [
        replace(
            c,
            metrics={**c.metrics, "artifact_bytes": size_bytes},
            artifact_digest=f"{size_bytes:064x}",
        )
        for c in snapshot.cells
    ]
    return replace(snapshot, cells=tuple(cells)) if "cells" not in changes else snapshot


def zipped(
    files: Mapping[str, str | bytes], packing: int = zipfile.ZIP_DEFLATED
) -> bytes:
    """The files as upload-artifact zips them."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", packing) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def sides(base: Snapshot, head: Snapshot, **named_files: str | bytes) -> bytes:
    """An artifact of two snapshots; `named_files` by file name with `_` for the dot."""
    other_files = {name.replace("_", "."): data for name, data in named_files.items()}
    return zipped(
        {"base.json": to_json(base), "head.json": to_json(head), **other_files}
    )


@dataclass
class Printed(News):
    """What a run printed; the report is printed as the command line prints it."""

    def report(self, report: Report, files: Sequence[Path]) -> None:
        super().report(report, files)
        TerminalShow(quiet=False).report(report, files)

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        raise AssertionError("the trusted half measures nothing")
        yield


@dataclass
class Stage:
    """Pull request 7 of a fork, its finished run 500, and what happens to them."""

    home: Path
    hub: FakeGitHub
    token: str
    runs: int = 0

    @classmethod
    @contextmanager
    def opened(cls, home: Path) -> Iterator[Stage]:
        """A stage whose traffic is checked at its end."""
        with FakeGitHub("octo/repo") as hub:
            hub.add_user("alice", permission="write")
            hub.add_user("mallory", permission="read")
            stage = cls(home, hub, hub.token(permissions=WRITER))
            stage.workspace.mkdir()
            stage.configure()
            hub.add_commit(OLDER)
            hub.add_commit(BASE, [OLDER])
            hub.set_branch("main", BASE)
            hub.add_commit(HEAD, [BASE])
            stage.pull()
            yield stage
            hub.assert_contract()
            files = [path for path in home.rglob("*") if path.is_file()]
            assert not [
                path for path in files if stage.token.encode() in path.read_bytes()
            ]

    @property
    def workspace(self) -> Path:
        return self.home / "workspace"

    @property
    def store(self) -> DirectoryStore:
        return DirectoryStore(self.home / "store")

    def configure(self, text: str = "") -> None:
        """The configuration of the default branch."""
        (self.workspace / "code-size.yml").write_text(
            CONFIG % (self.home / "store") + text
        )

    def pull(self, head: str = HEAD, merge: str = MERGE, **fields: Any) -> None:
        """The pull request at this head."""
        self.hub.add_commit(merge, [BASE, head])
        pull_fields = {
            "merge_sha": merge,
            "base_sha": BASE,
            "head_repo": "mallory/repo",
            **fields,
        }
        self.hub.add_pull(NUMBER, head, **pull_fields)

    def save(self, snapshot: Snapshot) -> None:
        """Into the store, as the default branch's own run does."""
        assert self.store.save(
            Entry("default", snapshot.source.sha or "", "e" * 64), snapshot
        )

    def upload(self, data: bytes, run_id: int = RUN, **fields: Any) -> None:
        self.hub.add_artifact(run_id, "code-size-measured-default-test", data, **fields)

    def grown(self, **fields: Any) -> None:
        """A run that found 1,900 % more code."""
        self.upload(sides(side(BASE), side(MERGE, 2_000_000)), **fields)

    def post(
        self,
        head: str = HEAD,
        run_id: int = RUN,
        conclusion: str = "success",
        fork: str = "mallory/repo",
        started_at: str = LATE,
        **inputs: str,
    ) -> Ran:
        """The run that posts what run `run_id` measured for `head`."""
        return self.run(
            post,
            "workflow_run",
            run_event(
                run_id,
                head=head,
                conclusion=conclusion,
                fork=fork,
                started_at=started_at,
            ),
            **inputs,
        )

    def run(
        self,
        story: Callable[[Services], int],
        event: str,
        payload: Mapping[str, Any],
        **inputs: str,
    ) -> Ran:
        """One story in this process, with a connection that does not wait long."""
        self.runs += 1
        home = self.home / f"run-{self.runs}"
        home.mkdir()
        variables = runner_variables(
            home,
            hub=self.hub,
            name=event,
            sha=BASE,
            ref="refs/heads/main",
            run_id=900 + self.runs,
            workspace=self.workspace,
        )
        variables.pop("GITHUB_EVENT_PATH")
        environ = {
            **variables,
            **input_variables(
                {"github_token": self.token, "out": str(home / "out"), **inputs}
            ),
        }
        context = run_context(environ, payload)
        news = Printed()

        def acted() -> int:
            on_runner = patch.dict(os.environ, {"GITHUB_ACTIONS": "true"})
            with (
                on_runner,
                open_services(
                    environ,
                    context=context,
                    inputs=read_inputs(environ),
                    show=news,
                    cancel=Cancel(),
                ) as services,
            ):
                hub = connect(
                    self.hub.url,
                    self.token,
                    "octo/repo",
                    retries=1,
                    max_wait_seconds=2,
                    backoff_seconds=0.01,
                )
                return story(replace(services, hub=hub))

        ran = run_in_process(
            acted, home=home, workspace=self.workspace, out=home / "out", news=news
        )
        assert self.token not in ran.error + ran.said + ran.printed
        assert "\n" not in ran.error
        assert not files_with(self.token, self.home)
        return ran

    @property
    def bodies(self) -> list[str]:
        """Of all comments by us."""
        return [
            str(comment["body"])
            for comment in self.hub.comments(NUMBER)
            if comment["user"]["login"] == OURS
        ]

    @property
    def body(self) -> str:
        """The report's one comment."""
        (body,) = [body for body in self.bodies if body.startswith(MARKER)]
        return body

    @property
    def state(self) -> CommentState:
        state = decode(self.body)
        assert state is not None
        return state

    @property
    def conclusions(self) -> list[str]:
        return [str(check["conclusion"]) for check in self.hub.check_runs]

    @property
    def writes(self) -> list[str]:
        """What was asked of GitHub beside reading."""
        return [
            f"{exchange['method']} {exchange['path']}"
            for exchange in self.hub.traffic
            if exchange["method"] != "GET"
        ]
