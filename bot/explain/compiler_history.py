"""The history of a compiler's repository, as the search for suspects asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

MOST_DIFF_CHARACTERS = 1 << 20
"""So much of a commit's diff is read at most."""


class Commit(NamedTuple):
    """One commit.

    The message begins with the title, the date with the day (`2026-07-14`).
    """

    sha: str
    date: str
    message: str

    @property
    def title(self) -> str:
        """Return the first line of the message."""
        return self.message.partition("\n")[0]


class CompilerHistory(NamedTuple):
    """The history of a compiler's repository, with its page's address.

    Every call raises BotError if there is no answer.

    Attributes:
        paths: revision → path → id of the object there; of a submodule its commit.
        commits: path, base, head → the commits that touched the path and that only one
            of the revisions has, the newest first.
    """

    address: str
    paths: Callable[[str], Mapping[str, str]]
    commits: Callable[[str, str, str], Sequence[Commit]]
    diff: Callable[[str], str]
