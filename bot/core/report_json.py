"""Write `report.json`, and read what `explain` shows of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from bot.core.defaults import TriedDefaults
from bot.core.delta import CellDelta
from bot.core.explanation import DispatchDelta, Explanation, RootCause, Tally
from bot.core.findings import Finding
from bot.core.json_text import decoded, filled, lines, require_schema
from bot.core.program import Family
from bot.core.proof import UNPROVED, Proof
from bot.core.record import Amount, Count
from bot.core.report import Adoption, Report
from bot.core.run_times import RunTimes
from bot.core.snapshot import CellKey, CompilerInfo, Failure, Snapshot

REPORT_SCHEMA = "code-size-report/1"
_SIDE = ("compiler", "source", "flags", "targets", "models", "notes")
_UNEXPLAINED = Explanation(None, None, "", unchanged=None, rebased=None)


def report_lines(report: Report) -> Iterator[bytes]:
    """Yield the text of `report.json`.

    Its cells are made one at a time, so that they are not held twice.
    """
    notes = list(report.notes)
    if report.adoption:
        notes.insert(0, _adoption_note(report.adoption))
    if report.broke:
        notes.insert(0, f"the analysis broke: {report.broke}")
    record = {
        "schema": REPORT_SCHEMA,
        "base": _side(report.base),
        "head": _side(report.head),
        "baseline": report.baseline,
        "verdict": {
            "status": report.verdict.status,
            "findings": [_finding(finding) for finding in report.verdict.findings],
        },
        "cells": (),
        "root_causes": [_root_cause(root) for root in report.root_causes],
        "edits": report.edits,
        "notes": notes,
        **filled(changed_defaults=report.changed_defaults, run_times=report.run_times),
    }
    explanations = report.explanations
    cells = (_cell(delta, explanations.get(delta.key)) for delta in report.deltas)
    return lines(record, cells)


def _side(side: Snapshot) -> dict[str, Any]:
    return {name: getattr(side, name) for name in _SIDE}


def _finding(finding: Finding) -> dict[str, Any]:
    fields = _flat(
        finding, "is_open", "seen", "failure", "own", "reason", "grown_since"
    )
    if finding.accepted:
        fields["accepted"] = filled(who=finding.accepted, reason=finding.reason)
    return fields | filled(
        is_open=finding.is_open or None,
        seen=finding.seen,
        grown_since=finding.grown_since,
    )


def _adoption_note(adoption: Adoption) -> str:
    if adoption.no_compiler:
        words = "nothing was compared, and the limits apply to head only"
        return f"{words}: {adoption.no_compiler}"
    return "base has no configuration: the bot measures code size from now on"


def _flat(value: msgspec.Struct, *but: str) -> dict[str, Any]:
    """Return the fields of a value but these; a cell's key as its model and target."""
    fields = msgspec.structs.asdict(value)
    for name in but:
        del fields[name]
    key = fields.pop("key", None)
    if key:
        return {"model": key.model, "target": key.target} | fields
    return fields


def _cell(delta: CellDelta, explanation: Explanation | None) -> ReportCellRow:
    story = explanation or _UNEXPLAINED
    fields = msgspec.structs.asdict(story)
    fields["dispatches"] = [_dispatch(dispatch) for dispatch in story.dispatches]
    for name in ("status", "failure", "command"):
        base_value = getattr(delta.base, name, None)
        fields[name] = Both(base_value, getattr(delta.head, name, None))
    metrics = {}
    seen = {}
    for metric in delta.metrics.values():
        metrics[metric.id] = Both(metric.base, metric.head)
        if metric.seen:
            seen[metric.id] = Both(*metric.seen)
    return ReportCellRow(
        **fields,
        model=delta.key.model,
        target=delta.key.target,
        state=delta.state,
        identical=delta.identical,
        reason=delta.reason,
        metrics=metrics,
        families=delta.head.families if delta.head else (),
        seen=seen or msgspec.UNSET,
    )


def _dispatch(delta: DispatchDelta) -> dict[str, Any]:
    fields = _flat(delta, "passed", "untraced", "attribution", "proof")
    fields["name"] = delta.name
    for name in ("untraced", "attribution", "proof"):
        value = getattr(delta, name)
        if value not in (None, ""):
            fields[name] = value
    if delta.passed:
        fields |= {"pass": delta.passed.name, "operations": delta.passed.operations}
    return fields


def _root_cause(root: RootCause) -> dict[str, Any]:
    row = {
        **_flat(
            root,
            "total",
            "by_cell",
            "passed",
            "looked_up",
            "suspects",
            "proof",
            "parts",
            "divided",
        ),
        "bytes": root.total,
        "example": _flat(root.example),
        "pass": root.passed.name if root.passed else None,
        "operations": root.passed.operations if root.passed else {},
        "traced": dict(zip(("dispatches", "bytes"), root.traced, strict=True)),
        "proof": root.proof,
        **filled(parts=root.parts),
    }
    if root.looked_up:
        row |= {"suspects": root.suspects, "looked_up": root.looked_up}
    return row


# The fields that are read of it: those that `explain` shows of a cell.

_T = TypeVar("_T")


class Both(msgspec.Struct, Generic[_T], frozen=True):
    """A value on base and on head; None if a side does not have it."""

    base: _T | None
    head: _T | None


class DispatchRow(DispatchDelta, frozen=True):
    """One entry point that differs; in place of `passed` it names the pass."""

    pass_name: str | None = msgspec.field(default=None, name="pass")
    operations: Mapping[str, Amount] = {}


class ReportCellRow(Explanation, frozen=True, kw_only=True):
    """One cell, with its explanation."""

    model: str
    target: str
    state: str
    identical: bool | None = None
    reason: str
    metrics: Mapping[str, Both[Count]]
    status: Both[str]
    failure: Both[Failure]
    command: Both[str]
    dispatches: tuple[DispatchRow, ...] = ()
    families: tuple[Family, ...] = ()
    seen: Mapping[str, Both[tuple[Count, ...]]] | msgspec.UnsetType = msgspec.UNSET


class _Side(msgspec.Struct, frozen=True):
    compiler: CompilerInfo
    targets: Mapping[str, str] = {}


class _Finding(msgspec.Struct, frozen=True):
    model: str
    target: str
    level: str
    metric: str | None
    rule: str
    limit: str
    actual: str


class _Verdict(msgspec.Struct, frozen=True):
    status: str
    findings: tuple[_Finding, ...]


class RootRow(msgspec.Struct, frozen=True):
    """One root cause."""

    cause: str | None
    what: str
    cells: tuple[CellKey, ...]
    bytes: Tally
    dispatches: Count = 0
    pass_name: str | None = msgspec.field(default=None, name="pass")
    proof: Proof = UNPROVED
    parts: Mapping[str, Amount] = {}


class ReportRow(msgspec.Struct, frozen=True):
    """The contract's `report.json`, as far as it is read."""

    base: _Side
    head: _Side
    verdict: _Verdict
    cells: tuple[ReportCellRow, ...]
    root_causes: tuple[RootRow, ...] = ()
    changed_defaults: TriedDefaults = ()
    run_times: RunTimes | None = None


def report_of(text: bytes | str, where: str, hint: str) -> ReportRow:
    """Read `report.json`.

    Raises InputError for text that is torn, foreign or of another schema.
    """
    require_schema(text, schema=REPORT_SCHEMA, noun="report", where=where, hint=hint)
    return decoded(text, kind=ReportRow, where=where, hint=hint, noun="report")
