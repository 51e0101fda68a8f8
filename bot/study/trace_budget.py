"""Which of the dispatches that moved are worth tracing, and how many of them there is time for.

That time is a quarter of what compiling the two sides took. Of each target those that have nine tenths of the moved
bytes are wanted, those first whose passes explain most bytes a second. What counts is the time that tracing is
expected to take, whatever an earlier run has left: the same two snapshots always get the same traces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from math import inf

from bot.core.explanation import EARLY_CAUSES, DispatchDelta, Explanation, moved_bytes
from bot.core.planned import SIDES
from bot.core.snapshot import CellKey, Dispatch, Snapshot

TIME_SHARE = 0.25  # What tracing may cost, as a share of the CPU time in which both sides were compiled
LITTLE_SECONDS = 10  # So much may always be spent, however small the comparison is
PROGRAM_SECONDS = 2
"""What the passes over a program take on both sides: 1 s for 400 lines, 3.5 s for 4,000, for all dispatches of it."""
MOVED_TENTHS, MOST = 9, 600
"""So much of a target's moved bytes of dispatches has to have a knob or a trace; so many are traced at most."""
Moved = tuple[CellKey, DispatchDelta]


def expected_ms(row: Dispatch) -> int:
    """What the compiler takes to print all of its passes over it, of CPU time.

    Measured from 3.11.0 to 3.13.0, on all targets: MLIR's with the milestones of LLVM's 0.25 s for small ones, 1.6 s
    for 29 KB of code, 11.7 s for 146 KB; all of LLVM's 1.3 s more for 38 KB, 5.4 s for 50 KB, 6 s for 218 KB.
    """
    return 500 + 140 * (row.code_bytes or 0) // 1024


def is_formed(delta: DispatchDelta) -> bool:
    """Whether earlier passes than those of its target made it another one, or one that the other side lacks."""
    return delta.cause in EARLY_CAUSES and (is_lone(delta) or delta.matched != "same-source")


def is_lone(delta: DispatchDelta) -> bool:
    """Whether a side alone has it."""
    return delta.base is None or delta.head is None


def worth_tracing(explanations: Mapping[CellKey, Explanation], edited: Collection[str] = ()) -> list[Moved]:
    """What is to be traced, by the bytes that a second explains, most first: ten of 4 KB before one of 10 KB.

    Of each target the largest dispatches of which nobody knows a cause but other code, or that earlier passes formed
    otherwise of a model that nobody `edited`, until 0.9 of its bytes have a knob or these passes.
    """
    deltas = [(key, delta) for key, explanation in explanations.items() for delta in explanation.dispatches]
    moved = [(key, delta, abs(moved_bytes(delta) or 0)) for key, delta in deltas]
    open_tenths = Counter[str]()  # tenths of bytes that still have neither
    for key, delta, size in moved:
        open_tenths[key.target] += size * (MOVED_TENTHS - (10 if delta.cause == "strategy" else 0))
    chosen, read = [], set[CellKey]()
    for key, delta, size in sorted(moved, key=lambda one: (-one[2], one[0], one[1].name)):
        is_early = is_formed(delta) and key.model not in edited  # after the first one of a cell the others cost nothing
        is_traced = is_early or (delta.cause == "codegen" and not is_lone(delta))
        if size and is_traced and (open_tenths[key.target] > 0 or (is_early and key in read)):
            open_tenths[key.target] -= 10 * size
            chosen.append((key, delta, size))
            read |= {key} if is_early else set()
    chosen = chosen[:MOST]
    formed = Counter[str]()  # the bytes that the passes over a model's program may explain
    for key, delta, size in chosen:
        formed[key.model] += size if is_formed(delta) else 0
    rates = [
        formed[key.model] // PROGRAM_SECONDS
        if is_formed(delta)
        else size * 1000 // sum(expected_ms(row) for row in (delta.base, delta.head) if row)
        for key, delta, size in chosen
    ]
    ranked = sorted(zip(rates, chosen, strict=True), key=lambda one: (-one[0], one[1][0], one[1][1].name))
    return [(key, delta) for _, (key, delta, _) in ranked]


def seconds_for(sides: Mapping[str, Snapshot]) -> float:
    """CPU time that tracing may cost: a share of what both sides cost to compile, and a little in any case."""
    compiled_ms = sum(cell.value("compile_cpu_ms") or 0 for one in sides.values() for cell in one.cells)
    return max(LITTLE_SECONDS, TIME_SHARE * compiled_ms / 1000)


class TraceBudget:
    """The time for tracing, by what traces are expected to take.

    `here`: the sides whose compilers are here; `same`: cell → the one whose program is printed for both; `seconds`:
    CPU time in all, None without a limit.
    """

    def __init__(
        self,
        sides: Mapping[str, Snapshot],
        here: Collection[str],
        same: Mapping[CellKey, CellKey],
        seconds: float | None,
    ) -> None:
        self._here, self._same = here, same
        self._left_ms = inf if seconds is None else seconds * 1000
        cells = [(side, cell) for side, snapshot in sides.items() for cell in snapshot.cells]
        self._compiled_ms = {(side, cell.key): cell.value("compile_cpu_ms") or 0 for side, cell in cells}
        self._paid = set[tuple[str, str, CellKey]]()  # what is made once for several dispatches

    def take(self, moved: Sequence[Moved], *, codes: bool = False) -> list[Moved]:
        """The dispatches that there is time for; one that does not fit in is passed over.

        They are taken in their order, or the largest first where that explains more bytes: a second more or less, which
        a compile takes each time, must not decide whether the largest change of all gets its pass.

        `codes`: of those that earlier passes formed, too, the passes of their target.
        """
        largest = sorted(moved, key=_moved_bytes)[-1:]
        orders = moved, [*largest, *(one for one in moved if one not in largest)]
        fitting = [self._fitting(order, codes) for order in orders]
        chosen, self._left_ms, self._paid = max(fitting, key=lambda one: sum(map(_moved_bytes, one[0])))
        return chosen

    def _fitting(self, moved: Sequence[Moved], codes: bool) -> tuple[list[Moved], float, set[tuple[str, str, CellKey]]]:
        """What fits, taken in this order; the time that is left then, and what is paid."""
        chosen, left_ms, paid = list[Moved](), self._left_ms, set(self._paid)
        for key, delta in moved:
            rows = {side: row for side, row in dispatches_of(delta).items() if side in self._here}
            if is_formed(delta) and not codes:
                shared = {("program", side, self._same[key]): self._program_ms(side, key.model) for side in self._here}
                own_ms = 0
            else:
                shared = {("sources", side, key): self._compiled_ms[side, key] // 4 for side in rows}
                own_ms = sum(map(expected_ms, rows.values()))
            cost_ms = own_ms + sum(cost_ms for what, cost_ms in shared.items() if what not in paid)
            if cost_ms <= left_ms:
                left_ms -= cost_ms
                paid |= shared.keys()
                chosen.append((key, delta))
        return chosen, left_ms, paid

    def _program_ms(self, side: str, model: str) -> int:
        """Half of a model's fastest compile: what is before code generation takes as long for all targets."""
        every = [ms for (other, key), ms in self._compiled_ms.items() if (other, key.model) == (side, model) and ms]
        return min(every, default=0) // 2


def _moved_bytes(one: Moved) -> int:
    return abs(moved_bytes(one[1]) or 0)


def dispatches_of(delta: DispatchDelta) -> dict[str, Dispatch]:
    """Side → the dispatch there, where it has one."""
    return {side: row for side, row in zip(SIDES, (delta.base, delta.head), strict=True) if row is not None}
