"""Names and headers that all parts of an experiment's answer share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bot.core.metrics import METRIC_BY_ID
from bot.core.snapshot import CellKey
from bot.show.blocks import Phrase, by, code, joined, phrase, some
from bot.show.escape import clean, clip
from bot.show.facts import NAME_LIMIT
from bot.show.filters import SUFFIX

TIME = "CPU time"  # the header of a column
TEXT_CHARS = 400  # of a question or a flag in a text
REASON_CHARS = 300  # of a reason or a note in a text


def name(text: str) -> Phrase:
    """Return a name from a configuration or a model, as code."""
    return phrase(code(clip(clean(text), NAME_LIMIT)))


def label(column: str) -> str:
    """Return the name of a column in running text."""
    return METRIC_BY_ID[column].label


def header(column: str) -> str:
    """Return the name of a column with its unit."""
    return label(column) + SUFFIX[METRIC_BY_ID[column].unit].replace(" ", ", ")


def some_names(texts: Sequence[str], limit: int | None = None) -> Phrase:
    """Return the first names, and how many more there are."""
    return some(map(name, texts[:limit]), len(texts))


def build_names(keys: Iterable[CellKey], names: int) -> Phrase:
    """Return the models of the builds, by target."""
    targets = by(sorted(set(keys)), lambda key: key.target)
    parts = []
    for target in sorted(targets):
        models = some_names([key.model for key in targets[target]], names)
        parts.append(phrase(models, " on ", name(target)))
    return joined(parts, "; ")
