"""What every store shares: its Protocol, the name of a stored snapshot, and its bytes."""

from __future__ import annotations

import lzma
import re
from collections.abc import Sequence
from typing import Protocol

from bot.core.rules.baseline import Entry, kept
from bot.core.values.snapshot import Snapshot
from bot.errors import InputError, UsageError
from bot.store.columns import from_columns, to_columns

UNPACKED_LIMIT_BYTES = 64 << 20
_MEMORY_LIMIT_BYTES = 128 << 20
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6 | lzma.PRESET_EXTREME, "pb": 0}]
"""`pb` 0: text has no words of four bytes; saves 2 %."""
_STEP_BYTES = 1 << 20
FOLDER = "snapshots"
_REPORT_ID = r"(?!.*--)[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_PATH = re.compile(
    rf"{FOLDER}/(?P<report>{_REPORT_ID})/(?P<folder>[0-9a-f]{{2}})"
    r"/(?P<sha>[0-9a-f]{40}|[0-9a-f]{64})\.(?P<digest>[0-9a-f]{64})\.json\.xz"
)


class Store(Protocol):
    """A place for snapshots."""

    def entries(self) -> Sequence[Entry]:
        """Everything stored, of all reports; empty where nothing was stored yet."""

    def load(self, entry: Entry) -> Snapshot:
        """One of `entries()`; raises InputError where it is not there or not a snapshot."""

    def newest(self, entries: Sequence[Entry]) -> Entry:
        """Of several of `entries()` the one that was stored last."""

    def save(self, entry: Entry, snapshot: Snapshot) -> bool:
        """Store for good; False where the entry was there already, and can be read: it then stays as it is."""


def is_whole(store: Store, entry: Entry) -> bool:
    """True where the entry is stored and can be read; raises NetworkError."""
    try:
        store.load(entry)
    except InputError:
        return False
    return True


def checked_report_id(report_id: str) -> str:
    """The report id, which becomes part of file names; raises UsageError where it cannot."""
    if not re.fullmatch(_REPORT_ID, report_id):
        raise UsageError(
            f"{report_id[:80]!r} is no report id", where="report_id", hint="use letters, digits, dots and single dashes"
        )
    return report_id


def path_of(entry: Entry) -> str:
    """`snapshots/<report_id>/<sha[:2]>/<sha>.<digest>.json.xz`; raises UsageError for a report id that is no name."""
    folder = f"{FOLDER}/{checked_report_id(entry.report_id)}/{entry.sha[:2]}"
    return f"{folder}/{entry.sha}.{entry.digest}.json.xz"


def entry_of(path: str) -> Entry | None:
    """The entry that is stored under this path; None for any other file."""
    found = _PATH.fullmatch(path)
    if found is None or not found["sha"].startswith(found["folder"]):
        return None
    return Entry(found["report"], found["sha"], found["digest"])


def pack(snapshot: Snapshot) -> bytes:
    """What a baseline keeps, as columns under xz; equal snapshots give equal bytes."""
    return lzma.compress(to_columns(kept(snapshot)), filters=_FILTERS)


def unpack(data: bytes, where: str) -> Snapshot:
    """What `kept` keeps of the snapshot that `pack` was given.

    Raises InputError naming `where` for bytes that are torn, foreign or unpack to over 64 MiB.
    """
    try:
        return from_columns(_unpacked(data, where), where)
    except (lzma.LZMAError, EOFError, MemoryError) as error:
        raise InputError(f"is no xz file, or was cut off: {error}", where=where) from None
    except UnicodeDecodeError:
        raise InputError("is no text", where=where) from None


def _unpacked(data: bytes, where: str) -> bytes:
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY_LIMIT_BYTES)
    text = bytearray()
    while not unpacker.eof:
        if unpacker.needs_input and (text or not data):
            raise InputError("is no xz file, or was cut off", where=where)
        piece = unpacker.decompress(data, _STEP_BYTES)
        data = b""
        text += piece
        if len(text) > UNPACKED_LIMIT_BYTES:
            raise InputError(f"unpacks to more than {UNPACKED_LIMIT_BYTES >> 20} MiB", where=where)
    if unpacker.unused_data:
        raise InputError("has bytes after its end", where=where)
    return bytes(text)
