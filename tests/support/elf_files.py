"""ELF files made by hand, of both classes and byte orders."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

PROGBITS = 1
SYMTAB = 2
STRTAB = 3
RELA = 4
NOTE = 7
ALLOC = 2
EXECUTE = 4
OBJECT = 1
FUNCTION = 2


def tiny_object(
    bits: int,
    order: str,
    functions: int = 1,
    name_at: int = 1,
    name: bytes = b"kernel",
    section: int = 1,
) -> bytes:
    """A relocatable object: functions of 24 bytes each, a symbol table and its strings."""
    code = bytes(24 * functions)
    strings = b"\0" + name + b"\0"
    header_bytes, section_bytes = (64, 64) if bits == 64 else (52, 40)
    null = struct.pack(order + ("IBBHQQ" if bits == 64 else "IIIBBH"), *[0] * 6)
    if bits == 64:
        symbol = struct.pack(order + "IBBHQQ", name_at, 2, 0, section, 0, 24)
    else:
        symbol = struct.pack(order + "IIIBBH", name_at, 0, 24, 2, 0, section)
    symbols = null + symbol * functions
    code_at = header_bytes
    symbols_at = code_at + len(code)
    strings_at = symbols_at + len(symbols)
    table_at = strings_at + len(strings)
    ident = b"\x7fELF" + bytes([bits // 32, 1 if order == "<" else 2, 1]) + bytes(9)
    word = "Q" if bits == 64 else "I"
    header = struct.pack(
        f"{order}HHI3{word}I6H",
        1,
        62,
        1,
        0,
        0,
        table_at,
        0,
        header_bytes,
        0,
        0,
        section_bytes,
        4,
        3,
    )
    layout = f"{order}II4{word}II2{word}"
    sections = (
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        (0, 1, 6, 0, code_at, len(code), 0, 0, 1, 0),
        (0, 2, 0, 0, symbols_at, len(symbols), 3, 1, 1, len(null)),
        (0, 3, 0, 0, strings_at, len(strings), 0, 0, 1, 0),
    )
    return (
        ident
        + header
        + code
        + symbols
        + strings
        + b"".join(struct.pack(layout, *section) for section in sections)
    )


@dataclass(frozen=True)
class Part:
    """A section with its bytes.

    `at` shares the bytes of an earlier one instead of having its own.
    """

    type: int
    data: bytes
    flags: int = 0
    link: int = 0
    info: int = 0
    at: int | None = None
    item: int = 0


def elf_file(parts: Sequence[Part], machine: int = 62) -> bytes:
    """A 64-bit little-endian file of these sections, of which the first has the index 1."""
    contents = bytearray()
    rows = [struct.pack("<IIQQQQIIQQ", *[0] * 10)]
    places: list[int] = []
    for part in parts:
        place = 64 + len(contents) if part.at is None else places[part.at]
        places.append(place)
        contents += part.data if part.at is None else b""
        row = (
            0,
            part.type,
            part.flags,
            0,
            place,
            len(part.data),
            part.link,
            part.info,
            1,
            part.item,
        )
        rows.append(struct.pack("<IIQQQQIIQQ", *row))
    ident = b"\x7fELF\2\1\1" + bytes(9)
    fields = (1, machine, 1, 0, 0, 64 + len(contents), 0, 64, 0, 0, 64, len(rows), 0)
    return (
        ident
        + struct.pack("<HHIQQQIHHHHHH", *fields)
        + bytes(contents)
        + b"".join(rows)
    )


def symbol(name_at: int, kind: int, section: int, value: int, size: int) -> bytes:
    """An entry of a symbol table."""
    return struct.pack("<IBBHQQ", name_at, kind, 0, section, value, size)


def relocation(
    offset: int, symbol_index: int, addend: int = 0, type_: int = 1
) -> bytes:
    """An entry of a table of relocations."""
    return struct.pack("<QQq", offset, symbol_index << 32 | type_, addend)
