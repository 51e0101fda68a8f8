"""Which of the dispatches that changed are worth tracing, and how many of them the trace budget covers.

The budget is a quarter of the work of compiling both sides (`bot.core.work`). Tracing
aims at 90 % of each target's changed bytes, and starts with the dispatches whose passes
explain most bytes for their work. Work is counted and never timed, and it counts
whether or not the cache has the trace: the same two snapshots always get the same
traces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from bot.core.explanation import EARLY_CAUSES, DispatchDelta, Explanation, moved_bytes
from bot.core.planned import SIDES
from bot.core.snapshot import CellKey, Dispatch, Snapshot
from bot.core.work import compile_work, trace_work

COMPILES_PER_TRACE_WORK = (
    4  # tracing may cost a quarter of the work of compiling both sides
)
LITTLE_WORK = (
    10_000  # so much tracing is always allowed, however small the comparison is
)
PROGRAM_WORK = 2_000
"""Work of the passes over a program on both sides: 1,000 for 400 lines, 3,500 for 4,000, for all its dispatches."""
MOVED_TENTHS, MOST = 9, 600
"""So much of a target's moved bytes of dispatches has to have a knob or a trace; so many are traced at most."""
COMPILES_PER_EXPERIMENT = 6
"""The work of an experiment on a program, in compiles: it runs the first half of the compiler 25 to 70 times."""
EXPERIMENT_PARTS = 2
Moved = tuple[CellKey, DispatchDelta]


def is_formed(delta: DispatchDelta) -> bool:
    """Whether earlier passes than those of its target made it another one, or one that the other side lacks."""
    return delta.cause in EARLY_CAUSES and (
        is_lone(delta) or delta.matched != "same-source"
    )


def is_lone(delta: DispatchDelta) -> bool:
    """Whether a side alone has it."""
    return delta.base is None or delta.head is None


def worth_tracing(
    explanations: Mapping[CellKey, Explanation], edited: Collection[str] = ()
) -> list[Moved]:
    """What is to be traced, by the bytes that a unit of work explains, most first: ten of 4 KB before one of 10 KB.

    Of each target the largest dispatches of which nobody knows a cause but other code,
    or that earlier passes formed otherwise of a model that nobody `edited`, until 0.9
    of its bytes have a knob or these passes.
    """
    deltas = [
        (key, delta)
        for key, explanation in explanations.items()
        for delta in explanation.dispatches
    ]
    moved = [(key, delta, abs(moved_bytes(delta) or 0)) for key, delta in deltas]
    open_tenths = Counter[str]()  # tenths of bytes that still have neither
    for key, delta, size in moved:
        open_tenths[key.target] += size * (
            MOVED_TENTHS - (10 if delta.cause == "strategy" else 0)
        )
    chosen, read = [], set[CellKey]()
    for key, delta, size in sorted(
        moved,
        key=lambda moved_dispatch: (
            -moved_dispatch[2],
            moved_dispatch[0],
            moved_dispatch[1].name,
        ),
    ):
        is_early = (
            is_formed(delta) and key.model not in edited
        )  # after the first one of a cell the others cost nothing
        is_traced = is_early or (delta.cause == "codegen" and not is_lone(delta))
        if (
            size
            and is_traced
            and (open_tenths[key.target] > 0 or (is_early and key in read))
        ):
            open_tenths[key.target] -= 10 * size
            chosen.append((key, delta, size))
            read |= {key} if is_early else set()
    chosen = chosen[:MOST]
    formed = Counter[
        str
    ]()  # the bytes that the passes over a model's program may explain
    for key, delta, size in chosen:
        formed[key.model] += size if is_formed(delta) else 0
    rates = [
        (
            formed[key.model] * 1000 // PROGRAM_WORK
            if is_formed(delta)
            else size
            * 1000
            // sum(trace_work(row) for row in (delta.base, delta.head) if row)
        )
        for key, delta, size in chosen
    ]
    ranked = sorted(
        zip(rates, chosen, strict=True),
        key=lambda moved_dispatch: (
            -moved_dispatch[0],
            moved_dispatch[1][0],
            moved_dispatch[1][1].name,
        ),
    )
    return [(key, delta) for _, (key, delta, _) in ranked]


