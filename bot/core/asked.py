"""Commands in a comment: as typed, and as checked and pinned for later jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from bot.core.record import Amount, Record, Small

PREFIX = "/code-size"
Verb = Literal["compare", "lab", "rerun", "accept", "help"]
COMMANDS: Mapping[Verb, tuple[str, str]] = {
    "compare": (
        "compare BASE HEAD [--model GLOB] [--target GLOB] [--flags FLAGS]",
        "compares any two sides, and reports in a new comment",
    ),
    "lab": (
        "lab NAME [--model GLOB] [--target GLOB]",
        "runs an experiment of the lab, and answers with its tables in a new comment",
    ),
    "rerun": (
        "rerun",
        "measures this pull request again, and reports in its comment and check",
    ),
    "accept": (
        "accept REASON",
        "accepts the failing findings in the comment, and keeps the reason",
    ),
    "help": ("help", "shows these commands"),
}
"""Command → how it is written after the prefix, and what it does."""
ANSWERED_APART: frozenset[Verb] = frozenset({"compare", "lab"})
"""The commands whose result is a new comment, not the pull request's report."""

SIDES = ("base", "head")
"""Words for the two commits of the pull request, in place of a SPEC."""
_SHA = r"\A[0-9a-f]{40}\Z"
Sha = Annotated[str, msgspec.Meta(pattern=_SHA)]


class Comment(Small, frozen=True):
    """A comment on a pull request that begins with a command."""

    id: int
    author: str  # login; empty for an account that is gone
    pull_number: int
    line: str  # its first line
    written_at: str  # as GitHub writes moments (`2026-01-31T12:00:00Z`)


class Typed(Record, frozen=True, omit_defaults=True):
    """A command as it was typed, after all checks that need no network."""

    verb: Verb
    base: str = ""
    head: str = ""
    models: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    reason: str = ""  # reason of an acceptance; empty for other commands
    experiment: str = ""  # experiment of the lab; empty for other commands


class Asked(Record, frozen=True):
    """A command of a person with write access, with the commits that it is about.

    The job *gate* makes it. The jobs after it measure and report these commits, even if
    other commits are pushed in between.
    """

    typed: Typed
    line: str  # the command as a reader sees it
    who: str
    comment_id: Amount
    written_at: str
    pull_number: Amount
    head_sha: Sha  # the tip of the pull request's branch
    merge_sha: Sha  # GitHub's merge of this tip with the base branch
    base_sha: Sha  # the first parent of the merge
    base_ref: str
    head_repository: str  # `owner/name`; empty if the fork was deleted
