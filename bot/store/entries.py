"""Share what every store needs: its Protocol, and names and bytes of snapshots.

A file of a store is a `snapshot.json` under xz, with the parts that a baseline keeps:
`xz -dc` shows it.
"""

from __future__ import annotations

import lzma
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from bot.core.baseline import Entry, kept
from bot.core.snapshot import Snapshot
from bot.core.snapshot_json import from_json, snapshot_lines
from bot.errors import InputError, UsageError

UNPACKED_LIMIT_BYTES = 64 << 20
MOST_IR_BYTES = 512 << 10
"""The most that the IR of one baseline may have, compressed."""
_MEMORY_LIMIT_BYTES = 128 << 20
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6 | lzma.PRESET_EXTREME, "pb": 0}]
"""`pb` is 0, because text has no words of four bytes; that saves 2 %."""
FOLDER = "snapshots"
ORDER = "order.txt"
"""The list of a copied store: one path a line, the last stored at the end."""
_REPORT_ID = r"(?!.*--)[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_PATH = re.compile(
    rf"{FOLDER}/(?P<report>{_REPORT_ID})/(?P<folder>[0-9a-f]{{2}})"
    r"/(?P<sha>[0-9a-f]{40}|[0-9a-f]{64})\.(?P<digest>[0-9a-f]{64})\.json\.xz"
)


class Store(Protocol):
    """Where baselines are stored: a branch or a directory."""

    def entries(self) -> Sequence[Entry]:
        """Return all stored entries, of all reports; empty if nothing is stored yet."""

    def load(self, entry: Entry) -> Snapshot:
        """Return one of `entries()`.

        Raises InputError if it is missing, or not a snapshot.
        """

    def in_order(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Return several of `entries()`, the one that was stored last at the end."""

    def load_ir(self, entry: Entry) -> bytes:
        """Return the file with the IR of one of `entries()`.

        Raises InputError if it is missing.
        """

    def save(self, entry: Entry, snapshot: Snapshot, ir: bytes = b"") -> bool:
        """Store a snapshot and its IR.

        Returns False if the entry was there already and can be read: it then
        stays as it is.

        Args:
            ir: the file with the IR that the snapshot names; empty if it names none.
        """


def by_commit(
    store: Store, report_id: str, is_wanted: Callable[[Entry], bool] = lambda _: True
) -> dict[str, list[Entry]]:
    """Return commit → what is stored of it under this report id."""
    entries_at: dict[str, list[Entry]] = {}
    for entry in store.entries():
        if entry.report_id == report_id and is_wanted(entry):
            entries_at.setdefault(entry.sha, []).append(entry)
    return entries_at


def is_whole(store: Store, entry: Entry) -> bool:
    """Return whether the entry is stored and can be read; raises NetworkError."""
    try:
        store.load(entry)
    except InputError:
        return False
    return True


def checked_report_id(report_id: str) -> str:
    """Return the report id, which becomes part of file names.

    Raises UsageError if it cannot be part of one.
    """
    if not re.fullmatch(_REPORT_ID, report_id):
        raise UsageError(
            f"{report_id[:80]!r} is not a report id",
            where="report_id",
            hint="use letters, digits, dots and single dashes",
        )
    return report_id


def path_of(entry: Entry) -> str:
    """Return `snapshots/<report_id>/<sha[:2]>/<sha>.<digest>.json.xz`.

    Raises UsageError for a report id that cannot be part of a file name.
    """
    folder = f"{FOLDER}/{checked_report_id(entry.report_id)}/{entry.sha[:2]}"
    return f"{folder}/{entry.sha}.{entry.digest}.json.xz"


def ranked(entries: Iterable[Entry], oldest_first: Iterable[str]) -> list[Entry]:
    """Return entries in the order of their paths; those without a place come first."""
    places = {path: place for place, path in enumerate(oldest_first)}
    return sorted(entries, key=lambda entry: (places.get(path_of(entry), -1), entry))


def ir_path_of(entry: Entry) -> str:
    """Return the path of the IR beside a snapshot: `….ir.xz` in place of `….json.xz`."""
    return f"{path_of(entry).removesuffix('.json.xz')}.ir.xz"


def entry_of(path: str) -> Entry | None:
    """Return the entry that is stored under this path; None for any other file."""
    match = _PATH.fullmatch(path)
    if match is None or not match["sha"].startswith(match["folder"]):
        return None
    return Entry(match["report"], match["sha"], match["digest"])


def pack(snapshot: Snapshot) -> bytes:
    """Return the parts of a snapshot that a baseline keeps, as JSON under xz.

    Equal snapshots give equal bytes.
    """
    return compressed(b"".join(snapshot_lines(kept(snapshot))))


def compressed(text: bytes) -> bytes:
    """Return text under xz; equal texts give equal bytes."""
    return lzma.compress(text, filters=_FILTERS)


def unpack(data: bytes, where: str) -> Snapshot:
    """Read a snapshot that `pack` wrote.

    Raises InputError naming `where` for bytes that are torn, foreign or unpack to over
    64 MiB.
    """
    try:
        return from_json(decompressed(data, where, UNPACKED_LIMIT_BYTES), where)
    except UnicodeDecodeError:
        raise InputError("is not text", where=where) from None


def decompressed(data: bytes, where: str, most_bytes: int) -> bytes:
    """Return the bytes under xz.

    Raises InputError for torn or foreign bytes, and for more than the limit.
    """
    try:
        unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY_LIMIT_BYTES)
        text = unpacker.decompress(data, most_bytes + 1)
    except (lzma.LZMAError, EOFError, MemoryError) as error:
        raise InputError(f"is not a complete xz file: {error}", where=where) from None
    if len(text) > most_bytes:
        raise InputError(f"unpacks to more than {most_bytes >> 20} MiB", where=where)
    if not unpacker.eof:
        raise InputError("is not a complete xz file", where=where)
    if unpacker.unused_data:
        raise InputError("has bytes after its end", where=where)
    return text
