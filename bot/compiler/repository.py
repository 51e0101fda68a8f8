"""The repository state of a side, as git tells it; nothing of it outside a repository."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bot.compiler.runner import Cancel, run
from bot.core.snapshot import SourceInfo


@dataclass(frozen=True, slots=True)
class Repository:
    """Where a configuration lives: the top of its work tree (None outside a repository) and its state."""

    top: Path | None
    source: SourceInfo


def _git(directory: Path, cancel: Cancel, *arguments: str) -> str | None:
    try:
        outcome = run(["git", "-C", str(directory), *arguments], cancel=cancel, timeout_seconds=60)
    except OSError:
        return None
    return outcome.output.strip() if outcome.ok else None


def repository_of(directory: Path, cancel: Cancel) -> Repository:
    """The repository that holds `directory`; a missing git or repository gives an empty one."""
    top = _git(directory, cancel, "rev-parse", "--show-toplevel")
    if not top:
        return Repository(None, SourceInfo())
    sha = _git(directory, cancel, "rev-parse", "--verify", "HEAD")
    ref = _git(directory, cancel, "symbolic-ref", "--short", "-q", "HEAD")
    dirty = bool(_git(directory, cancel, "status", "--porcelain", "--untracked-files=no"))
    return Repository(Path(top), SourceInfo(sha or None, ref or None, dirty))
