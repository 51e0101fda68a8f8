"""Where two compilers part over one dispatch: its passes side by side, and the one after which it is another function.

Of the passes that leave a difference, the first is meant that makes a good part of what the sides are apart in the end,
and most of what differs after it: not one that adds a little to much, or lowers what parted before. A handful of
operations that differ before and stay so is told in the trace, and is not the cause: a gather whose lowering makes
1,440 operations more on one side may have differed by three before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import accumulate

from bot.core.values.trace import LLVM, MACHINE, DispatchTrace, Parting, PassState, TraceRow

LEAST_SHARE = 1 / 8
"""Of what differs in the end, each as a share of all operations: from so much on the sides have parted."""
MOST_BEFORE = 1 / 4
"""Of what differs after the pass: so much may differ before it, and so much has to stay."""

_BEFORE = "they are apart before the first of these passes"
_SLOWLY = "no single pass that can be seen takes them apart by most of it"
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
    shares = [row.share for row in rows]
    has_llvm = all(any(step.level == LLVM for step in one.steps) for one in (base, head))
    at = _first_jump(rows, LEAST_SHARE / 2 if has_llvm else LEAST_SHARE)
    last = rows[-1 if at is None else at]
    if not has_llvm and (last.level == MACHINE or any(name.startswith("llvm.") for name in last.apart)):
        why = f"they part in LLVM, up to {last.name}, and not each pass there could be looked at"
        return Parting(rows, None, why, is_late=True)
    apart_from = next((at + 1 for at in range(len(rows) - 1, -1, -1) if shares[at] < LEAST_SHARE * shares[-1]), 0)
    if not apart_from:
        return Parting(rows, None, _BEFORE)
    most = max(range(apart_from, len(rows)), key=lambda place: shares[place] - shares[place - 1])
    return Parting(rows, at, "" if at is not None else _SLOWLY, most)


def _first_jump(rows: Sequence[TraceRow], least_left: float) -> int | None:
    """The place after which by far more differs than before it, a good part of the end's, and most of it for good.

    Of LLVM's passes one that both sides print: it prints none that deletes its loop, and in some releases none of the
    last ones before instruction selection, so that what these do is seen after the next pass of that side.

    Args:
        least_left: of the end's difference, what is never gone again; LLVM undoes much of what MLIR's last passes do.
    """
    shares = [row.share for row in rows]
    least_later = list(accumulate(reversed(shares), min))[::-1]
    for at in range(1, len(shares)):
        is_seen = rows[at].level != LLVM or (rows[at].base is not None and rows[at].head is not None)
        is_jump = shares[at - 1] <= MOST_BEFORE * shares[at] and shares[at] >= LEAST_SHARE * shares[-1]
        if is_seen and is_jump and least_later[at] >= max(MOST_BEFORE * shares[at], least_left * shares[-1]):
            return at
    return None


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
