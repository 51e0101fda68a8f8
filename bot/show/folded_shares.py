"""Show the share of a build's dispatch regions that deduplication folds."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from bot.core.deduplication import EXECUTABLES, REGIONS, Deduplication, deduplication_of
from bot.core.delta import value_of
from bot.core.record import Value, ends
from bot.core.snapshot import Cell
from bot.show.blocks import ABSENT
from bot.show.filters import UNKNOWN, amount, shares


def folded_shares(cells: Sequence[Cell]) -> list[str]:
    """Return the share of folded regions of each cell: `68 %`, `61..68 %`, `n/a`."""
    return share_texts([_deduplication(cell) for cell in cells])


def folded_words(cell: Cell) -> str:
    """Return `67 of 84 (80 %)`; `n/a` if it is not known."""
    side = _deduplication(cell)
    if side.folded is None:
        return UNKNOWN
    (text,) = share_texts([side])
    counts = f"{amount(side.folded, 'count')} of {amount(side.regions, 'count')}"
    if text == ABSENT:
        return counts
    return f"{counts} ({text})"


def _deduplication(cell: Cell) -> Deduplication:
    regions = value_of(cell, REGIONS)
    executables = value_of(cell, EXECUTABLES)
    return deduplication_of(cell, regions, executables)


def share_texts(sides: Sequence[Deduplication]) -> list[str]:
    """Return the share of folded regions of each side.

    They have enough digits to differ if the shares differ.
    """
    return texts_of_shares([share_of(side.folded, side.regions) for side in sides])


Share = tuple[Fraction, Fraction] | str  # its smallest and its largest value, or a word


def share_of(folded: Value, regions: Value) -> Share:
    """Return the share of folded regions, or a word if there is none."""
    if folded is None or regions is None:
        return UNKNOWN
    fewest_regions, most_regions = ends(regions)
    if not fewest_regions:
        return ABSENT
    low, high = ends(folded)
    return Fraction(low, most_regions), min(Fraction(high, fewest_regions), Fraction(1))


def texts_of_shares(folded_parts: Sequence[Share]) -> list[str]:
    """Return shares as texts, with enough digits to differ if the shares differ."""
    fractions = set[Fraction]()
    for share in folded_parts:
        if isinstance(share, tuple):
            fractions.update(share)
    ordered = sorted(fractions)
    texts = dict(zip(ordered, shares(*ordered), strict=True))
    return [_share_text(share, texts) for share in folded_parts]


def _share_text(share: Share, texts: dict[Fraction, str]) -> str:
    if not isinstance(share, tuple):
        return share
    low, high = share
    if low == high:
        return texts[low]
    return f"{texts[low].removesuffix(' %')}..{texts[high]}"
