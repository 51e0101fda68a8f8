"""bot.compiler.repository: commit, ref and changes, as real git tells them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from places import ROOT

from bot.compiler.repository import Repository, repository_of
from bot.core.snapshot import SourceInfo
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


def source(directory: Path) -> SourceInfo:
    return repository_of(directory, Cancel()).source


def test_a_clean_branch(top: Path) -> None:
    sha = git(top, "rev-parse", "HEAD")
    assert len(sha) == 40
    assert repository_of(top, Cancel()) == Repository(top.resolve(), SourceInfo(sha, "main", False))


def test_from_a_folder_inside(top: Path) -> None:
    assert repository_of(top / "models", Cancel()) == repository_of(top, Cancel())


def test_a_branch_with_a_slash(top: Path) -> None:
    git(top, "switch", "-c", "users/ada/faster")
    assert source(top).ref == "users/ada/faster"


def test_a_change_makes_it_dirty(top: Path) -> None:
    (top / "models" / "a.mlir").write_text("module { }\n")
    assert source(top).dirty
    git(top, "add", ".")
    assert source(top).dirty
    git(top, "commit", "-m", "second")
    assert not source(top).dirty


def test_files_that_git_does_not_know_do_not(top: Path) -> None:
    (top / "out").mkdir()
    (top / "out" / "comment.md").write_text("new")
    assert not source(top).dirty


def test_a_detached_head_has_no_ref(top: Path) -> None:
    sha = git(top, "rev-parse", "HEAD")
    git(top, "checkout", "--detach")
    assert source(top) == SourceInfo(sha, None, False)


def test_no_commit_yet(tmp_path: Path) -> None:
    git(tmp_path, "init", "--initial-branch=trunk")
    assert repository_of(tmp_path, Cancel()) == Repository(tmp_path.resolve(), SourceInfo(None, "trunk", False))


def test_a_work_tree_of_its_own(top: Path, tmp_path: Path) -> None:
    git(top, "worktree", "add", "-b", "other", str(tmp_path / "other"))
    found = repository_of(tmp_path / "other", Cancel())
    assert found.top == (tmp_path / "other").resolve() and found.source.ref == "other"


def test_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # the variables of a hook would name another repository, and must not reach git
    monkeypatch.setenv("GIT_DIR", str(ROOT / ".git"))
    assert repository_of(tmp_path, Cancel()) == Repository(None, SourceInfo())
    assert repository_of(tmp_path / "missing", Cancel()) == Repository(None, SourceInfo())


def test_no_git(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(top))
    assert repository_of(top, Cancel()) == Repository(None, SourceInfo())
