"""`measure`: one side, or a shard of it, into one snapshot file."""

from __future__ import annotations

from bot.errors import OutputError
from bot.inputs.config import load_config
from bot.measurement.prepare import Request, Show, measured, prepare, repository_at, require_writable, say_failed
from bot.reporting.writing import write_snapshot
from bot.system.processes import Cancel


def measure(request: Request, show: Show, cancel: Cancel) -> None:
    """Measure one side, or a shard of it, into one snapshot file."""
    config = load_config(request.config)
    require_writable(request.out.parent)
    if request.out.is_dir():
        raise OutputError("is a directory", where=str(request.out), hint="--out names the snapshot file")
    repository = repository_at(request.config, cancel)
    plan = prepare("head", request.specs["head"], request, config, repository, show, cancel)
    snapshots = measured([plan], {}, request, config, show, cancel)
    write_snapshot(request.out, snapshots["head"])
    say_failed(snapshots["head"], show)
    show.say(f"wrote {request.out}")
