"""Write the report of a fold audit, and put its parts in order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path

from bot.fold.audit import FOLDED, FoldAudit, fold_lines
from bot.fold.audit_lines import family_lines, other_build_lines
from bot.fold.audit_names import AuditNames
from bot.fold.audit_sentences import audit_sentences
from bot.fold.audit_tables import build_blocks, model_table
from bot.show.blocks import (
    Block,
    Fold,
    List,
    Part,
    Phrase,
    Rank,
    Sentence,
    bounded,
    listed,
    part,
    section,
)
from bot.show.renderers import write_answer
from bot.show.views import Room

FOLD_LIMIT_BYTES = 256 * 1024
"""A quarter of GitHub's limit for the summary of one step, in UTF-8.

The report before it needs room, too.
"""


def write_folds(audit: FoldAudit, templates: Path | None, out: Path) -> list[Path]:
    """Write `fold.json`, `fold.md` and the page `fold.html`.

    `fold.md` has at most `FOLD_LIMIT_BYTES` in UTF-8. `templates`: the user's
    templates, searched before the default ones.
    """
    return write_answer(
        "fold",
        json=fold_lines(audit),
        blocks=partial(fold_blocks, audit),
        limit_bytes=FOLD_LIMIT_BYTES,
        templates_dir=templates,
        out=out,
    )


def _lines(lines: Sequence[Phrase], noun: str, room: Room) -> Part:
    return bounded(List(listed(lines, noun)), Rank.LINE, room.lines)


def fold_blocks(audit: FoldAudit, room: Room) -> tuple[Block, ...]:
    """Return the blocks of the whole answer."""
    facts = AuditNames(audit)
    headline, *sentences = audit_sentences(facts)
    is_folded = any(cell.state == FOLDED for cell in audit.cells)
    models: list[Block] = []
    cells: list[Block] = []
    if is_folded:  # otherwise no table has a figure that differs from another one
        models.append(bounded(model_table(audit), Rank.ANSWER, room.rows))
        cells.append(
            part(partial(build_blocks, facts, room.lines), room.rows, Rank.ROW)
        )
    other_builds = _lines(other_build_lines(facts, room.names), "reason", room)
    folded = family_lines(facts, attrgetter("folded"), room.names)
    folded_lines = _lines(folded, "such line", room)
    left = family_lines(facts, attrgetter("left"), room.names)
    left_lines = _lines(left, "such line", room)
    return (
        Sentence(headline),
        List(listed(sentences, "sentence"), name="said"),
        section("Executables of each model after folding", *models, name="models"),
        section("What folding saves, and what it costs", *cells, name="cells"),
        section(
            "Builds without a row" if is_folded else "Why nothing was folded",
            other_builds,
            name="others",
        ),
        Fold("Families that were folded", (folded_lines,), name="folded"),
        Fold(
            "Families that were not folded, and why",
            (left_lines,),
            is_open=room.place == "terminal",
            name="left",
        ),
    )
