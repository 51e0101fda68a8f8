"""The cells of a fold audit: a row for each of which something can be folded, a line for those of which nothing can."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from bot.core.folds.fold_values import FAILED, BeforeAfter, FoldCell, Price
from bot.render.folds.fold_sums import FOLDED, FoldFacts
from bot.render.text.escape import clean, clip
from bot.render.text.filters import UNKNOWN, amount, plural, relative, signed, superscript
from bot.render.text.phrase import Phrase, phrase, strong
from bot.render.text.selection import Listing, fair, listing
from bot.render.text.text_tables import Row, Table, name_cell
from bot.render.view.facts import NAME_LIMIT

_HEADERS = ("target", "executables", "artifact, B", "change", "outputs", "run time")
ABOUT_CELLS = (
    "Executables and bytes: before → at best → folded. At best, with ≥, all but the largest executable of each family "
    "would be gone: the upper bound of what could be saved, reckoned beforehand from families and device code. It has "
    "no ≥ where folding did better. Change: of the artifact, folded against before. Run time: folded / before, median "
    "of pairs that were run one after the other; in brackets the interval that holds the true median with 95 % "
    "probability."
)
_NOTE_LIMIT = 300
_REASONS = {
    "nothing-to-fold": "Nothing to fold",
    "unsupported": "Not supported",
    FAILED: "Not measured",
    FOLDED: "Folded",
}


class Footnotes:
    """Notes by number, each once, in the order of the cells; what is more than `most` has none."""

    def __init__(self, most: int) -> None:
        self._most, self._numbers = most, dict[str, int]()
        self._left_out = set[str]()

    def mark(self, note: str) -> str:
        """The number that points to the note; empty for an empty one."""
        text = clip(clean(note), _NOTE_LIMIT)
        if not text:
            return ""
        if text not in self._numbers and len(self._numbers) >= self._most:
            self._left_out.add(text)
            return "…"
        return superscript(self._numbers.setdefault(text, len(self._numbers) + 1))

    def listed(self) -> Listing[Phrase]:
        """The notes, each behind its number."""
        told = (phrase(f"{superscript(number)} {text}") for text, number in self._numbers.items())
        return listing(told, len(self._numbers) + len(self._left_out), "note")


def has_row(cell: FoldCell) -> bool:
    """True for a cell that was folded, or could be in somebody's eyes."""
    return cell.state == FOLDED or (bool(cell.left) and cell.artifact_bytes.before is not None)


def cell_tables(facts: FoldFacts, footnotes: Footnotes, limit: int, bound: bool) -> Listing[Table]:
    """A table for each model: before, at best and folded, outputs and price; models take turns for `limit` rows.

    Args:
        bound: False where there is no room for what would be left at best.
    """
    found = sorted((cell for cell in facts.audit.cells if has_row(cell)), key=_importance)
    totals = Counter(cell.model for cell in found)
    shown: dict[str, list[Row]] = {}
    for cell in sorted(fair(found, lambda cell: cell.model, limit), key=lambda cell: (cell.model, cell.target)):
        shown.setdefault(cell.model, []).append(_row(facts, cell, footnotes, bound))
    tables = [_table(model, rows, totals[model]) for model, rows in shown.items()]
    return listing(tables, len(totals), "model")


def _importance(cell: FoldCell) -> tuple[bool, bool, int]:
    """Outputs that differ first, then what was run, then what shrank most."""
    return cell.equal is not False, cell.equal is None, cell.artifact_bytes.change or 0


def _table(model: str, rows: Sequence[Row], total: int) -> Table:
    return Table(_HEADERS, listing(rows, total, "cell"), caption=name_cell(clip(model, NAME_LIMIT)), small=True)


