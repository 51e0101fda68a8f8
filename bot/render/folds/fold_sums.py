"""What folding comes to over all cells, in words: sums that are exact, and over how many cells each is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from bot.core.folds.fold_values import FAILED, BeforeAfter, FoldAudit, FoldCell, FoldModel
from bot.core.values.snapshot import CellKey
from bot.render.text.escape import clean, clip
from bot.render.text.filters import UNKNOWN, plural, relative, sides
from bot.render.text.phrase import Phrase, code, phrase, strong
from bot.render.view.facts import cells_phrase, short_names

FOLDED = "folded"
_NAMED = 6
_TEXT_LIMIT = 300


@dataclass(frozen=True)
class FoldFacts:
    """An audit, indexed; names are told as those of a report."""

    audit: FoldAudit

    @cached_property
    def short(self) -> dict[str, str]:
        """Target → the name for narrow columns."""
        return short_names({cell.target for cell in self.audit.cells}, {})

    @cached_property
    def measured(self) -> tuple[FoldCell, ...]:
        """The cells that have an artifact."""
        return tuple(cell for cell in self.audit.cells if cell.artifact_bytes.before is not None)

    @cached_property
    def measured_targets(self) -> frozenset[str]:
        """Targets with a cell that was measured."""
        return frozenset(cell.target for cell in self.measured)

    @cached_property
    def models(self) -> frozenset[str]:
        """Models with a cell that was measured."""
        return frozenset(cell.model for cell in self.measured)

    def cells(self, found: Sequence[FoldCell], limit: int) -> Phrase:
        """Cells in words, with about `limit` names."""
        return cells_phrase(self, [CellKey(cell.model, cell.target) for cell in found], limit)


def folded_away(regions: int | None, executables: int | None) -> str:
    """The share of the dispatch regions that has no executable of its own: `78.2 %`; `n/a` where it is not known."""
    if not regions or executables is None:
        return UNKNOWN
    return f"{(regions - executables) / regions * 100:.1f} %"


def sentences(facts: FoldFacts) -> tuple[Phrase, ...]:
    """What a reader should know who reads no table; the first is the headline."""
    folded = [cell for cell in facts.audit.cells if cell.state == FOLDED]
    differing = [cell for cell in folded if cell.equal is False]
    summed = [cell for cell in folded if cell.equal is not False]
    nothing = "no fold kept the outputs as they are" if differing else "nothing was folded"
    told = [_headline(summed, len(facts.audit.cells), nothing), _outputs(summed)]
    told += _differing(facts, differing, "more cell" if summed else "cell")
    return tuple(filter(None, [*told, _share(facts.audit.models), _rest(facts), _price(facts.audit), _made(facts)]))


def _headline(summed: Sequence[FoldCell], count: int, nothing: str) -> Phrase:
    if not summed:
        return phrase(strong(f"Fold audit: {nothing} in {plural(count, 'cell')}"), ".")
    folded = f"{len(summed):,} of {plural(count, 'cell')} folded"
    sizes, counts = (_known(summed, of) for of in (_artifact, _executables))
    parts = (("artifacts", sizes, "bytes"), ("executables", counts, "count"))
    words = [f"{what} {_sum(found, unit)}" for what, found, unit in parts]
    if len(sizes) != len(counts):
        words = [f"{said} over {plural(len(part[1]), 'cell')}" for said, part in zip(words, parts, strict=True)]
        return phrase(strong(f"Fold audit: {folded}"), f": {'; '.join(words)}.")
    return phrase(strong(f"Fold audit: {folded}"), f": {' and '.join(words)}, added up over {_these(sizes, summed)}.")


def _these(known: Sequence[object], cells: Sequence[FoldCell]) -> str:
    if len(known) != len(cells):
        return f"the {len(known):,} of them where both are known"
    return f"these {plural(len(cells), 'cell')}" if len(cells) > 1 else "this cell"


def _artifact(cell: FoldCell) -> BeforeAfter:
    return cell.artifact_bytes


def _executables(cell: FoldCell) -> BeforeAfter:
    return cell.executables


def _known(cells: Sequence[FoldCell], of: Callable[[FoldCell], BeforeAfter]) -> list[tuple[int, int]]:
    """Before and after of the cells where both are known."""
    pairs = ((of(cell).before, of(cell).after) for cell in cells)
    return [(before, after) for before, after in pairs if before is not None and after is not None]


def _sum(pairs: Sequence[tuple[int, int]], unit: str) -> str:
    if not pairs:
        return UNKNOWN
    before, after = (sum(side) for side in zip(*pairs, strict=True))
    both = sides(before, after, unit)
    return both if before == after else f"{both} ({relative(before, after)})"


def _outputs(summed: Sequence[FoldCell]) -> Phrase:
    if not summed:
        return ()
    equal = [cell for cell in summed if cell.equal is True]
    if not equal:
        return phrase("Nothing is known of outputs and price: no outputs were compared that say anything.")
    sizes, rest = _known(equal, _artifact), len(summed) - len(equal)
    said = strong(f"Outputs equal in {plural(len(equal), 'cell')}")
    return phrase(said, f": {_sum(sizes, 'bytes')}.", f" {rest:,} not known." if rest else "")


def _differing(facts: FoldFacts, cells: Sequence[FoldCell], noun: str) -> Iterator[Phrase]:
    if cells:
        count = f"⚠️ outputs differ in {plural(len(cells), noun)}"
        yield phrase(strong(count), ", in none of these sums: ", facts.cells(cells, _NAMED), ".")


def _share(models: Sequence[FoldModel]) -> Phrase:
    """Of the models of which all three are known."""
    known = [
        (one.regions, one.today, one.folded)
        for one in models
        if one.regions is not None and one.today is not None and one.folded is not None
    ]
    if not known:
        return ()
    regions, today, after = (sum(column) for column in zip(*known, strict=True))
    models_told = f"{plural(regions, 'dispatch region')} of {plural(len(known), 'model')}"
    away = folded_away(regions, today), folded_away(regions, after)
    return phrase(f"Of {models_told}, {away[0]} are folded away today, and ", strong(away[1]), " with folding.")


def _rest(facts: FoldFacts) -> Phrase:
    words = {
        "nothing-to-fold": ("cell has nothing to fold", "cells have nothing to fold"),
        "unsupported": ("is not supported", "are not supported"),
        FAILED: ("was not measured", "were not measured"),
    }
    counts = {state: sum(cell.state == state for cell in facts.audit.cells) for state in words}
    told = [f"{count:,} {words[state][count != 1]}" for state, count in counts.items() if count]
    if told and not counts["nothing-to-fold"]:
        told[0] = told[0].replace(" ", " cell " if told[0].startswith("1 ") else " cells ", 1)
    return phrase(", ".join(told), ".") if told else ()


def _price(audit: FoldAudit) -> Phrase:
    ran = phrase(" Run on ", code(clip(clean(audit.machine), _TEXT_LIMIT)), ".") if audit.machine else ()
    if audit.max_slowdown is None:
        return phrase("Every fold with gain was kept, whatever its price.", ran)
    return phrase(f"Folds that make a model more than {audit.max_slowdown * 100:g} % slower were left out.", ran)


def _made(facts: FoldFacts) -> Phrase:
    compiler, flags = facts.audit.compiler, " ".join(facts.audit.flags)
    named = phrase("IREE ", code(clip(clean(compiler.version), _TEXT_LIMIT)))
    spec = phrase(" (", code(clip(clean(compiler.spec), _TEXT_LIMIT)), ")") if compiler.spec else ()
    beside = phrase(", flags ", code(clip(clean(flags), _TEXT_LIMIT))) if flags else ()
    return phrase(named, spec, beside, ".")
