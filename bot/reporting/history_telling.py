"""Releases with their snapshots to a history: what moved in each, and why, told as the report of each step tells it.

A cell is held against the last release that measured it: where it did not compile in between, that is not its
neighbour, and the step across the gap is reported for such cells alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from bot.compiler.probe import flags_of
from bot.config.configuration import Config
from bot.core.delta import CellDelta, MetricDelta
from bot.core.history import TRACKED, History, HistoryStep, Move, StepCause, totals_of
from bot.core.metrics import METRIC_BY_ID
from bot.core.planned import LIFTED_LIMIT_FLAG
from bot.core.report import Baseline, Report
from bot.core.snapshot import Cell, CellKey, Snapshot
from bot.core.spread import difference, lowest, range_of
from bot.core.study import Study, neighbours
from bot.explain.texts import Texts, no_texts
from bot.render.view.facts import build_facts
from bot.render.view.totals import everything
from bot.study.comparison import reported

_CAUSES = 10
_UNSTABLE = "not deterministic: the same command gives several artifacts, and no pair of them explains the step"
Moves = dict[tuple[str, CellKey], Move]
"""Release and cell → what moved."""


def told_history(study: Study, config: Config, texts: Texts = no_texts) -> History:
    """The history of these releases, in their order."""
    steps, moves = _steps(study, config, texts)
    return History(study, moves, steps, totals_of(study), _notes(config))


def _steps(study: Study, config: Config, texts: Texts) -> tuple[tuple[HistoryStep, ...], Moves]:
    """What happened between neighbours that were measured, and in each cell since it was measured before."""
    steps, moves = list[HistoryStep](), Moves()
    for (before, base), (name, head), gaps, across in neighbours(study.variants, lambda cell: cell.measured):
        made = reported(config, base, head, Baseline(before), texts)
        steps.append(_step(before, name, gaps, made))
        moves |= _moves(before, name, made, config)
        for (earlier, side), keys in across:
            made = reported(config, _only(side, keys), _only(head, keys), _SINCE, texts)
            moves |= _moves(earlier, name, made, config, keys)
    return tuple(steps), moves


_SINCE = Baseline("the last release that measured the cell")


def _only(side: Snapshot, keys: Iterable[CellKey]) -> Snapshot:
    wanted = frozenset(keys)
    return replace(side, cells=tuple(cell for cell in side.cells if cell.key in wanted))


def _moves(since: str, name: str, made: Report, config: Config, keys: frozenset[CellKey] | None = None) -> Moves:
    """What moved in the cells of a report, or in these of them."""
    wanted = (delta for delta in made.deltas if keys is None or delta.key in keys)
    return {(name, delta.key): move for delta in wanted if (move := _move(since, delta, made, config))}


def _move(since: str, delta: CellDelta, made: Report, config: Config) -> Move | None:
    if not (_measured(delta.base) and _measured(delta.head)):
        return None
    moved = [one for id_ in TRACKED if (one := delta.metrics[id_]).change and _counts(one, config)]
    if not moved:
        return None
    changes = {one.id: one.change or 0 for one in moved}
    ranges = {one.id: both for one in moved if (both := range_of(difference(*one.sides)))}
    why = made.explanations.get(delta.key)
    told = why.why if why else _UNSTABLE if delta.noise else ""
    cause, words = why.cause if why else None, "; ".join(filter(None, (_flags(delta), told)))
    return Move(since, changes, cause, words, ranges)


def _flags(delta: CellDelta) -> str:
    """That both releases compiled the cell with other flags, which the program did not just call by another name."""
    sides = [flags_of(cell.command) if cell else [] for cell in (delta.base, delta.head)]
    left, right = ([flag for flag in side if flag != LIFTED_LIMIT_FLAG] for side in sides)
    gone, new = ([flag for flag in one if flag not in other] for one, other in ((left, right), (right, left)))
    if not (left and right) or not (gone or new):
        return ""
    return f"compiled with other flags ({', '.join([*(f'without {flag}' for flag in gone), *new])})"


def _measured(cell: Cell | None) -> bool:
    return cell is not None and cell.measured


def _counts(metric: MetricDelta, config: Config) -> bool:
    """False for what another run may have given as well."""
    if METRIC_BY_ID[metric.id].exact:
        return True
    band = config.noise.get(metric.id)
    return band is not None and abs(metric.change or 0) > band.value * max(metric.base or 0, metric.head or 0)


def _step(base: str, head: str, gaps: tuple[str, ...], made: Report) -> HistoryStep:
    total, states = everything(build_facts(made)), [delta.state for delta in made.deltas]
    roots = [root for root in made.root_causes if root.total.absolute_bytes][:_CAUSES]
    causes = (
        StepCause(root.cause, root.what, root.models, root.targets, root.total.net_bytes, root.total.absolute_bytes)
        for root in roots
    )
    sizes = (total.cells, lowest(total.base), lowest(total.head), total.larger, total.smaller)
    counts = (states.count("newly-broken"), states.count("fixed"))
    return HistoryStep(base, head, gaps, *sizes, *counts, tuple(causes), range_of(total.base), range_of(total.head))


def _notes(config: Config) -> tuple[str, ...]:
    unjudged = [METRIC_BY_ID[id_].label for id_ in TRACKED if not METRIC_BY_ID[id_].exact and id_ not in config.noise]
    if not unjudged:
        return ()
    return (f"{' and '.join(unjudged)}: no move is told, as nobody knows how much it varies; calibrate measures that",)
