"""What is published beside the files: the check run, its annotations, and whether a comment is due."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bot.core.rules.acceptance import Acceptance, Seen

Conclusion = Literal["success", "neutral", "failure"]
AnnotationLevel = Literal["notice", "warning", "failure"]


@dataclass(frozen=True, slots=True)
class Annotation:
    """One line of a file of the pull request that a finding concerns; plain text, no Markdown.

    Attributes:
        path: relative to the repository.
    """

    path: str
    line: int
    level: AnnotationLevel
    title: str
    message: str


@dataclass(frozen=True, slots=True)
class CheckRun:
    """A finished check run.

    Attributes:
        summary: Markdown, within GitHub's limit.
    """

    name: str
    conclusion: Conclusion
    title: str
    summary: str
    annotations: Sequence[Annotation] = ()


@dataclass(frozen=True, slots=True)
class ArtifactInfo:
    """One artifact of a workflow run; an expired one is listed but cannot be had any more.

    Attributes:
        is_own: True where that is of the repository itself, and not of a fork.
    """

    id: int
    name: str
    size_bytes: int
    expired: bool
    head_sha: str = ""
    head_branch: str = ""
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class CommentState:
    """What a comment remembers, hidden in itself, for the runs that come after.

    Attributes:
        head_sha: tip of the pull request's branch that the comment is about.
        run_id: the run whose artifact holds the report.
        alarming: True where it gave an alarm, so that an all-clear is worth a word.
        acceptances: all that were given so far, oldest first.
        base_ref: the branch that the pull request went to; empty where an older version wrote the comment.
    """

    head_sha: str
    run_id: int
    alarming: bool = False
    findings: tuple[Seen, ...] = ()
    acceptances: tuple[Acceptance, ...] = ()
    base_ref: str = ""
