"""The words and numbers of an experiment's tables: columns, values with their change, ratios, bars."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.folds.fold_values import Price
from bot.core.lab.experiment import COLUMN_BY_ID, FOLDED_AWAY
from bot.core.lab.lab_sums import Mean
from bot.core.spread import Value, ends, lowest
from bot.render.text.filters import UNKNOWN, amount, relative

TIME, INSTRUCTIONS = "CPU time", "instructions"
BAR_WIDTH = 16
_EIGHTHS = " ▏▎▍▌▋▊▉"
_UNITS = {"count": "", "bytes": ", B", "ms": ", ms", "KiB": ", KiB"}


def label(column: str) -> str:
    """A column in running text."""
    return "folded away" if column == FOLDED_AWAY else COLUMN_BY_ID[column].label


def header(column: str) -> str:
    """A column at the top of a table, with its unit."""
    return label(column) if column == FOLDED_AWAY else f"{label(column)}{_UNITS[COLUMN_BY_ID[column].unit]}"


def valued(value: Value, first: Value, *, is_first: bool) -> str:
    """A value, and how it differs from the reference's: `84,294 (+0.4 %)`, `54,168..55,288 (−0.6..+3.6 %)`."""
    told = amount(value, "count")
    if is_first or value is None or not first or value == first:
        return told
    return f"{told} ({relative(first, value)})" if ends(first)[0] else told


def shared(share: float | None) -> str:
    """A share: `57.6 %`."""
    return UNKNOWN if share is None else f"{share:.1%}".replace("%", " %")


def mean_ratio(mean: Mean | None, *, is_first: bool) -> str:
    """A ratio over several models: `× 0.98`; `× 1` for what it is a ratio to."""
    if is_first:
        return "× 1"
    return UNKNOWN if mean is None else f"× {mean.ratio:.2f}"


def priced(price: Price) -> str:
    """A ratio with its interval: `× 0.98 [0.97, 1.01]`."""
    return f"× {price.ratio:.2f} [{price.low:.2f}, {price.high:.2f}]"


def bar(value: Value, largest: float, width: int = BAR_WIDTH) -> str:
    """A bar as long as the share of the largest, of a range its smallest value's; empty where it is not known."""
    size = lowest(value)
    if size is None or largest <= 0 or size <= 0:
        return ""
    eighths = max(1, round(min(1.0, size / largest) * width * 8))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def largest_of(values: Sequence[Value]) -> int:
    """The largest known value; 0 where none is known."""
    return max((ends(value)[1] for value in values if value is not None), default=0)
