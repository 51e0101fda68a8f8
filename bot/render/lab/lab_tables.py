"""The tables of an experiment: each target's variants side by side, then model by model, and fitted lines."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.lab.experiment import COLUMN_BY_ID, FOLDED_AWAY
from bot.core.lab.lab_sums import Fit, Sums, is_largest, share_away
from bot.core.lab.lab_values import Lab, LabCell
from bot.render.lab.lab_words import (
    INSTRUCTIONS,
    TIME,
    bar,
    header,
    label,
    largest_of,
    mean_ratio,
    priced,
    shared,
    valued,
)
from bot.render.text.escape import clip
from bot.render.text.filters import MINUS, UNKNOWN, amount, plural
from bot.render.text.phrase import Phrase, code, phrase, strong
from bot.render.text.selection import listing
from bot.render.text.text_tables import ABSENT, Row, Table, name_cell
from bot.render.view.facts import NAME_LIMIT

_EQUAL = {True: "equal", False: "⚠️ differ", None: UNKNOWN}


def is_run(sums: Sums) -> bool:
    """True where artifacts were run, so that there is something to say of time."""
    return any(cell.price or cell.instructions is not None for cell in sums.cells.values())


def picture_column(lab: Lab) -> str:
    """What the bars show: the first column that is a metric."""
    return next((column for column in lab.columns if column != FOLDED_AWAY), "artifact_bytes")


def total_table(lab: Lab, sums: Sums) -> Table:
    """A row for each variant: sums over the models that all of them measured."""
    timed = is_run(sums)
    counted = timed and any(sums.instructions(variant.name) for variant in sums.variants)
    more = [*([TIME] if timed else []), *([INSTRUCTIONS] if counted else [])]
    shown = picture_column(lab)
    headers = ("variant", label(shown), *(header(column) for column in lab.columns), *more)
    largest = largest_of([sums.value(variant.name, shown) for variant in sums.variants])
    rows = [_total_row(lab, sums, variant.name, more, largest) for variant in sums.variants]
    return Table(
        headers, listing(rows, len(rows), "variant"), 2, caption=_caption(sums), about=_about(lab, sums, timed)
    )


def _caption(sums: Sums) -> Phrase:
    left = f" ({plural(sums.more, 'model')} left out: not measured in every variant)" if sums.more else ""
    if len(sums.models) == 1:
        return phrase(_on(sums), ", ", code(clip(sums.models[0], NAME_LIMIT)), left)
    return phrase(_on(sums), f", {plural(len(sums.models), 'model')} together{left}")


def _on(sums: Sums) -> Phrase:
    """The target, and the variant that changes and times are against."""
    against = phrase(", against ", code(clip(sums.reference, NAME_LIMIT))) if len(sums.variants) > 1 else ()
    return phrase("On ", code(clip(sums.target, NAME_LIMIT)), against if sums.reference else ())


def _about(lab: Lab, sums: Sums, timed: bool) -> str:
    largest = [label(column) for column in lab.columns if column != FOLDED_AWAY and is_largest(column)]
    said = []
    if largest and len(sums.models) > 1:
        said.append(f"Of {', '.join(largest)} the largest of all models.")
    if timed and len(sums.models) > 1:
        counts = [mean.models for variant in sums.variants if (mean := sums.time(variant.name))]
        said.append(f"CPU time: geometric mean over {plural(max(counts, default=0), 'model')}.")
    if varying := [label(column) for column in lab.columns if column != FOLDED_AWAY and not COLUMN_BY_ID[column].exact]:
        said.append(f"What varies from run to run: {', '.join(varying)}.")
    return " ".join(said)


def _total_row(lab: Lab, sums: Sums, name: str, more: Sequence[str], largest: int) -> Row:
    first = sums.reference
    cells = [_total(sums, name, first, column) for column in lab.columns]
    ratios = [phrase(_ratio(sums, name, one)) for one in more]
    drawn = bar(sums.value(name, picture_column(lab)), largest)
    return (name_cell(clip(name, NAME_LIMIT)), phrase(code(drawn)) if drawn else phrase(ABSENT), *cells, *ratios)


def _ratio(sums: Sums, name: str, what: str) -> str:
    """The mean over all models; of one alone with its interval."""
    cell = sums.cells.get((sums.models[0], name)) if len(sums.models) == 1 else None
    if what == TIME and cell is not None and cell.price is not None:
        return priced(cell.price)
    mean = sums.time(name) if what == TIME else sums.instructions(name)
    return mean_ratio(mean, is_first=name == sums.reference)


def _total(sums: Sums, name: str, first: str, column: str) -> Phrase:
    if column == FOLDED_AWAY:
        return phrase(shared(sums.away(name)))
    return phrase(valued(sums.value(name, column), sums.value(first, column), is_first=name == first))


def model_table(lab: Lab, sums: Sums, limit: int) -> Table:
    """A row for each model and variant."""
    timed = is_run(sums)
    more = [TIME, "outputs"] if timed else []
    if timed and any(cell.instructions is not None for cell in sums.cells.values()):
        more.insert(1, INSTRUCTIONS)
    headers = ("model", "variant", *(header(column) for column in lab.columns), *more)
    order = {variant.name: place for place, variant in enumerate(sums.variants)}
    keys = sorted(sums.cells, key=lambda key: (key[0], order[key[1]]))
    rows = [_model_row(lab, sums, *key, more) for key in keys[:limit]]
    return Table(headers, listing(rows, len(keys), "row"), numbers_from=2, small=True, caption=_on(sums))


def _model_row(lab: Lab, sums: Sums, model: str, variant: str, more: Sequence[str]) -> Row:
    cell, is_first = sums.cells[model, variant], variant == sums.reference
    first = sums.cells.get((model, sums.reference))
    names = (name_cell(clip(model, NAME_LIMIT)), name_cell(clip(variant, NAME_LIMIT)))
    if not cell.measured:
        return (
            *names,
            phrase(strong(cell.status.replace("-", " "))),
            *[phrase(ABSENT)] * (len(lab.columns) + len(more) - 1),
        )
    values = [_value(cell, first, column, is_first) for column in lab.columns]
    told = {TIME: _time(sums, cell, is_first), INSTRUCTIONS: amount(cell.instructions, "count")}
    told["outputs"] = ABSENT if is_first else _EQUAL[cell.equal]
    return (*names, *values, *(phrase(told[one]) for one in more))


def _value(cell: LabCell, first: LabCell | None, column: str, is_first: bool) -> Phrase:
    if column == FOLDED_AWAY:
        return phrase(shared(share_away(cell)))
    before = first.value(column) if first else None
    return phrase(valued(cell.value(column), before, is_first=is_first))


def _time(sums: Sums, cell: LabCell, is_first: bool) -> str:
    if is_first:
        return "× 1"
    if cell.price is not None:
        return priced(cell.price)
    return UNKNOWN if sums.time_ratio(cell) is None else "× 1 (same artifact)"


def fit_table(lab: Lab, fits: Sequence[Fit], limit: int) -> Table:
    """A line of its own for each model, target and column."""
    headers = ("model", "target", "column", f"for each {lab.axis}", f"at 0 {lab.axis}s", "fit")
    rows = [_fit_row(fit) for fit in fits[:limit]]
    return Table(
        headers, listing(rows, len(fits), "line"), numbers_from=3, caption=phrase("Lines fitted by least squares")
    )


def _fit_row(fit: Fit) -> Row:
    return (
        name_cell(clip(fit.model, NAME_LIMIT)),
        name_cell(clip(fit.target, NAME_LIMIT)),
        phrase(label(fit.column)),
        phrase(number(fit.slope, fit.column)),
        phrase(number(fit.start, fit.column)),
        phrase(quality(fit)),
    )


def number(value: float, column: str) -> str:
    """A number of a fitted line, with its unit: as many digits as say something."""
    unit = {"count": "", "bytes": " B", "ms": " ms", "KiB": " KiB"}[COLUMN_BY_ID[column].unit]
    digits = 0 if value == round(value) else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}{unit}".replace("-", MINUS)


def quality(fit: Fit) -> str:
    """How well the line fits: `exact`, or how far the farthest point is from it."""
    return "exact" if fit.is_exact else f"off by up to {number(fit.off, fit.column)}"


def tables(lab: Lab, every: Sequence[Sums], limit: int) -> tuple[list[Table], list[Table]]:
    """The tables to lead with, and those that have every model; without an axis sums lead."""
    each = [model_table(lab, sums, limit) for sums in every]
    if lab.axis:
        return each, []
    totals = [total_table(lab, sums) for sums in every if sums.models]
    wide = [
        table
        for table, sums in zip(each, every, strict=True)
        if len({model for model, _ in sums.cells}) > 1 or not sums.models
    ]
    return totals, wide
