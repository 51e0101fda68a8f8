"""The data branch as a folder that a step before checked out: for a job that reads baselines and has no token."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.baseline import Entry
from bot.store.entries import FOLDER, DirectoryStore, path_of
from bot.system.git import Git


class CheckedOut(DirectoryStore):
    """A store below the top of a checkout; a folder that does not exist is a branch that does not exist.

    Args:
        git: in the checkout.
    """

    def __init__(self, git: Git) -> None:
        super().__init__(git.directory)
        self._git = git

    def in_order(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """By the last commit that wrote each: all files of a checkout are equally old."""
        outcome = self._git("log", "--first-parent", "--no-renames", "--name-only", "--format=", "--", FOLDER)
        if not outcome.ok:
            return super().in_order(entries)
        names = [line for line in outcome.output.splitlines() if line]
        newest_first = list(dict.fromkeys(names))
        places = {path: -place for place, path in enumerate(newest_first)}
        oldest = -len(newest_first)
        return sorted(entries, key=lambda entry: (places.get(path_of(entry), oldest), entry))
