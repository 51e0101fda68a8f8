"""Try each flag in which the sides differ: compile head with the flag as base has it.

Each is tried on the build with the largest change that has this difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from bot.compiler.cell_cache import cell_key
from bot.compiler.compiler import Result
from bot.compiler.file_options import kind_of
from bot.compiler.iree import Iree
from bot.core.flag_changes import SIZE, TriedFlag, with_result
from bot.core.planned import PlannedCell
from bot.core.proof import MOST_WORDS
from bot.core.report import Report
from bot.core.snapshot import Cell
from bot.core.work import compile_work
from bot.study.cell import cell_of
from bot.study.prepare import Work
from bot.study.program_experiments import NO_BUDGET
from bot.study.resources import Resources
from bot.study.side_plan import SidePlan
from bot.study.trace_budget import work_for

_PARTS = 4
"""Trials of flags may cost one part in so many of the work that tracing may cost."""
_FEW = 4
"""The number of flags that are tried even if they exceed the budget."""


@dataclass(frozen=True, slots=True)
class _Trial:
    """One flag, and the build that is compiled with base's value of it.

    Attributes:
        planned: head's build with that value.
    """

    row: TriedFlag
    planned: PlannedCell


def tried_flags(
    plans: Sequence[SidePlan], report: Report, work: Work
) -> tuple[TriedFlag, ...]:
    """Return the differences of flags of a report, each with its experiment.

    No compile is made for a flag that is proved already, as nothing else differs.
    """
    rows = list(report.changed_flags)
    untried = [row for row in rows if row.tried.key is not None and row.tried.why]
    head_plans = [plan for plan in plans if plan.label == "head"]
    if not untried or not head_plans:
        return tuple(rows)
    head = head_plans[0]
    trials = list[_Trial]()
    remaining_work = work_for({"base": report.base, "head": report.head}) // _PARTS
    cells = report.head.by_key
    for row in untried:
        trial = _trial(head, row)
        if isinstance(trial, str):
            rows[rows.index(row)] = _with_reason(row, trial)
            continue
        cost = compile_work(cells[trial.planned.key])
        if cost > remaining_work and len(trials) >= _FEW:
            rows[rows.index(row)] = _with_reason(row, NO_BUDGET)
            continue
        remaining_work -= cost
        trials.append(trial)
    if trials:
        with work.resources() as resources:
            for trial, cell in _compiled(head, trials, resources):
                size = cells[trial.planned.key].value(SIZE)
                rows[rows.index(trial.row)] = _with_result(trial.row, size, cell)
    return tuple(rows)


def _trial(head: SidePlan, row: TriedFlag) -> _Trial | str:
    """Return the build of a trial, or why there is none."""
    if not isinstance(head.compiler, Iree):
        return "only flags of IREE's compiler are tried"
    if row.removed and kind_of(row.removed) != "nothing":
        return f"{row.removed} may name a file"
    planned_cells = [cell for cell in head.cells if cell.key == row.tried.key]
    if not planned_cells:
        return "head has no such build"
    planned = with_flag(planned_cells[0], removed=row.removed, added=row.added)
    if planned is None:
        return "the flag is not one of the target or of the user"
    return _Trial(row, planned)


def with_flag(cell: PlannedCell, *, removed: str, added: str) -> PlannedCell | None:
    """Return head's build with one flag as base has it.

    Args:
        removed: base's flag; empty if base has none.
        added: head's flag, for which base's stands in; empty if head has none.

    Returns:
        None if head's flag is neither one of the target nor one of the user.
    """
    if not added:
        return replace(cell, user_flags=(*cell.user_flags, removed))
    if added in cell.user_flags:
        return replace(cell, user_flags=_exchanged(cell.user_flags, removed, added))
    if added in cell.target.flags:
        flags = _exchanged(cell.target.flags, removed, added)
        return replace(cell, target=replace(cell.target, flags=flags))
    return None


def _exchanged(flags: Sequence[str], removed: str, added: str) -> tuple[str, ...]:
    """Return the flags of head with base's flag in the place of the added one."""
    place = flags.index(added)
    replacement = (removed,) if removed else ()
    return (*flags[:place], *replacement, *flags[place + 1 :])


def _with_reason(row: TriedFlag, reason: str) -> TriedFlag:
    return replace(row, tried=replace(row.tried, why=reason[:MOST_WORDS]))


def _compiled(
    head: SidePlan, trials: Sequence[_Trial], resources: Resources
) -> list[tuple[_Trial, Cell]]:
    """Return each trial with its measured build, from the cache if it is there."""
    compiler = head.compiler.info
    assembler = resources.assembler
    measured = dict[PlannedCell, Cell]()
    missing = list[PlannedCell]()
    for trial in trials:
        cached_cell = resources.cache.load(
            cell_key(compiler.digest, trial.planned), compiler.metrics
        )
        if cached_cell is not None:
            measured[trial.planned] = cached_cell
        elif trial.planned not in missing:
            missing.append(trial.planned)

    def finish(_label: str, planned: PlannedCell, _layout: int, result: Result) -> None:
        cell = cell_of(
            planned, result=result, texts=resources.texts, assembler=assembler
        )
        resources.cache.store(cell_key(compiler.digest, planned), cell)
        measured[planned] = cell

    if missing:
        resources.progress.stage("trying flags", len(missing), "compile")
        resources.compile([(head, [(planned, 0) for planned in missing])], finish)
    return [(trial, measured[trial.planned]) for trial in trials]


def _with_result(row: TriedFlag, head_bytes: int | None, cell: Cell) -> TriedFlag:
    """Return the row with what base's flag undoes.

    Args:
        head_bytes: head's code size with its own flag.
        cell: head's build with base's flag.
    """
    after = cell.value(SIZE)
    if after is None or head_bytes is None:
        reason = "no artifact"
        if cell.failure is not None:
            reason = cell.failure.first_line
        return _with_reason(row, f"head with base's flag: {reason}")
    return replace(row, tried=with_result(row.tried, head_bytes - after))
