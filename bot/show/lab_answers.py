"""Say in a sentence for each target how the variants of an experiment differ."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.lab import Lab
from bot.core.lab_sums import Sums
from bot.core.metrics import METRIC_BY_ID
from bot.core.record import certain, difference, ends
from bot.show.blocks import Phrase, joined, phrase
from bot.show.filters import UNKNOWN, amount, plural, relative
from bot.show.lab_words import TIME, label, name, some_names

_COLUMNS = 4


def answers(lab: Lab, lab_sums: Sequence[Sums]) -> list[Phrase]:
    """Return one sentence for each target."""
    sentences = []
    for total in lab_sums:
        if total.models and len(total.variants) > 1:
            sentences.append(_answer(lab, total))
    return sentences


def _answer(lab: Lab, total: Sums) -> Phrase:
    """Return how each variant differs from the reference on one target.

    The figures are over all models together.
    """
    exact = _exact(lab)
    measured = _measured(total, total.reference, exact)
    parts = list[Phrase]()
    same = list[str]()
    partly = list[str]()
    for compared in total.variants:
        variant = compared.name
        if variant == total.reference:
            continue
        changes = differences(lab, total, variant)
        if changes:
            parts.append(phrase(name(variant), " ", ", ".join(changes)))
        elif _measured(total, variant, measured) == measured:
            same.append(variant)
        elif _measured(total, variant, measured):
            partly.append(variant)
    if same and measured:
        parts.append(phrase("no change with ", some_names(same)))
    if partly and not parts:
        parts.append(phrase("no change in the known numbers with ", some_names(partly)))
    if not parts:
        nothing = "all shown numbers vary from run to run"
        if exact:
            nothing = "no other variant was measured"
        parts.append(phrase(nothing))
    count = plural(len(total.models), "model")
    lead = phrase("On ", name(total.target), f", {count}, against ")
    return phrase(lead, name(total.reference), ": ", joined(parts, "; "), ".")


def _measured(total: Sums, variant: str, columns: Sequence[str]) -> list[str]:
    """Return the columns that have a value in a variant."""
    return [column for column in columns if total.value(variant, column) is not None]


def _exact(lab: Lab) -> list[str]:
    """Return the columns that do not vary from run to run.

    It is not known whether the other columns changed.
    """
    return [column for column in lab.experiment.columns if METRIC_BY_ID[column].exact]


def differences(lab: Lab, total: Sums, variant: str) -> list[str]:
    """Return `artifact +0.4 %` for the first columns that changed, and the CPU time.

    Columns that vary from run to run are left out.
    """
    changes = list[str]()
    for column in _exact(lab):
        text = _difference(total, variant, column)
        if text and len(changes) < _COLUMNS:
            changes.append(text)
    mean = total.time(variant)
    if mean is None or not (changes or round(mean.ratio, 2) != 1):
        return changes
    return [*changes, f"{TIME} {mean_ratio_words(total, variant)}"]


def mean_ratio_words(total: Sums, variant: str) -> str:
    """Return the mean ratio of CPU time.

    It names the number of models if the mean is not over all.
    """
    if (mean := total.time(variant)) is None:
        return UNKNOWN
    over = ""
    if mean.models != len(total.models):
        over = f" ({plural(mean.models, 'model')})"
    return f"× {mean.ratio:.2f}{over}"


def _difference(total: Sums, variant: str, column: str) -> str:
    before = total.value(total.reference, column)
    after = total.value(variant, column)
    if before is None or after is None or before == after:
        return ""
    if not ends(before)[0]:
        return f"{label(column)} {amount(before, 'count')} → {amount(after, 'count')}"
    is_open = certain(difference(before, after)) is None
    return f"{label(column)} {relative(before, after)}{' (open)' if is_open else ''}"
