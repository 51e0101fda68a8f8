"""Read tables of flatbuffers, and trust nothing in them.

Flatbuffers' own library trusts its input, and imports numpy wherever it is installed.
Here every offset and count is checked against the buffer before it is followed
(https://flatbuffers.dev/internals/: tables, vtables, vectors; all little-endian,
offsets relative to the place where they are stored).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from bot.errors import MalformedBinary
from bot.readers.binary import (
    ByteSpan,
    span_inside,
)

INT32 = struct.Struct("<i")
UINT16 = struct.Struct("<H")
UINT32 = struct.Struct("<I")
UINT64 = struct.Struct("<Q")
OFFSET_BYTES = 4
MAX_TABLES = 1 << 16
"""The most tables in one vector.

More are refused: crafted vectors may name one table a million times.
"""
MAX_TEXT_BYTES = 1024  # longer names are refused: a million tables may share one


@dataclass(frozen=True, slots=True)
class FlatBufferTable:
    """One table of a schema."""

    data: bytes  # the buffer, or the file that holds it; spans are relative to its first byte
    position: int  # offset of the table in `data`
    where: str
    # their names in the order of the schema, with blanks between, up to the last that
    # is read; a union takes two. A name that is not among them is that of a field which
    # the table does not have
    fields: str

    def scalar(self, name: str, layout: struct.Struct) -> int:
        """Return the number in the field; 0 if the table does not have it."""
        offset = self._field(name, layout.size)
        if offset is None:
            return 0
        return self._number(offset, layout)

    def span(self, name: str, item_bytes: int = 1) -> ByteSpan | None:
        """Return the contents of a vector or a string, without its count.

        The items of the vector have `item_bytes` each.
        """
        offset = self._field(name, OFFSET_BYTES)
        if offset is None:
            return None
        start = offset + self._number(offset, UINT32)
        count = self._number(start, UINT32)
        return span_inside(
            start + OFFSET_BYTES,
            size=count * item_bytes,
            whole_bytes=len(self.data),
            where=self.where,
        )

    def text(self, name: str) -> str:
        """Return the string in the field; empty if the table does not have it."""
        span = self.span(name) or ByteSpan(0, 0)
        if span.size > MAX_TEXT_BYTES:
            raise MalformedBinary(f"a name of {span.size} bytes", where=self.where)
        return span.of(self.data).decode("utf-8", "replace")

    def table(self, name: str, fields: str) -> FlatBufferTable | None:
        """Return the table in the field, which has these fields itself."""
        offset = self._field(name, OFFSET_BYTES)
        if offset is None:
            return None
        return FlatBufferTable(
            data=self.data,
            position=offset + self._number(offset, UINT32),
            where=self.where,
            fields=fields,
        )

    def tables(self, name: str, fields: str) -> Iterator[FlatBufferTable]:
        """Return the tables of a vector, in order, each with these fields."""
        span = self.span(name, OFFSET_BYTES) or ByteSpan(0, 0)
        if span.size > MAX_TABLES * OFFSET_BYTES:
            raise MalformedBinary(
                f"a vector of {span.size // OFFSET_BYTES} tables", where=self.where
            )
        for offset in range(span.start, span.end, OFFSET_BYTES):
            yield FlatBufferTable(
                data=self.data,
                position=offset + self._number(offset, UINT32),
                where=self.where,
                fields=fields,
            )

    def _field(self, name: str, size_bytes: int) -> int | None:
        """Return the offset of the field's value.

        None if the vtable does not have it.
        """
        vtable = self.position - self._number(self.position, INT32)
        slot = _slot(self.fields, name)
        if slot is None or slot * 2 + 4 >= self._number(vtable, UINT16):
            return None
        offset = self._number(vtable + slot * 2 + 4, UINT16)
        start = self.position + offset
        if offset:
            return span_inside(
                start, size=size_bytes, whole_bytes=len(self.data), where=self.where
            ).start
        return None

    def _number(self, offset: int, layout: struct.Struct) -> int:
        span_inside(
            offset, size=layout.size, whole_bytes=len(self.data), where=self.where
        )
        return int(layout.unpack_from(self.data, offset)[0])


@cache
def _slot(fields: str, name: str) -> int | None:
    names = fields.split()
    if name in names:
        return names.index(name)
    return None


def root_table(
    data: bytes, start: int, expected: bytes, where: str, fields: str
) -> FlatBufferTable:
    """Return the root of the buffer that starts at `start`.

    Raises `MalformedBinary` if the file identifier is not `expected`, the four
    bytes of the schema's `file_identifier`.
    """
    if start < 0 or identifier(data, start) != expected:
        raise MalformedBinary(
            f"no flatbuffer with the identifier {expected!r}", where=where
        )
    return FlatBufferTable(
        data=data,
        position=start + int.from_bytes(data[start : start + OFFSET_BYTES], "little"),
        where=where,
        fields=fields,
    )


def identifier(data: bytes, start: int) -> bytes:
    """Return the four bytes at the place of a buffer's file identifier.

    They follow the root's offset, which is at `start`.
    """
    return data[start + OFFSET_BYTES : start + 2 * OFFSET_BYTES]
