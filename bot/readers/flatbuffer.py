"""Bounds-checked reading of flatbuffers, a thin layer over `flatbuffers.table.Table`.

The library trusts its input; here every offset and count is checked against the buffer before it is followed, and
whatever does not fit raises `MalformedBinary`. Format: https://flatbuffers.dev/internals/ (tables, vtables, vectors;
all little-endian, offsets relative to the place where they are stored).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from flatbuffers import number_types
from flatbuffers.table import Table as LibraryTable

from bot.errors import MalformedBinary
from bot.readers.elf import Span, span_inside

INT32: Any = number_types.Int32Flags
UINT16: Any = number_types.Uint16Flags
UINT32: Any = number_types.Uint32Flags
UINT64: Any = number_types.Uint64Flags
OFFSET_BYTES = 4
MAX_TABLES = 1 << 16
"""More tables than this in one vector are refused: crafted vectors may name one table a million times."""
MAX_TEXT_BYTES = 1024  # longer names are refused: a million tables may share one


@dataclass(frozen=True, slots=True)
class Table:
    """One table of a schema."""

    data: bytes  # the buffer, or the file that holds it; spans are relative to its first byte
    position: int  # offset of the table in `data`
    where: str
    # their names in the order of the schema, with blanks between, up to the last that is read; a union takes two. A
    # name that is not among them is that of a field which the table does not have
    fields: str

    def scalar(self, name: str, flags: Any) -> int:
        """The number in the field, 0 where the table does not have it."""
        at = self._field(name, flags.bytewidth)
        return 0 if at is None else self._number(at, flags)

    def span(self, name: str, item_bytes: int = 1) -> Span | None:
        """The contents of a vector of items of `item_bytes`, or of a string, without its count."""
        at = self._field(name, OFFSET_BYTES)
        if at is None:
            return None
        start = at + self._number(at, UINT32)
        count = self._number(start, UINT32)
        return span_inside(start + OFFSET_BYTES, count * item_bytes, len(self.data), self.where)

    def text(self, name: str) -> str:
        """The string in the field, empty where the table does not have it."""
        span = self.span(name) or Span(0, 0)
        if span.size > MAX_TEXT_BYTES:
            raise MalformedBinary(f"a name of {span.size} bytes", where=self.where)
        return span.of(self.data).decode("utf-8", "replace")

    def table(self, name: str, fields: str) -> Table | None:
        """The table in the field, which has these fields itself."""
        at = self._field(name, OFFSET_BYTES)
        return None if at is None else Table(self.data, at + self._number(at, UINT32), self.where, fields)

    def tables(self, name: str, fields: str) -> Iterator[Table]:
        """The tables of a vector, in order, each with these fields."""
        span = self.span(name, OFFSET_BYTES) or Span(0, 0)
        if span.size > MAX_TABLES * OFFSET_BYTES:
            raise MalformedBinary(f"a vector of {span.size // OFFSET_BYTES} tables", where=self.where)
        for at in range(span.start, span.end, OFFSET_BYTES):
            yield Table(self.data, at + self._number(at, UINT32), self.where, fields)

    def _field(self, name: str, size_bytes: int) -> int | None:
        """Offset of the field's value, None where the vtable does not have it."""
        vtable, slot = self.position - self._number(self.position, INT32), _slot(self.fields, name)
        if slot is None or slot * 2 + 4 >= self._number(vtable, UINT16):
            return None
        offset = self._number(vtable + slot * 2 + 4, UINT16)
        start = self.position + offset
        return span_inside(start, size_bytes, len(self.data), self.where).start if offset else None

    def _number(self, at: int, flags: Any) -> int:
        span_inside(at, flags.bytewidth, len(self.data), self.where)
        return int(LibraryTable(self.data, 0).Get(flags, at))


@cache
def _slot(fields: str, name: str) -> int | None:
    names = fields.split()
    return names.index(name) if name in names else None


def root_table(data: bytes, start: int, expected: bytes, where: str, fields: str) -> Table:
    """The root of the buffer that starts at `start`; raises `MalformedBinary` without the file identifier.

    `expected`: the four bytes of the schema's `file_identifier`.
    """
    if start < 0 or identifier(data, start) != expected:
        raise MalformedBinary(f"no flatbuffer with the identifier {expected!r}", where=where)
    return Table(data, start + int.from_bytes(data[start : start + OFFSET_BYTES], "little"), where, fields)


def identifier(data: bytes, start: int) -> bytes:
    """What stands in the place of the file identifier of a buffer at `start`: four bytes behind the root's offset."""
    return data[start + OFFSET_BYTES : start + 2 * OFFSET_BYTES]
