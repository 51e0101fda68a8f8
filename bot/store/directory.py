"""Store snapshots in a directory: the default outside GitHub Actions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bot.core.baseline import Entry
from bot.core.snapshot import Snapshot
from bot.errors import InputError
from bot.store.entries import (
    FOLDER,
    MOST_IR_BYTES,
    UNPACKED_LIMIT_BYTES,
    entry_of,
    ir_path_of,
    is_whole,
    pack,
    path_of,
    unpack,
)
from bot.system.files import read_bounded, write_atomically


class DirectoryStore:
    """A store below `root`, which need not exist; several processes may use it at once."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def entries(self) -> Sequence[Entry]:
        """Return all stored entries; files with other names are left alone."""
        entries = []
        for path in self.root.glob(f"{FOLDER}/*/*/*.json.xz"):
            entry = entry_of(path.relative_to(self.root).as_posix())
            if entry is not None:
                entries.append(entry)
        return sorted(entries)

    def load(self, entry: Entry) -> Snapshot:
        """Read one snapshot; raises InputError."""
        path = self.root / path_of(entry)
        try:
            with path.open("rb") as file:
                data = file.read(UNPACKED_LIMIT_BYTES)
        except OSError as error:
            raise InputError(
                f"cannot be read: {error.strerror}", where=str(path)
            ) from None
        return unpack(data, str(path))

    def in_order(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Return the entries by the times at which their files were written."""
        written = dict[Entry, int]()
        for entry in entries:
            path = self.root / path_of(entry)
            if path.exists():
                written[entry] = path.stat().st_mtime_ns
        return sorted(entries, key=lambda entry: (written.get(entry, 0), entry))

    def load_ir(self, entry: Entry) -> bytes:
        """Read the IR beside one snapshot; raises InputError."""
        path = self.root / ir_path_of(entry)
        try:
            return read_bounded(path, "the IR", MOST_IR_BYTES)
        except OSError as error:
            raise InputError(
                f"cannot be read: {error.strerror}", where=str(path)
            ) from None

    def save(self, entry: Entry, snapshot: Snapshot, ir: bytes = b"") -> bool:
        """Store a snapshot whole or not at all; replace one that cannot be read.

        Raises OutputError.
        """
        path = self.root / path_of(entry)
        if path.exists() and is_whole(self, entry):
            return False
        if ir:
            write_atomically(self.root / ir_path_of(entry), ir)
        write_atomically(path, pack(snapshot))
        return True
