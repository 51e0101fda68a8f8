"""Share what the readers of binary formats need.

These are byte spans that are checked before use, digests of code, and a limit of work.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bot.core.digest import written
from bot.core.json_text import without_zeros
from bot.errors import MalformedBinary

WORK_PER_BYTE = 64
"""The reader's limit of work for each byte of a file.

Real objects need less than one: each byte of code and of constants once.
"""


class ByteSpan(NamedTuple):
    """A range of bytes inside a whole; both figures in bytes."""

    start: int
    size: int

    @property
    def end(self) -> int:
        """Return the offset of the first byte after the span."""
        return self.start + self.size

    def of(self, data: bytes) -> bytes:
        """Return the bytes of the span, which is known to lie inside `data`."""
        return data[self.start : self.end]


def span_inside(start: int, size: int, whole_bytes: int, where: str) -> ByteSpan:
    """Return a span that lies inside a whole of `whole_bytes`.

    Raises `MalformedBinary` for any other.
    """
    if start < 0 or size < 0 or start + size > whole_bytes:
        raise MalformedBinary(
            f"{size} bytes at offset {start} exceed the whole of {whole_bytes} bytes",
            where=where,
        )
    return ByteSpan(start, size)


def require_disjoint(spans: Iterable[ByteSpan], where: str) -> None:
    """Raise `MalformedBinary` if two spans share a byte."""
    end = 0
    for span in sorted(span for span in spans if span.size):
        if span.start < end:
            raise MalformedBinary(
                f"two parts share the byte at offset {span.start}", where=where
            )
        end = span.end


def label_sizes(labelled: Mapping[ByteSpan, str], where: str) -> dict[str, int]:
    """Return the bytes per label, in the order in which labels first appear.

    Raises `MalformedBinary` if spans overlap.
    """
    require_disjoint(labelled, where)
    sizes: dict[str, int] = {}
    for span, label in labelled.items():
        sizes[label] = sizes.get(label, 0) + span.size
    return without_zeros(sizes)


class WorkLimit:
    """The work that is left, in bytes read.

    It makes a file take linear time, however often its tables name the same bytes.
    """

    def __init__(self, file_bytes: int, where: str) -> None:
        self._left = WORK_PER_BYTE * file_bytes
        self._where = where

    def spend(self, work_bytes: int) -> None:
        """Take work from the rest; raises `MalformedBinary` if too little is left."""
        self._left -= work_bytes
        if self._left < 0:
            raise MalformedBinary(
                "its tables name the same bytes several times", where=self._where
            )


def code_digest(*pieces: bytes) -> str:
    """Return the digest of pieces of code as text.

    The borders between pieces count, too.
    """
    return written(fingerprint(*pieces))


def fingerprint(*pieces: bytes) -> bytes:
    """Return the SHA-256 of pieces of code as bytes, as a piece of other digests."""
    whole = hashlib.sha256()
    for piece in pieces:
        whole.update(len(piece).to_bytes(8, "little"))
        whole.update(piece)
    return whole.digest()
