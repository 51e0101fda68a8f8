"""Draw the tables of a fold audit: executables of each model, and folded builds."""

from __future__ import annotations

from collections import Counter

from bot.fold.audit import FOLDED, BeforeAfter, FoldAudit, FoldCell
from bot.fold.audit_figures import folded_percent
from bot.fold.audit_names import AuditNames
from bot.show.blocks import (
    Block,
    Footnotes,
    List,
    Listing,
    Phrase,
    Row,
    Sentence,
    Table,
    fair,
    listed,
    listing,
    more_of,
    name_cell,
    phrase,
    strong,
)
from bot.show.escape import clip
from bot.show.facts import NAME_LIMIT
from bot.show.filters import UNKNOWN, amount, relative, sides, signed

_ABOUT_CELLS = (
    "Executables and bytes: before → folded. Change: of the artifact. Run time: folded"
    " / before, the median of pairs that ran one after the other. Brackets: the"
    " interval that contains the true median with 95 % probability."
)
_ABOUT_MODELS = (
    "Executables that remain of a model's dispatch regions, and the percentage of the"
    " regions that is folded away. Folded: the target with the fewest executables."
)
_OUTPUTS = {None: "not known", True: "equal", False: "⚠️ differ"}


def model_table(audit: FoldAudit) -> Table:
    """Return the share of each model's regions that is folded away."""
    rows = []
    for model in audit.models:
        rows.append(
            (
                name_cell(clip(model.model, NAME_LIMIT)),
                phrase(amount(model.regions, "count")),
                phrase(amount(model.today, "count")),
                _away_cell(model.regions, model.today),
                phrase(amount(model.folded, "count")),
                _away_cell(model.regions, model.folded),
            )
        )
    headers = ("model", "regions", "today", "% away", "folded", "% away")
    return Table(
        headers,
        listed(rows, "model"),
        small=True,
        about=_ABOUT_MODELS,
    )


def _away_cell(regions: int | None, executables: int | None) -> Phrase:
    return phrase(strong(folded_percent(regions, executables).removesuffix(" %")))


def build_blocks(facts: AuditNames, notes: int, count: int) -> tuple[Block, ...]:
    """Return the tables of the builds with their footnotes; empty without a table."""
    footnotes = Footnotes(notes)
    tables = _cell_tables(facts, footnotes, count)
    if not tables:
        return ()
    return (
        Sentence(phrase(_ABOUT_CELLS)),
        *tables,
        more_of(tables),
        List(footnotes.listed(), small=True),
    )


def _cell_tables(facts: AuditNames, footnotes: Footnotes, count: int) -> Listing[Table]:
    """Return a table for each model; models take turns if there is too little room.

    Builds whose outputs differ come first, then those that ran, then those that
    shrank most.
    """
    ordered = sorted(
        filter(has_row, facts.audit.cells),
        key=lambda cell: (
            cell.equal is not False,
            cell.equal is None,
            cell.artifact_bytes.change or 0,
        ),
    )
    totals = Counter(cell.model for cell in ordered)
    shown_cells = fair(ordered, lambda cell: cell.model, count)
    rows = dict[str, list[Row]]()
    for cell in sorted(shown_cells, key=lambda cell: (cell.model, cell.target)):
        rows.setdefault(cell.model, []).append(_row(facts, cell, footnotes))
    headers = ("target", "executables", "artifact, B", "change", "outputs", "run time")
    tables = []
    for model, model_rows in rows.items():
        tables.append(
            Table(
                headers,
                listing(model_rows, totals[model], "build"),
                caption=name_cell(clip(model, NAME_LIMIT)),
                small=True,
                wanted=(3, 4, 2, 1, 5),
            )
        )
    return listing(tables, len(totals), "model")


def has_row(cell: FoldCell) -> bool:
    """Return True for a build that was folded, or that has families left to fold."""
    return cell.state == FOLDED or (
        bool(cell.left) and cell.artifact_bytes.before is not None
    )


def _row(facts: AuditNames, cell: FoldCell, footnotes: Footnotes) -> Row:
    sizes = cell.artifact_bytes
    counts = cell.executables
    # Footnotes are numbered in the order of the columns.
    change = _change_text(cell, footnotes)
    outputs = _OUTPUTS[cell.equal] + footnotes.mark(cell.equal_note)
    price = _price_text(cell, footnotes)
    return (
        name_cell(facts.short[cell.target]),
        phrase(sides(counts.before, counts.after, "count")),
        phrase(sides(sizes.before, sizes.after, "count")),
        phrase(change),
        phrase(strong(outputs) if cell.equal is False else outputs),
        phrase(price),
    )


def _change_text(cell: FoldCell, footnotes: Footnotes) -> str:
    """Return the artifact's relative change, with a note about a resumed compile."""
    sizes = cell.artifact_bytes
    text = "±0"
    if sizes.change is None:
        text = UNKNOWN
    elif sizes.change:
        text = relative(sizes.before, sizes.after)
    resumed = BeforeAfter(sizes.before, cell.resumed_bytes).change
    if resumed and cell.state == FOLDED:
        text += footnotes.mark(
            f"{signed(resumed)} of this change comes from resuming the compile, not"
            " from folding"
        )
    return text


def _price_text(cell: FoldCell, footnotes: Footnotes) -> str:
    """Return the ratio of the run times with its interval, or why it is not known."""
    price = cell.price
    if price is None:
        return UNKNOWN + footnotes.mark(cell.price_note or cell.equal_note)
    interval = f"[{price.low:.2f}, {price.high:.2f}]"
    return f"{price.ratio:.2f} {interval}{footnotes.mark(cell.price_note)}"
