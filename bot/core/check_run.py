"""The content of a check run of GitHub."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from bot.core.record import Small

Conclusion = Literal["success", "neutral", "failure"]
AnnotationLevel = Literal["notice", "warning", "failure"]


class Annotation(Small, frozen=True):
    """One line of a pull request's file that a finding concerns; plain text."""

    path: str  # relative to the repository
    line: int
    level: AnnotationLevel
    title: str
    message: str


class CheckRun(Small, frozen=True):
    """A finished check run."""

    name: str
    conclusion: Conclusion
    title: str
    summary: str  # Markdown, within GitHub's limit
    annotations: Sequence[Annotation] = ()
