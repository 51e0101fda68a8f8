"""Draw growth with the number of layers: fitted exponents, and warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bot.core.growth import WARNING_EXPONENT, DepthGrowth, Growth
from bot.core.metrics import METRIC_BY_ID
from bot.show.blocks import (
    Phrase,
    Row,
    Table,
    by,
    joined,
    listed,
    phrase,
    strong,
)
from bot.show.filters import MINUS, UNKNOWN, amount
from bot.show.lab_words import header, label, name

VARIES = " (varies)"
_ABOUT = (
    "Values grow as layers^exponent. The interval holds the true exponent with 95 %"
    " probability. The last step is the exponent between the two deepest models alone."
)


def growth_answers(grown: Sequence[DepthGrowth]) -> list[Phrase]:
    """Return the warnings, then one sentence for each build."""
    warnings = []
    for row in grown:
        if row.growth and row.growth.is_warning:
            warnings.append(_warning(row, row.growth))
    return [*warnings, *map(_answer, _builds(grown))]


def _builds(grown: Sequence[DepthGrowth]) -> list[list[DepthGrowth]]:
    """Return the metrics of each build, apart for each group of variants."""
    return list(by(grown, lambda row: (row.key, row.variants)).values())


def _build(row: DepthGrowth) -> Phrase:
    """Return a build, and the variants that its growth covers."""
    names = joined(map(name, row.variants), ", ")
    return phrase(name(row.key.model), " on ", name(row.key.target), " with ", names)


def _answer(rows: Sequence[DepthGrowth]) -> Phrase:
    fits = [f"{label(row.column)} {_fit(row.growth)}" for row in rows if row.growth]
    exponents = ", ".join(fits) or "no exponent could be fitted"
    return phrase("Growth of ", _build(rows[0]), f" as layers^exponent: {exponents}.")


def exponent_text(exponent: float) -> str:
    """Return two digits after the point: `0.98`, `−0.12`, and never `−0.00`."""
    text = f"{abs(exponent):.2f}"
    if exponent < 0 and float(text):
        return f"{MINUS}{text}"
    return text


def _fit(growth: Growth) -> str:
    """Return an exponent with its interval: `0.98 [0.91, 1.05]`."""
    exponent = exponent_text(growth.exponent)
    if growth.interval is None:
        return exponent
    return f"{exponent} [{_interval(growth)}]"


def _interval(growth: Growth) -> str:
    if growth.interval is None:
        return UNKNOWN
    low, high = growth.interval
    return f"{exponent_text(low)}, {exponent_text(high)}"


def _warning(row: DepthGrowth, growth: Growth) -> Phrase:
    before, last = sorted(set(row.depths))[-2:]
    metric = strong(f"⚠️ {label(row.column)} grows faster than the number of layers")
    fit = f"layers^{_fit(growth)}, and layers^{exponent_text(growth.last_step)}"
    return phrase(
        metric,
        " (",
        _build(row),
        ")",
        f": {fit} from {before} to {last} layers. The warning begins at"
        f" {WARNING_EXPONENT}.",
    )


def growth_tables(grown: Sequence[DepthGrowth]) -> list[Table]:
    """Return a table for each build."""
    return [*map(_table, _builds(grown))]


def _table(rows: Sequence[DepthGrowth]) -> Table:
    depths = [f"{layers:,}" for layers, _ in rows[0].values]
    caption = phrase(_build(rows[0]), ", by number of layers")
    table_rows = [_row(row) for row in rows]
    return Table(
        ("measure", *depths, "exponent", "95 % interval", "last step"),
        listed(table_rows, "measure"),
        caption=caption,
        about=_ABOUT,
    )


def _row(row: DepthGrowth) -> Row:
    varies = "" if METRIC_BY_ID[row.column].exact else VARIES
    values = [amount(value, "count") for _, value in row.values]
    fit = [UNKNOWN] * 3
    if row.growth is not None:
        growth = row.growth
        fit = [
            exponent_text(growth.exponent),
            _interval(growth),
            exponent_text(growth.last_step),
        ]
    return tuple(map(phrase, (f"{header(row.column)}{varies}", *values, *fit)))


def growth_notes(grown: Sequence[DepthGrowth]) -> Iterator[Phrase]:
    """Yield why metrics have no exponent: a line for each reason and build."""
    missing = [row for row in grown if row.growth is None]
    for rows in by(missing, lambda row: (row.key, row.variants, row.reason)).values():
        columns = ", ".join(label(row.column) for row in rows)
        yield phrase(
            f"No exponent of {columns} (", _build(rows[0]), f"): {rows[0].reason}."
        )
