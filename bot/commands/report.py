"""`report`: two snapshots to a verdict, six files and the terminal; no compiler is needed."""

from __future__ import annotations

from pathlib import Path

from bot.commands.publishing import publish
from bot.config.configuration import load_config
from bot.core.values.verdict import Verdict
from bot.core.values.whole_report import Baseline
from bot.measurement.prepare import Request, Show, load_snapshot, require_writable, selected
from bot.system.processes import Cancel


def report(request: Request, base: Path, head: Path, show: Show, cancel: Cancel) -> Verdict:
    """Compare two snapshots that were measured before; no compiler is needed."""
    config = load_config(request.config)
    require_writable(request.out)
    sides = selected({"base": load_snapshot(base), "head": load_snapshot(head)}, request)
    baseline = Baseline(f"snapshot {base.name}", sides["base"].source.sha)
    return publish(request, config, sides["base"], sides["head"], baseline, show, cancel)
