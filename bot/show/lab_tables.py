"""Draw the tables of an experiment: sums by variant, and the rows of each model."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.delta import value_of
from bot.core.lab import Lab
from bot.core.lab_sums import Sums
from bot.core.record import Value, ends
from bot.core.runs import Price
from bot.show.blocks import ABSENT, Phrase, Row, Table, code, listed, phrase, strong
from bot.show.escape import clip
from bot.show.facts import NAME_LIMIT
from bot.show.filters import UNKNOWN, amount, plural, relative
from bot.show.lab_answers import mean_ratio_words
from bot.show.lab_words import TIME, header, name
from bot.show.stack_gate import (
    DEFAULT_GATE,
    OWN_GATE,
    gate_headers,
    gate_words,
    refused_words,
)

_EQUAL = {True: "equal", False: "⚠️ differ", None: UNKNOWN}


def tables(lab: Lab, lab_sums: Sequence[Sums]) -> tuple[list[Table], list[Table]]:
    """Return the tables of sums, to lead with, and those of every model."""
    totals = []
    models = []
    for total in lab_sums:
        if total.models:
            totals.append(_total_table(lab, total))
        models.append(_model_table(lab, total))
    return totals, models


def _is_run(total: Sums) -> bool:
    """Return whether artifacts were run, so that there are times to show."""
    return any(total.run(*key).price for key in total.cells)


def _on(total: Sums) -> Phrase:
    """Return the target, and the variant that changes and times are against."""
    against = phrase(", against ", code(clip(total.reference, NAME_LIMIT)))
    return phrase(
        "On ",
        code(clip(total.target, NAME_LIMIT)),
        against if len(total.variants) > 1 and total.reference else (),
    )


def _total_table(lab: Lab, total: Sums) -> Table:
    """Return a row for each variant: sums over the models that all of them measured."""
    columns = lab.experiment.columns
    headers = ["variant", *map(header, columns), *gate_headers(total)]
    is_run = _is_run(total)
    if is_run:
        headers.append(TIME)
    rows = []
    for variant in total.variants:
        is_first = variant.name == total.reference
        texts = list[str]()
        for column in columns:
            value = total.value(variant.name, column)
            reference = total.value(total.reference, column)
            texts.append(_valued(value, reference, is_first=is_first))
        texts += [refused_words(total, variant.name) for _ in gate_headers(total)]
        if is_run:
            texts.append("× 1" if is_first else mean_ratio_words(total, variant.name))
        rows.append((name(variant.name), *map(phrase, texts)))
    counted = f", {plural(len(total.models), 'model')}"
    if len(total.models) > 1:
        counted += " together"
    if total.more:
        missing = plural(total.more, "model")
        counted += f" ({missing} left out: not measured in every variant)"
    return Table(
        tuple(headers),
        listed(rows, "variant"),
        caption=phrase(_on(total), counted),
    )


def _model_table(lab: Lab, total: Sums) -> Table:
    extra_columns = [*gate_headers(total)]
    if _is_run(total):
        extra_columns += [TIME, "outputs"]
    headers = ("model", "variant", *map(header, lab.experiment.columns), *extra_columns)
    order = {variant.name: place for place, variant in enumerate(total.variants)}
    keys = sorted(total.cells, key=lambda key: (key[0], order[key[1]]))
    columns = (*lab.experiment.columns, *extra_columns)
    rows = [_model_row(total, *key, columns) for key in keys]
    return Table(
        headers,
        listed(rows, "row"),
        numbers_from=2,
        small=True,
        caption=_on(total),
    )


def _model_row(total: Sums, model: str, variant: str, columns: Sequence[str]) -> Row:
    cell = total.cells[model, variant]
    run = total.run(model, variant)
    names = (name(model), name(variant))
    is_first = variant == total.reference
    if not cell.measured:
        return (
            *names,
            phrase(strong(cell.status.replace("-", " "))),
            *[phrase(ABSENT)] * (len(columns) - 1),
        )
    reference = total.cells.get((model, total.reference))
    if is_first:
        time = "× 1"
    elif run.price:
        time = _priced(run.price)
    elif total.time_ratio(model, variant) is None:
        time = UNKNOWN
    else:
        time = "× 1 (same artifact)"
    ran = {TIME: time, "outputs": ABSENT if is_first else _EQUAL[run.equal]}
    ran |= dict.fromkeys((DEFAULT_GATE, OWN_GATE), gate_words(cell))
    texts = []
    for column in columns:
        if column in ran:
            texts.append(ran[column])
            continue
        before: Value = None
        if reference:
            before = value_of(reference, column)
        texts.append(_valued(value_of(cell, column), before, is_first=is_first))
    return (*names, *map(phrase, texts))


def _valued(value: Value, reference: Value, *, is_first: bool) -> str:
    """Return a value, and how it differs from the reference's value.

    Examples are `84,294 (+0.4 %)` and `54,168..55,288 (−0.6..+3.6 %)`.
    """
    if (
        is_first
        or value is None
        or not reference
        or value == reference
        or not ends(reference)[0]
    ):
        return amount(value, "count")
    return f"{amount(value, 'count')} ({relative(reference, value)})"


def _priced(price: Price) -> str:
    """Return a ratio with its interval: `× 0.98 [0.97, 1.01]`."""
    return f"× {price.ratio:.2f} [{price.low:.2f}, {price.high:.2f}]"
