"""The fold audit as a section of Markdown: the whole of `fold.md`, and the end of a report that asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bot.core.folds.fold_values import FoldAudit
from bot.render.folds.fold_cells import ABOUT_CELLS, Footnotes, cell_tables, other_cells, resumed
from bot.render.folds.fold_sums import FoldFacts, sentences
from bot.render.folds.fold_tables import folded_table, left_lines, model_table
from bot.render.text.escape import clean, clip, md_text
from bot.render.text.fitting import first_fitting, within_bytes
from bot.render.text.phrase import Phrase, code, phrase
from bot.render.text.selection import Listing
from bot.render.text.text_tables import Table
from bot.render.view.facts import NAME_LIMIT

FOLD_LIMIT_BYTES = 256 * 1024
"""A quarter of what GitHub takes as the summary of one step, in UTF-8: the report before it needs room, too."""
TEMPLATE = "fold.md.j2"
_COMMAND_LIMIT = 2_000
_WHY_LIMIT = 1_000


@dataclass(frozen=True, slots=True)
class FoldRoom:
    """The most that a section shows: cells, families, reasons, and cells named in one place.

    Attributes:
        bound: False where there is no room for what would be left at best.
    """

    cells: int
    families: int
    reasons: int
    names: int
    bound: bool = True


_TIERS = (FoldRoom(400, 200, 40, 24), FoldRoom(120, 60, 20, 12), FoldRoom(40, 20, 10, 8), FoldRoom(8, 4, 3, 2))


@dataclass(frozen=True, slots=True)
class Reproduction:
    """How one folded artifact is made; `command` is empty where it is too long to be shown."""

    about: Phrase
    command: str


@dataclass(frozen=True, slots=True)
class FoldView:
    """What is shown of an audit, in the order in which it is read.

    Attributes:
        said: sentences, the headline first.
        notes: footnotes of `cells`.
        others: cells that have no row there, and why.
        resumed: changes that are none of folding.
    """

    said: tuple[Phrase, ...]
    models: Table
    cells: Listing[Table]
    about_cells: str
    notes: Listing[Phrase]
    others: Listing[Phrase]
    resumed: Listing[Phrase]
    folded: Table
    left: Listing[Phrase]
    reproduction: Reproduction | None


def fold_view(audit: FoldAudit, room: FoldRoom) -> FoldView:
    """The audit as values to lay out."""
    facts, footnotes = FoldFacts(audit), Footnotes(room.reasons)
    cells = cell_tables(facts, footnotes, room.cells, room.bound)
    return FoldView(
        sentences(facts),
        model_table(facts, room.cells),
        cells,
        ABOUT_CELLS,
        footnotes.listed(),
        other_cells(facts, room.reasons, room.names),
        resumed(facts, room.reasons, room.names),
        folded_table(facts, room.families),
        left_lines(facts, room.reasons, room.names // 2),
        _reproduction(audit),
    )


def render_folds(audit: FoldAudit, templates_dir: Path | None = None) -> str:
    """The Markdown, at most `FOLD_LIMIT_BYTES` in UTF-8; raises TemplateError where a template does not work.

    Args:
        templates_dir: the user's templates, searched before the default ones.
    """
    fits = within_bytes(FOLD_LIMIT_BYTES)
    return first_fitting(TEMPLATE, _TIERS, lambda room: {"view": fold_view(audit, room)}, fits, templates_dir)


def not_made(why: str) -> str:
    """What stands in the section's place where there is no audit; `why` is one line."""
    return f"**Fold audit: not made**: {md_text(clip(clean(why), _WHY_LIMIT))}\n"


def _reproduction(audit: FoldAudit) -> Reproduction | None:
    """Of the cell that shrank most, where the outputs are equal; or are not known, if there is none."""
    made = [cell for cell in audit.cells if cell.command and cell.module and cell.equal is not False]
    if not made:
        return None
    best = min(made, key=lambda cell: (cell.equal is None, cell.artifact_bytes.change or 0))
    model, target, module = (code(clip(name, NAME_LIMIT)) for name in (best.model, best.target, best.module))
    where = (", in the directory of ", code("fold.json"), ":")
    about = phrase("The folded artifact of ", model, " on ", target, " is made of ", module, *where)
    return Reproduction(about, best.command if len(best.command) <= _COMMAND_LIMIT else "")
