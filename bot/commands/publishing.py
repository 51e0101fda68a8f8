"""A report made, written and shown: what `compare` and `report` have in common."""

from __future__ import annotations

from bot.compiler.caches.cell_cache import TextStore
from bot.config.configuration import Config
from bot.core.values.snapshot import Snapshot
from bot.core.values.verdict import Verdict
from bot.core.values.whole_report import Baseline
from bot.measurement.prepare import Request, Show
from bot.reporting.compiler_source import looked_up
from bot.reporting.making import reported, require_verdict
from bot.reporting.writing import write_report
from bot.system.processes import Cancel


def publish(
    request: Request, config: Config, base: Snapshot, head: Snapshot, baseline: Baseline, show: Show, cancel: Cancel
) -> Verdict:
    """Write the report of two sides to `request.out`, show it and return its verdict; raises where it has none."""
    report = reported(config, base, head, baseline, TextStore(request.cache).load)
    report = looked_up(report, request, config, cancel)
    show.report(report, write_report(report, config.templates, request.out))
    require_verdict(report, request.out)
    return report.verdict
