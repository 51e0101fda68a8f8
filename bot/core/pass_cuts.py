"""Find cuts of two pass pipelines: base's passes run up to a cut, then head's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

# The kind of operation that a pass works on, and the pass's argument name
Step = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut in both pipelines, as the number of passes before it on each side."""

    base: int
    head: int

    @property
    def swapped(self) -> Cut:
        """Return the same cut with the sides exchanged."""
        return Cut(self.head, self.base)


def cuts_of(base: Sequence[Step], head: Sequence[Step]) -> tuple[Cut, ...]:
    """Return the cuts of two pipelines, from before the first pass to behind the last.

    A cut is behind each pass that both sides run. Only one side may run further passes
    before the next common one. Then a cut is behind each of these, too. If both sides
    run further passes there, they stay together. Swapped sides have the same cuts.
    """
    common = _common(base, head)
    ends = [(-1, -1), *common, (len(base), len(head))]
    cuts = [Cut(0, 0)]
    for (base_before, head_before), (base_next, head_next) in pairwise(ends):
        base_alone = base_next - base_before - 1
        head_alone = head_next - head_before - 1
        start = Cut(base_before + 1, head_before + 1)
        if not head_alone:
            for base_cut in range(start.base + 1, start.base + base_alone + 1):
                cuts.append(Cut(base_cut, start.head))
        elif not base_alone:
            for head_cut in range(start.head + 1, start.head + head_alone + 1):
                cuts.append(Cut(start.base, head_cut))
        if base_next < len(base):
            cuts.append(Cut(base_next + 1, head_next + 1))
    end = Cut(len(base), len(head))
    if cuts[-1] == end:
        return tuple(cuts)
    return (*cuts, end)


def _common(base: Sequence[Step], head: Sequence[Step]) -> list[tuple[int, int]]:
    """Return the places of the longest common subsequence.

    It is the same one if the sides are swapped.
    """
    if tuple(head) < tuple(base):
        return [(base, head) for head, base in _common(head, base)]
    lengths = [[0] * (len(head) + 1) for _ in range(len(base) + 1)]
    for row in range(len(base) - 1, -1, -1):
        for column in range(len(head) - 1, -1, -1):
            if base[row] == head[column]:
                lengths[row][column] = lengths[row + 1][column + 1] + 1
            else:
                lengths[row][column] = max(
                    lengths[row + 1][column], lengths[row][column + 1]
                )
    places = list[tuple[int, int]]()
    row = column = 0
    while row < len(base) and column < len(head):
        if base[row] == head[column]:
            places.append((row, column))
            row += 1
            column += 1
        elif lengths[row + 1][column] >= lengths[row][column + 1]:
            row += 1
        else:
            column += 1
    return places
