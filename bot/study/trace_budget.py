"""Choose the dispatches that the trace budget covers.

The budget is a quarter of the work of compiling both sides (`bot.core.work`). Tracing
aims at 90 % of each target's changed bytes, and starts with the dispatches whose passes
explain most bytes for their work. Work is counted and never timed, and it counts
whether or not the cache has the trace: the same two snapshots always get the same
traces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from bot.core.explanation import moved_bytes
from bot.core.mappings import only_named
from bot.core.snapshot import CellKey, Snapshot
from bot.core.work import WorkLeft, compile_work, trace_work
from bot.study.changed_dispatches import Moved, dispatches_of, is_formed

COMPILES_PER_TRACE_WORK = 4
"""Tracing may cost a quarter of the work of compiling both sides."""
LITTLE_WORK = 10_000
"""So much tracing is always allowed, however small the comparison is."""
COMPILES_PER_EXPERIMENT = 3
"""The work of an experiment on a program, in compiles of its cheapest target.

An experiment runs single phases and passes 15 to 75 times. Measured on two models with
five flags and three pairs of releases: 1.4 to 3.1 compiles of VMVX.
"""


def work_for(sides: Mapping[str, Snapshot]) -> int:
    """Return the work that tracing may cost.

    It is a share of the compiles' work, and a little in any case.
    """
    compiled = 0
    for snapshot in sides.values():
        compiled += sum(map(compile_work, snapshot.cells))
    return max(LITTLE_WORK, compiled // COMPILES_PER_TRACE_WORK)


def programs_within(
    sides: Mapping[str, Snapshot],
    chosen: Sequence[Moved],
    same: Mapping[CellKey, CellKey],
    work: int | None,
) -> set[CellKey]:
    """Return the programs whose experiment the work covers.

    `bot.study.proving_program` makes the experiments. The programs of the largest
    changes come first. The experiments may cost as much as tracing, in addition to it.

    Args:
        same: cell → the cell whose program stands for it.
        work: what tracing may cost; None without a limit.
    """
    formed = Counter[CellKey]()
    for key, delta in chosen:
        if is_formed(delta):
            formed[same[key]] += abs(moved_bytes(delta) or 0)
    compiled = _compile_works(sides)
    budget = WorkLeft(work)
    allowed = set[CellKey]()
    for program, _ in sorted(formed.items(), key=lambda item: (-item[1], item[0])):
        cost = COMPILES_PER_EXPERIMENT * _cheapest_compile(compiled, program.model)
        if budget.take(cost):
            allowed.add(program)
    return allowed


_Works = dict[tuple[str, CellKey], int]
"""Side and build → the work of its compile."""


def _compile_works(sides: Mapping[str, Snapshot]) -> _Works:
    works: _Works = {}
    for side, snapshot in sides.items():
        for cell in snapshot.cells:
            works[side, cell.key] = compile_work(cell)
    return works


def _cheapest_compile(compiled: _Works, model: str) -> int:
    """Return the work of a model's cheapest target, on the side that costs more."""
    works = dict[CellKey, int]()
    for (_, key), work in compiled.items():
        if key.model == model and work:
            works[key] = max(works.get(key, 0), work)
    return min(works.values(), default=0)


class TraceBudget:
    """The work that is left for tracing.

    `sides_here`: the sides whose compilers are here; `same`: cell → the cell whose
    program is printed for both; `work`: the limit for all tracing, None without one.
    """

    def __init__(
        self,
        sides: Mapping[str, Snapshot],
        sides_here: Collection[str],
        same: Mapping[CellKey, CellKey],
        work: int | None,
    ) -> None:
        self._here = sides_here
        self._same = same
        self._left = work
        self._compiled = _compile_works(sides)
        # the programs whose passes are printed for dispatches taken before
        self._paid = set[tuple[str, CellKey]]()

    def take(self, moved: Sequence[Moved], *, codes: bool = False) -> list[Moved]:
        """Take the dispatches that the budget covers, and skip those that do not fit.

        They are taken in their order, or the largest first if that explains more bytes.
        A little less work must not decide whether the largest change of all gets its
        pass.

        `codes`: take the passes of the target for dispatches that earlier passes
        formed, too.
        """
        largest = sorted(moved, key=_moved_bytes)[-1:]
        others = [dispatch for dispatch in moved if dispatch not in largest]
        orders = (moved, [*largest, *others])
        fitting = [self._fitting(order, codes) for order in orders]
        chosen, self._left, self._paid = max(
            fitting,
            key=lambda moved_dispatch: sum(map(_moved_bytes, moved_dispatch[0])),
        )
        return chosen

    def _fitting(
        self, moved: Sequence[Moved], codes: bool
    ) -> tuple[list[Moved], int | None, set[tuple[str, CellKey]]]:
        """Return the dispatches that fit in this order, work left and paid programs."""
        chosen = list[Moved]()
        remaining_work = self._left
        paid = set(self._paid)
        for key, delta in moved:
            programs = set[tuple[str, CellKey]]()
            if is_formed(delta) and not codes:
                programs = {(side, self._same[key]) for side in self._here} - paid
                work = sum(self._program_work(side, key.model) for side, _ in programs)
            else:
                rows = only_named(dispatches_of(delta), self._here)
                work = sum(map(trace_work, rows.values()))
            if remaining_work is not None:
                if work > remaining_work:
                    continue
                remaining_work -= work
            paid |= programs
            chosen.append((key, delta))
        return chosen, remaining_work, paid

    def _program_work(self, side: str, model: str) -> int:
        """Return half of a model's cheapest compile on a side.

        What is before code generation takes as long for all targets.
        """
        compiles = []
        for (side_name, key), work in self._compiled.items():
            if work and side_name == side and key.model == model:
                compiles.append(work)
        return min(compiles, default=0) // 2


def _moved_bytes(moved_dispatch: Moved) -> int:
    return abs(moved_bytes(moved_dispatch[1]) or 0)
