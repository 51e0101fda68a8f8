"""A stage for commands in a comment: a pull request, people, and the jobs of a comment."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from action_stage import MODEL, Files, Ran, Stage
from fake_github import FakeGitHub
from github_runner import MARKER, comment_event, git

GROWN = MODEL.format("a") + "// longer\n" * 400
Payload = dict[str, Any]


@dataclass
class Commands:
    """Comments on pull request 1, each with the jobs that it starts."""

    stage: Stage
    ran: dict[str, Ran] = field(default_factory=dict)  # the jobs of the last comment
    # job → all that it asked GitHub for
    traffic: dict[str, list[Payload]] = field(default_factory=dict)
    # runs between the gate and the job that measures
    after_gate: Callable[[], object] = lambda: None

    @property
    def hub(self) -> FakeGitHub:
        return self.stage.hub

    @property
    def main(self) -> str:
        return git(self.stage.origin.bare, "rev-parse", "main")

    @property
    def gate(self) -> Ran:
        return self.ran["gate"]

    def pull(self, files: Files, *, fork: bool = False) -> tuple[str, str]:
        """A new state of the pull request; its head and its merge commit."""
        head, merge = self.stage.open_pull(files)
        repository, login = (
            ("mallory/repo", "mallory") if fork else ("octo/repo", "octocat")
        )
        self.hub.add_pull(
            1,
            head,
            head_repo=repository,
            merge_sha=merge,
            base_sha=self.main,
            login=login,
        )
        return head, merge

    def written(self, body: str, by: str = "alice") -> tuple[int, Payload]:
        """A comment, and its event."""
        number = self.hub.add_comment(1, by, body)
        (comment,) = [
            comment for comment in self.hub.comments(1) if comment["id"] == number
        ]
        return number, comment_event(comment, 1)

    def start(self, payload: Payload) -> list[str]:
        """Run the jobs of the workflow; the comments that the bot wrote or changed."""
        before = {comment["id"]: comment["body"] for comment in self.hub.comments(1)}
        self.ran = {}
        gate = self.job("gate", payload, self.main)
        self.after_gate()
        command = gate.outputs.get("asked", "")
        if command:
            merge = gate.outputs["sha"]
            measure = self.job("measure", payload, merge, asked=command)
            outcome = "failure" if measure.code else "success"
            self.job(
                "report",
                payload,
                merge,
                asked=command,
                measured=str(measure.out),
                outcome=outcome,
            )
        return [
            str(comment["body"])
            for comment in self.hub.comments(1)
            if before.get(comment["id"]) != comment["body"]
        ]

    def job(self, name: str, payload: Payload, sha: str, **inputs: str) -> Ran:
        """Run one job, in a checkout of `sha`."""
        start = len(self.hub.traffic)
        self.ran[name] = self.stage.run(
            "issue_comment", payload, sha, ref="refs/heads/main", command=name, **inputs
        )
        self.traffic.setdefault(name, []).extend(self.hub.traffic[start:])
        return self.ran[name]

    def say(self, body: str, by: str = "alice") -> list[str]:
        """Write a comment and run its jobs; the comments that the bot wrote or changed."""
        return self.start(self.written(body, by)[1])

    @property
    def reports(self) -> list[str]:
        return self.stage.comments(MARKER)

    def conclusions(self, head: str) -> list[str]:
        """Of the check runs of a commit, in their order."""
        return [
            str(check["conclusion"])
            for check in self.hub.check_runs
            if check["head_sha"] == head
        ]


@contextmanager
def commands_of(home: Path, **keys: Any) -> Iterator[Commands]:
    """A repository whose main has model `a`; `keys`: of its configuration."""
    with FakeGitHub("octo/repo") as hub:
        stage = Stage.create(home, hub)
        hub.add_user("mallory", permission="read")
        stage.compiler("one")
        stage.main(**{"states": {"changed": "fail"}, **keys})
        yield Commands(stage)
        hub.assert_contract()


def line_of(body: str) -> str:
    """The text of an answer without its hidden marker."""
    marker, _, text = body.partition("\n")
    assert re.fullmatch(r"<!-- code-size-bot:answer\.[0-9]+ -->", marker)
    return text.strip()
