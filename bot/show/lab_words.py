"""Names and headers that all parts of an experiment's answer share."""

from __future__ import annotations

from bot.core.metrics import METRIC_BY_ID
from bot.show.blocks import Phrase, code, phrase
from bot.show.escape import clean, clip
from bot.show.facts import NAME_LIMIT
from bot.show.filters import SUFFIX


def name(text: str) -> Phrase:
    """Return a name from a configuration or a model, as code."""
    return phrase(code(clip(clean(text), NAME_LIMIT)))


def label(column: str) -> str:
    """Return the name of a column in running text."""
    return METRIC_BY_ID[column].label


def header(column: str) -> str:
    """Return the name of a column with its unit."""
    return label(column) + SUFFIX[METRIC_BY_ID[column].unit].replace(" ", ", ")
