"""A report made, written and shown: what `compare` and `report` have in common."""

from __future__ import annotations

import os

from bot.compiler.caches.cell_cache import TextStore
from bot.config.configuration import Config
from bot.core.values.snapshot import Snapshot
from bot.core.values.verdict import Verdict
from bot.core.values.whole_report import Baseline, Report
from bot.insight.roots.suspects import Source, with_suspects
from bot.measurement.prepare import Request, Show
from bot.reporting.compiler_source import clone_source, github_source
from bot.reporting.making import reported, require_verdict
from bot.reporting.writing import write_report
from bot.system.processes import Cancel


def publish(
    request: Request, config: Config, base: Snapshot, head: Snapshot, baseline: Baseline, show: Show, cancel: Cancel
) -> Verdict:
    """Write the report of two sides to `request.out`, show it and return its verdict; raises where it has none."""
    report = reported(config, base, head, baseline, TextStore(request.cache).load)
    report = suspected(report, request, config, cancel)
    show.report(report, write_report(report, config.templates, request.out))
    require_verdict(report, request.out)
    return report.verdict


def suspected(report: Report, request: Request, config: Config, cancel: Cancel) -> Report:
    """The report with the commits that may have made its root causes, where the request wants them."""
    source = source_of(request, config, cancel)
    return with_suspects(report, source) if source else report


def source_of(request: Request, config: Config, cancel: Cancel) -> Source | None:
    """Where the request says that commits of the compiler are looked up, on GitHub with the environment's token."""
    repository, environ = config.compiler.repository, os.environ
    if request.source is not None:
        return clone_source(request.source, repository, cancel)
    if not request.suspects or not repository:
        return None
    token = environ.get("GITHUB_TOKEN") or environ.get("GH_TOKEN") or ""
    api_url, server_url = environ.get("GITHUB_API_URL"), environ.get("GITHUB_SERVER_URL")
    hosts = api_url or "https://api.github.com", server_url or "https://github.com"
    return github_source(*hosts, token, repository, request.cache)
