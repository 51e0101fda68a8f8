"""What the fake GitHub knows about its one repository.

Ids and time are counters, so that runs are repeatable.
"""

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

    def may(self, scopes: Sequence[str], *levels: str) -> bool:
        return any(self.permissions.get(scope) in levels for scope in scopes)


@dataclass(slots=True)
class Pull:
    """A pull request; `head_repo` None is a deleted fork, `merge_sha` None a merge that conflicts."""

    number: int
    head_sha: str
    base_ref: str
    base_sha: str
    head_repo: str | None
    head_branch: str = "topic"
    state: str = "open"
    merge_sha: str | None = None
    login: str = "octocat"
    title: str = "A change"
    created_at: str = "2026-01-01T00:00:00Z"
    locked: bool = False
    merged_at: str | None = None


@dataclass(slots=True)
class Issue:
    """An issue that is no pull request."""

    number: int
    login: str
    title: str
    body: str
    created_at: str
    state: str = "open"
    state_reason: str | None = None


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
    """An artifact of a workflow run."""

    id: int
    run_id: int
    created_at: str
    name: str
    zip_bytes: bytes
    expired: bool = False


@dataclass(slots=True)
class CheckRun:
    """A check run; `fields` are the request's, merged over all calls, without the annotations."""

    id: int
    fields: dict[str, Any]
    annotations: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class State:
    """Everything; the server's lock guards it."""

    repo: str
    url: str = ""
    blob_url: str = ""
    has_issues: bool = True
    clone: Path | None = None
    users: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, Token] = field(default_factory=dict)
    pulls: dict[int, Pull] = field(default_factory=dict)
    issues: dict[int, Issue] = field(default_factory=dict)
    comments: dict[int, Comment] = field(default_factory=dict)
    labels: dict[int, list[str]] = field(default_factory=dict)
    events: list[LabelEvent] = field(default_factory=list)
    commits: dict[str, tuple[str, ...]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    artifacts: dict[int, Artifact] = field(default_factory=dict)
    checks: dict[int, CheckRun] = field(default_factory=dict)
    _ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1001))
    _seconds: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def next_id(self) -> int:
        return next(self._ids)

    def now(self) -> str:
        """A moment later than all before."""
        return (_START + timedelta(seconds=next(self._seconds))).strftime(
            "%Y-%m-%dT%H:%M:%SZ"
        )

    @property
    def root(self) -> str:
        return f"{self.url}/repos/{self.repo}"

    def add_comment(self, issue: int, login: str, body: str) -> Comment:
        self.users.setdefault(login, "read")
        moment = self.now()
        comment = Comment(
            id=self.next_id(),
            issue=issue,
            login=login,
            body=body,
            created_at=moment,
            updated_at=moment,
        )
        self.comments[comment.id] = comment
        return comment

    def add_issue(self, login: str, title: str, body: str) -> Issue:
        """An open issue; issues and pull requests share their numbers."""
        self.users.setdefault(login, "read")
        number = max([0, *self.issues, *self.pulls]) + 1
        issue = self.issues[number] = Issue(
            number=number, login=login, title=title, body=body, created_at=self.now()
        )
        return issue

    def commit_of(self, ref: str) -> str | None:
        """The SHA that a SHA, branch or `owner:branch` names."""
        name = ref.rpartition(":")[2].removeprefix("refs/").removeprefix("heads/")
        sha = self.branches.get(name, name)
        return sha if sha in self.commits else None

    def ancestors(self, sha: str) -> list[str]:
        """`sha` and all its known ancestors, nearest first."""
        ancestors = {sha: None}
        waiting = deque([sha])
        while waiting:
            for parent in self.commits.get(waiting.popleft(), ()):
                if parent not in ancestors:
                    ancestors[parent] = None
                    waiting.append(parent)
        return list(ancestors)

    def add_commit(
        self, sha: str | None, parents: Sequence[str], anew: bool = True
    ) -> None:
        """Its parents are set `anew`, or only where it is not known."""
        if sha and (anew or sha not in self.commits):
            self.commits[sha] = tuple(parent for parent in parents if parent != sha)
