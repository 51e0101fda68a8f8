"""Snapshots in a local directory: the store off GitHub."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from bot.core.baseline import Entry
from bot.core.snapshot import Snapshot
from bot.errors import InputError
from bot.store.entries import FOLDER, UNPACKED_LIMIT_BYTES, entry_of, is_whole, pack, path_of, unpack


class DirectoryStore:
    """A store below `root`, which need not exist; several processes may use it at once.

    Args:
        write: writes a file whole or not at all; raises OutputError.
    """

    def __init__(self, root: Path, write: Callable[[Path, bytes], None]) -> None:
        self.root, self._write = root, write

    def entries(self) -> Sequence[Entry]:
        """Everything stored; files with other names are left alone."""
        paths = self.root.glob(f"{FOLDER}/*/*/*.json.xz")
        entries = (entry_of(path.relative_to(self.root).as_posix()) for path in paths)
        return sorted(entry for entry in entries if entry is not None)

    def load(self, entry: Entry) -> Snapshot:
        """Read one snapshot; raises InputError."""
        path = self.root / path_of(entry)
        try:
            with path.open("rb") as file:
                data = file.read(UNPACKED_LIMIT_BYTES)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None
        return unpack(data, str(path))

    def in_order(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """By the times at which their files were written."""
        return sorted(entries, key=lambda entry: (self._written(entry), entry))

    def _written(self, entry: Entry) -> int:
        try:
            return (self.root / path_of(entry)).stat().st_mtime_ns
        except OSError:
            return 0

    def save(self, entry: Entry, snapshot: Snapshot) -> bool:
        """Store whole or not at all, in place of one that cannot be read; raises OutputError."""
        path = self.root / path_of(entry)
        if path.exists() and is_whole(self, entry):
            return False
        self._write(path, pack(snapshot))
        return True
