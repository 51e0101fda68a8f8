"""Compile doubtful cells again, to see whether their results hold.

A few releases give one of two artifacts for the same command, depending on
address-space randomisation. A cell counts as non-deterministic if this run, the cache or
a stored baseline has several results of it, or if `repeats` of the configuration names
it. It is compiled TIMES times on every side that this run measures. Each compile has
another memory layout. All results are outcomes of the cell. The smallest artifact leads,
and the rules look at the range.

The other cells with findings are compiled again by their printed command, and then those
that changed. The budget is a tenth of the work of compiling all cells once, counted as
in `bot.core.work` and never timed. FEW cells may always be compiled again. Cells
whose state is a finding come first, such as newly failing ones. Then come cells with
other findings, and then the largest changes. `bot.show.alarm_rows` marks findings that no
second compile confirmed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import reduce
from itertools import pairwise

from msgspec import structs

from bot.compiler.cell_cache import cell_key
from bot.compiler.compiler import Result
from bot.config.configuration import Config
from bot.core.delta import CellDelta, diff, distinct
from bot.core.mappings import only_named
from bot.core.planned import PlannedCell
from bot.core.policy import judge
from bot.core.record import INT_LIMIT
from bot.core.snapshot import STATUSES, Cell, CellKey, CompileOutcome, Snapshot
from bot.core.study import Pair, Sides
from bot.core.work import compile_work
from bot.study.cell import cell_of
from bot.study.resources import Resources
from bot.study.side_plan import SidePlan
from bot.system.memory_layout import LAYOUTS

TIMES = LAYOUTS  # how often a non-deterministic cell is compiled
# rechecks may cost a tenth of the work of compiling all cells once
COMPILES_PER_RECHECK_WORK = 10
FEW = 4  # so many cells may always be compiled again, however small the suite


def doubtful(
    base: Snapshot, head: Snapshot, rules: Config, *, alarms_only: bool = False
) -> tuple[CellKey, ...]:
    """Return the cells to be compiled again, most urgent first.

    Cells that alarm come first, then the others that changed.
    """
    deltas = diff(base, head)
    alarms = judge(deltas, rules.thresholds, rules.states).news
    states_first = sorted(alarms, key=lambda finding: finding.metric is not None)
    keys = [finding.key for finding in states_first]
    if not alarms_only:
        changed = [delta for delta in deltas if delta.state == "changed"]
        keys += [delta.key for delta in sorted(changed, key=_largest_change_first)]
    measured = head.by_key
    return tuple(key for key in dict.fromkeys(keys) if key in measured)


def _largest_change_first(delta: CellDelta) -> tuple[int, CellKey]:
    return -abs(delta.metrics["artifact_bytes"].change or 0), delta.key


def recheck(
    plans: Sequence[SidePlan],
    sides: Sides,
    rules: Config,
    resources: Resources,
    pairs: Iterable[Pair] = (Pair("base", "head"),),
) -> dict[str, Snapshot]:
    """Return the sides after the doubtful cells of the planned ones are compiled again.

    `pairs`: the sides that are compared, in this order.

    The module's docstring describes the doubtful cells, and how often they are
    compiled.
    """
    result = dict(sides)
    for pair in pairs:
        compared = {name: result[name] for name in pair}
        plans_of_pair = [plan for plan in plans if plan.label in pair]
        result |= _rechecked_pair(plans_of_pair, compared, rules, resources)
    return _repeat_unsteady(plans, sides=result, rules=rules, resources=resources)


def _rechecked_pair(
    plans: Sequence[SidePlan], sides: Sides, rules: Config, resources: Resources
) -> dict[str, Snapshot]:
    """Return base and head after their doubtful cells are compiled again."""
    result = _repeat_unsteady(plans, sides=sides, rules=rules, resources=resources)
    budget = _Budget(plans, result)
    unsteady = _unsteady(result, rules)
    for times in (1, 2):
        base, head = result.values()
        keys = doubtful(base, head, rules, alarms_only=times > 1)
        steady_keys = [key for key in keys if key not in unsteady]
        result = _repeated(
            plans,
            sides=result,
            keys=budget.admit(steady_keys, times),
            layouts=range(times, times + 1),
            resources=resources,
        )
    return result


def _repeat_unsteady(
    plans: Sequence[SidePlan], sides: Sides, rules: Config, resources: Resources
) -> dict[str, Snapshot]:
    """Return the sides with each non-deterministic cell compiled TIMES times.

    A cell is compiled only on the sides that plan it.
    """
    return _repeated(
        plans,
        sides=sides,
        keys=_unsteady(sides, rules),
        layouts=range(1, TIMES),
        resources=resources,
    )


def _unsteady(sides: Sides, rules: Config) -> frozenset[CellKey]:
    """Return the cells ever seen to give several results on any side.

    Two sides with one command but different results count, too. Cells that timed out
    are not among them.
    """
    keys = set[CellKey]()
    timed_out = set[CellKey]()
    for side in sides.values():
        for cell in side.cells:
            if cell.others or _is_configured_to_repeat(cell.key, rules):
                keys.add(cell.key)
            if cell.status == "timeout":
                timed_out.add(cell.key)
    for base, head in pairwise(sides.values()):
        for delta in diff(base, head):
            if delta.unstable:
                keys.add(delta.key)
    return frozenset(keys - timed_out)


def _is_configured_to_repeat(key: CellKey, rules: Config) -> bool:
    """Return whether `repeats` of the configuration names a cell."""
    for model, target in rules.repeats:
        if fnmatchcase(key.model, model) and fnmatchcase(key.target, target):
            return True
    return False


class _Budget:
    """The remaining work of rechecks, as `bot.core.work` counts it."""

    def __init__(self, plans: Sequence[SidePlan], sides: Sides) -> None:
        # cell → the work of one compile on all its sides, and the lower compile count
        # of its sides
        self._cells: dict[CellKey, tuple[int, int]] = {}
        all_keys = set[CellKey]().union(*(side.by_key for side in sides.values()))
        for _, first_cell in _planned(plans, sides, all_keys):
            other_work, compiles = self._cells.get(
                first_cell.key, (0, first_cell.compiles)
            )
            own_work = compile_work(first_cell)
            if first_cell.status == "over-stack-limit":
                own_work *= 2  # the stack gate refused the first compile
            self._cells[first_cell.key] = (
                other_work + own_work,
                min(compiles, first_cell.compiles),
            )
        whole_work = sum(work for work, _ in self._cells.values())
        self._left = whole_work // COMPILES_PER_RECHECK_WORK
        self._few = FEW

    def admit(self, keys: Iterable[CellKey], times: int) -> frozenset[CellKey]:
        """Return the cells that can be repeated for what is left.

        A cell that an earlier run repeated is not compiled again, but its work counts.
        So the same comparison always rests on the same compiles.

        `times`: how often a cell was compiled before it is repeated.
        """
        chosen = set()
        for key in filter(self._cells.__contains__, keys):
            work, compiles = self._cells[key]
            if work <= self._left or self._few > 0:
                self._left -= work
                self._few -= 1
                if compiles <= times:
                    chosen.add(key)
        return frozenset(chosen)


def _planned(
    plans: Sequence[SidePlan], sides: Sides, keys: Iterable[CellKey]
) -> Iterator[tuple[PlannedCell, Cell]]:
    wanted_keys = frozenset(keys)
    for plan in plans:
        cells_of_side = only_named(sides[plan.label].by_key, wanted_keys)
        for planned in plan.cells:
            if planned.key in cells_of_side and not planned.target.unsupported:
                yield planned, cells_of_side[planned.key]


def _repeated(
    plans: Sequence[SidePlan],
    sides: Sides,
    keys: frozenset[CellKey],
    layouts: range,
    resources: Resources,
) -> dict[str, Snapshot]:
    """Compile cells at the layouts that they lack, and merge what each compile gave.

    A cell that was compiled three times has had the layouts 0 to 2.
    """
    pairs = {plan.label: [*_planned([plan], sides, keys)] for plan in plans}
    wanted_cells = {}
    for label, cells in pairs.items():
        wanted_cells[label] = _missing_compiles(cells, layouts)
    result = dict(sides)
    runs = dict[tuple[str, CellKey, int], Cell]()
    if not any(wanted_cells.values()):
        return result
    assembler = resources.assembler

    def finish(label: str, planned: PlannedCell, layout: int, result: Result) -> None:
        runs[label, planned.key, layout] = cell_of(
            planned, result=result, texts=resources.texts, assembler=assembler
        )

    resources.progress.stage(
        "compiling again", sum(map(len, wanted_cells.values())), "compile"
    )
    resources.compile([(plan, wanted_cells[plan.label]) for plan in plans], finish)
    for plan in plans:
        merged = dict[CellKey, Cell]()
        for cell, first_cell in pairs[plan.label]:
            new_outcomes = list[Cell]()
            for layout in layouts:
                run = runs.get((plan.label, cell.key, layout))
                if run is not None:
                    new_outcomes.append(run)
            merged[cell.key] = reduce(_merged, new_outcomes, first_cell)
            if new_outcomes:
                resources.cache.store(
                    cell_key(plan.compiler.info.digest, cell), merged[cell.key]
                )
        side = result[plan.label]
        cells_of_side = [merged.get(cell.key, cell) for cell in side.cells]
        result[plan.label] = structs.replace(side, cells=tuple(cells_of_side))
    return result


def _missing_compiles(
    cells: Sequence[tuple[PlannedCell, Cell]], layouts: range
) -> list[tuple[PlannedCell, int]]:
    """Return each cell with each layout at which it was not compiled yet."""
    missing = []
    for planned, cell in cells:
        for layout in layouts:
            if cell.compiles <= layout:
                missing.append((planned, layout))
    return missing


def _merged(earlier_cell: Cell, run: Cell) -> Cell:
    """Return the cell with all outcomes of its command, the smallest artifact first.

    A run that timed out is ignored: it proves nothing about the compiler.
    """
    if run.status == "timeout":
        return earlier_cell
    main = min(earlier_cell, run, key=_rank)
    outcomes = distinct(
        [main.outcome, earlier_cell.outcome, *earlier_cell.others, run.outcome]
    )
    return structs.replace(
        main,
        compiles=earlier_cell.compiles + 1,
        others=tuple(sorted(outcomes[1:], key=_rank)),
    )


def _rank(outcome: Cell | CompileOutcome) -> tuple[int, int, str]:
    """Return the sort key: what compiles first, then the smallest artifact.

    The same outcome leads, whatever the order of the compiles.
    """
    size = outcome.metrics.get("artifact_bytes")
    return (
        STATUSES.index(outcome.status),
        INT_LIMIT if size is None else size,
        outcome.artifact_digest or "",
    )
