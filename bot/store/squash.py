"""Old history of the data branch made one commit: the same files, the newer commits as they were on top."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bot.store.scratch import HISTORY, Scratch

DAY_SECONDS = 86_400
_OURS = re.compile(r"(Code size of [0-9a-f]{40,64}|Code size baselines up to [0-9]+|Begin the code size baselines)\n")
"""How the messages of the bot's own commits begin."""
_SINCE = re.compile(r"^Since: ([0-9]{1,12})$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Commit:
    tree: str
    seconds: int
    committer: tuple[str, str]
    message: str


def message_since(message: str) -> int | None:
    """When the history below a commit begins (seconds since the epoch), as its message says; None where it does not."""
    found = _SINCE.search(message)
    return int(found[1]) if found else None


def _history(scratch: Scratch) -> list[_Commit]:
    """The fetched history, oldest first."""
    arguments = ("--first-parent", "--reverse", "-z", "--format=%T%x1f%ct%x1f%cn%x1f%ce%x1f%B")
    rows = scratch.data("log", *arguments, HISTORY, "--").decode("utf-8", "replace").split("\0")
    parts = (row.split("\x1f", 4) for row in rows if row)
    return [_Commit(tree, int(seconds), (name, address), message) for tree, seconds, name, address, message in parts]


def history_since(scratch: Scratch, branch: str) -> int:
    """The date of the branch's first commit, from the whole history."""
    scratch.fetch(branch, history=True)
    return _history(scratch)[0].seconds


def _is_ours(commit: _Commit, author: tuple[str, str]) -> bool:
    return commit.committer == author and bool(_OURS.match(commit.message))


def squashed(
    scratch: Scratch,
    branch: str,
    cutoff: int,
    now: int,
    identity: Callable[[int], Mapping[str, str]],
    author: tuple[str, str],
) -> tuple[str, str] | None:
    """The tip seen at the remote and the commit to stand in its place; None where there is nothing to gain.

    Only a history that the bot alone wrote is written anew: a commit of anybody else stays, and so do all others.
    The new root is dated `now`, so that the next squash is due only when it, too, has become old.

    Args:
        cutoff, now: seconds since the epoch; commits before `cutoff` are joined.
        identity: of commits made at that second.
        author: name and address of the bot's own commits.
    """
    seen = scratch.fetch(branch, history=True)
    commits = _history(scratch) if seen else []
    old = next((i for i, commit in enumerate(commits) if commit.seconds >= cutoff), len(commits))
    if seen is None or old < 2 or not all(_is_ours(commit, author) for commit in commits):
        return None
    message = f"Code size baselines up to {commits[old - 1].seconds}\n\n{old} commits joined.\n\nSince: {now}\n"
    tip = scratch.commit(commits[old - 1].tree, None, message, identity(now))
    for commit in commits[old:]:
        told = _SINCE.sub(f"Since: {now}", commit.message)
        tip = scratch.commit(commit.tree, tip, told, identity(commit.seconds))
    return seen, tip
