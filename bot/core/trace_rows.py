"""Align the passes of both sides, with the difference after each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher

from bot.core.json_text import without_zeros
from bot.core.trace import (
    PassState,
    TraceRow,
)


def rows_of(base: Sequence[PassState], head: Sequence[PassState]) -> Iterator[TraceRow]:
    """Yield the passes of both sides as rows.

    Where a pass changed only one side, the other is as it was before.
    """
    base_state: PassState | None = None
    head_state: PassState | None = None
    for base_place, head_place in _aligned(base, head):
        base_pass = None if base_place is None else base[base_place]
        head_pass = None if head_place is None else head[head_place]
        base_state = base_pass or base_state
        head_state = head_pass or head_state
        named = head_pass or base_pass
        if base_state is None or head_state is None or named is None:
            continue
        if base_state.level == head_state.level:
            differences = more_on_head(base_state.operations, head_state.operations)
            yield TraceRow(
                name=named.name,
                base=base_pass,
                head=head_pass,
                apart=differences or more_on_head(base_state.typed, head_state.typed),
                share=share_of(base_state, head_state),
            )


def _aligned(
    base: Sequence[PassState], head: Sequence[PassState]
) -> Iterator[tuple[int | None, int | None]]:
    """Yield the places of each pass in both sides, matched by the passes' names.

    Names change slightly: `iree-codegen-lower-affine` became `iree-lower-affine`.
    """
    matcher = SequenceMatcher(
        None, _stable_names(base), _stable_names(head), autojunk=False
    )
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        if kind == "equal":
            yield from zip(range(i, i_end), range(j, j_end), strict=True)
            continue
        base_alone = [(place, None) for place in range(i, i_end)]
        head_alone = [(None, place) for place in range(j, j_end)]
        if _base_comes_first(base, head=head, base_place=i, head_place=j):
            yield from (*base_alone, *head_alone)
        else:
            yield from (*head_alone, *base_alone)


def _base_comes_first(
    base: Sequence[PassState],
    head: Sequence[PassState],
    base_place: int,
    head_place: int,
) -> bool:
    """Return whether passes that only base prints come before those of only head.

    A pass that changes nothing is not printed, so the order is not known. The pass with
    the larger change comes first, so that swapped sides have the same order.
    """
    if base_place == len(base) or head_place == len(head):
        return True
    changes = []
    for side, place in ((base, base_place), (head, head_place)):
        if place:
            change_share = share_of(side[place - 1], side[place])
        else:
            change_share = 0.0
        changes.append((change_share, side[place].name))
    return changes[0] >= changes[1]


def _stable_names(states: Sequence[PassState]) -> list[tuple[str, str]]:
    names = []
    for state in states:
        name = state.name.replace("codegen-", "").replace("-", "")
        names.append((state.level, name))
    return names


def more_on_head(base: Mapping[str, int], head: Mapping[str, int]) -> dict[str, int]:
    """Return operation → how many more head has, the largest difference first."""
    counts = Counter(head)
    counts.subtract(base)
    differing = without_zeros(counts).items()
    return dict(sorted(differing, key=lambda item: (-abs(item[1]), item[0])))


def share_of(base: PassState, head: PassState) -> float:
    """Return the share of the larger side's operations that differ by name or types."""
    counts = more_on_head(base.typed, head.typed).values()
    come = sum(count for count in counts if count > 0)
    gone = -sum(count for count in counts if count < 0)
    return max(come, gone) / max(base.total, head.total, 1)
