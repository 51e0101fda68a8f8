"""What deduplication did to one cell, and an upper bound of what it left: all of a family but its largest member.

What folding saves is whole executables. On vulkan and metal each entry point has one of its own in the artifact, with
tables and padding; elsewhere they share one, and the device code of an entry point is all that can be told of its part.
Where the bytes of one member are not known, no sum is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bot.core.values.model_counts import FoldCounts
from bot.core.values.program import Family
from bot.core.values.snapshot import Cell, Dispatch


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


def executable_bytes(dispatches: Iterable[Dispatch]) -> dict[str, int | None]:
    """Executable → its bytes, None where one of its entry points' is not known.

    Whole executables where each entry point has one of its own in the artifact, else the entry points' device code.
    """
    rows: dict[str, list[Dispatch]] = {}
    for row in dispatches:
        rows.setdefault(row.executable, []).append(row)
    return {name: _bytes(of) for name, of in rows.items()}


def _bytes(rows: Sequence[Dispatch]) -> int | None:
    whole_bytes = _sum([row.executable_bytes for row in rows])
    return _sum([row.code_bytes for row in rows]) if whole_bytes is None else whole_bytes


def _sum(sizes: Sequence[int | None]) -> int | None:
    """None where one of them is not known."""
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def _surplus_bytes(families: Sequence[Family], sizes: Mapping[str, int | None]) -> int | None:
    total_bytes = 0
    for family in families:
        known = [size for member in family.members if (size := sizes.get(member)) is not None]
        if len(known) < len(family.members):
            return None
        total_bytes += sum(known) - max(known, default=0)
    return total_bytes
