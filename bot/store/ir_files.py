"""Read and write the file of a baseline's IR.

It is bounded, compressed, and found by the digest that its snapshot has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from bot.core.baseline import Entry
from bot.core.snapshot import Snapshot
from bot.core.stored_ir import BaseIr, StoredDispatch, StoredIr, read_ir, written_ir
from bot.errors import InputError
from bot.store.entries import MOST_IR_BYTES, Store, compressed, decompressed

MOST_UNPACKED_IR_BYTES = 32 << 20
"""The most that it may have unpacked, and the most that a reader unpacks."""
# While the file is too large, the last eighth of its dispatches is left out.
_DROPPED_PARTS = 8


def packed_ir(compiler: str, dispatches: Sequence[StoredDispatch]) -> bytes:
    """Return the file with the first dispatches, as many as the bounds allow.

    Empty if not even one fits.
    """
    fitting = _within_unpacked(dispatches)
    while fitting:
        data = compressed(written_ir(StoredIr(compiler, tuple(fitting))))
        if len(data) <= MOST_IR_BYTES:
            return data
        fitting = fitting[: -max(1, len(fitting) // _DROPPED_PARTS)]
    return b""


def _within_unpacked(dispatches: Sequence[StoredDispatch]) -> list[StoredDispatch]:
    """Return the first dispatches that together stay within the bound on unpacked bytes."""
    fitting = list[StoredDispatch]()
    total_bytes = len(written_ir(StoredIr("0" * 64, ())))
    for dispatch in dispatches:
        total_bytes += len(written_ir(StoredIr("", (dispatch,))))
        if total_bytes > MOST_UNPACKED_IR_BYTES:
            break
        fitting.append(dispatch)
    return fitting


def digest_of_ir(data: bytes) -> str:
    """Return the SHA-256 (hex) of a file with IR, as a snapshot has it."""
    return hashlib.sha256(data).hexdigest()


def require_pinned(data: bytes, snapshot: Snapshot, where: str) -> None:
    """Raise InputError for a file that is too large, or not the one of the snapshot."""
    if len(data) > MOST_IR_BYTES:
        raise InputError(f"has more than {MOST_IR_BYTES >> 10} KiB", where=where)
    if digest_of_ir(data) != snapshot.stored_ir:
        raise InputError("is not the IR that the snapshot names", where=where)


def unpacked_ir(data: bytes, snapshot: Snapshot, where: str) -> BaseIr:
    """Read a file with IR that belongs to this snapshot.

    Raises InputError for the file of another snapshot, compiler or version. Raises
    it as well if the file is damaged or unpacks to too much.
    """
    require_pinned(data, snapshot, where)
    text = decompressed(data, where, MOST_UNPACKED_IR_BYTES)
    try:
        stored = read_ir(text, where)
    except UnicodeDecodeError:
        raise InputError("is not UTF-8", where=where) from None
    if stored.compiler != snapshot.compiler.digest:
        raise InputError("is of another compiler than the snapshot", where=where)
    return BaseIr(stored)


def stored_ir_of(store: Store, entry: Entry, snapshot: Snapshot) -> BaseIr | None:
    """Return the IR that is stored beside a snapshot; None if the snapshot names none.

    Raises InputError and NetworkError.
    """
    data = ir_file_of(store, entry, snapshot)
    if data:
        return unpacked_ir(data, snapshot, _where(entry))
    return None


def ir_file_of(store: Store, entry: Entry, snapshot: Snapshot) -> bytes:
    """Return the file with the IR that a stored snapshot names; empty if it names none.

    Raises InputError and NetworkError.
    """
    if not snapshot.stored_ir:
        return b""
    data = store.load_ir(entry)
    require_pinned(data, snapshot, _where(entry))
    return data


def _where(entry: Entry) -> str:
    return f"IR of {entry.sha[:10]}"
