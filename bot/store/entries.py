"""What every store shares: its Protocol, the name of a stored snapshot, and its bytes."""

from __future__ import annotations

import lzma
import re
from collections.abc import Sequence
from typing import Protocol

from bot.core.baseline import Entry
from bot.core.serial import from_json, lines, snapshot_to_plain
from bot.core.snapshot import Snapshot
from bot.errors import InputError, UsageError

UNPACKED_LIMIT_BYTES = 64 << 20
_MEMORY_LIMIT_BYTES = 128 << 20
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

    def save(self, entry: Entry, snapshot: Snapshot) -> bool:
        """Store for good; False where the entry was there already, which then stays as it is."""


def checked_report_id(report_id: str) -> str:
    """The report id, which becomes part of file names; raises UsageError where it cannot."""
    if not re.fullmatch(_REPORT_ID, report_id):
        raise UsageError(
            f"{report_id[:80]!r} is no report id", where="report_id", mend="use letters, digits, dots and single dashes"
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
    """Canonical JSON under xz: equal snapshots give equal bytes, 117 cells with 3,400 dispatches 37 KB."""
    packer = lzma.LZMACompressor(preset=6 | lzma.PRESET_EXTREME)
    packed = [packer.compress(line.encode()) for line in lines(snapshot_to_plain(snapshot))]
    return b"".join((*packed, packer.flush()))


def unpack(data: bytes, where: str) -> Snapshot:
    """What `pack` made; raises InputError naming `where` for bytes that are torn, foreign or unpack to over 64 MiB."""
    try:
        return from_json(_unpacked(data, where).decode(), where)
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
