"""Tables as values: headers, and rows of phrases that each place draws with its own escapes."""

from __future__ import annotations

from dataclasses import dataclass, field

from bot.core.values.explanation import DispatchDelta
from bot.core.values.snapshot import Dispatch
from bot.render.text.filters import amount, sides
from bot.render.text.phrase import Phrase, code, phrase
from bot.render.text.selection import Listing

ABSENT = "–"
"""Where a side does not have the thing at all; what is there and not known is `n/a`."""

Row = tuple[Phrase, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """One table.

    Attributes:
        headers: as many as a row has cells; numbers begin at column `numbers_from`.
        caption: what stands above it; may be empty.
        small: True for a table that is wide.
    """

    headers: tuple[str, ...]
    rows: Listing[Row] = field(default_factory=Listing)
    numbers_from: int = 1
    caption: Phrase = ()
    small: bool = False

    @property
    def marks(self) -> tuple[str, ...]:
        """How Markdown aligns the columns."""
        return tuple("--:" if index >= self.numbers_from else ":--" for index in range(len(self.headers)))

    def __bool__(self) -> bool:
        """True where it has rows."""
        return bool(self.rows)


def name_cell(text: str) -> Phrase:
    """A name that is not ours."""
    return phrase(code(text))


def number_cell(base: int | None, head: int | None, unit: str = "count") -> Phrase:
    """Both values."""
    return phrase(sides(base, head, unit))


def dispatch_sides(delta: DispatchDelta, field: str, unit: str) -> str:
    """A number of a dispatch on both sides: `1,200 → 9,999 B`; `– → 9,999 B` where base has no such dispatch."""
    left, right = _number(delta.base, field), _number(delta.head, field)
    if delta.base is None:
        return f"{ABSENT} → {amount(right, unit)}"
    if delta.head is None:
        return f"{amount(left, unit)} → {ABSENT}"
    return sides(left, right, unit)


def _number(dispatch: Dispatch | None, field: str) -> int | None:
    value = getattr(dispatch, field) if dispatch else None
    return value if isinstance(value, int) else None
