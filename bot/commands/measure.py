"""`measure`: one side, or a shard of it, into one snapshot file."""

from __future__ import annotations

from bot.config.configuration import load_config
from bot.errors import NoVerdict, OutputError
from bot.measurement.prepare import Request, Show, measured, prepare, repository_at, require_writable, say_failed
from bot.reporting.writing import write_snapshot
from bot.system.processes import Cancel


def measure(request: Request, show: Show, cancel: Cancel) -> None:
    """Measure one side, or a shard of it, into one snapshot file.

    Raises NoVerdict, when the snapshot is written, where none of its cells was measured; but not for a shard, as what
    the others hold decides.
    """
    config = load_config(request.config)
    require_writable(request.out.parent)
    if request.out.is_dir():
        raise OutputError("is a directory", where=str(request.out), hint="--out names the snapshot file")
    repository = repository_at(request.config, cancel)
    plan = prepare("head", request.specs["head"], request, config, repository, show, cancel)
    snapshots = measured([plan], {}, request, config, show, cancel)
    write_snapshot(request.out, snapshots["head"])
    show.say(f"wrote {request.out}")
    say_failed(snapshots["head"], show)
    cells = snapshots["head"].cells
    if request.shard[1] == 1 and not any(cell.measured for cell in cells):
        what = f"none of {len(cells)} cells was measured" if len(cells) != 1 else f"{cells[0].key} was not measured"
        failures = [cell.failure.first_line for cell in cells if cell.failure and cell.failure.first_line]
        hint = failures[0][:200] if failures else ""
        raise NoVerdict(f"nothing compiled: {what}", where=str(request.out), hint=hint)
