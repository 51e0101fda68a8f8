"""List what a reader should know about the measurement of an experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from bot.core.growth import growths
from bot.core.lab import SAME, Lab
from bot.core.runs import Run
from bot.core.snapshot import CellKey
from bot.show.blocks import Phrase, joined, phrase, strong
from bot.show.escape import clean, clip
from bot.show.filters import plural
from bot.show.growth import growth_notes
from bot.show.lab_words import REASON_CHARS, name
from bot.show.times import time_notes

_CELLS = 8


def remarks(lab: Lab) -> list[Phrase]:
    """Return what a reader should know about the measurement.

    The remarks are about chance, outputs that differ, why nothing was timed, and notes
    of the measurements.
    """
    lines = list[Phrase]()
    varying = []
    differing = []
    for variant, cell in lab.cells:
        if cell.others:
            varying.append((variant, cell.key))
        if lab.run(variant, cell).equal is False:
            differing.append((variant, cell.key))
    if varying:
        varies = (
            "These builds are non-deterministic, and are reported as the range of all"
            " results: "
        )
        lines.append(phrase(varies, _listed(varying), "."))
    if differing:
        references = lab.study.references
        names = dict[str, None]()
        for _, key in differing:
            names[references[key.target].name] = None
        than = phrase(" from those of ", joined(map(name, names), " or "), ": ")
        outputs = strong("⚠️ Outputs differ")
        lines.append(phrase(outputs, than, _listed(differing), "."))
    if lab.experiment.run:
        lines += map(phrase, _ran(lab))
    lines += growth_notes(growths(lab.study, lab.experiment.columns))
    lines += time_notes(lab)
    lines += (phrase(clip(clean(note), REASON_CHARS)) for note in lab.notes)
    return lines


def _ran(lab: Lab) -> Iterator[str]:
    """Yield in how many builds outputs are equal, and why times are not known.

    Each reason is yielded once.
    """
    runs = [lab.run(*pair) for pair in lab.cells]
    compared = []
    notes = []
    for run in runs:
        if _is_compared(run):
            compared.append(run)
        if run.equal is None and run.equal_note != run.price_note:
            notes.append(run.equal_note)
    unknown = _reasons(notes)
    if compared:
        equal = sum(run.equal is True for run in compared)
        verb = "was" if len(compared) == 1 else "were"
        line = (
            f"Outputs equal in {equal:,} of {plural(len(compared), 'build')} that"
            f" {verb} run."
        )
        if unknown:
            line = f"{line} Not known: {unknown}."
        yield line
    elif unknown:
        yield f"Outputs not known to be equal: {unknown}."
    untimed = _reasons(run.price_note for run in runs)
    if untimed:
        yield f"Not timed: {untimed}."


def _is_compared(run: Run) -> bool:
    """Return whether the outputs of a run were compared with those of another."""
    if run.price:
        return True
    return run.equal is not None and run.equal_note != SAME


def _reasons(notes: Iterable[str]) -> str:
    """Return the reasons with the number of their builds, most frequent first."""
    counts = Counter[str]()
    for note in notes:
        text = clip(clean(note), REASON_CHARS)
        if note != SAME and text:
            counts[text] += 1
    by_count = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return "; ".join(f"{text} ({plural(count, 'build')})" for text, count in by_count)


def _listed(cells: Sequence[tuple[str, CellKey]]) -> Phrase:
    cell_names = []
    for variant, key in cells[:_CELLS]:
        build = phrase(name(key.model), " on ", name(key.target))
        cell_names.append(phrase(build, " with ", name(variant)))
    if len(cells) > _CELLS:
        cell_names.append(phrase(f"{len(cells) - _CELLS} more"))
    return joined(cell_names, ", ")
