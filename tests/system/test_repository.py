"""bot.system.git: the repository of a side: commit, ref and changes, as real git tells them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from places import ROOT

from bot.core.snapshot import SourceInfo
from bot.system.git import Repository, repository_of
from bot.system.processes import Cancel

AUTHOR = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")


def git(top: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(top), *AUTHOR, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def top(tmp_path: Path) -> Path:
    path = tmp_path / "ein Projekt"
    path.mkdir()
    git(path, "init", "--initial-branch=main")
    (path / "models").mkdir()
    (path / "models" / "a.mlir").write_text("module {}\n")
    git(path, "add", ".")
    git(path, "commit", "-m", "first")
    return path


def test_a_repository_as_its_state_changes(top: Path, tmp_path: Path) -> None:
    def source() -> SourceInfo:
        return repository_of(top, Cancel()).source

    sha = git(top, "rev-parse", "HEAD")
    assert repository_of(top, Cancel()) == Repository(top.resolve(), SourceInfo(sha, "main", False))
    assert repository_of(top / "models", Cancel()) == repository_of(top, Cancel())
    (top / "comment.md").write_text("a file that git does not know")
    assert not source().dirty
    (top / "models" / "a.mlir").write_text("module { }\n")
    assert source().dirty
    git(top, "add", "models")
    assert source().dirty
    git(top, "commit", "-m", "second")
    assert not source().dirty
    git(top, "switch", "-c", "users/ada/faster")
    assert source().ref == "users/ada/faster"
    git(top, "checkout", "--detach", sha)
    assert source() == SourceInfo(sha, None, False)
    git(top, "worktree", "add", "-b", "other", str(tmp_path / "other"))
    other = repository_of(tmp_path / "other", Cancel())
    assert other.top == (tmp_path / "other").resolve() and other.source.ref == "other"


def test_no_commit_yet(tmp_path: Path) -> None:
    git(tmp_path, "init", "--initial-branch=trunk")
    assert repository_of(tmp_path, Cancel()) == Repository(tmp_path.resolve(), SourceInfo(None, "trunk", False))


def test_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # the variables of a hook would name another repository, and must not reach git
    monkeypatch.setenv("GIT_DIR", str(ROOT / ".git"))
    assert repository_of(tmp_path, Cancel()) == Repository(None, SourceInfo())
    assert repository_of(tmp_path / "missing", Cancel()) == Repository(None, SourceInfo())


def test_no_git(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(top))
    assert repository_of(top, Cancel()) == Repository(None, SourceInfo())
