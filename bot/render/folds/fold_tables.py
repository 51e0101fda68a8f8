"""Families that were folded, those that were not and why, and how far each step takes each model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from bot.core.folds.fold_values import FoldCell, FoldedFamily, FoldModel, LeftFamily
from bot.render.folds.fold_sums import FoldFacts, folded_away
from bot.render.text.escape import clean, clip
from bot.render.text.filters import amount, plural
from bot.render.text.phrase import Phrase, code, joined, phrase, strong
from bot.render.text.selection import Listing, fair_in_order, listing
from bot.render.text.text_tables import Row, Table, name_cell
from bot.render.view.facts import NAME_LIMIT, targets_phrase

_WHY_LIMIT = 300
_OPERANDS = 6
_NARROW = 32
"""Of a name in a table of ten columns."""
_FOLDED_HEADERS = ("model", "what differed", "executables made one", "the one that is left", "operands", "targets")
_MODEL_HEADERS = (
    *("model", "regions", "today", "% away", "not inlined", "shapes erased", "constants erased", "both erased"),
    *("folded", "% away"),
)
_ABOUT_MODELS = (
    "Executables that are left of a model's dispatch regions, and the percentage of the regions that is folded away. "
    "Not inlined: compiled, with no constant inlined into a dispatch. Shapes erased: kinds of those that differ in "
    "more than static shapes. Constants, both erased: kinds of today's that differ in more than values of constants, "
    "or than either. Kinds are counted, not compiled. Folded: compiled, on the target with the fewest."
)
_KINDS = {"identical": "nothing: identical", "static-shapes": "static shapes"}
_Same = tuple[str, FoldedFamily]
_Reason = tuple[str, str]


def folded_table(facts: FoldFacts, limit: int) -> Table:
    """Each family once, with the targets where it was folded; without all of them models take turns."""
    where: dict[_Same, list[str]] = {}
    for cell in facts.audit.cells:
        for family in cell.folded:
            where.setdefault((cell.model, family), []).append(cell.target)
    ordered = sorted(where, key=lambda same: (same[0], -len(same[1].members), same[1].members, same[1].kind))
    shown = fair_in_order(ordered, lambda same: same[0], limit)
    rows = [_folded_row(facts, *same, where[same]) for same in shown]
    return Table(_FOLDED_HEADERS, listing(rows, len(ordered), "family"), numbers_from=9, small=True)


def _folded_row(facts: FoldFacts, model: str, family: FoldedFamily, targets: Sequence[str]) -> Row:
    first = family.members[0] if family.members else ""
    return (
        name_cell(clip(model, _NARROW)),
        phrase(_KINDS.get(family.kind, family.kind)),
        phrase(f"{len(family.members):,}"),
        name_cell(clip(first, NAME_LIMIT)),
        _operands(family.operands),
        _where(facts, tuple(dict.fromkeys(targets))),
    )


def _where(facts: FoldFacts, targets: Sequence[str]) -> Phrase:
    """The targets, or those that are missing where these are fewer."""
    missing = tuple(sorted(facts.measured_targets - set(targets)))
    if 0 < len(missing) < len(targets):
        return phrase("every target but ", targets_phrase(facts, missing))
    return targets_phrase(facts, targets)


def _operands(types: Sequence[str]) -> Phrase:
    """``3 × `i32`, `index` ``, in the order in which each type comes first."""
    counts = Counter(types)
    told = [phrase(f"{n:,} × " if n > 1 else "", code(clip(name, NAME_LIMIT))) for name, n in counts.items()]
    more = [phrase("…")] if len(told) > _OPERANDS else []
    return joined([*told[:_OPERANDS], *more], ", ") or phrase("none")


def left_lines(facts: FoldFacts, limit: int, names: int) -> Listing[Phrase]:
    """What is alike and was not folded: a line for each reason, most executables first."""
    groups: dict[_Reason, list[tuple[FoldCell, LeftFamily]]] = {}
    for cell in facts.audit.cells:
        for family in cell.left:
            groups.setdefault((clip(clean(family.why), _WHY_LIMIT), family.kind), []).append((cell, family))
    ordered = sorted(groups.items(), key=lambda group: (-_executables(group[1]), group[0]))
    lines = [_left_line(facts, reason, found, names) for reason, found in ordered[:limit]]
    return listing(lines, len(ordered), "reason")


def _distinct(found: Sequence[tuple[FoldCell, LeftFamily]]) -> set[tuple[str, tuple[str, ...]]]:
    """Families of a model, each once however many targets it is left on."""
    return {(cell.model, family.members) for cell, family in found}


def _executables(found: Sequence[tuple[FoldCell, LeftFamily]]) -> int:
    return len({(model, member) for model, members in _distinct(found) for member in members})


def _left_line(facts: FoldFacts, reason: _Reason, found: Sequence[tuple[FoldCell, LeftFamily]], names: int) -> Phrase:
    why, kind = reason
    cells = list({(cell.model, cell.target): cell for cell, _ in found}.values())
    counts = f"{plural(_executables(found), 'executable')} in {plural(len(_distinct(found)), 'family')}"
    told = phrase(strong(counts), f" ({clip(clean(kind), NAME_LIMIT)}): {why}: ")
    return phrase(told, facts.cells(cells, names))


def model_table(facts: FoldFacts, limit: int) -> Table:
    """Today and then, with the steps between."""
    models = facts.audit.models
    rows = listing(map(_model_row, models[:limit]), len(models), "model")
    return Table(_MODEL_HEADERS, rows, small=True, about=_ABOUT_MODELS)


def _model_row(one: FoldModel) -> Row:
    steps = (one.not_inlined, one.shapes_erased, one.constants_erased, one.both_erased)
    return (
        name_cell(clip(one.model, _NARROW)),
        phrase(amount(one.regions, "count")),
        phrase(amount(one.today, "count")),
        phrase(strong(folded_away(one.regions, one.today).removesuffix(" %"))),
        *(phrase(amount(step, "count")) for step in steps),
        phrase(amount(one.folded, "count")),
        phrase(strong(folded_away(one.regions, one.folded).removesuffix(" %"))),
    )
