"""Write `report.json`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from bot.core.cell_story import (
    Both,
)
from bot.core.delta import CellDelta
from bot.core.explanation import (
    DispatchDelta,
    Explanation,
    RootCause,
)
from bot.core.findings import Finding
from bot.core.json_text import filled, lines
from bot.core.report import Adoption, Report
from bot.core.report_rows import REPORT_SCHEMA, PassDetails, ReportCellRow
from bot.core.snapshot import (
    Snapshot,
)

_SIDE_FIELDS = ("compiler", "source", "flags", "targets", "models", "notes")
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
        **filled(
            adoption=report.adoption,
            changed_flags=report.changed_flags,
            changed_defaults=report.changed_defaults,
            run_times=report.run_times,
        ),
    }
    explanations = report.explanations
    cells = (_cell(delta, explanations.get(delta.key)) for delta in report.deltas)
    return lines(record, cells)


def _side(side: Snapshot) -> dict[str, Any]:
    return {name: getattr(side, name) for name in _SIDE_FIELDS}


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
    explanation = explanation or _UNEXPLAINED
    fields = msgspec.structs.asdict(explanation)
    fields["dispatches"] = [_dispatch(dispatch) for dispatch in explanation.dispatches]
    for name in ("status", "failure", "command"):
        base_value = getattr(delta.base, name, None)
        head_value = getattr(delta.head, name, None)
        fields[name] = Both(base_value, head_value)
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
        noise=delta.noise or msgspec.UNSET,
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
        fields["pass_details"] = PassDetails(
            more=delta.passed.more,
            others=delta.passed.others,
            class_name=delta.passed.class_name,
            printed_for=delta.passed.printed_for,
            experiment=delta.passed.experiment,
        )
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
