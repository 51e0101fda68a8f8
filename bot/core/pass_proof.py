"""Prove an MLIR pass: head's passes run on base's IR from a cut on.

The bytes before and after a pass differ by what this pass carries. Only the MLIR part
of a ladder is divided.
"""

from __future__ import annotations

from collections import Counter

from bot.core.proof import NOT_TRIED, PROVED, status_of
from bot.core.record import Amount, Count, Record

BOTH = "both"
BASE_ALONE = "base"
HEAD_ALONE = "head"
"""Which side runs the passes of a range."""


class PassCut(Record, frozen=True, omit_defaults=True):
    """One measured cut: base's passes ran up to here, and head's passes after it."""

    # 0 is before the first pass; the last place is behind the last pass
    place: Count
    code_bytes: Count
    after: str = ""  # argument name of the pass before the cut; empty at place 0


class PassProof(Record, frozen=True, omit_defaults=True):
    """The experiments on one dispatch that divide its MLIR part among passes.

    Bytes are of the dispatch's code, and growth is positive. `restored_bytes` is
    positive if growth disappears with base's version of the passes.
    """

    status: str
    why: str = ""  # why it was not tried, or why it is not proved; empty otherwise
    # argument names of the passes in the smallest range that carries the bytes; empty
    # on a side that runs none there
    base_passes: tuple[str, ...] = ()
    head_passes: tuple[str, ...] = ()
    # the MLIR part of the ladder, head − base; None if it is not known
    moved_bytes: Amount | None = None
    # how many of these bytes the range carries; None if it was not tried
    restored_bytes: Amount | None = None
    # the same in the other order, with head's IR in base's passes; None if that was
    # not tried
    reverse_moved_bytes: Amount | None = None
    reverse_restored_bytes: Amount | None = None
    cuts: tuple[PassCut, ...] = ()  # with base's IR in head's passes, by place
    range_start: Count = 0  # place of the cut before the range
    range_end: Count = 0  # place of the cut behind it
    # False if the budget ended before the range was divided further
    is_smallest: bool = True
    compiles: Count = 0  # how many compiles of one executable the experiment took

    @property
    def passes(self) -> tuple[str, ...]:
        """Return the passes of the range: head's, or base's if head runs none there."""
        return self.head_passes or self.base_passes

    @property
    def first_pass(self) -> str:
        """Return the argument name of the range's first pass; empty without a range."""
        if self.passes:
            return self.passes[0]
        return ""

    @property
    def last_pass(self) -> str:
        """Return the argument name of the range's last pass; empty without a range."""
        if self.passes:
            return self.passes[-1]
        return ""

    @property
    def runs_on(self) -> str:
        """Return BOTH, BASE_ALONE or HEAD_ALONE; empty without a range."""
        if self.base_passes and self.head_passes:
            return BOTH
        if self.base_passes:
            return BASE_ALONE
        if self.head_passes:
            return HEAD_ALONE
        return ""

    @property
    def lone_passes(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the passes of the range that only base runs, and only head runs."""
        base = Counter(self.base_passes)
        head = Counter(self.head_passes)
        return tuple((base - head).elements()), tuple((head - base).elements())

    @property
    def is_one_pass(self) -> bool:
        """Return whether the range is one pass, whose name may differ between sides."""
        return (
            bool(self.passes) and max(len(self.base_passes), len(self.head_passes)) == 1
        )

    @property
    def bytes_before(self) -> int | None:
        """Return the size of head's code with base's IR before the range, or None."""
        return self._ends()[0]

    @property
    def bytes_after(self) -> int | None:
        """Return the size of head's code with base's IR behind the range, or None."""
        return self._ends()[1]

    def _ends(self) -> tuple[int | None, int | None]:
        by_place = {cut.place: cut.code_bytes for cut in self.cuts}
        if self.restored_bytes is None:
            return None, None
        return by_place.get(self.range_start), by_place.get(self.range_end)


def untried(
    reason: str, moved_bytes: int | None = None, compiles: int = 0
) -> PassProof:
    """Return the proof of an experiment that could not be made."""
    return PassProof(NOT_TRIED, reason, moved_bytes=moved_bytes, compiles=compiles)


def carries(part_bytes: int, moved_bytes: int) -> bool:
    """Return whether a part is the whole of a change, up to what a proof allows.

    Both numbers of bytes are signed.
    """
    return status_of(part_bytes, moved_bytes) == PROVED
