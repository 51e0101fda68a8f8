"""Find the pass after which two compilers have different code of one dispatch.

The parting pass is the first pass that makes a good part of the final difference, and
most of what differs after it. It is not a pass that adds a little to a large
difference, or lowers what parted before. The trace shows a handful of operations that
differ before and stay so, but they are not the cause. An example is a gather whose
lowering makes 1,440 more operations on one side: it may have differed by three
operations before.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from bot.core.program_proof import ProgramProof
from bot.core.trace import (
    LLVM,
    MACHINE,
    PROGRAM,
    REGION,
    DispatchTrace,
    Parting,
    TraceRow,
)
from bot.core.trace_rows import rows_of

LEAST_SHARE = 1 / 8
"""The least share of the final difference that makes a pass the parting pass."""
MOST_BEFORE = 1 / 4
"""The share of a pass's difference that may be there before it, and must stay."""

NOT_TRACED = "not traced"
NO_BUDGET = "not traced: compile budget used up"
# the words in snapshots of version 1
_NO_BUDGET_BEFORE = "no time was left to trace it"
NO_PLACES = "the compiler's earlier passes give this dispatch no place in the model"
OTHER_DISPATCHES = "a second compile gave other dispatches than the artifact has"
OTHER_MODEL = (
    "the model's text differs between the sides, so its places cannot be compared"
)
NOT_STORED = (
    "one side's compiler is not available, and its stored baseline has no trace of this"
    " dispatch"
)
_OTHER_CODE = (
    "cannot be traced: a separate compile of the dispatch gives another result"
)
SAME = "traced: both sides have the same operations after each printed pass"
_SAME_STAGES = "both sides have the same operations at each stage"
_BEFORE = "traced: the sides differ before the first pass"
_BOUND = (
    "traced: the sides are equal until the dispatch is outlined, and differ before the"
    " target's first pass"
)
_OPEN = (
    "traced: the sides differ before their dispatches are formed, and no experiment"
    " names the pass"
)
_SLOWLY = "traced: no single printed pass makes most of the difference"
IN_LLVM = "the sides diverge in LLVM"
_NO_LLVM = "traced: " + IN_LLVM + ", up to {}, and LLVM does not print every pass there"
"""Why no pass is named, each in one sentence for all places that show it.

A failed compile has its own words.
"""


def parting(base: DispatchTrace | None, head: DispatchTrace | None) -> Parting:
    """Return the passes of both sides, and the one after which the sides part."""
    base, head = _with_other_target(base, head)
    reason = _why_untraced(base, head)
    if reason:
        return Parting((), None, reason)
    if base is None or head is None:
        return Parting((), None, NOT_TRACED)
    rows = tuple(rows_of(tuple(base.states()), tuple(head.states())))
    if base.is_staged and head.is_staged:
        return _parting_of_stages(rows)
    early = sum(row.level == PROGRAM for row in rows)
    forms_otherwise = bool(early and rows[early - 1].apart.get(REGION))
    proof = head.formed or base.formed
    if proof is not None and proof.pass_name:
        return _parting_by_experiment(
            rows, early=early, proof=proof, forms_otherwise=forms_otherwise
        )
    if forms_otherwise:
        return _parting_where_formed(rows, early)
    if not rows or not rows[-1].share:
        return Parting(rows, None, SAME)
    prints_llvm = _prints_llvm(base) and _prints_llvm(head)
    return _parting_by_share(rows, early=early, prints_llvm=prints_llvm)


def _prints_llvm(trace: DispatchTrace) -> bool:
    return any(step.level == LLVM for step in trace.steps)


def _with_other_target(
    base: DispatchTrace | None, head: DispatchTrace | None
) -> tuple[DispatchTrace | None, DispatchTrace | None]:
    """Give a side without a trace the other side's trace across, if it has one."""
    if base is None and head is not None and head.across:
        return DispatchTrace(head.across), head
    if head is None and base is not None and base.across:
        return base, DispatchTrace(base.across)
    return base, head


def _why_untraced(base: DispatchTrace | None, head: DispatchTrace | None) -> str:
    """Return why a side's trace is not complete.

    It is empty if both traces are complete or missing.
    """
    for side, trace in (("base", base), ("head", head)):
        if trace is None or trace.is_whole:
            continue
        reason = trace.why or _OTHER_CODE
        if reason == _NO_BUDGET_BEFORE:
            reason = NO_BUDGET
        if reason in (NO_BUDGET, NOT_STORED):
            return reason
        if reason.startswith(("base: ", "head: ")):
            return reason
        return f"{side}: {reason}"
    return ""


def _parting_of_stages(rows: tuple[TraceRow, ...]) -> Parting:
    """Return the first printed stage after which the sides differ."""
    for place, row in enumerate(rows):
        if row.apart:
            return Parting(rows, place)
    return Parting(rows, None, _SAME_STAGES)


