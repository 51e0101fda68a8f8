"""Read the history of a compiler from a clone of its repository."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bot.errors import InputError
from bot.explain.compiler_history import MOST_DIFF_CHARACTERS, Commit, CompilerHistory
from bot.system.cancel import Cancel
from bot.system.git import Git


def clone_source(directory: Path, repository: str, cancel: Cancel) -> CompilerHistory:
    """Return a clone, which is only read; the network is not asked."""
    git = Git(directory, cancel)
    # a clone without all objects would fetch them
    environment = {"GIT_NO_LAZY_FETCH": "1"}
    plain = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-show-signature")

    def text(revision: str, *arguments: str) -> str:
        if not git(
            "cat-file", "-e", f"{revision}^{{commit}}", environment=environment
        ).ok:
            raise InputError(
                f"has no commit {revision[:10]}", where=f"the clone {directory.name}"
            )
        return git.text(*arguments, environment=environment)

    def paths(revision: str) -> Mapping[str, str]:
        objects = dict[str, str]()
        for entry in text(revision, "ls-tree", "-r", "-z", revision).split("\0"):
            kind, _, path = entry.partition("\t")
            if path:
                objects[path] = kind.split(" ")[2]
        return objects

    def commits(path: str, base: str, head: str) -> Sequence[Commit]:
        log = text(
            base,
            "log",
            "-z",
            *plain,
            "--format=%H%x00%cs%x00%B",
            f"{base}...{head}",
            "--",
            path,
        ).split("\0")
        # The text after the last NUL is no field of a commit.
        return list(map(Commit, log[::3], log[1::3], map(str.strip, log[2::3])))

    show = ("show", *plain, "--format=", "--unified=0")
    if repository:
        address = f"https://github.com/{repository}"
    else:
        address = ""
    return CompilerHistory(
        address=address,
        paths=paths,
        commits=commits,
        diff=lambda sha: text(sha, *show, sha)[:MOST_DIFF_CHARACTERS],
    )
