"""One dispatch traced on both sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate

from bot.core.ladder import Ladder
from bot.core.machine_passes import MachinePasses
from bot.core.pass_proof import PassProof
from bot.core.program_proof import ProgramProof
from bot.core.proof import KnobProof
from bot.core.snapshot import CellKey, Dispatch
from bot.core.trace import (
    LLVM,
    MACHINE,
    PROGRAM,
    REGION,
    DispatchTrace,
    Parting,
    PassState,
    TraceRow,
)

TRACE_SCHEMA = "code-size-trace/1"


@dataclass(frozen=True, slots=True)
class Traced:
    """One dispatch on both sides."""

    key: CellKey
    # compilers, rows, traces, commands: side → its compiler's version, the dispatch,
    # its trace, and the commands that print all of it; a side that lacks the dispatch
    # has none of it but a command
    compilers: Mapping[str, str]
    rows: Mapping[str, Dispatch]
    traces: Mapping[str, DispatchTrace]
    commands: Mapping[str, tuple[str, ...]]
    parting: Parting
    # None with the reason in `no_ladder`
    ladder: Ladder | None = None
    no_ladder: str = ""
    # the experiment on the program of a dispatch that is formed otherwise; None where
    # there is none
    formed: ProgramProof | None = None
    # the experiment with base's configuration; None where the configurations are equal,
    # or a compiler is not here
    proof: KnobProof | None = None
    # the experiment that divides the MLIR part, and the counts of both code generators;
    # None where their phase carries little of the change, or a compiler is not here
    pass_proof: PassProof | None = None
    machine: MachinePasses | None = None


# Where two compilers part over one dispatch: its passes side by side, and the one after
# which it is another function.
#
# Of the passes that leave a difference, the first is meant that makes a good part of
# what the sides are apart in the end, and most of what differs after it: not one that
# adds a little to much, or lowers what parted before. A handful of operations that
# differ before and stay so is told in the trace, and is not the cause: a gather whose
# lowering makes 1,440 operations more on one side may have differed by three before.


LEAST_SHARE = 1 / 8
"""The sides have parted at a pass after which they differ by this part of what they differ by in the end (shares)."""
MOST_BEFORE = 1 / 4
"""The part of the difference after a pass that may be there before it, and that has to stay to the end."""

NOT_TRACED = "not traced"
NO_BUDGET = "not traced: compile budget used up"
_NO_BUDGET_BEFORE = "no time was left to trace it"  # how snapshots of version 1 say it
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
"""Why no pass is named, each in one sentence for all places that say it; a compile that fails has its own words."""


def parting(base: DispatchTrace | None, head: DispatchTrace | None) -> Parting:
    """The passes of both sides, and after which of them the sides have parted."""
    lone = head if base is None else base if head is None else None
    if lone is not None and lone.across:
        across = DispatchTrace(lone.across)
        base, head = base or across, head or across
    for side, trace in (("base", base), ("head", head)):
        if trace is not None and not trace.is_whole:
            why = trace.why or _OTHER_CODE
            if why == _NO_BUDGET_BEFORE:
                why = NO_BUDGET
            has_side = why in (NO_BUDGET, NOT_STORED) or why.startswith(
                ("base: ", "head: ")
            )
            return Parting((), None, why if has_side else f"{side}: {why}")
    if base is None or head is None:
        return Parting((), None, NOT_TRACED)
    rows = tuple(_rows(tuple(base.states()), tuple(head.states())))
    if base.is_staged and head.is_staged:
        first = next((place for place, row in enumerate(rows) if row.apart), None)
        return Parting(rows, first, "" if first is not None else _SAME_STAGES)
    early = sum(row.level == PROGRAM for row in rows)
    forms_otherwise = bool(early and rows[early - 1].apart.get(REGION))
    proof = head.formed or base.formed
    if proof is not None and proof.pass_name:
        at = next(
            (
                place
                for place, row in enumerate(rows[:early])
                if row.name == proof.pass_name and row.apart
            ),
            None,
        )
        why = (
            ""
            if at is not None
            else f"by experiment: {proof.pass_name} forms other dispatch regions"
        )
        return Parting(rows, at, why, forms_otherwise=forms_otherwise, formed=proof)
    if forms_otherwise:
        at = _formed_at(rows[:early])
        return Parting(rows, at, _OPEN if at is None else "", forms_otherwise=True)
    if not rows or not rows[-1].share:
        return Parting(rows, None, SAME)
    shares = [row.share for row in rows]
    apart_from = next(
        (
            at + 1
            for at in range(len(rows) - 1, -1, -1)
            if shares[at] < LEAST_SHARE * shares[-1]
        ),
        0,
    )
    if apart_from <= early and early and shares[early - 1]:
        at = _first_jump(rows[:early], LEAST_SHARE)
        return Parting(rows, at, "" if at is not None else _SLOWLY)
    has_llvm = all(
        any(step.level == LLVM for step in one.steps) for one in (base, head)
    )
    at = _first_jump(rows[early:], LEAST_SHARE / 2 if has_llvm else LEAST_SHARE)
    at = None if at is None else at + early
    last = rows[-1 if at is None else at]
    if not has_llvm and (
        last.level == MACHINE or any(name.startswith("llvm.") for name in last.apart)
    ):
        return Parting(rows, None, _NO_LLVM.format(last.name), is_late=True)
    if (
        apart_from <= early
    ):  # what is between the program and the first of the target's passes is not seen
        return Parting(rows, None, _BOUND if early else _BEFORE)
    return Parting(rows, at, "" if at is not None else _SLOWLY)


def _formed_at(rows: Sequence[TraceRow]) -> int | None:
    """Return the place of the pass that forms other dispatches.

    None where the sides differ before that.
    """
    forming = next(
        (
            place + 1
            for place in range(len(rows) - 1, -1, -1)
            if not rows[place].apart.get(REGION)
        ),
        0,
    )
    is_first = not forming or not rows[forming - 1].share
    return forming if is_first else None


def _first_jump(rows: Sequence[TraceRow], least_left: float) -> int | None:
    """The place after which by far more differs than before it, a good part of the end's, and most of it for good.

    Of LLVM's passes one of the middle end that both sides print: it prints none that
    deletes its loop, and of the code generator's passes over IR (`consthoist`) only
    some, so that what others of these do is seen after the next one.

    Args:
        least_left: of the end's difference, what is never gone again; LLVM undoes much of what MLIR's last passes do.
    """
    shares = [row.share for row in rows]
    least_later = list(accumulate(reversed(shares), min))[::-1]
    for place in range(1, len(shares)):
        row = rows[place]
        is_seen = row.level != LLVM or (
            row.name.endswith("Pass") and row.base is not None and row.head is not None
        )
        is_jump = (
            shares[place - 1] <= MOST_BEFORE * shares[place]
            and shares[place] >= LEAST_SHARE * shares[-1]
        )
        if (
            is_seen
            and is_jump
            and least_later[place]
            >= max(MOST_BEFORE * shares[place], least_left * shares[-1])
        ):
            return place
    return None


def _rows(base: Sequence[PassState], head: Sequence[PassState]) -> Iterator[TraceRow]:
    """Where a pass changed one side alone, the other is as it was before."""
    left = right = None
    for i, j in _aligned(base, head):
        one, other = (None if i is None else base[i]), (None if j is None else head[j])
        left, right = one or left, other or right
        named = other or one
        if left and right and named and left.level == right.level:
            apart = _more(left.operations, right.operations) or _more(
                left.typed, right.typed
            )
            yield TraceRow(
                name=named.name,
                base=one,
                head=other,
                apart=apart,
                share=_share(left, right),
            )


def _aligned(
    base: Sequence[PassState], head: Sequence[PassState]
) -> Iterator[tuple[int | None, int | None]]:
    """Places in both, by the passes' names.

    These drift: `iree-codegen-lower-affine` became `iree-lower-affine`.
    """
    base_names, head_names = (
        [
            (state.level, state.name.replace("codegen-", "").replace("-", ""))
            for state in side
        ]
        for side in (base, head)
    )
    for kind, i, i_end, j, j_end in SequenceMatcher(
        None, base_names, head_names, autojunk=False
    ).get_opcodes():
        if kind == "equal":
            yield from zip(range(i, i_end), range(j, j_end), strict=True)
        else:
            yield from ((place, None) for place in range(i, i_end))
            yield from ((None, place) for place in range(j, j_end))


def _more(base: Mapping[str, int], head: Mapping[str, int]) -> dict[str, int]:
    more = Counter(head)
    more.subtract(base)
    return dict(
        sorted(
            ((name, count) for name, count in more.items() if count),
            key=lambda one: (-abs(one[1]), one[0]),
        )
    )


def _share(base: PassState, head: PassState) -> float:
    """By name and types, of the operations of the larger side."""
    more = _more(base.typed, head.typed).values()
    come, gone = (
        sum(count for count in more if count > 0),
        -sum(count for count in more if count < 0),
    )
    return max(come, gone) / max(base.total, head.total, 1)
