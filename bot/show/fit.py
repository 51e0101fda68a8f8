"""Shorten blocks until their text fits: the least important parts first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from bot.show.blocks import Block, Fold, List, Part, Table
from bot.show.filters import plural
from bot.show.sizes import block_bytes


def drawable(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Return the blocks as renderers draw them: what is in a part is in its place."""
    return _with_parts(blocks, lambda part: drawable(part.blocks))


def fit(blocks: Sequence[Block], room_bytes: float) -> tuple[Block, ...]:
    """Return the blocks with at most so many bytes, as `block_bytes` estimates them.

    Parts of the lowest rank are shortened first, the largest of them each time. If no
    part has an entry left, the blocks stay larger than the room.
    """
    excess_bytes = sum(map(block_bytes, blocks)) - room_bytes
    if excess_bytes <= 0:
        return tuple(blocks)
    shortened = {part: part for part in every_block(blocks) if isinstance(part, Part)}
    sizes = {part: block_bytes(part) for part in shortened}
    while excess_bytes > 0 and any(part.entries for part in shortened.values()):
        cheapest = min(
            (part for part in shortened if shortened[part].entries),
            key=lambda part: (part.rank, -sizes[part]),
        )
        share = 1 - excess_bytes / (sizes[cheapest] or 1)
        shortened[cheapest] = shortened[cheapest].shortened(share)
        excess_bytes -= sizes[cheapest]
        sizes[cheapest] = block_bytes(shortened[cheapest])
        excess_bytes += sizes[cheapest]
    return _with_parts(blocks, lambda part: (shortened[part],))


def _with_parts(
    blocks: Sequence[Block], replaced: Callable[[Part], Sequence[Block]]
) -> tuple[Block, ...]:
    """Return the blocks with other blocks in the place of each part."""
    others = list[Block]()
    for block in blocks:
        if isinstance(block, Part):
            others += replaced(block)
        elif isinstance(block, Fold):
            others.append(replace(block, blocks=_with_parts(block.blocks, replaced)))
        else:
            others.append(block)
    return tuple(others)


def every_block(blocks: Sequence[Block]) -> Iterator[Block]:
    """Yield the blocks and what is in them, but not the blocks inside a story."""
    for block in blocks:
        yield block
        if isinstance(block, Part) or (
            isinstance(block, Fold) and block.name != "story"
        ):
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
