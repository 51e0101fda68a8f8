"""Explain what happened in each step of a history: what changed, and why."""

from __future__ import annotations

from bot.compiler.iree import flags_of
from bot.config.configuration import Config
from bot.core.explanation import Step, StepCause
from bot.core.history import History, Move
from bot.core.history_totals import TRACKED, totals_of
from bot.core.planned import LIFTED_LIMIT_FLAG
from bot.core.report import Baseline, Report
from bot.core.slow_growth import Growth
from bot.core.snapshot import CellKey
from bot.core.study import Neighbours, Study, neighbours
from bot.explain.texts import Texts, no_texts
from bot.show.totals import everything
from bot.study.comparison import reported

_MOST_CAUSES = 10  # of a step
Moves = dict[tuple[str, CellKey], Move]  # Release and cell → what moved


def explained_history(
    study: Study,
    config: Config,
    texts: Texts = no_texts,
    growths: tuple[Growth, ...] = (),
) -> History:
    """Explain the changes between neighbours that have snapshots.

    `growths`: the growth of stored baselines.
    """
    steps: list[Step] = []
    moves = Moves()
    for pair in neighbours(study.variants):
        before, base = pair.base
        name, head = pair.head
        report = reported(
            config, base=base, head=head, baseline=Baseline(before), texts=texts
        )
        steps.append(_step(pair, report))
        moves |= _moves(before, name, report)
    return History(
        study=study,
        moves=moves,
        steps=tuple(steps),
        totals=totals_of(study),
        growths=growths,
    )


def _step(neighbours: Neighbours, report: Report) -> Step:
    """Return the step from one release to the next, from its report."""
    total = everything(report)
    states = [delta.state for delta in report.deltas]
    causes = []
    for root in report.root_causes:
        if root.total.absolute_bytes:
            cause = StepCause(
                cause=root.cause,
                what=root.what,
                models=root.models,
                targets=root.targets,
                net_bytes=root.total.net_bytes,
                absolute_bytes=root.total.absolute_bytes,
            )
            causes.append(cause)
    return Step(
        base=neighbours.base[0],
        head=neighbours.head[0],
        gaps=neighbours.gaps,
        cells=total.cells,
        base_bytes=total.base,
        head_bytes=total.head,
        larger=total.larger,
        smaller=total.smaller,
        broken=states.count("newly-broken"),
        fixed=states.count("fixed"),
        causes=tuple(causes[:_MOST_CAUSES]),
    )


def _moves(since: str, name: str, report: Report) -> Moves:
    """Return the changes of the cells of a report that both sides measured.

    A number with several values is left out.
    """
    moves = Moves()
    for delta in report.deltas:
        if not (
            delta.base and delta.head and delta.base.measured and delta.head.measured
        ):
            continue
        changes = {}
        for id_ in TRACKED:
            number = delta.metrics[id_]
            if number.change and number.seen is None:
                changes[id_] = number.change
        if not changes:
            continue
        sentences = [_flags(delta.base.command, delta.head.command)]
        cause = None
        if explanation := report.explanations.get(delta.key):
            cause = explanation.cause
            sentences.append(explanation.why)
        moves[name, delta.key] = Move(
            since=since,
            changes=changes,
            cause=cause,
            why="; ".join(filter(None, sentences)),
        )
    return moves


def _chosen_flags(command: str) -> list[str]:
    """Return the flags of a command, except the one that lifts the stack limit."""
    return [flag for flag in flags_of(command) if flag != LIFTED_LIMIT_FLAG]


def _flags(older_command: str, newer_command: str) -> str:
    """Return the note that flags changed between two commands, other than by name.

    The note is empty if they did not change.
    """
    older = _chosen_flags(older_command)
    newer = _chosen_flags(newer_command)
    gone = [flag for flag in older if flag not in newer]
    new = [flag for flag in newer if flag not in older]
    if not (older and newer) or not (gone or new):
        return ""
    changes = [*(f"without {flag}" for flag in gone), *new]
    return f"compiled with other flags ({', '.join(changes)})"
