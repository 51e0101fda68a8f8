"""The answer to `/code-size lab`: an experiment as a comment, within GitHub's limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bot.core.lab import Lab
from bot.show.blocks import FILE_TIERS, Block, Room, Sentence, Span, phrase
from bot.show.comment import COMMENT_LIMIT
from bot.show.lab import lab_blocks
from bot.show.renderers import first_fitting, length

_SMALLEST = FILE_TIERS[-1]
_FILES = "The files lab.md, lab.html and lab.json have everything."


class _Tier(NamedTuple):
    """How much of the answer a comment shows."""

    room: Room
    names: frozenset[str] | None = None  # of the blocks that stay; None for all


_TIERS = (
    *map(_Tier, FILE_TIERS),
    _Tier(_SMALLEST, frozenset({"answers", "tables", "not-measured", "remarks"})),
    _Tier(_SMALLEST, frozenset({"answers", "not-measured"})),
    _Tier(_SMALLEST, frozenset()),
)


def lab_comment(
    lab: Lab,
    mark: str,
    notes: Sequence[str],
    run_url: str,
    templates: Path | None = None,
) -> str:
    """Return the comment: the answer and its tables, or as much of them as fits.

    `mark`: the hidden first line; `notes`: who asked, and what a reader must not miss;
    `run_url`: the address of the run that has the files; `templates`: the user's
    templates, searched before the default ones.

    Raises TemplateError where a template does not work.
    """
    limit = COMMENT_LIMIT - length(f"{mark}\n")

    def values_of(tier: _Tier) -> Mapping[str, object]:
        blocks = tuple(_blocks(lab, tier=tier, notes=notes, run_url=run_url))
        return {"answer": "lab", "blocks": blocks}

    text = first_fitting(
        ("lab.md.j2", "blocks.md.j2"),
        tiers=_TIERS,
        values=values_of,
        fits=lambda drawn: length(drawn) <= limit,
        templates_dir=templates,
    )
    return f"{mark}\n{text}"


def _blocks(
    lab: Lab, tier: _Tier, notes: Sequence[str], run_url: str
) -> Iterator[Block]:
    """Yield the heading, the notes, the blocks that the tier has, and where the files are."""
    heading, *blocks = lab_blocks(lab, tier.room)
    yield heading
    for note in notes:
        yield Sentence(phrase(note))
    for block in blocks:
        if tier.names is None or getattr(block, "name", "") in tier.names:
            yield block
    yield Sentence(phrase(f"{_FILES} See the ", Span("workflow run", to=run_url), "."))
