"""Put the values, the gaps and the changes of a history into words."""

from __future__ import annotations

from collections.abc import Iterable

from bot.core.delta import seen_values
from bot.core.metrics import METRIC_BY_ID
from bot.core.snapshot import Cell
from bot.core.study import UNMEASURED
from bot.show.blocks import NOTE_LIMIT
from bot.show.escape import clean, clip
from bot.show.facts import NAME_LIMIT
from bot.show.filters import amount, percent, signed

ARTIFACT = "artifact_bytes"
_UNITS = {"bytes": ", bytes", "count": ""}


def change_words(moved: int, value: int | None) -> str:
    """Return `+26,464 (+55.3 %)`; `value` is the one after the change."""
    base = (value or 0) - moved
    text = signed(moved, "count")
    if not base:
        return text
    return f"{text} ({percent(moved / base)})"


def gap_words(cell: Cell) -> str:
    """Return why a release has no artifact of a build."""
    reason = clip(clean(cell.reason), NOTE_LIMIT) or "no reason is known"
    if cell.status == UNMEASURED:
        return reason
    return f"{cell.status}: {reason}"


def varying_words(cell: Cell) -> str:
    """Return the note that a cell's command gives artifacts of several sizes.

    It is empty if there is only one size.
    """
    sizes = " or ".join(map(amount, seen_values(cell).get(ARTIFACT, ())))
    if sizes:
        return f"non-deterministic: the same command gives {sizes}"
    return ""


def reason_words(reasons: Iterable[str]) -> str:
    """Return the reasons that are not empty, as one text."""
    return "; ".join(map(clean, filter(None, reasons)))


def shown_name(text: str) -> str:
    """Return a name from a configuration or a model, safe to show."""
    return clean(text, NAME_LIMIT)


def metric_label(metric: str) -> str:
    """Return the name of a metric with its unit."""
    return f"{METRIC_BY_ID[metric].label}{_UNITS[METRIC_BY_ID[metric].unit]}"
