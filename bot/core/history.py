"""A history: a study of releases or commits, what changed in each, and its JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from bot.core.delta import seen_values
from bot.core.explanation import Step
from bot.core.history_totals import HistoryTotal
from bot.core.json_text import filled, lines
from bot.core.record import Amount, Name, Record, Small, lowest, range_of
from bot.core.slow_growth import Growth
from bot.core.snapshot import Cell, CellKey
from bot.core.study import UNMEASURED, Study, Variant

HISTORY_SCHEMA = "code-size-history/1"


class Move(Record, frozen=True, omit_defaults=True):
    """How a cell's numbers moved from the release before to this one."""

    # the release before; it is an earlier one than the neighbour if there is a gap
    # between
    since: Name
    # tracked metric → difference, if it is not 0; missing if a side has several values
    changes: Mapping[Name, Amount]
    cause: Name | None = None
    why: str = ""


class History(Small, frozen=True, dict=True, gc=True):
    """A study of releases or commits, and what changed from one to the next."""

    study: Study
    # release and cell → that it has other numbers there than in the release before
    moves: Mapping[tuple[str, CellKey], Move] = {}
    steps: tuple[Step, ...] = ()
    # for all targets, then for each, in the order of the releases
    totals: tuple[HistoryTotal, ...] = ()
    # growth of the newest stored baseline since older ones; empty for releases
    growths: tuple[Growth, ...] = ()

    @cached_property
    def rows(self) -> Mapping[CellKey, tuple[Cell, ...]]:
        """Return each cell that was tried in some release, in the order of releases."""
        tried = {}
        for key, row in self.study.rows.items():
            statuses = {cell.status for cell in row}
            if statuses - {"unsupported", UNMEASURED}:
                tried[key] = row
        return tried


def history_lines(history: History) -> Iterator[bytes]:
    """Yield the text of `history.json`.

    Canonical, in the order of releases, models and targets.
    """
    variants = history.study.variants
    releases = [_release(order, variant) for order, variant in enumerate(variants)]
    record = {
        "schema": HISTORY_SCHEMA,
        "targets": history.study.targets,
        "releases": releases,
        "points": (),
        "steps": [_step(step) for step in history.steps],
        "totals": history.totals,
        **filled(growths=history.growths),
    }
    return lines(record, _points(history))


def _points(history: History) -> Iterator[dict[str, object]]:
    """Yield each cell of each release."""
    for place, variant in enumerate(history.study.variants):
        for key, row in history.study.rows.items():
            cell = row[place]
            point = {
                "compiler": variant.name,
                "model": key.model,
                "target": key.target,
                "status": cell.status,
                "metrics": cell.metrics if cell.measured else {},
            }
            yield point | filled(
                reason=cell.reason,
                move=history.moves.get((variant.name, key)),
                command=cell.command,
                digest=cell.artifact_digest,
                seen=seen_values(cell) if cell.measured else {},
            )


def _step(step: Step) -> dict[str, object]:
    """Return the fields of a step, with the lowest size and the range of each side."""
    fields = {name: getattr(step, name) for name in step.__struct_fields__}
    fields["base_bytes"] = lowest(step.base_bytes)
    fields["head_bytes"] = lowest(step.head_bytes)
    fields["base_range"] = range_of(step.base_bytes)
    fields["head_range"] = range_of(step.head_bytes)
    return fields


def _release(order: int, variant: Variant) -> dict[str, object]:
    row = {"name": variant.name, "order": order, "spec": variant.spec}
    if (side := variant.snapshot) is None:
        return row | filled(reason=variant.reason)
    return row | filled(
        version=side.compiler.version,
        revision=side.compiler.revision,
        digest=side.compiler.digest,
        metrics=side.compiler.metrics,
        sha=side.source.sha,
        notes=side.notes,
    )
