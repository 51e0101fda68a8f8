"""What deduplication did to one cell, and an upper bound of what it left: all of a family but its largest member.

An executable's bytes are the device code of its entry points; where one of them is not known, no sum is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.core.overview import FoldCounts
from bot.core.program import Family
from bot.core.snapshot import Cell, Dispatch


def fold_counts(cell: Cell) -> FoldCounts | None:
    """The counts of one cell; None where it was not measured."""
    if not cell.measured:
        return None
    return FoldCounts(
        regions=cell.value("dispatch_regions"),
        executables=cell.value("executables"),
        families=len(cell.families),
        surplus_executables=sum(len(family.members) - 1 for family in cell.families),
        surplus_bytes=_surplus_bytes(cell.families, executable_bytes(cell.dispatches)),
    )


def executable_bytes(dispatches: Sequence[Dispatch]) -> dict[str, int | None]:
    """Executable → device code of all its entry points in bytes; None where one of them is not known."""
    sizes: dict[str, int | None] = {}
    for row in dispatches:
        sum_bytes = sizes.get(row.executable, 0)
        known = sum_bytes is not None and row.code_bytes is not None
        sizes[row.executable] = (sum_bytes or 0) + (row.code_bytes or 0) if known else None
    return sizes


def _surplus_bytes(families: Sequence[Family], sizes: Mapping[str, int | None]) -> int | None:
    total_bytes = 0
    for family in families:
        known = [size for member in family.members if (size := sizes.get(member)) is not None]
        if len(known) < len(family.members):
            return None
        total_bytes += sum(known) - max(known, default=0)
    return total_bytes
