"""Shorten blocks until their text fits: the least important parts first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bot.show.blocks import Block, Fold, List, Part, Table
from bot.show.filters import plural
from bot.show.sizes import block_bytes


def made(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Return the blocks as renderers draw them: what is in a part is in its place."""
    drawable = list[Block]()
    for block in blocks:
        if isinstance(block, Part):
            drawable += made(block.blocks)
        elif isinstance(block, Fold):
            drawable.append(replace(block, blocks=made(block.blocks)))
        else:
            drawable.append(block)
    return tuple(drawable)


def fit(blocks: Sequence[Block], room_bytes: float) -> tuple[Block, ...]:
    """Return the blocks with at most so many bytes, as `block_bytes` estimates them.

    Parts of the lowest rank are halved first, the largest of them each time. Where no
    part has an entry left, the blocks are returned as they are.
    """
    shortened = {part: part for part in _parts(blocks)}
    sizes = {part: block_bytes(part) for part in shortened}
    excess_bytes = sum(map(block_bytes, blocks)) - room_bytes
    while excess_bytes > 0:
        open_parts = [part for part in shortened if shortened[part].entries]
        if not open_parts:
            break
        lowest = min(part.rank for part in open_parts)
        largest = max(
            (part for part in open_parts if part.rank == lowest), key=sizes.__getitem__
        )
        shortened[largest] = shortened[largest].halved()
        size_bytes = block_bytes(shortened[largest])
        excess_bytes -= sizes[largest] - size_bytes
        sizes[largest] = size_bytes
    return _replaced(blocks, shortened)


def can_shrink(blocks: Sequence[Block]) -> bool:
    """Return True if any part has an entry left."""
    return any(part.entries for part in _parts(blocks))


def _parts(blocks: Sequence[Block]) -> Iterator[Part]:
    for block in blocks:
        if isinstance(block, Part):
            yield block
        elif isinstance(block, Fold):
            yield from _parts(block.blocks)


def _replaced(
    blocks: Sequence[Block], shortened: dict[Part, Part]
) -> tuple[Block, ...]:
    """Return the blocks with the shortened form of each part."""
    replaced = list[Block]()
    for block in blocks:
        if isinstance(block, Part):
            replaced.append(shortened[block])
        elif isinstance(block, Fold):
            inside = _replaced(block.blocks, shortened)
            replaced.append(replace(block, blocks=inside))
        else:
            replaced.append(block)
    return tuple(replaced)


def every_block(blocks: Sequence[Block]) -> Iterator[Block]:
    """Yield the blocks and what is in them, but not the parts of stories."""
    for block in blocks:
        yield block
        if isinstance(block, Fold | Part) and getattr(block, "name", "") != "story":
            yield from every_block(block.blocks)


def left_out(blocks: Sequence[Block]) -> str:
    """Return how many lines and rows lists and tables have no room for, by their noun.

    Stories do not count: they have only the largest parts anyway.
    """
    counts = Counter[str]()
    for block in every_block(blocks):
        if isinstance(block, List) and block.lines:
            counts[block.lines.noun] += block.lines.more
        elif isinstance(block, Table) and block.rows:
            counts[block.rows.noun] += block.rows.more
    return ", ".join(plural(count, noun) for noun, count in counts.items() if count)
