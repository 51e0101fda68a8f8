"""What the fake GitHub knows about its one repository; ids and time are counters, so that runs are repeatable."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

_START = datetime(2026, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class Token:
    """Who a token is; `kind` is "installation" (the token of a workflow) or "user"."""

    login: str
    kind: str
    permissions: Mapping[str, str]

    def may_write(self, *scopes: str) -> bool:
        return any(self.permissions.get(scope) == "write" for scope in scopes)

    def may_read(self, *scopes: str) -> bool:
        return any(self.permissions.get(scope) in ("read", "write") for scope in scopes)


@dataclass(slots=True)
class Pull:
    """A pull request; `head_repo` None is a deleted fork, `merge_sha` None a merge that conflicts."""

    number: int
    head_sha: str
    base_sha: str
    base_ref: str
    head_repo: str | None
    head_branch: str
    state: str
    merge_sha: str | None
    login: str
    title: str
    files: tuple[str, ...]
    created_at: str
    merged_at: str | None = None


@dataclass(slots=True)
class Comment:
    """A comment; `issue` is the number of the issue or pull request that it stands under."""

    id: int
    issue: int
    login: str
    body: str
    created_at: str
    updated_at: str


@dataclass(frozen=True, slots=True)
class LabelEvent:
    """A label that was set or taken away (`event` is "labeled" or "unlabeled"), or "base_ref_changed", without one."""

    id: int
    issue: int
    label: str
    login: str
    event: str
    created_at: str


@dataclass(frozen=True, slots=True)
class Artifact:
    """An artifact of a run; `same_repository` is False for a run of a fork's pull request."""

    id: int
    run_id: int
    name: str
    zip_bytes: bytes
    head_sha: str
    head_branch: str
    same_repository: bool
    expired: bool
    created_at: str


@dataclass(slots=True)
class Run:
    """A workflow run; `path` is the workflow's file."""

    id: int
    head_sha: str
    event: str
    head_branch: str
    head_repo: str
    status: str
    conclusion: str | None
    path: str
    name: str
    login: str
    pull_numbers: tuple[int, ...]
    run_attempt: int
    created_at: str


@dataclass(slots=True)
class CheckRun:
    """A check run; `fields` are the request's, merged over all calls, without the annotations."""

    id: int
    login: str
    fields: dict[str, Any]
    annotations: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class State:
    """Everything; the server's lock guards it."""

    repo: str
    private: bool
    url: str = ""
    blob_url: str = ""
    clone: Path | None = None
    truncated: bool = False
    users: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, Token] = field(default_factory=dict)
    titles: dict[int, str] = field(default_factory=dict)
    pulls: dict[int, Pull] = field(default_factory=dict)
    comments: dict[int, Comment] = field(default_factory=dict)
    labels: dict[int, list[str]] = field(default_factory=dict)
    events: list[LabelEvent] = field(default_factory=list)
    commits: dict[str, tuple[str, ...]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    artifacts: dict[int, Artifact] = field(default_factory=dict)
    runs: dict[int, Run] = field(default_factory=dict)
    checks: dict[int, CheckRun] = field(default_factory=dict)
    reactions: list[dict[str, Any]] = field(default_factory=list)
    reruns: list[int] = field(default_factory=list)
    dispatches: list[dict[str, Any]] = field(default_factory=list)
    _ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1001))
    _seconds: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def next_id(self) -> int:
        return next(self._ids)

    def now(self) -> str:
        """A moment later than all before."""
        return (_START + timedelta(seconds=next(self._seconds))).strftime("%Y-%m-%dT%H:%M:%SZ")

    @property
    def root(self) -> str:
        return f"{self.url}/repos/{self.repo}"

    def add_comment(self, issue: int, login: str, body: str) -> Comment:
        self.users.setdefault(login, "read")
        self.titles.setdefault(issue, f"Issue {issue}")
        moment = self.now()
        comment = Comment(self.next_id(), issue, login, body, moment, moment)
        self.comments[comment.id] = comment
        return comment

    def change_label(self, issue: int, label: str, login: str, event: str) -> int | None:
        """`event` is "labeled" or "unlabeled"; the event's id, or None where nothing changes."""
        present = self.labels.setdefault(issue, [])
        if (label in present) == (event == "labeled"):
            return None
        if event == "labeled":
            present.append(label)
        else:
            present.remove(label)
        self.events.append(LabelEvent(self.next_id(), issue, label, login, event, self.now()))
        return self.events[-1].id

    def commit_of(self, ref: str) -> str | None:
        """The SHA that a SHA, branch or `owner:branch` names."""
        name = ref.rpartition(":")[2].removeprefix("refs/").removeprefix("heads/")
        sha = self.branches.get(name, name)
        return sha if sha in self.commits else None

    def ancestors(self, sha: str) -> list[str]:
        """`sha` and all its known ancestors, nearest first."""
        seen, waiting = {sha: None}, deque([sha])
        while waiting:
            for parent in self.commits.get(waiting.popleft(), ()):
                if parent not in seen:
                    seen[parent] = None
                    waiting.append(parent)
        return list(seen)

    def add_commit(self, sha: str, parents: Sequence[str]) -> None:
        self.commits[sha] = tuple(parents)
