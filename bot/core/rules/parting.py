"""Where two compilers part over one dispatch: its passes side by side, and the one after which it is another function.

Of the passes that leave a difference, the one is meant from which on the sides are apart by a good part of what they
are apart in the end, and that makes at least half of what differs after it: not one that adds a little to much. A
handful of operations that differ before and stay so is told in the trace, and is not the cause: a gather whose lowering
makes 1,440 operations more on one side may have differed by three before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher

from bot.core.values.trace import LLVM, MACHINE, DispatchTrace, Parting, PassState, TraceRow

LEAST_SHARE = 1 / 8
"""Of what differs in the end, each as a share of all operations: from so much on the sides have parted."""


_BEFORE = "they are apart before the first of these passes"
_OTHER_CODE = "compiled alone, it has other code than in the artifact"


def parting(base: DispatchTrace | None, head: DispatchTrace | None) -> Parting:
    """The passes of both sides, and after which of them the sides have parted."""
    for side, trace in (("base", base), ("head", head)):
        if trace is None or not trace.is_whole:
            why = "not traced" if trace is None else trace.why or _OTHER_CODE
            return Parting((), None, f"{side}: {why}")
    assert base is not None and head is not None  # noqa: S101 - for mypy: the loop has looked
    rows = tuple(_rows(tuple(base.states()), tuple(head.states())))
    if not rows or not rows[-1].share:
        return Parting(rows, None, "the same operations after each pass that was looked at")
    at, least = len(rows), rows[-1].share * LEAST_SHARE
    while at and rows[at - 1].share >= least:  # half of what differs after the pass has to be its own
        at = next((place + 1 for place in range(at - 1, -1, -1) if rows[place].share < least), 0)
        least = rows[at].share / 2
    if at == 0:
        return Parting(rows, None, _BEFORE)
    if rows[at].level == MACHINE and not all(any(step.level == LLVM for step in one.steps) for one in (base, head)):
        why = f"they part in LLVM, up to {rows[at].name}; no time was left to look at each pass there"
        return Parting(rows, None, why, is_late=True)
    most = max(range(at, len(rows)), key=lambda place: rows[place].share - (rows[place - 1].share if place else 0))
    return Parting(rows, at, most=most)


def _rows(base: Sequence[PassState], head: Sequence[PassState]) -> Iterator[TraceRow]:
    """Where a pass changed one side alone, the other is as it was before."""
    left = right = None
    for i, j in _aligned(base, head):
        one, other = (None if i is None else base[i]), (None if j is None else head[j])
        left, right = one or left, other or right
        named = other or one
        if left and right and named and left.level == right.level:
            yield TraceRow(named.name, one, other, _apart(left, right), _share(left, right))


def _aligned(base: Sequence[PassState], head: Sequence[PassState]) -> Iterator[tuple[int | None, int | None]]:
    """Places in both, by the passes' names; these drift: `iree-codegen-lower-affine` became `iree-lower-affine`."""
    left, right = (
        [(one.level, one.name.replace("codegen-", "").replace("-", "")) for one in side] for side in (base, head)
    )
    for kind, i, i_end, j, j_end in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from zip(range(i, i_end), range(j, j_end), strict=True)
        else:
            yield from ((at, None) for at in range(i, i_end))
            yield from ((None, at) for at in range(j, j_end))


def _apart(base: PassState, head: PassState) -> dict[str, int]:
    return _more(base.operations, head.operations) or _more(base.typed, head.typed)


def _more(base: Mapping[str, int], head: Mapping[str, int]) -> dict[str, int]:
    more = Counter(head)
    more.subtract(base)
    return dict(
        sorted(((name, count) for name, count in more.items() if count), key=lambda one: (-abs(one[1]), one[0]))
    )


def _share(base: PassState, head: PassState) -> float:
    """By name and types, of the operations of the larger side."""
    more = _more(base.typed, head.typed).values()
    come, gone = sum(count for count in more if count > 0), -sum(count for count in more if count < 0)
    return max(come, gone) / max(base.total, head.total, 1)
