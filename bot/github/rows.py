"""Describe the fields of GitHub's answers that the program reads, as typed rows.

"REST API reference" of GitHub's documentation describes them. An answer that does not
have them, or has other types, is an error of `bot.system.hub`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from bot.core.record import Small
from bot.system.hub import Account

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""A moment with its time zone, so that any two can be compared."""


class Repository(Small, frozen=True):
    """The repository of a branch."""

    full_name: str


class Branch(Small, frozen=True):
    """The head or the base of a pull request."""

    ref: str
    sha: str
    repo: Repository | None = None  # None where the fork was deleted


class PullRequest(Small, frozen=True):
    """A pull request."""

    number: int
    state: str
    title: str
    head: Branch
    base: Branch
    locked: bool
    created_at: Moment
    merged_at: Moment | None = None
    merge_commit_sha: str | None = None

    @property
    def head_repository(self) -> str:
        """Return `owner/name` of the repository that it comes from.

        Empty if the fork was deleted.
        """
        if self.head.repo:
            return self.head.repo.full_name
        return ""


class Comment(Small, frozen=True):
    """A comment on an issue or a pull request."""

    id: int
    html_url: str
    created_at: Moment
    updated_at: Moment
    body: str | None = None
    user: Account | None = None  # None where the account is gone


class Label(Small, frozen=True):
    """A label of an issue or a pull request."""

    name: str


class Event(Small, frozen=True):
    """An event of an issue or a pull request."""

    id: int
    event: str
    created_at: Moment
    actor: Account | None = None  # None where the account is gone
    label: Label | None = None


class Issue(Small, frozen=True):
    """An issue."""

    number: int
    state: str
    title: str
    html_url: str
    body: str | None = None
    user: Account | None = None  # None where the account is gone


class CheckOutput(Small, frozen=True):
    """What a check run shows."""

    annotations_count: int


class WrittenCheck(Small, frozen=True):
    """A check run as GitHub has it."""

    id: int
    output: CheckOutput
    external_id: str | None = None


class CheckRuns(Small, frozen=True):
    """A page of the check runs of a commit."""

    check_runs: list[WrittenCheck]


class Artifact(Small, frozen=True):
    """An artifact of a run."""

    id: int
    name: str
    size_in_bytes: int
    expired: bool


class Artifacts(Small, frozen=True):
    """A page of the artifacts of a run."""

    artifacts: list[Artifact]


class Parent(Small, frozen=True):
    """A parent of a commit."""

    sha: str


class Commit(Small, frozen=True):
    """A commit."""

    sha: str
    parents: list[Parent]


class Comparison(Small, frozen=True):
    """How a commit is related to another one."""

    status: str


class Permission(Small, frozen=True):
    """What a user may do in the repository."""

    permission: str