def work_for(sides: Mapping[str, Snapshot]) -> int:
    """Return the work that tracing may cost: a share of the compiles' work, and a little in any case."""
    compiled = sum(
        compile_work(cell) for snapshot in sides.values() for cell in snapshot.cells
    )
    return max(LITTLE_WORK, compiled // COMPILES_PER_TRACE_WORK)


def programs_within(
    sides: Mapping[str, Snapshot], chosen: Sequence[Moved], work: int | None
) -> set[CellKey]:
    """Return the programs whose experiment (`bot.study.proving_program`) the work covers.

    The programs of the largest changes come first. The experiments may cost half as
    much as tracing.

    Args:
        work: what tracing may cost; None without a limit.
    """
    compiled = {
        (side, cell.key): compile_work(cell)
        for side, snapshot in sides.items()
        for cell in snapshot.cells
    }
    formed = Counter[str]()
    keys = dict[str, set[CellKey]]()
    for key, delta in chosen:
        if is_formed(delta):
            formed[key.model] += abs(moved_bytes(delta) or 0)
            keys.setdefault(key.model, set()).add(key)
    remaining_work = None if work is None else work // EXPERIMENT_PARTS
    allowed = set[CellKey]()
    for model, _ in sorted(formed.items(), key=lambda item: (-item[1], item[0])):
        cheapest = min(
            max(compiled.get((side, key), 0) for side in SIDES) for key in keys[model]
        )
        cost = COMPILES_PER_EXPERIMENT * cheapest
        if remaining_work is not None and cost > remaining_work:
            continue
        if remaining_work is not None:
            remaining_work -= cost
        allowed |= keys[model]
    return allowed


class TraceBudget:
    """The work that is left for tracing.

    `here`: the sides whose compilers are here; `same`: cell → the one whose program is
    printed for both; `work`: all that tracing may cost, None without a limit.
    """

    def __init__(
        self,
        sides: Mapping[str, Snapshot],
        sides_here: Collection[str],
        same: Mapping[CellKey, CellKey],
        work: int | None,
    ) -> None:
        self._here, self._same = sides_here, same
        self._left = work
        cells = [
            (side, cell) for side, snapshot in sides.items() for cell in snapshot.cells
        ]
        self._compiled = {(side, cell.key): compile_work(cell) for side, cell in cells}
        self._paid = set[
            tuple[str, str, CellKey]
        ]()  # what is made once for several dispatches

    def take(self, moved: Sequence[Moved], *, codes: bool = False) -> list[Moved]:
        """The dispatches that the budget covers; one that does not fit in is passed over.

        They are taken in their order, or the largest first where that explains more
        bytes: a little less work must not decide whether the largest change of all gets
        its pass.

        `codes`: of those that earlier passes formed, too, the passes of their target.
        """
        largest = sorted(moved, key=_moved_bytes)[-1:]
        orders = (
            moved,
            [
                *largest,
                *(
                    moved_dispatch
                    for moved_dispatch in moved
                    if moved_dispatch not in largest
                ),
            ],
        )
        fitting = [self._fitting(order, codes) for order in orders]
        chosen, self._left, self._paid = max(
            fitting,
            key=lambda moved_dispatch: sum(map(_moved_bytes, moved_dispatch[0])),
        )
        return chosen

    def _fitting(
        self, moved: Sequence[Moved], codes: bool
    ) -> tuple[list[Moved], int | None, set[tuple[str, str, CellKey]]]:
        """What fits, taken in this order; the work that is left then, and what is paid."""
        chosen, remaining_work, paid = list[Moved](), self._left, set(self._paid)
        for key, delta in moved:
            rows = {
                side: row
                for side, row in dispatches_of(delta).items()
                if side in self._here
            }
            if is_formed(delta) and not codes:
                shared = {
                    ("program", side, self._same[key]): self._program_work(
                        side, key.model
                    )
                    for side in self._here
                }
                own_work = 0
            else:
                shared = {
                    ("sources", side, key): self._compiled[side, key] // 4
                    for side in rows
                }
                own_work = sum(map(trace_work, rows.values()))
            work = own_work + sum(
                cost for item, cost in shared.items() if item not in paid
            )
            if remaining_work is not None and work > remaining_work:
                continue
            if remaining_work is not None:
                remaining_work -= work
            paid |= shared.keys()
            chosen.append((key, delta))
        return chosen, remaining_work, paid

    def _program_work(self, side: str, model: str) -> int:
        """Half of a model's cheapest compile: what is before code generation takes as long for all targets."""
        compiles = [
            work
            for (side_name, key), work in self._compiled.items()
            if (side_name, key.model) == (side, model) and work
        ]
        return min(compiles, default=0) // 2


def _moved_bytes(moved_dispatch: Moved) -> int:
    return abs(moved_bytes(moved_dispatch[1]) or 0)


def dispatches_of(delta: DispatchDelta) -> dict[str, Dispatch]:
    """Side → the dispatch there, where it has one."""
    return {
        side: row
        for side, row in zip(SIDES, (delta.base, delta.head), strict=True)
        if row is not None
    }
