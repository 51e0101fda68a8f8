"""A report: two snapshots, their deltas and the verdict; what every view is drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from bot.core.codec.serial import dispatch_to_plain
from bot.core.codec.serial_program import families_to_plain
from bot.core.rules.delta import CellDelta
from bot.core.values.explanation import ComponentDelta, DispatchDelta, Explanation
from bot.core.values.model_counts import FoldCounts, Folding, Overview, Slope
from bot.core.values.program import Argument
from bot.core.values.root_cause import RootCause, Tally
from bot.core.values.snapshot import CellKey, Snapshot
from bot.core.values.verdict import Finding, Verdict

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
        explanations: why a cell changed; every cell that both sides measured and that is not the same has one.
        overview: what there is to say of whole models.
        root_causes: the deltas of all explained cells by what changed.
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
    explanations: Mapping[CellKey, Explanation] = field(default_factory=dict)
    overview: Overview = field(default_factory=Overview)
    root_causes: tuple[RootCause, ...] = ()


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


def _delta(delta: CellDelta, explanation: Explanation | None) -> dict[str, Any]:
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
        **(_explanation(explanation, delta) if explanation else _UNEXPLAINED),
        "families": families_to_plain(delta.head.families) if delta.head else [],
    }


_UNEXPLAINED: Mapping[str, Any] = {
    "cause": None,
    "first": None,
    "why": "",
    "waterfall": {},
    "parts": [],
    "dispatches": [],
    "unchanged": None,
    "rebased": None,
    "renamed_bytes": 0,
    "short_digests": False,
    "components": [],
    "tree": [],
    "arguments": [],
    "phases_ms": {"base": {}, "head": {}},
}


def _explanation(explanation: Explanation, delta: CellDelta) -> dict[str, Any]:
    program = delta.head.program if delta.head else None
    return {
        "cause": explanation.cause,
        "first": explanation.phase,
        "why": explanation.why,
        "waterfall": dict(explanation.waterfall),
        "parts": [asdict(part) for part in explanation.parts],
        "dispatches": [_dispatch_delta(dispatch) for dispatch in explanation.dispatches],
        "unchanged": explanation.unchanged,
        "rebased": explanation.rebased,
        "renamed_bytes": explanation.renamed_bytes,
        "short_digests": explanation.short_digests,
        "components": [_component(part) for part in explanation.components],
        "tree": [_component(part) for part in explanation.tree],
        "arguments": [_argument(argument) for argument in program.arguments] if program else [],
        "phases_ms": {
            "base": dict(delta.base.phases_ms) if delta.base else {},
            "head": dict(delta.head.phases_ms) if delta.head else {},
        },
    }


def _dispatch_delta(delta: DispatchDelta) -> dict[str, Any]:
    return {
        "name": delta.name,
        "cause": delta.cause,
        "component": delta.component,
        "base": dispatch_to_plain(delta.base) if delta.base else None,
        "head": dispatch_to_plain(delta.head) if delta.head else None,
        "matched": delta.matched,
        "note": delta.note,
        "diff": list(delta.diff),
    }


def _root_cause(root: RootCause) -> dict[str, Any]:
    example = asdict(root.example)
    return {
        "cause": root.cause,
        "what": root.what,
        "targets": list(root.targets),
        "models": list(root.models),
        "cells": [asdict(key) for key in root.cells],
        "dispatches": root.dispatches,
        "bytes": _tally(root.total),
        "share": root.share,
        "by_target": {target: _tally(tally) for target, tally in root.by_target.items()},
        "example": {**example.pop("key"), **example},
        "command": root.command,
    }


def _tally(tally: Tally) -> dict[str, int]:
    return {"deltas": tally.deltas, "net": tally.net_bytes, "absolute": tally.absolute_bytes}


def _component(delta: ComponentDelta) -> dict[str, Any]:
    return {"name": delta.name, "base": dict(delta.base), "head": dict(delta.head)}


def _argument(argument: Argument) -> dict[str, Any]:
    return {name: getattr(argument, name) for name in _ARGUMENT_FIELDS}


_ARGUMENT_FIELDS = tuple(one.name for one in fields(Argument))


def _overview(overview: Overview) -> dict[str, Any]:
    return {
        "fusion": [asdict(fusion) for fusion in overview.fusion],
        "folding": [_folding(folding) for folding in overview.folding],
        "pairs": [asdict(pair) for pair in overview.pairs],
        "slopes": [{"base": _slope(base), "head": _slope(head)} for base, head in overview.slopes],
    }


def _folding(folding: Folding) -> dict[str, Any]:
    sides = {"base": _fold_counts(folding.base), "head": _fold_counts(folding.head)}
    return {"model": folding.key.model, "target": folding.key.target, **sides}


def _fold_counts(counts: FoldCounts | None) -> dict[str, Any] | None:
    """By hand: there is one for every cell, and `asdict` is slow."""
    if counts is None:
        return None
    return {name: getattr(counts, name) for name in (*_FOLD_FIELDS, "folded")}


_FOLD_FIELDS = tuple(one.name for one in fields(FoldCounts))


def _slope(slope: Slope | None) -> dict[str, Any] | None:
    return None if slope is None else asdict(slope)


def report_to_plain(report: Report) -> dict[str, Any]:
    """The contract's `report.json` as plain values; what broke is the first of its notes.

    Its cells are an iterator, so that they are not held twice.
    """
    explained = report.explanations
    return {
        "schema": REPORT_SCHEMA,
        "base": _side(report.base),
        "head": _side(report.head),
        "baseline": asdict(report.baseline),
        "verdict": {
            "status": report.verdict.status,
            "findings": [_finding(finding) for finding in report.verdict.findings],
        },
        "cells": (_delta(delta, explained.get(delta.key)) for delta in report.deltas),
        "root_causes": [_root_cause(root) for root in report.root_causes],
        "overview": _overview(report.overview),
        "notes": [*([f"the analysis broke: {report.broke}"] if report.broke else []), *report.notes],
    }