def _parting_by_experiment(
    rows: tuple[TraceRow, ...],
    early: int,
    proof: ProgramProof,
    *,
    forms_otherwise: bool,
) -> Parting:
    """Return the pass that an experiment on the program names.

    Args:
        early: how many of the rows are of passes over the program.
    """
    for place, row in enumerate(rows[:early]):
        if row.name == proof.pass_name and row.apart:
            return Parting(rows, place, forms_otherwise=forms_otherwise, formed=proof)
    reason = f"by experiment: {proof.pass_name} forms other dispatch regions"
    return Parting(rows, None, reason, forms_otherwise=forms_otherwise, formed=proof)


def _parting_where_formed(rows: tuple[TraceRow, ...], early: int) -> Parting:
    """Return the pass over the program that forms other dispatches, by its trace.

    Args:
        early: how many of the rows are of passes over the program.
    """
    place = _formed_at(rows[:early])
    reason = _OPEN if place is None else ""
    return Parting(rows, place, reason, forms_otherwise=True)


def _parting_by_share(
    rows: tuple[TraceRow, ...], early: int, *, prints_llvm: bool
) -> Parting:
    """Return the pass that makes most of the final difference.

    Args:
        early: how many of the rows are of passes over the program.
        prints_llvm: whether both sides print passes of LLVM.
    """
    shares = [row.share for row in rows]
    apart_from = _apart_from(shares)
    if apart_from <= early and early and shares[early - 1]:
        return _parting_at(rows, _first_jump(rows[:early], LEAST_SHARE))
    least_left = LEAST_SHARE / 2 if prints_llvm else LEAST_SHARE
    place = _first_jump(rows[early:], least_left)
    if place is not None:
        place += early
    last = rows[-1 if place is None else place]
    if not prints_llvm and _is_in_llvm(last):
        return Parting(rows, None, _NO_LLVM.format(last.name), is_late=True)
    # what is between the program and the first of the target's passes is not seen
    if apart_from <= early:
        return Parting(rows, None, _BOUND if early else _BEFORE)
    return _parting_at(rows, place)


def _parting_at(rows: tuple[TraceRow, ...], place: int | None) -> Parting:
    """Return the parting at a pass, or that no single pass makes the difference."""
    return Parting(rows, place, _SLOWLY if place is None else "")


def _apart_from(shares: Sequence[float]) -> int:
    """Return the place from which on at least LEAST_SHARE of the end's share stays."""
    for place in range(len(shares) - 1, -1, -1):
        if shares[place] < LEAST_SHARE * shares[-1]:
            return place + 1
    return 0


def _is_in_llvm(row: TraceRow) -> bool:
    """Return whether a row is machine code, or has operations of LLVM's dialect."""
    return row.level == MACHINE or any(name.startswith("llvm.") for name in row.apart)


def _formed_at(rows: Sequence[TraceRow]) -> int | None:
    """Return the place of the pass that forms other dispatches.

    Return None if the sides differ before it.
    """
    forming = 0
    for place in range(len(rows) - 1, -1, -1):
        if not rows[place].apart.get(REGION):
            forming = place + 1
            break
    if forming and rows[forming - 1].share:
        return None
    return forming


def _first_jump(rows: Sequence[TraceRow], least_left: float) -> int | None:
    """Return the place of the first pass that makes much of the final difference.

    Far more differs after it than before it, and most of that stays. Of LLVM's passes,
    only those of the middle end count that both sides print. LLVM prints no pass that
    deletes its loop, and only some of the code generator's passes over IR
    (`consthoist`). The effect of the others shows after the next printed pass.

    Args:
        least_left: the share of the final difference that must stay from here on; LLVM
            undoes much of what MLIR's last passes do.
    """
    shares = [row.share for row in rows]
    least_later = list(accumulate(reversed(shares), min))[::-1]
    for place in range(1, len(shares)):
        if not _is_comparable(rows[place], rows[place - 1]):
            continue
        share = shares[place]
        is_jump = (
            shares[place - 1] <= MOST_BEFORE * share
            and share >= LEAST_SHARE * shares[-1]
        )
        lasting = max(MOST_BEFORE * share, least_left * shares[-1])
        if is_jump and least_later[place] >= lasting:
            return place
    return None


def _is_comparable(row: TraceRow, before: TraceRow) -> bool:
    """Return whether the difference after a pass is what this pass did.

    Of LLVM's passes, only those of the middle end that both sides print count. The
    counts before LLVM's first pass are those of MLIR, so that the translation is in the
    difference.
    """
    if row.level != LLVM:
        return True
    if before.level != LLVM or not row.name.endswith("Pass"):
        return False
    return row.base is not None and row.head is not None
