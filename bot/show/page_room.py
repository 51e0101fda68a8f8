"""Count the bytes that a page may still draw, and cut blocks to a part of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TypeVar

from bot.show.blocks import (
    Block,
    Code,
    Fold,
    Line,
    List,
    Listing,
    Marked,
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

T = TypeVar("T")


@dataclass(slots=True)
class PageRoom:
    """The bytes that a page still has for its builds.

    A template spends what it draws of each build.
    """

    left_bytes: int

    def spend(self, drawn: str) -> str:
        """Return the drawn text as it is, and take its bytes from what is left."""
        self.left_bytes -= len(drawn.encode(errors="surrogatepass"))
        return drawn


def fitting(blocks: Iterable[Block], room_bytes: int) -> tuple[tuple[Block, ...], bool]:
    """Return the blocks that fit into the room, and whether all of them do.

    The first blocks get their room first. A table or a list that does not fit keeps its
    first rows, and counts the others. What a block takes is an upper bound, as it is
    not drawn yet.
    """
    blocks_kept = list[Block]()
    is_whole = True
    for block in blocks:
        if not block:
            continue
        taken_bytes = block_bytes(block)
        if taken_bytes > room_bytes:
            is_whole = False
            part = _part_of(block, room_bytes)
            if part is None:
                continue
            block = part
            taken_bytes = block_bytes(part)
        room_bytes -= taken_bytes
        blocks_kept.append(block)
    return tuple(blocks_kept), is_whole


def _part_of(block: Block, room_bytes: int) -> Block | None:
    """Return the first rows, lines or blocks of a block; None where none fits."""
    inner_bytes = room_bytes - _head_bytes(block)
    if isinstance(block, Fold):
        inside, _ = fitting(block.blocks, inner_bytes)
        if inside:
            return replace(block, blocks=inside)
        return None
    if isinstance(block, Table):
        rows = _first(block.rows, [_row_bytes(row) for row in block.rows], inner_bytes)
        if rows.items:
            return replace(block, rows=rows)
        return None
    if isinstance(block, List):
        lines = _first(
            block.lines, [_line_bytes(line) for line in block.lines], inner_bytes
        )
        if lines.items:
            return replace(block, lines=lines)
        return None
    return None


def _first(listing: Listing[T], sizes: Sequence[int], room_bytes: int) -> Listing[T]:
    """Return the items that fit, from the first one on."""
    count = 0
    for size in sizes:
        room_bytes -= size
        if room_bytes < 0:
            break
        count += 1
    return replace(listing, items=listing.items[:count])


def block_bytes(block: Block) -> int:
    """Return how many bytes a block takes on a page, at most."""
    if not block:
        return 0
    size = _head_bytes(block)
    if isinstance(block, Fold):
        size += sum(map(block_bytes, block.blocks))
    elif isinstance(block, Table):
        size += sum(map(_row_bytes, block.rows))
    elif isinstance(block, List):
        size += sum(map(_line_bytes, block.lines))
    return size


def _head_bytes(block: Block) -> int:
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


def _row_bytes(row: Row | Marked) -> int:
    marked_row = marked(row)
    return (
        _ROW_BYTES
        + _escaped_bytes(marked_row.address)
        + sum(map(_words_bytes, marked_row.texts))
    )


def _line_bytes(line: Words | Line) -> int:
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
