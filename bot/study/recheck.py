"""Cells compiled again: those that do not repeat themselves, and those that alarm or changed, to see if that holds.

A few releases give one of two artifacts for the same command, depending on address-space randomisation. What was ever
seen to do so, by this run, the cache, a stored baseline or `repeats` of the configuration, is compiled TIMES times on
every side that this run measures, with its memory at other addresses each time. All that it gives are outcomes of the
cell, of which the smallest artifact leads, and the rules look at the range of them.

The other cells that alarm, and then those that changed, are compiled again by their printed command, to find out. That
takes at most a tenth of what compiling all cells took, each cell's first compile being what it costs (FEW cells may
always be repeated): first what is newly broken or fails, then the largest of each kind. What was not repeated says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from bot.compiler.cell_cache import cell_key
from bot.compiler.compiler import Result
from bot.compiler.ptxas import Assembler, installed
from bot.compiler.schedule import run_all
from bot.config.configuration import Config
from bot.core.delta import CellDelta, diff, distinct
from bot.core.planned import PlannedCell
from bot.core.policy import Finding, judge
from bot.core.record import INT_LIMIT
from bot.core.snapshot import STATUSES, Cell, CellKey, Outcome, Snapshot
from bot.study.cell import cell_of
from bot.study.run import Resources, SidePlan, open_side
from bot.system.downloads import LAYOUTS
from bot.system.files import temporary_directory
from bot.system.processes import Meter

TIMES = LAYOUTS
"""How often a cell that does not repeat itself is compiled."""
LARGEST_SHARE = 0.1
"""What doubting may cost at most, as a share of the CPU time of compiling all cells once."""
FEW = 4
"""So many may always be compiled again, however small the suite."""
_LAYOUTS = (1, 2)
"""Of memory, for the first and the second time that an alarm is doubted."""

Sides = Mapping[str, Snapshot]


def suspects(base: Snapshot, head: Snapshot, rules: Config) -> tuple[CellKey, ...]:
    """The cells to be compiled again, most urgent first: those that alarm, then the others that changed."""
    deltas = diff(base, head)
    changed = [delta for delta in deltas if delta.state == "changed"]
    changed.sort(key=lambda delta: (-abs(delta.metrics["artifact_bytes"].change or 0), delta.key))
    measured = {cell.key for cell in head.cells}
    # states first; then the largest of each metric and kind, the second largest of each, and so on
    alarms = _alarms(deltas, rules)
    ranks: dict[tuple[str | None, str], int] = {}
    ranked = []
    for place, finding in enumerate(alarms):
        kind = (finding.metric, finding.kind)
        ranks[kind] = ranks.get(kind, -1) + 1
        ranked.append((0 if finding.metric is None else 1 + ranks[kind], place, finding.key))
    keys = [*[key for _, _, key in sorted(ranked)], *(delta.key for delta in changed)]
    return tuple(key for key in dict.fromkeys(keys) if key in measured)


def _alarms(deltas: Sequence[CellDelta], rules: Config) -> Sequence[Finding]:
    return judge(deltas, rules.thresholds, rules.states, rules.noise).news


def recheck(plans: Sequence[SidePlan], sides: Sides, rules: Config, resources: Resources) -> dict[str, Snapshot]:
    """The sides, the planned ones with their doubtful cells compiled again (see the module's text)."""
    result = repeat_unsteady(plans, sides, rules, resources)
    if not {"base", "head"} <= result.keys():
        return result
    budget, unsteady = _Budget(plans, result), _unsteady(result, rules)
    for number, layout in enumerate(_LAYOUTS):
        keys = suspects(result["base"], result["head"], rules)
        if number > 0:
            alarming = {finding.key for finding in _alarms(diff(result["base"], result["head"]), rules)}
            keys = tuple(key for key in keys if key in alarming)
        if chosen := budget.admit((key for key in keys if key not in unsteady), number + 1):
            result = _repeated(plans, result, chosen, layout, resources, number + 1)
    return repeat_unsteady(plans, result, rules, resources)


def repeat_unsteady(
    plans: Sequence[SidePlan], sides: Sides, rules: Config, resources: Resources
) -> dict[str, Snapshot]:
    """The sides, of any labels, with each cell that does not repeat itself compiled TIMES times where it is planned."""
    result = dict(sides)
    keys = _unsteady(result, rules)
    for times in range(1, TIMES):
        result = _repeated(plans, result, keys, times, resources, times)
    return result


def _unsteady(sides: Sides, rules: Config) -> frozenset[CellKey]:
    """What was ever seen not to repeat itself, on any side; but for what timed out."""
    every = [cell for side in sides.values() for cell in side.cells]
    keys = {cell.key for cell in every if cell.others}
    for key in {cell.key for cell in every} - keys:
        if any(fnmatchcase(key.model, model) and fnmatchcase(key.target, target) for model, target in rules.repeats):
            keys.add(key)
    if {"base", "head"} <= sides.keys():
        keys |= {delta.key for delta in diff(sides["base"], sides["head"]) if delta.unstable}
    return frozenset(keys - {cell.key for cell in every if cell.status == "timeout"})


class _Budget:
    """What may still be compiled again, in milliseconds of CPU time."""

    def __init__(self, plans: Sequence[SidePlan], sides: Sides) -> None:
        self._pairs: dict[CellKey, list[tuple[PlannedCell, Cell]]] = {}
        for planned, known in _planned(plans, sides, {cell.key for side in sides.values() for cell in side.cells}):
            self._pairs.setdefault(known.key, []).append((planned, known))
        every = [pair for pairs in self._pairs.values() for pair in pairs]
        timed = [(planned.cost, cost_ms) for planned, known in every if (cost_ms := _cost_ms(known)) is not None]
        self._rate = sum(ms for _, ms in timed) / (sum(cost for cost, _ in timed) or 1) if timed else 1.0
        self._left, self._few = LARGEST_SHARE * sum(map(self._spends, every)), FEW

    def _spends(self, pair: tuple[PlannedCell, Cell]) -> float:
        planned, known = pair
        cost_ms = _cost_ms(known)
        return planned.cost * self._rate if cost_ms is None else cost_ms

    def admit(self, keys: Iterable[CellKey], times: int) -> frozenset[CellKey]:
        """Those of the cells that can be repeated for what is left.

        What an earlier run repeated is not compiled again, but counts all the same: the same comparison always
        rests on the same compiles.

        `times`: how often a cell was compiled before it is repeated.
        """
        chosen = set()
        for key in keys:
            pairs = self._pairs.get(key, [])
            cost_ms = sum(map(self._spends, pairs))
            if pairs and (cost_ms <= self._left or self._few > 0):
                self._left, self._few = self._left - cost_ms, self._few - 1
                if any(known.compiles <= times for _, known in pairs):
                    chosen.add(key)
        return frozenset(chosen)


def _cost_ms(cell: Cell) -> int | None:
    """CPU time of its compile, which is two where the stack gate refused the first; None where it is not known."""
    cost_ms = cell.value("compile_cpu_ms")
    return None if cost_ms is None else cost_ms * (1 + (cell.status == "over-stack-limit"))


def _planned(plans: Sequence[SidePlan], sides: Sides, keys: Iterable[CellKey]) -> Iterator[tuple[PlannedCell, Cell]]:
    wanted = frozenset(keys)
    for plan in plans:
        known = {cell.key: cell for cell in sides[plan.label].cells if cell.key in wanted}
        for cell in plan.cells:
            if cell.key in known and not cell.hindered:
                yield cell, known[cell.key]


def _repeated(
    plans: Sequence[SidePlan], sides: Sides, keys: frozenset[CellKey], layout: int, resources: Resources, times: int
) -> dict[str, Snapshot]:
    """Compile these cells again, unless it was more than `times`, and put together what each gave."""
    result = dict(sides)
    for plan in plans:
        pairs = [(cell, known) for cell, known in _planned([plan], sides, keys) if known.compiles <= times]
        if not pairs:
            continue
        runs = _compiled(plan, [cell for cell, _ in pairs], layout, resources)
        merged = {cell.key: _merged(known, runs[cell.key]) for cell, known in pairs}
        for cell, _ in pairs:
            resources.cache.store(cell_key(plan.compiler.info.digest, cell), merged[cell.key])
        side = result[plan.label]
        result[plan.label] = replace(side, cells=tuple(merged.get(cell.key, cell) for cell in side.cells))
    return result


def _compiled(plan: SidePlan, cells: Sequence[PlannedCell], layout: int, resources: Resources) -> dict[CellKey, Cell]:
    """What the printed commands of these cells give at one layout of memory."""
    runs: dict[CellKey, Cell] = {}
    assembler = Assembler(resources.cancel, resources.timeout_seconds, installed())

    def finish(planned: PlannedCell, result: Result) -> None:
        runs[planned.key] = cell_of(planned, result, resources.texts, assembler)

    with temporary_directory("run-") as scratch, open_side(plan, resources, scratch, Meter(), finish) as tasks:
        run_all(tasks(cells, layout), resources.jobs, resources.cancel.set, resources.progress)
    return runs


def _merged(known: Cell, run: Cell) -> Cell:
    """The cell with all that its command gave, the smallest artifact first.

    A run that the machine stopped says nothing of the compiler.
    """
    if run.status == "timeout":
        return known
    main = min(known, run, key=_rank)
    outcomes = distinct([main.outcome, known.outcome, *known.others, run.outcome])
    return replace(main, compiles=known.compiles + 1, others=tuple(sorted(outcomes[1:], key=_rank)))


def _rank(one: Cell | Outcome) -> tuple[int, int, str]:
    """What compiles first, then the smallest artifact: in whatever order they came, the same one leads."""
    size = one.metrics.get("artifact_bytes")
    return STATUSES.index(one.status), INT_LIMIT if size is None else size, one.artifact_digest or ""
