"""Find the named blocks of C-like text, respecting comments and strings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from re import Match, Pattern
from typing import NamedTuple

from bot.errors import MalformedBinary
from bot.readers.binary import ByteSpan

SKIPPED = rb'//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:[^"\\\n]|\\.)*"?'
"""Comments and strings.

An unterminated one runs to the end, so that scanning stays linear.
"""
MAX_NAME_BYTES = 1024  # longer names are refused: a block is searched for its own
INSIDE = re.compile(SKIPPED + rb"|(?P<brace>[{}])", re.DOTALL)


class Block(NamedTuple):
    """One block at the outermost level.

    Its span is from the header's first byte to the closing brace.
    """

    kind: str
    name: str
    span: ByteSpan
    body: ByteSpan


def header_pattern(header: bytes) -> Pattern[bytes]:
    """Make a pattern for `blocks` from a `header` with the groups `kind` and `name`."""
    return re.compile(SKIPPED + rb"|(?P<brace>[{}])|(?P<stop>;)|" + header, re.DOTALL)


def blocks(text: bytes, pattern: Pattern[bytes], where: str) -> Iterator[Block]:
    """Return the outermost blocks with a header, in order.

    A `;` before the brace makes it a mere declaration. Raises MalformedBinary for a
    brace that closes nothing, or is never closed.
    """
    header: Match[bytes] | None = None
    offset = 0
    while token := pattern.search(text, offset):
        offset = token.end()
        if token["brace"]:
            offset = _block_end(text, token, where)
            if header is not None:
                if len(header["name"]) > MAX_NAME_BYTES:
                    raise MalformedBinary(
                        f"a name of {len(header['name'])} bytes", where=where
                    )
                kind = header["kind"].decode("utf-8", "replace")
                name = header["name"].decode("utf-8", "replace")
                body = ByteSpan(token.end(), offset - 1 - token.end())
                yield Block(
                    kind=kind,
                    name=name,
                    span=ByteSpan(header.start(), offset - header.start()),
                    body=body,
                )
            header = None
        elif token["name"] or token["stop"]:
            header = token if token["name"] else None


def _block_end(text: bytes, opening: Match[bytes], where: str) -> int:
    """Return the offset after the brace that closes the opening one."""
    if opening["brace"] == b"}":
        raise MalformedBinary(
            f"a brace at offset {opening.start()} closes nothing", where=where
        )
    depth = 1
    for token in INSIDE.finditer(text, opening.end()):
        if token["brace"]:
            depth += 1 if token["brace"] == b"{" else -1
            if depth == 0:
                return token.end()
    raise MalformedBinary(
        f"the brace at offset {opening.start()} is never closed", where=where
    )


def outside(text: bytes, inside: list[Block]) -> bytes:
    """Return the text without the blocks, for declarations at the outermost level."""
    starts = [0, *(block.span.end for block in inside)]
    ends = [*(block.span.start for block in inside), len(text)]
    return b"\n".join(text[start:end] for start, end in zip(starts, ends, strict=True))


def without_comments(text: bytes) -> bytes:
    """Return the text with every comment and string as one blank."""
    return re.sub(SKIPPED, b" ", text, flags=re.DOTALL)


def without_name(text: bytes, name: bytes) -> bytes:
    """Return source text with `@` for the name.

    The name may also start the name of a parameter (PTX: `NAME_param_0`).
    """
    return re.sub(
        rb"(?<![\w$%.])" + re.escape(name) + rb"(?=_param_|[^\w$]|\Z)", b"@", text
    )
