"""Read the data branch from a folder, for a job that may not fetch it.

An earlier step checked it out or copied it.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.baseline import Entry
from bot.store.directory import DirectoryStore
from bot.store.entries import FOLDER, ORDER, ranked
from bot.system.git import Git


class CheckedOut(DirectoryStore):
    """A store below a folder; a missing folder is an empty store.

    Args:
        git: in the folder.
    """

    def __init__(self, git: Git) -> None:
        super().__init__(git.directory)
        self._git = git

    def in_order(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Sort the entries by the list of a copy, or by the commits that wrote them.

        The times of files do not help: a copy writes all files at once.
        """
        listed = self.root / ORDER
        if listed.is_file():
            lines = listed.read_text(encoding="ascii", errors="replace").splitlines()
            return ranked(entries, lines)
        outcome = self._git(
            "log",
            "--first-parent",
            "--no-renames",
            "--name-only",
            "--format=",
            "--",
            FOLDER,
        )
        if not outcome.ok:
            return super().in_order(entries)
        names = [line for line in outcome.output.splitlines() if line]
        newest_first = dict.fromkeys(names)
        return ranked(entries, reversed(newest_first))
