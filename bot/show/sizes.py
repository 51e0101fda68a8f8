"""Estimate what blocks take on a page before they are drawn; it is never too little."""

from __future__ import annotations

from functools import lru_cache
from html import escape

from bot.show.blocks import Line, Listing, Part, Span, Table
from bot.show.escape import visible

_BLOCK_BYTES = 400  # the tags around a block, at most
_ENTRY_BYTES = 40  # the tags around a row, a line or a phrase, at most
_TEXT_BYTES = 20  # the tags around a text, at most
_DIFF_LINE_BYTES = 12  # the tags around a line of a diff
_REMEMBERED = 10_000  # texts whose bytes are known already
_TAGS_BYTES = {Listing: 0, Line: _ENTRY_BYTES, Span: _TEXT_BYTES}


def block_bytes(block: object) -> int:
    """Return how many bytes a block, or a thing inside it, takes on a page, at most.

    It takes the bytes of all its texts, and those of the tags around them.
    """
    if isinstance(block, str):
        return _text_bytes(block)
    if isinstance(block, tuple):
        return _ENTRY_BYTES + sum(map(block_bytes, block))
    if isinstance(block, Part):
        return sum(map(block_bytes, block.blocks))
    if isinstance(block, Table) and not block.rows.items:
        return _ENTRY_BYTES  # only how many rows are left out is drawn
    names = getattr(block, "__slots__", ())
    if not block or not names:
        return 0
    tags_bytes = _TAGS_BYTES.get(type(block), _BLOCK_BYTES)
    return tags_bytes + sum(block_bytes(getattr(block, name)) for name in names)


@lru_cache(maxsize=_REMEMBERED)
def _text_bytes(text: str) -> int:
    # an empty name is drawn as a word
    escaped = escape(visible(text) or "(empty)").encode(errors="surrogatepass")
    return _TEXT_BYTES + len(escaped) + _DIFF_LINE_BYTES * text.count("\n")
