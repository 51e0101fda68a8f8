"""What is shown of an experiment, in the order in which it is read, and as Markdown: the whole of `lab.md`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bot.core.constraint import Constraint, Divisible, Range, Static
from bot.core.lab.lab_sums import fits as fitted
from bot.core.lab.lab_sums import sums
from bot.core.lab.lab_values import Lab, LabVariant
from bot.render.lab.lab_answers import answers, beyond_stack, name, remarks, unmeasured
from bot.render.lab.lab_tables import fit_table, tables
from bot.render.text.escape import clean, clip
from bot.render.text.filters import plural
from bot.render.text.fitting import first_fitting, within_bytes
from bot.render.text.phrase import Phrase, code, joined, phrase, strong
from bot.render.text.selection import Listing, first
from bot.render.text.text_tables import Table

LAB_LIMIT_BYTES = 256 * 1024
"""A quarter of what GitHub takes as the summary of one step, in UTF-8."""
TEMPLATE = "lab.md.j2"
_TEXT_LIMIT = 400


@dataclass(frozen=True, slots=True)
class LabRoom:
    """The most that is shown: rows of one table, answers, reasons, names in one place."""

    rows: int
    answers: int
    reasons: int
    names: int


_TIERS = (LabRoom(600, 60, 40, 16), LabRoom(160, 30, 20, 8), LabRoom(40, 12, 10, 4), LabRoom(6, 6, 4, 2))


@dataclass(frozen=True, slots=True)
class LabView:
    """What is shown.

    Attributes:
        title: the experiment and its question.
        answers: what it answers, in sentences.
        leading: the tables to look at first; `models` have every model.
        fits: lines along the axis; empty without one.
        made: with what it was measured.
    """

    title: Phrase
    answers: Listing[Phrase]
    stack: tuple[Phrase, ...]
    leading: tuple[Table, ...]
    fits: Table
    remarks: Listing[Phrase]
    unmeasured: Listing[Phrase]
    models: tuple[Table, ...]
    variants: tuple[Phrase, ...]
    made: Phrase


def lab_view(lab: Lab, room: LabRoom) -> LabView:
    """The result as values to lay out."""
    every, lines = sums(lab), list(fitted(lab))
    leading, models = tables(lab, every, room.rows)
    return LabView(
        title=phrase(strong(f"Lab: {clean(lab.experiment)}"), f". {clip(clean(lab.question), _TEXT_LIMIT)}"),
        answers=first(answers(lab, every, lines), room.answers, "answer"),
        stack=tuple(beyond_stack(lab, every, room.names)),
        leading=tuple(leading),
        fits=fit_table(lab, lines, room.rows),
        remarks=remarks(lab, room.reasons),
        unmeasured=unmeasured(lab, room.reasons, room.names),
        models=tuple(models),
        variants=tuple(_variants(lab)),
        made=_made(lab),
    )


def _variants(lab: Lab) -> list[Phrase]:
    """What each variant is."""
    several = len({variant.compiler for variant in lab.variants}) > 1
    return [phrase(name(variant.name), ": ", joined(_parts(lab, variant, several), "; ")) for variant in lab.variants]


def _parts(lab: Lab, variant: LabVariant, several: bool) -> list[Phrase]:
    """What makes it another one than the others."""
    told = []
    if variant.at is not None:
        told.append(phrase(plural(variant.at, lab.axis)))
    if several and variant.compiler:
        told.append(phrase("IREE ", _code(variant.compiler.version)))
    if variant.flags:
        told.append(_code(" ".join(variant.flags)))
    for target, flags in sorted(variant.targets.items()):
        told.append(phrase("on ", _code(target), " ", _code(" ".join(flags)) if flags else ""))
    if variant.shapes:
        told.append(phrase(f"dynamic dimensions: {shape_words(variant.shapes)}"))
    if variant.folded:
        told.append(phrase("folded as fold does it"))
    told += [phrase(name(row), " is ", _code(file)) for row, file in sorted(variant.files.items())]
    return told or [phrase("as the configuration has it")]


def shape_words(constraint: Constraint) -> str:
    """What is said of dimensions."""
    if isinstance(constraint, Static):
        return f"{constraint.size:,}"
    if isinstance(constraint, Range):
        return f"{constraint.min:,} to {constraint.max:,}"
    if isinstance(constraint, Divisible):
        return f"multiples of {constraint.by:,} from {constraint.min:,} to {constraint.max:,}"
    return "as they are"


def _code(text: str) -> Phrase:
    return phrase(code(clip(clean(text), _TEXT_LIMIT)))


def _made(lab: Lab) -> Phrase:
    versions = dict.fromkeys(variant.compiler.version for variant in lab.variants if variant.compiler)
    compilers = joined(map(_code, versions), ", ")
    flags = phrase(", flags ", _code(" ".join(lab.flags))) if lab.flags else ()
    ran = phrase(" Run on ", _code(lab.machine), ".") if lab.machine else ()
    return phrase("IREE ", compilers, flags, ".", ran)


def render_lab(lab: Lab, templates_dir: Path | None = None) -> str:
    """The Markdown, at most `LAB_LIMIT_BYTES` in UTF-8; raises TemplateError where a template does not work.

    Args:
        templates_dir: the user's templates, searched before the default ones.
    """
    fits = within_bytes(LAB_LIMIT_BYTES)
    return first_fitting(TEMPLATE, _TIERS, lambda room: {"view": lab_view(lab, room)}, fits, templates_dir)
