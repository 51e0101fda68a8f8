"""Read archives of `ar`, such as `libkernels.a`.

It finds the members that ship, and what the archive adds around them.

Formats: System V and GNU (`/` and `/SYM64/` index the symbols, `//` holds long names),
and BSD (`#1/LENGTH` puts the name before the contents, `__.SYMDEF` indexes the
symbols), as `ar(5)` of FreeBSD describes both. A thin archive, which begins with
`!<thin>`, names files and does not hold them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from bot.errors import MalformedBinary
from bot.readers.binary import span_inside

MAGIC = b"!<arch>\n"
THIN_MAGIC = b"!<thin>\n"
_HEADER_BYTES = 60
_NAME = slice(0, 16)
_SIZE = slice(48, 58)
_END = slice(58, 60)
_END_OF_HEADER = b"`\n"
_BSD_NAME = b"#1/"
_INDEXES = frozenset(
    {
        "/",
        "/SYM64/",
        "__.SYMDEF",
        "__.SYMDEF SORTED",
        "__.SYMDEF_64",
        "__.SYMDEF_64 SORTED",
    }
)
_LONG_NAMES = "//"
_MOST_DIGITS = 10
_WHERE = "archive"


class Member(NamedTuple):
    """One file in an archive."""

    name: str  # unique in its archive: the second `f.o` is `f.o #2`
    file_name: str  # as the archive has it
    data: bytes


def is_archive(data: bytes) -> bool:
    """Return True where the first bytes are those of an archive, thin or not."""
    return data.startswith((MAGIC, THIN_MAGIC))


def members_of(data: bytes) -> tuple[Member, ...]:
    """Return the members of an archive (`is_archive`) without its own indexes.

    Raises `MalformedBinary`.
    """
    name_counts = Counter[str]()
    members = list[Member]()
    for name, contents in _entries(data):
        name_counts[name] += 1
        unique = name if name_counts[name] == 1 else f"{name} #{name_counts[name]}"
        members.append(Member(unique, name, contents))
    return tuple(members)


def _entries(data: bytes) -> Iterator[tuple[str, bytes]]:
    long_names = b""
    place = len(MAGIC)
    while place < len(data):
        header = span_inside(
            place, size=_HEADER_BYTES, whole_bytes=len(data), where=_WHERE
        ).of(data)
        if header[_END] != _END_OF_HEADER:
            raise MalformedBinary(f"no member begins at offset {place}", where=_WHERE)
        size = _number(header[_SIZE])
        contents = span_inside(
            place + _HEADER_BYTES, size=size, whole_bytes=len(data), where=_WHERE
        ).of(data)
        place += _HEADER_BYTES + size + size % 2
        field = header[_NAME].rstrip(b" ")
        if field == _LONG_NAMES.encode():
            long_names = contents
            continue
        if field.startswith(_BSD_NAME):
            name_bytes = span_inside(
                0,
                size=_number(field[len(_BSD_NAME) :]),
                whole_bytes=len(contents),
                where=_WHERE,
            )
            name = name_bytes.of(contents).rstrip(b"\0").decode("utf-8", "replace")
            contents = contents[name_bytes.end :]
        else:
            name = _name(field, long_names)
        if name not in _INDEXES:
            yield name, contents


def _name(field: bytes, long_names: bytes) -> str:
    """Return the name of a member.

    `field` is what its header has, which may be an offset into the long names.
    """
    if field[:1] == b"/" and field[1:].isdigit():
        start = _number(field[1:])
        end = long_names.find(b"\n", start)
        if start >= len(long_names) or end < 0:
            raise MalformedBinary(
                f"its table of long names has no name at offset {start}", where=_WHERE
            )
        return long_names[start:end].removesuffix(b"/").decode("utf-8", "replace")
    text = field.decode("utf-8", "replace")
    if text in _INDEXES:
        return text
    return text.removesuffix("/")


def _number(field: bytes) -> int:
    digits = field.strip(b" ")
    if not digits.isdigit() or len(digits) > _MOST_DIGITS:
        raise MalformedBinary(f"{digits[:16]!r} is not a size", where=_WHERE)
    return int(digits)
