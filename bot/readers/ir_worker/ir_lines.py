"""Write the lines that say what varies in a family."""

from __future__ import annotations

from collections.abc import Sequence

from .ir_text import printable

_VALUES_SHOWN = 8
_LINE_CHARACTERS = 160


def shortened(text: str, characters: int) -> str:
    """Return a text without control characters, with at most so many characters."""
    clean = printable(text[: characters + 1])
    if len(clean) <= characters:
        return clean
    return clean[: characters - 1] + "…"


def line_of(label: str, values: Sequence[str], total: int = 0) -> str:
    """Return `label: a, b, … (N values)`: different values in order, as many as fit.

    `total`: how many values there were before shortening made some equal.
    """
    distinct = list(dict.fromkeys(values))
    total = max(total, len(distinct))
    text = label
    for count in range(min(len(distinct), _VALUES_SHOWN), 0, -1):
        text = f"{label}: {', '.join(distinct[:count])}"
        if count < total:
            text += f", … ({total} values)"
        if len(text) <= _LINE_CHARACTERS:
            break
    return shortened(text, _LINE_CHARACTERS)
