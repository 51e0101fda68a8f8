"""Write `report.json`, and read what `explain` shows of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from bot.core.backends import backends_of
from bot.core.cell_story import (
    Both,
    BuildCause,
    ReportIndex,
    causes_by_build,
    findings_by_build,
    runs_by_build,
)
from bot.core.defaults import TriedDefaults
from bot.core.delta import CellDelta, MetricDelta
from bot.core.explanation import (
    DispatchDelta,
    Explanation,
    PassChange,
    RootCause,
    Tally,
)
from bot.core.findings import Finding, Level
from bot.core.flag_changes import TriedFlags
from bot.core.json_text import decoded, filled, lines, require_schema
from bot.core.metrics import METRIC_IDS, Metric, own_metrics
from bot.core.program import Family
from bot.core.proof import UNPROVED, Proof
from bot.core.record import Amount, Count, Record
from bot.core.report import Adoption, Report
from bot.core.run_times import RunTimes
from bot.core.snapshot import (
    Accepted,
    Cell,
    CellKey,
    CompilerInfo,
    Failure,
    Snapshot,
    Status,
)

REPORT_SCHEMA = "code-size-report/1"
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


# The fields of a report that `explain` reads. A cell's row is also written.


class PassDetails(Record, frozen=True, omit_defaults=True):
    """The fields of `PassChange` beside its name and the operations."""

    more: Amount = 0
    others: Count | None = 0
    class_name: str = ""
    printed_for: str = ""
    experiment: str = ""


_NO_DETAILS = PassDetails(others=None)
"""The details of a report that has none: older versions did not write them."""


class DispatchRow(DispatchDelta, frozen=True):
    """One entry point that differs; in place of `passed` it names the pass."""

    pass_name: str | None = msgspec.field(default=None, name="pass")
    operations: Mapping[str, Amount] = {}
    pass_details: PassDetails = _NO_DETAILS

    @property
    def delta(self) -> DispatchDelta:
        """Return the entry point with its pass, the largest change first."""
        fields = {name: getattr(self, name) for name in DispatchDelta.__struct_fields__}
        fields["passed"] = None
        if self.pass_name:
            counts = sorted(
                self.operations.items(), key=lambda item: (-abs(item[1]), item[0])
            )
            fields["passed"] = PassChange(
                name=self.pass_name,
                operations=dict(counts),
                **msgspec.structs.asdict(self.pass_details),
            )
        return DispatchDelta(**fields)


class ReportCellRow(Explanation, frozen=True, kw_only=True):
    """One cell, with its explanation."""

    model: str
    target: str
    state: str
    identical: bool | None = None
    reason: str
    metrics: Mapping[str, Both[Count]]
    status: Both[Status]
    failure: Both[Failure]
    command: Both[str]
    dispatches: tuple[DispatchRow, ...] = ()
    families: tuple[Family, ...] = ()
    seen: Mapping[str, Both[tuple[Count, ...]]] | msgspec.UnsetType = msgspec.UNSET
    noise: str | msgspec.UnsetType = msgspec.UNSET

    @property
    def key(self) -> CellKey:
        """Return the name of the cell."""
        return CellKey(self.model, self.target)

    @property
    def explanation(self) -> Explanation | None:
        """Return the explanation; None of a cell that has none."""
        if self.unchanged is None:
            return None
        fields = {name: getattr(self, name) for name in Explanation.__struct_fields__}
        fields["dispatches"] = tuple(row.delta for row in self.dispatches)
        return Explanation(**fields)


class _Side(msgspec.Struct, frozen=True):
    compiler: CompilerInfo
    targets: Mapping[str, str] = {}


class _Finding(msgspec.Struct, frozen=True):
    model: str
    target: str
    level: Level
    metric: str | None
    rule: str
    limit: str
    actual: str
    kind: str = ""
    base: int | None = None
    head: int | None = None
    line: int | None = None
    accepted: Accepted | None = None
    outcomes: tuple[str, str] | None = None
    allowed: int | None = None
    known: bool = False
    is_open: bool = False
    seen: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    grown_since: int | None = None

    def finding(self, declared: Mapping[str, Metric]) -> Finding:
        """Return the finding itself; `declared`: the metrics of the configuration."""
        fields = msgspec.structs.asdict(self)
        key = CellKey(fields.pop("model"), fields.pop("target"))
        reason = ""
        if self.accepted:
            fields["accepted"] = self.accepted.who
            reason = self.accepted.reason
        own = declared.get(self.metric or "")
        return Finding(**fields, key=key, reason=reason, own=own)


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

    @property
    def build_cause(self) -> BuildCause:
        """Return what a build's story has of the root cause."""
        return BuildCause(
            cause=self.cause,
            what=self.what,
            dispatches=self.dispatches,
            total=self.bytes,
            pass_name=self.pass_name,
            proof=self.proof,
            parts=self.parts,
        )


