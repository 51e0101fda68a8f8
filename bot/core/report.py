"""A report: two snapshots, their deltas and the verdict; what every view is drawn from."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from bot.core.delta import CellDelta
from bot.core.snapshot import Snapshot
from bot.core.verdict import Finding, Verdict

REPORT_SCHEMA = "code-size-report/1"


@dataclass(frozen=True, slots=True)
class Baseline:
    """How the base side was found.

    Attributes:
        rule: in words (`--base 3.11.0`, `snapshot of the base commit`).
        sha: the base commit; None outside a repository.
        distance: how many commits the baseline is older than the base; None where that has no meaning.
    """

    rule: str
    sha: str | None = None
    distance: int | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """Everything there is to say about one comparison.

    Attributes:
        report_id: names the comment that this report updates.
        notes: what broke or was left out while the report was made.
        state_line: what the comment remembers, as a hidden line; empty where there is no comment to come back to.
        resolved: True where an earlier alarm of the comment is gone.
        links: label and URL, for the end of the comment; only https is ever drawn as a link.
        untrusted: True where the pull request's own run measured, so that a hostile one could have made up the numbers.
        broke: what broke in the analysis, in one line; empty where nothing did. The report is then incomplete.
    """

    base: Snapshot
    head: Snapshot
    baseline: Baseline
    deltas: tuple[CellDelta, ...]
    verdict: Verdict
    report_id: str = "default"
    notes: tuple[str, ...] = ()
    state_line: str = ""
    resolved: bool = False
    links: tuple[tuple[str, str], ...] = ()
    untrusted: bool = False
    broke: str = ""


def _side(snapshot: Snapshot) -> dict[str, Any]:
    return {
        "compiler": asdict(snapshot.compiler),
        "source": asdict(snapshot.source),
        "flags": list(snapshot.flags),
        "targets": dict(snapshot.targets),
        "models": dict(snapshot.models),
        "notes": list(snapshot.notes),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    plain = asdict(finding)
    return {**plain.pop("key"), **plain}


def _delta(delta: CellDelta) -> dict[str, Any]:
    sides = {"base": delta.base, "head": delta.head}
    return {
        "model": delta.key.model,
        "target": delta.key.target,
        "state": delta.state,
        "identical": delta.identical,
        "reason": delta.reason,
        "metrics": {m.id: {"base": m.base, "head": m.head} for m in delta.metrics.values()},
        "status": {name: cell.status if cell else None for name, cell in sides.items()},
        "failure": {name: asdict(c.failure) if c and c.failure else None for name, c in sides.items()},
        "command": {name: cell.command if cell else None for name, cell in sides.items()},
    }


def report_to_plain(report: Report) -> dict[str, Any]:
    """The contract's `report.json` as plain values; what broke is the first of its notes."""
    return {
        "schema": REPORT_SCHEMA,
        "base": _side(report.base),
        "head": _side(report.head),
        "baseline": asdict(report.baseline),
        "verdict": {
            "status": report.verdict.status,
            "findings": [_finding(finding) for finding in report.verdict.findings],
        },
        "cells": [_delta(delta) for delta in report.deltas],
        "notes": [*([f"the analysis broke: {report.broke}"] if report.broke else []), *report.notes],
    }
