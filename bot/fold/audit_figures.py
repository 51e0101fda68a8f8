"""Put the sums and percentages of a fold audit into words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bot.fold.audit import BeforeAfter
from bot.show.filters import UNKNOWN, plural, relative, sides


def folded_percent(regions: int | None, executables: int | None) -> str:
    """Return the share of the regions without an executable of their own: `78.2 %`.

    `n/a` if it is not known.
    """
    if not regions or executables is None:
        return UNKNOWN
    percent = (regions - executables) / regions * 100
    if executables > 0:
        percent = min(percent, 99.9)  # less than all is never `100.0 %`
    return f"{percent:.1f} %"


def sum_words(pairs: Sequence[tuple[int, int]], unit: str) -> str:
    """Return both sums and the relative change; `n/a` without a pair."""
    if not pairs:
        return UNKNOWN
    before, after = (sum(side) for side in zip(*pairs, strict=True))
    text = sides(before, after, unit)
    if before != after:
        text += f" ({relative(before, after)})"
    return text


def covered_sum(pairs: Sequence[BeforeAfter], unit: str) -> str:
    """Return the sums, and how many builds they cover if that is not all of them.

    `pairs`: one for each build.
    """
    known_pairs = measured_pairs(pairs)
    scope = ""
    if len(known_pairs) < len(pairs):
        scope = f" over {plural(len(known_pairs), 'build')}"
    return f"{sum_words(known_pairs, unit)}{scope}"


def measured_pairs(pairs: Iterable[BeforeAfter]) -> list[tuple[int, int]]:
    """Return the pairs of which before and after are known."""
    measured = []
    for pair in pairs:
        if pair.before is not None and pair.after is not None:
            measured.append((pair.before, pair.after))
    return measured
