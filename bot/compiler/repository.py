"""The repository state of a side, as git tells it; nothing of it outside a repository."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bot.core.snapshot import SourceInfo
from bot.errors import InputError
from bot.system.git import Git
from bot.system.processes import Cancel


@dataclass(frozen=True, slots=True)
class Repository:
    """Where a configuration lives: the top of its work tree (None outside a repository) and its state."""

    top: Path | None
    source: SourceInfo


def _said(git: Git, *arguments: str) -> str | None:
    try:
        return git.text(*arguments)
    except InputError:
        return None


def repository_of(directory: Path, cancel: Cancel) -> Repository:
    """The repository that holds `directory`; a missing git or repository gives an empty one."""
    git = Git(directory, cancel)
    top = _said(git, "rev-parse", "--show-toplevel")
    if not top:
        return Repository(None, SourceInfo())
    sha = _said(git, "rev-parse", "--verify", "HEAD")
    ref = _said(git, "symbolic-ref", "--short", "-q", "HEAD")
    dirty = bool(_said(git, "status", "--porcelain", "--untracked-files=no"))
    return Repository(Path(top), SourceInfo(sha or None, ref or None, dirty))
