"""A report made, written and shown: what `compare` and `report` have in common."""

from __future__ import annotations

import os
from pathlib import Path

from bot.compiler.cell_cache import TextStore
from bot.config.configuration import Config, load_config
from bot.core.policy import Verdict
from bot.core.report import Baseline, Report
from bot.core.snapshot import Snapshot
from bot.explain.suspects import Source, clone_source, github_source, with_suspects
from bot.reporting.writing import write_report
from bot.study.comparison import reported, require_verdict
from bot.study.prepare import Request, Show, load_snapshot, require_writable, selected
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


# `report`: two snapshots to a verdict, six files and the terminal; no compiler is needed.


def report(request: Request, base: Path, head: Path, show: Show, cancel: Cancel) -> Verdict:
    """Compare two snapshots that were measured before; no compiler is needed."""
    config = load_config(request.config)
    require_writable(request.out)
    sides = selected({"base": load_snapshot(base), "head": load_snapshot(head)}, request)
    baseline = Baseline(f"snapshot {base.name}", sides["base"].source.sha)
    return publish(request, config, sides["base"], sides["head"], baseline, show, cancel)
