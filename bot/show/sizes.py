"""Estimate what blocks take on a page before they are drawn; it is never too little."""

from __future__ import annotations

from html import escape

from bot.show.blocks import (
    Block,
    Code,
    Fold,
    Line,
    List,
    Marked,
    Part,
    Picture,
    Row,
    Sentence,
    Table,
    Words,
    marked,
)
from bot.show.escape import visible

_BLOCK_BYTES = 400  # the tags around a block, at most
_ROW_BYTES = 90  # the tags around a row, at most
_TEXT_BYTES = 20  # the tags around a cell of a table, at most
_SPAN_BYTES = 30  # the tags around a span that is no plain text, at most
_DIFF_LINE_BYTES = 12  # the tags around a line of a diff


def block_bytes(block: Block) -> int:
    """Return how many bytes a block takes on a page, at most."""
    if not block:
        return 0
    if isinstance(block, Part):
        return sum(map(block_bytes, block.blocks))
    if isinstance(block, Table) and not block.rows.items:
        return _ROW_BYTES  # only how many rows are left out is drawn
    size = head_bytes(block)
    if isinstance(block, Fold):
        size += sum(map(block_bytes, block.blocks))
    elif isinstance(block, Table):
        size += sum(map(row_bytes, block.rows))
    elif isinstance(block, List):
        size += sum(map(line_bytes, block.lines))
    return size


def head_bytes(block: Block) -> int:
    """Return the bytes of a block without the rows, the lines or the blocks in it."""
    if isinstance(block, Fold):
        return _BLOCK_BYTES + _words_bytes(block.title) + _escaped_bytes(block.address)
    if isinstance(block, Table):
        # the first headers and the caption name the table once more
        named = sum(
            2 * _words_bytes(header) for header in block.headers
        ) + 2 * _words_bytes(block.caption)
        return _BLOCK_BYTES + named + _words_bytes(block.about)
    if isinstance(block, Sentence):
        return _BLOCK_BYTES + _words_bytes(block.said)
    if isinstance(block, Code):
        return (
            _BLOCK_BYTES
            + _escaped_bytes(block.text)
            + _DIFF_LINE_BYTES * (block.text.count("\n") + 1)
        )
    if isinstance(block, Picture):
        texts = (text for drawing in block.data for text in drawing)
        return _BLOCK_BYTES + sum(_ROW_BYTES + _escaped_bytes(text) for text in texts)
    return _BLOCK_BYTES


def row_bytes(row: Row | Marked) -> int:
    """Return how many bytes a row of a table takes on a page, at most."""
    marked_row = marked(row)
    return (
        _ROW_BYTES
        + _escaped_bytes(marked_row.address)
        + sum(map(_words_bytes, marked_row.texts))
    )


def line_bytes(line: Words | Line) -> int:
    """Return how many bytes a line of a list takes on a page, at most."""
    if not isinstance(line, Line):
        return _ROW_BYTES + _words_bytes(line)
    parts = (line.said, line.detail, line.below)
    return _ROW_BYTES + _escaped_bytes(line.address) + sum(map(_words_bytes, parts))


def _words_bytes(text: Words) -> int:
    """Return the bytes of a text with its tags."""
    if isinstance(text, str):
        return _TEXT_BYTES + _escaped_bytes(text)
    size = _TEXT_BYTES
    for span in text:
        size += _SPAN_BYTES + _escaped_bytes(span.text)
        if span.to:
            size += _SPAN_BYTES + _escaped_bytes(span.to)
    return size


def _escaped_bytes(text: str) -> int:
    """Return the bytes of an escaped text; an empty name is drawn as a word."""
    return len(escape(visible(text) or "(empty)").encode(errors="surrogatepass"))
