"""Count the bytes that a page may still draw, and cut blocks to a part of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from bot.show.blocks import Block, Fold, List, Listing, Table
from bot.show.sizes import block_bytes, head_bytes, line_bytes, row_bytes

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
    inner_bytes = room_bytes - head_bytes(block)
    if isinstance(block, Fold):
        inside, _ = fitting(block.blocks, inner_bytes)
        if inside:
            return replace(block, blocks=inside)
        return None
    if isinstance(block, Table):
        rows = _first(block.rows, [row_bytes(row) for row in block.rows], inner_bytes)
        if rows.items:
            return replace(block, rows=rows)
        return None
    if isinstance(block, List):
        lines = _first(
            block.lines, [line_bytes(line) for line in block.lines], inner_bytes
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
