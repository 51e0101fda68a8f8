"""What an experiment answers, in sentences: how each variant differs, what needs more stack, what was not measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bot.core.lab.experiment import COLUMN_BY_ID, FOLDED_AWAY
from bot.core.lab.lab_sums import Fit, Sums
from bot.core.lab.lab_values import SAME, Lab, LabCell, references
from bot.core.spread import certain, difference, ends
from bot.render.lab.lab_tables import number, quality
from bot.render.lab.lab_words import TIME, label, shared
from bot.render.text.escape import clean, clip
from bot.render.text.filters import amount, plural, relative
from bot.render.text.phrase import Phrase, code, joined, phrase, strong
from bot.render.text.selection import Listing, listing
from bot.render.view.facts import NAME_LIMIT

_VARIANTS, _COLUMNS = 10, 4
_WHY_LIMIT = 300


def name(text: str) -> Phrase:
    """A name that is not ours."""
    return phrase(code(clip(clean(text), NAME_LIMIT)))


def answers(lab: Lab, every: Sequence[Sums], fits: Sequence[Fit]) -> list[Phrase]:
    """One sentence for each target, or for each model and target where there is an axis."""
    if lab.axis:
        keys = dict.fromkeys((fit.model, fit.target) for fit in fits)
        return [_along(lab, *key, [fit for fit in fits if (fit.model, fit.target) == key]) for key in keys]
    return [answer(lab, sums) for sums in every if sums.models and len(sums.variants) > 1]


def answer(lab: Lab, sums: Sums) -> Phrase:
    """How each variant differs from the reference on one target, over all models together."""
    others = [variant.name for variant in sums.variants if variant.name != sums.reference]
    told = {variant: differences(lab, sums, variant) for variant in others}
    known = [variant for variant in others if sums.value(variant, "artifact_bytes") is not None]
    moved = [variant for variant in others if told[variant]]
    still = [variant for variant in known if not told[variant]]
    parts = [phrase(name(variant), " ", ", ".join(told[variant])) for variant in moved[:_VARIANTS]]
    if len(moved) > _VARIANTS:
        parts.append(phrase(f"{len(moved) - _VARIANTS} more in the table"))
    for is_whole, said in ((True, "no change with "), (False, "no change in what is known with ")):
        if names := [variant for variant in still if _is_whole(lab, sums, variant) is is_whole]:
            parts.append(phrase(said, joined(map(name, names), ", ")))
    where = f", {plural(len(sums.models), 'model')}, against "
    led = phrase("On ", name(sums.target), where, name(sums.reference), ": ")
    return phrase(led, joined(parts, "; ") or phrase("no other variant was measured"), ".")


def _is_whole(lab: Lab, sums: Sums, variant: str) -> bool:
    """True where each column that the reference has is known of this one, too."""
    columns = [
        column for column in lab.columns if column != FOLDED_AWAY and sums.value(sums.reference, column) is not None
    ]
    return all(sums.value(variant, column) is not None for column in columns)


def differences(lab: Lab, sums: Sums, variant: str) -> list[str]:
    """`artifact +0.4 %`, for the first columns that changed and hold still from run to run; and the time."""
    exact = [column for column in lab.columns if column == FOLDED_AWAY or COLUMN_BY_ID[column].exact]
    told = [words for column in exact if (words := _difference(sums, variant, column))][:_COLUMNS]
    mean = sums.time(variant)
    if mean is None or not (told or round(mean.ratio, 2) != 1):
        return told
    over = f" ({plural(mean.models, 'model')})" if mean.models != len(sums.models) else ""
    return [*told, f"{TIME} × {mean.ratio:.2f}{over}"]


def _difference(sums: Sums, variant: str, column: str) -> str:
    first = sums.reference
    if column == FOLDED_AWAY:
        before, after = sums.away(first), sums.away(variant)
        return "" if before == after or after is None else f"{label(column)} {shared(before)} → {shared(after)}"
    before_value, after_value = sums.value(first, column), sums.value(variant, column)
    if before_value is None or after_value is None or before_value == after_value:
        return ""
    if not ends(before_value)[0]:
        return f"{label(column)} {amount(before_value, 'count')} → {amount(after_value, 'count')}"
    is_open = certain(difference(before_value, after_value)) is None
    return f"{label(column)} {relative(before_value, after_value)}{' (open)' if is_open else ''}"


def _along(lab: Lab, model: str, target: str, fits: Sequence[Fit]) -> Phrase:
    told = [f"{number(fit.slope, fit.column)} {label(fit.column)} ({quality(fit)})" for fit in fits]
    return phrase(name(model), " on ", name(target), f", for each {lab.axis}: {', '.join(told)}.")


def beyond_stack(lab: Lab, every: Sequence[Sums], names: int) -> Iterator[Phrase]:
    """Which models need the compiler's stack limit raised: a line for all variants with which the same do.

    Not of folded ones: where a model is over the limit, that is lifted for all that is tried of it.
    """
    cells = [cell for sums in every for cell in sums.cells.values() if cell.status == "over-stack-limit"]
    groups: dict[frozenset[tuple[str, str]], list[str]] = {}
    for variant in (one for one in lab.variants if not one.folded):
        mine = frozenset((cell.model, cell.target) for cell in cells if cell.variant == variant.name)
        if mine or (cells and _tried(every, variant.name)):
            groups.setdefault(mine, []).append(variant.name)
    for mine, variants in groups.items():
        needing = [cell for cell in cells if (cell.model, cell.target) in mine and cell.variant == variants[0]]
        count = f" {plural(len(mine), 'cell')} {'needs' if len(mine) == 1 else 'need'} the stack limit raised: "
        told = phrase(count, _where(needing, names)) if mine else phrase(" no cell needs the stack limit raised")
        yield phrase("With ", joined(map(name, variants), ", "), told, ".")


def _tried(every: Sequence[Sums], variant: str) -> bool:
    return any(cell.measured and cell.variant == variant for sums in every for cell in sums.cells.values())


def _where(cells: Sequence[LabCell], names: int) -> Phrase:
    """Models by target."""
    targets = sorted({cell.target for cell in cells})
    parts = []
    for target in targets:
        models = sorted({cell.model for cell in cells if cell.target == target})
        more = f" and {len(models) - names} more" if len(models) > names else ""
        parts.append(phrase(joined(map(name, models[:names]), ", "), more, " on ", name(target)))
    return joined(parts, "; ")


def unmeasured(lab: Lab, limit: int, names: int) -> Listing[Phrase]:
    """What was not measured, and why: a line for each reason."""
    groups: dict[tuple[str, str], list[LabCell]] = {}
    for cell in lab.cells:
        if not cell.measured:
            why = clip(clean(cell.failure or cell.status), _WHY_LIMIT)
            groups.setdefault((cell.status, why), []).append(cell)
    lines = [_unmeasured(status, why, cells, names) for (status, why), cells in sorted(groups.items())]
    return listing(lines[:limit], len(lines), "reason")


def _unmeasured(status: str, why: str, cells: Sequence[LabCell], names: int) -> Phrase:
    variants = list(dict.fromkeys(cell.variant for cell in cells))
    led = phrase(
        joined(map(name, variants[:names]), ", "), f" and {len(variants) - names} more" if len(variants) > names else ""
    )
    return phrase(led, f": {plural(len(cells), 'cell')} {status.replace('-', ' ')}: {why}: ", _where(cells, names))


def remarks(lab: Lab, limit: int) -> Listing[Phrase]:
    """What a reader should know: chance, outputs that differ, why nothing was timed, notes of the measurements."""
    lines = [
        *_chance(lab),
        *_differing(lab),
        *_untimed(lab),
        *(phrase(clip(clean(note), _WHY_LIMIT)) for note in lab.notes),
    ]
    return listing(lines[:limit], len(lines), "remark")


def _chance(lab: Lab) -> Iterator[Phrase]:
    if cells := [cell for cell in lab.cells if cell.varies]:
        said = "The compiler does not repeat itself with these, which are told as the range of all that was seen: "
        yield phrase(said, _named(cells), ".")


def _differing(lab: Lab) -> Iterator[Phrase]:
    if cells := [cell for cell in lab.cells if cell.equal is False]:
        found = references(lab.variants, lab.cells)
        names = dict.fromkeys(found[cell.target] for cell in cells)
        than = joined(map(name, names), " or ")
        yield phrase(strong("⚠️ Outputs differ"), " from those of ", than, ": ", _named(cells), ".")


def _untimed(lab: Lab) -> Iterator[Phrase]:
    """What was run; and why times or instructions of cells are not known: each reason once."""
    if not lab.run:
        return
    unknown = _reasons(
        cell.equal_note for cell in lab.cells if cell.equal is None and cell.equal_note not in {"", cell.price_note}
    )
    if compared := [cell for cell in lab.cells if cell.price or (cell.equal is not None and cell.equal_note != SAME)]:
        equal = sum(cell.equal is True for cell in compared)
        were = "was" if len(compared) == 1 else "were"
        but = f" Not known: {'; '.join(unknown)}." if unknown else ""
        yield phrase(f"Outputs equal in {equal:,} of {plural(len(compared), 'cell')} that {were} run.{but}")
    elif unknown:
        yield phrase(f"Outputs not known to be equal: {'; '.join(unknown)}.")
    untimed = _reasons(cell.price_note for cell in lab.cells if cell.price_note != SAME)
    uncounted = _reasons(cell.instructions_note for cell in lab.cells if cell.instructions_note != SAME)
    for what, notes in (("Not timed", untimed), ("No instructions", uncounted)):
        if notes:
            yield phrase(f"{what}: {'; '.join(notes)}.")


def _reasons(notes: Iterable[str]) -> list[str]:
    counts: dict[str, int] = {}
    for note in notes:
        if text := clip(clean(note), _WHY_LIMIT):
            counts[text] = counts.get(text, 0) + 1
    return [
        f"{text} ({plural(count, 'cell')})" for text, count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    ]


def _named(cells: Sequence[LabCell], most: int = 8) -> Phrase:
    told = [phrase(name(cell.model), " on ", name(cell.target), " with ", name(cell.variant)) for cell in cells[:most]]
    more = [phrase(f"{len(cells) - most} more")] if len(cells) > most else []
    return joined([*told, *more], ", ")
