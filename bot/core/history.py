"""A history: a study whose variants are releases or commits.

What moved in each, the steps between, and totals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from bot.core.delta import seen_values, value_of
from bot.core.explanation import Step
from bot.core.metrics import METRIC_BY_ID, METRICS
from bot.core.record import Amount, Count, Name, Record, Small, lowest, range_of
from bot.core.slow_growth import Grown, Growth, Point
from bot.core.snapshot import Cell, CellKey, Metrics, Snapshot, filled, lines
from bot.core.study import UNMEASURED, Study, Variant

HISTORY_SCHEMA = "code-size-history/1"

TRACKED = tuple(metric.id for metric in METRICS if metric.tracked)
"""Metrics whose moves are told; `history.json` has all that were measured."""


class Move(Record, frozen=True, omit_defaults=True):
    """How a cell's numbers moved from the release before to this one."""

    # that release, which is an earlier one than the neighbour where there is a gap
    # between
    since: Name
    # tracked metric → difference, where it is not 0; none where a side has several
    # values
    changes: Mapping[Name, Amount]
    cause: Name | None = None
    why: str = ""


class HistoryTotal(Record, frozen=True):
    """One target, or all, in one release, over the cells with one value in every release that measured any."""

    compiler: Name
    target: Name | None
    # tracked metric → sum, or for stack the largest value; None without such a cell
    metrics: Metrics
    cells: Mapping[
        Name, Count
    ]  # tracked metric → how many cells that is over, the same in all releases


class History(Small, frozen=True, dict=True, gc=True):
    """A study of releases or commits, and what it says of their order."""

    study: Study
    # release and cell → that it has other numbers there than in the release before
    moves: Mapping[tuple[str, CellKey], Move] = {}
    steps: tuple[Step, ...] = ()
    totals: tuple[
        HistoryTotal, ...
    ] = ()  # for all targets, then for each, in the order of the releases
    growths: tuple[
        Growth, ...
    ] = ()  # of stored baselines: the newest against older ones; empty of releases

    @cached_property
    def rows(self) -> Mapping[CellKey, tuple[Cell, ...]]:
        """Each cell that something was tried for in some release, in the order of the releases."""
        untried = ("unsupported", UNMEASURED)
        return {
            key: row
            for key, row in self.study.rows.items()
            if any(cell.status not in untried for cell in row)
        }


def totals_of(study: Study) -> tuple[HistoryTotal, ...]:
    """Totals over all targets, then over each, release after release.

    None of a release that measured nothing.

    They are over cells that have one value in every release, so that a gap is never
    taken for a change, nor is chance.
    """
    measured = {one.name for one in study.measured}
    columns = [at for at, one in enumerate(study.variants) if one.name in measured]
    known: dict[str, dict[CellKey, list[int]]] = {metric: {} for metric in TRACKED}
    for metric, cells in known.items():
        for key, row in study.rows.items():
            values = [
                value
                for column in columns
                if isinstance(value := value_of(row[column], metric), int)
            ]
            if len(values) == len(columns):
                cells[key] = values
    totals = []
    for target in (
        None,
        *sorted(
            {
                key.target
                for key, row in study.rows.items()
                if any(c.measured for c in row)
            }
        ),
    ):
        mine = {
            metric: [row for key, row in cells.items() if target in (None, key.target)]
            for metric, cells in known.items()
        }
        counts = {metric: len(rows) for metric, rows in mine.items()}
        for place, at in enumerate(columns):
            sums: dict[str, int | None] = {}
            for metric, rows in mine.items():
                together = max if METRIC_BY_ID[metric].over == "largest" else sum
                sums[metric] = together(row[place] for row in rows) if rows else None
            totals.append(
                HistoryTotal(
                    compiler=study.variants[at].name,
                    target=target,
                    metrics=sums,
                    cells=counts,
                )
            )
    return tuple(totals)


def growth_since(point: Point, base: Snapshot | None, head: Snapshot) -> Growth:
    """Compare each measure of two baselines.

    `base`: None if the point or its snapshot is not known.
    """
    if base is None:
        return Growth(
            since=point.since,
            base=None,
            what="",
            reason=point.reason or "the baseline cannot be read",
            metrics={},
        )
    study = Study((Variant("base", snapshot=base), Variant("head", snapshot=head)))
    all_targets = [total for total in totals_of(study) if total.target is None]
    if len(all_targets) < 2:
        return Growth(
            since=point.since,
            base=None,
            what="",
            reason="a side has no artifact",
            metrics={},
        )
    before, after = all_targets
    metrics = {
        metric: Grown(
            before.metrics[metric], after.metrics[metric], after.cells[metric]
        )
        for metric in TRACKED
    }
    return Growth(
        since=point.since, base=point.sha, what=point.what, reason="", metrics=metrics
    )


def history_lines(history: History) -> Iterator[bytes]:
    """The text of `history.json`: canonical, in the order of releases, models and targets."""
    variants, rows = history.study.variants, history.study.rows
    points = (
        {
            "compiler": variant.name,
            "model": key.model,
            "target": key.target,
            "status": row[place].status,
            "metrics": row[place].metrics if row[place].measured else {},
        }
        | filled(
            reason=row[place].reason,
            move=history.moves.get((variant.name, key)),
            command=row[place].command,
            digest=row[place].artifact_digest,
            seen=seen_values(row[place]) if row[place].measured else {},
        )
        for place, variant in enumerate(variants)
        for key, row in rows.items()
    )
    record = {
        "schema": HISTORY_SCHEMA,
        "targets": history.study.targets,
        "releases": [
            _release(order, variant) for order, variant in enumerate(variants)
        ],
        "points": (),
        "steps": [
            {name: getattr(step, name) for name in step.__struct_fields__}
            | {
                "base_bytes": lowest(step.base_bytes),
                "head_bytes": lowest(step.head_bytes),
            }
            | {
                "base_range": range_of(step.base_bytes),
                "head_range": range_of(step.head_bytes),
            }
            for step in history.steps
        ],
        "totals": history.totals,
        **filled(growths=history.growths),
    }
    return lines(record, points)


def _release(order: int, variant: Variant) -> dict[str, object]:
    row = {"name": variant.name, "order": order, "spec": variant.spec}
    if (side := variant.snapshot) is None:
        return row | filled(reason=variant.reason)
    compiler = {
        name: getattr(side.compiler, name)
        for name in ("version", "revision", "digest", "metrics")
    }
    return row | filled(**compiler, sha=side.source.sha, notes=side.notes)
