"""The sides that a request names, measured where they are not known yet; and what failed."""

from __future__ import annotations

from collections.abc import Mapping

from bot.core.values.snapshot import Snapshot
from bot.inputs.config import Config
from bot.measurement.prepare import Request, Show, measured, prepare, repository_at, selected
from bot.system.processes import Cancel

_FAILED_AT_ONCE = 40


def measured_sides(
    request: Request,
    config: Config,
    specs: Mapping[str, str],
    known: Mapping[str, Snapshot],
    show: Show,
    cancel: Cancel,
) -> dict[str, Snapshot]:
    """The snapshots that are known, without what the request leaves out, and one of each SPEC in `specs`."""
    if not specs:
        return selected(known, request)
    repository = repository_at(request.config, cancel)
    plans = [prepare(side, spec, request, config, repository, show, cancel) for side, spec in specs.items()]
    return measured(plans, known, request, config, show, cancel)


def say_failed(snapshot: Snapshot, show: Show) -> None:
    """Name the cells that could not be measured, a line each: in a shard nobody else does."""
    failed = [cell for cell in snapshot.cells if not cell.measured and cell.status != "unsupported"]
    for cell in failed[:_FAILED_AT_ONCE]:
        show.say(f"{cell.status}: {cell.key}: {cell.failure.first_line if cell.failure else ''}")
    if len(failed) > _FAILED_AT_ONCE:
        show.say(f"and {len(failed) - _FAILED_AT_ONCE} more: the snapshot has them all")
