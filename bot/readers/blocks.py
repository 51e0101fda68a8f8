"""Named blocks of C-like source text (PTX, Metal): where each begins and ends, comments and strings respected."""

from __future__ import annotations

import re
from collections.abc import Iterator
from re import Match, Pattern
from typing import NamedTuple

from bot.errors import MalformedBinary
from bot.readers.elf import Span

SKIPPED = rb'//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:[^"\\\n]|\\.)*"?'
"""Comments and strings; unterminated ones run to the end, so that scanning stays linear."""
MAX_NAME_BYTES = 1024  # longer names are refused: a block is searched for its own
INSIDE = re.compile(SKIPPED + rb"|(?P<brace>[{}])", re.DOTALL)


class Block(NamedTuple):
    """One block at the outermost level; its span is from the header's first byte to the closing brace."""

    kind: str
    name: str
    span: Span
    body: Span


def header_pattern(header: bytes) -> Pattern[bytes]:
    """A pattern for `blocks`: `header` has the groups `kind` and `name`."""
    return re.compile(SKIPPED + rb"|(?P<brace>[{}])|(?P<stop>;)|" + header, re.DOTALL)


def blocks(text: bytes, pattern: Pattern[bytes], where: str) -> Iterator[Block]:
    """The outermost blocks with a header, in order; a `;` before the brace makes it a mere declaration.

    Raises MalformedBinary for a brace that closes nothing, or is never closed.
    """
    header: Match[bytes] | None = None
    at = 0
    while token := pattern.search(text, at):
        at = token.end()
        if token["brace"]:
            at = _block_end(text, token, where)
            if header is not None:
                if len(header["name"]) > MAX_NAME_BYTES:
                    raise MalformedBinary(f"a name of {len(header['name'])} bytes", where=where)
                kind, name = (header[group].decode("utf-8", "replace") for group in ("kind", "name"))
                body = Span(token.end(), at - 1 - token.end())
                yield Block(kind, name, Span(header.start(), at - header.start()), body)
            header = None
        elif token["name"] or token["stop"]:
            header = token if token["name"] else None


def _block_end(text: bytes, opening: Match[bytes], where: str) -> int:
    """Offset after the brace that closes the opening one."""
    if opening["brace"] == b"}":
        raise MalformedBinary(f"a brace at offset {opening.start()} closes nothing", where=where)
    depth = 1
    for token in INSIDE.finditer(text, opening.end()):
        if token["brace"]:
            depth += 1 if token["brace"] == b"{" else -1
            if depth == 0:
                return token.end()
    raise MalformedBinary(f"the brace at offset {opening.start()} is never closed", where=where)


def outside(text: bytes, inside: list[Block]) -> bytes:
    """The text without the blocks, for declarations at the outermost level."""
    starts = [0, *(block.span.end for block in inside)]
    ends = [*(block.span.start for block in inside), len(text)]
    return b"\n".join(text[start:end] for start, end in zip(starts, ends, strict=True))


def without_comments(text: bytes) -> bytes:
    """The text with every comment and string as one blank."""
    return re.sub(SKIPPED, b" ", text, flags=re.DOTALL)