def _row(facts: FoldFacts, cell: FoldCell, footnotes: Footnotes, bound: bool) -> Row:
    surplus = (cell.bound.executables, cell.bound.size_bytes) if cell.bound else (None, None)
    ways = _way(cell.executables, surplus[0]), _way(cell.artifact_bytes, surplus[1])
    executables, artifact = (" → ".join(way if bound else (way[0], way[2])) for way in ways)
    outputs, price = _ran(cell, footnotes)
    told = (phrase(text) for text in (executables, artifact, _change(cell.artifact_bytes)))
    alarming = phrase(strong(outputs) if cell.equal is False else outputs)
    return (name_cell(facts.short[cell.target]), *told, alarming, phrase(price))


def _way(both: BeforeAfter, surplus: int | None) -> tuple[str, str, str]:
    """`156`, `≥113`, `117`; in the middle what is left without the surplus, without ≥ where less is left in fact."""
    least = None if both.before is None or surplus is None else both.before - surplus
    mark = "≥" if both.after is None or least is None or least <= both.after else ""
    at_best = UNKNOWN if least is None or least < 0 else f"{mark}{least:,}"
    return amount(both.before, "count"), at_best, amount(both.after, "count")


def _change(both: BeforeAfter) -> str:
    return UNKNOWN if both.change is None else relative(both.before, both.after) if both.change else "±0"


def _ran(cell: FoldCell, footnotes: Footnotes) -> tuple[str, str]:
    """Outputs and price, each with the number of its footnote."""
    words = "not known" if cell.equal is None else "equal" if cell.equal else "⚠️ differ"
    outputs = f"{words}{footnotes.mark(cell.equal_note)}"
    if cell.price:
        return outputs, f"{price_words(cell.price)}{footnotes.mark(cell.price_note)}"
    return outputs, f"{UNKNOWN}{footnotes.mark(cell.price_note or cell.equal_note)}"


def price_words(price: Price) -> str:
    """`1.02 [1.00, 1.05]`."""
    return f"{price.ratio:.2f} [{price.low:.2f}, {price.high:.2f}]"


def other_cells(facts: FoldFacts, reasons: int, names: int) -> Listing[Phrase]:
    """The cells without a row, by state and reason, those with most cells first."""
    groups: dict[tuple[str, str], list[FoldCell]] = {}
    for cell in facts.audit.cells:
        if not has_row(cell):
            groups.setdefault((cell.state, clip(clean(cell.note), _NOTE_LIMIT)), []).append(cell)
    ordered = sorted(groups.items(), key=lambda group: (list(_REASONS).index(group[0][0]), -len(group[1]), group[0]))
    lines = [_line(facts, *key, found, names) for key, found in ordered[:reasons]]
    return listing(lines, len(ordered), "reason")


def _line(facts: FoldFacts, state: str, note: str, found: Sequence[FoldCell], names: int) -> Phrase:
    why = f": {note}" if note else ""
    return phrase(strong(_REASONS[state]), f" ({plural(len(found), 'cell')}): ", _where(facts, found, names), why)


def _where(facts: FoldFacts, found: Sequence[FoldCell], names: int) -> Phrase:
    """A whole target that was never measured is named as such."""
    target = found[0].target
    of_target = [cell for cell in facts.audit.cells if cell.target == target]
    if list(found) == of_target and len(found) > 1 and target not in facts.measured_targets:
        return phrase("every model on ", name_cell(facts.short[target]))
    return facts.cells(found, names)


def resumed(facts: FoldFacts, sizes: int, names: int) -> Listing[Phrase]:
    """Where the program that was written and resumed gives another artifact although nothing was folded."""
    groups: dict[int, list[FoldCell]] = {}
    for cell, change in _moved(facts.audit.cells):
        groups.setdefault(change, []).append(cell)
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    said = [phrase(f"{signed(change)}: ", facts.cells(found, names)) for change, found in ordered[:sizes]]
    return listing(said, len(ordered), "such change")


def _moved(cells: Iterable[FoldCell]) -> Iterator[tuple[FoldCell, int]]:
    for cell in cells:
        before = cell.artifact_bytes.before
        if before is not None and cell.resumed_bytes is not None and cell.resumed_bytes != before:
            yield cell, cell.resumed_bytes - before