class ReportRow(msgspec.Struct, frozen=True):
    """The contract's `report.json`, as far as it is read."""

    base: _Side
    head: _Side
    verdict: _Verdict
    cells: tuple[ReportCellRow, ...]
    root_causes: tuple[RootRow, ...] = ()
    adoption: Adoption | None = None
    changed_flags: TriedFlags = ()
    changed_defaults: TriedDefaults = ()
    run_times: RunTimes | None = None

    @property
    def backends(self) -> dict[str, str]:
        """Return target → its backend."""
        return backends_of(self.base.targets, self.head.targets)


def report_of(text: bytes | str, where: str, hint: str) -> ReportRow:
    """Read `report.json`.

    Raises InputError for text that is torn, foreign or of another schema.
    """
    require_schema(text, schema=REPORT_SCHEMA, noun="report", where=where, hint=hint)
    return decoded(text, kind=ReportRow, where=where, hint=hint, noun="report")


def file_index(report: ReportRow, keys: Sequence[CellKey]) -> ReportIndex:
    """Return the index of these builds of a report file.

    Their cells have only what a story needs.
    """
    declared = own_metrics(report.base.compiler.metrics, report.head.compiler.metrics)
    rows = {row.key: row for row in report.cells if row.key in keys}
    explanations = dict[CellKey, Explanation]()
    for key, row in rows.items():
        explanation = row.explanation
        if explanation:
            explanations[key] = explanation
    causes = [(root.build_cause, root.cells) for root in report.root_causes]
    return ReportIndex(
        backends=report.backends,
        deltas={key: _cell_delta(row, declared) for key, row in rows.items()},
        findings=findings_by_build(
            finding.finding(declared) for finding in report.verdict.findings
        ),
        explanations=explanations,
        causes=causes_by_build(causes),
        runs=runs_by_build(report.run_times),
        is_first=report.adoption is not None,
    )


def _cell_delta(row: ReportCellRow, declared: Mapping[str, Metric]) -> CellDelta:
    """Return a build of a report file, with the metrics that this version knows."""
    metrics = dict[str, MetricDelta]()
    seen = row.seen or {}
    for metric_id in (*METRIC_IDS, *declared):
        values = row.metrics.get(metric_id, Both[Count](None, None))
        repeats = seen.get(metric_id)
        seen_values = None
        if repeats:
            seen_values = (repeats.base or (), repeats.head or ())
        metrics[metric_id] = MetricDelta(
            id=metric_id,
            base=values.base,
            head=values.head,
            seen=seen_values,
            own=declared.get(metric_id),
        )
    return CellDelta(
        key=row.key,
        state=row.state,
        metrics=metrics,
        base=_cell_on(row, "base"),
        head=_cell_on(row, "head"),
        identical=row.identical,
        reason=row.reason,
        noise=row.noise or "",
    )


def _cell_on(row: ReportCellRow, side: str) -> Cell | None:
    """Return the result of a build on a side; None if the side does not have it."""
    status = getattr(row.status, side)
    if status is None:
        return None
    families: tuple[Family, ...] = ()
    if side == "head":
        families = row.families
    return Cell(
        model=row.model,
        target=row.target,
        status=status,
        failure=getattr(row.failure, side),
        command=getattr(row.command, side) or "",
        families=families,
    )
