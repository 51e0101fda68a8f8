"""The report that every view is drawn from: two snapshots, their deltas, the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from bot.core.defaults import TriedDefault, TriedDefaults
from bot.core.delta import CellDelta
from bot.core.explanation import DispatchDelta, Explanation, RootCause, Tally
from bot.core.findings import Verdict
from bot.core.json_text import decoded, require_schema
from bot.core.program import Family
from bot.core.proof import UNPROVED, Proof
from bot.core.record import Amount, Count, Record, Small, always
from bot.core.run_times import RunTimes
from bot.core.snapshot import (
    CellKey,
    CompilerInfo,
    Failure,
    ModelEdit,
    Snapshot,
    filled,
    lines,
)

REPORT_SCHEMA = "code-size-report/1"


class Baseline(Record, frozen=True, omit_defaults=True):
    """How the base side was found."""

    rule: str  # in words (`--base 3.11.0`, `snapshot of the base commit`)
    sha: str | None = always(None)
    # how many commits the baseline is older than the base; None where that has no
    # meaning
    distance: Count | None = always(None)


class Adoption(Small, frozen=True):
    """A change with nothing to be compared with: base has no configuration or compiler."""

    file: str  # the configuration's path in the repository; empty where it is not known
    # why base has no compiler, as a clause: its pin names a release that does not
    # exist; empty where base has no configuration
    no_compiler: str = ""


class Report(Small, frozen=True):
    """Everything there is to say about one comparison."""

    base: Snapshot
    head: Snapshot
    baseline: Baseline
    deltas: tuple[CellDelta, ...]
    verdict: Verdict
    report_id: str = "default"  # names the comment that this report updates
    notes: tuple[str, ...] = ()  # what broke or was left out while the report was made
    # what the comment remembers, as a hidden line; empty where there is no comment to
    # come back to
    state_line: str = ""
    resolved: bool = False  # True where an earlier alarm of the comment is gone
    # label and URL, for the end of the comment; only https is ever drawn as a link
    links: tuple[tuple[str, str], ...] = ()
    # True where the pull request's own run measured, so that a hostile one could have
    # made up the numbers
    untrusted: bool = False
    # what broke in the analysis, in one line; empty where nothing did. The report is
    # then incomplete.
    broke: str = ""
    # why a cell changed; every cell that both sides measured and that is not the same
    # has one, unless the compiler gives other numbers each time
    explanations: Mapping[CellKey, Explanation] = {}
    root_causes: tuple[RootCause, ...] = ()
    # the models whose text changed, and those that one side alone has
    edits: tuple[ModelEdit, ...] = ()
    adoption: Adoption | None = None  # None where base has a configuration
    # of compiler options; empty where nobody could ask for them
    changed_defaults: tuple[TriedDefault, ...] = ()
    # of the builds that fail the check; None where nobody asked to run artifacts
    run_times: RunTimes | None = None
    # where `report.html` can be read, an https address, so that the comment links to
    # its cells, dispatches and root causes; empty where it is nowhere but in an
    # artifact
    page: str = ""


_SIDE = ("compiler", "source", "flags", "targets", "models", "notes")
_UNEXPLAINED = Explanation(None, None, "", unchanged=None, rebased=None)


def report_lines(report: Report) -> Iterator[bytes]:
    """Yield the text of `report.json`.

    Its cells are made one at a time, so that they are not held twice.
    """
    broke = list[str]()
    if report.broke:
        broke.append(f"the analysis broke: {report.broke}")
    first = _adoption_notes(report.adoption)
    verdict, explanations = report.verdict, report.explanations
    sides = {"base": report.base, "head": report.head}
    findings = [
        _flat(finding, "is_open", "seen", "failure", "own", "reason", "grown_since")
        | {
            "accepted": (
                finding.accepted
                and {"who": finding.accepted, **filled(reason=finding.reason or None)}
            )
        }
        | filled(
            is_open=finding.is_open or None,
            seen=finding.seen,
            grown_since=finding.grown_since,
        )
        for finding in verdict.findings
    ]
    record: dict[str, Any] = {
        "schema": REPORT_SCHEMA,
        **{
            label: {name: getattr(side, name) for name in _SIDE}
            for label, side in sides.items()
        },
        "baseline": report.baseline,
        "verdict": {
            "status": verdict.status,
            "findings": findings,
        },
        "cells": (),
        "root_causes": list(map(_root_cause, report.root_causes)),
        "edits": report.edits,
        "notes": (*broke, *first, *report.notes),
        **filled(changed_defaults=report.changed_defaults),
        **filled(run_times=report.run_times),
    }
    return lines(
        record, (_cell(delta, explanations.get(delta.key)) for delta in report.deltas)
    )


def _adoption_notes(adoption: Adoption | None) -> tuple[str, ...]:
    if adoption is None:
        return ()
    if adoption.no_compiler:
        return (
            (
                "nothing was compared, and the limits apply to head only:"
                f" {adoption.no_compiler}"
            ),
        )
    return ("base has no configuration: the bot measures code size from now on",)


def _flat(value: msgspec.Struct, *but: str) -> dict[str, Any]:
    """Return the fields of a value but these; a cell's key as its model and target."""
    fields = msgspec.structs.asdict(value)
    for name in but:
        del fields[name]
    key = fields.pop("key", None)
    if key:
        return {"model": key.model, "target": key.target} | fields
    return fields


def _cell(delta: CellDelta, explanation: Explanation | None) -> dict[str, Any]:
    story, sides = explanation or _UNEXPLAINED, {"base": delta.base, "head": delta.head}
    ranges = {
        metric.id: dict(zip(sides, metric.seen, strict=True))
        for metric in delta.metrics.values()
        if metric.seen
    }
    of_sides = ("status", "failure", "command")
    return {
        "model": delta.key.model,
        "target": delta.key.target,
        "state": delta.state,
        "identical": delta.identical,
        "reason": delta.reason,
        **_flat(story, "phase"),
        **{
            name: {side: getattr(cell, name, None) for side, cell in sides.items()}
            for name in of_sides
        },
        "metrics": {
            metric.id: {"base": metric.base, "head": metric.head}
            for metric in delta.metrics.values()
        },
        "first": story.phase,
        "dispatches": list(map(_dispatch, story.dispatches)),
        "families": delta.head.families if delta.head else (),
        **filled(seen=ranges),
    }


def _dispatch(delta: DispatchDelta) -> dict[str, Any]:
    fields = _flat(delta, "passed", "untraced", "attribution", "proof")
    if delta.untraced:
        fields["untraced"] = delta.untraced
    if delta.attribution is not None:
        fields["attribution"] = delta.attribution
    if delta.proof is not None:
        fields["proof"] = delta.proof
    fields["name"] = delta.name
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


# What is read of it: what `explain` tells of a cell.

_T = TypeVar("_T")


class Both(msgspec.Struct, Generic[_T], frozen=True):
    """What base and head have; None where the side has none."""

    base: _T | None
    head: _T | None


class DispatchRow(DispatchDelta, frozen=True):
    """One entry point that is not the same; in place of `passed` the pass by its name."""

    pass_name: str | None = msgspec.field(default=None, name="pass")
    operations: Mapping[str, Amount] = {}


class ReportCellRow(Explanation, frozen=True, kw_only=True):
    """One cell, with its explanation."""

    model: str
    target: str
    state: str
    reason: str
    metrics: Mapping[str, Both[Count]]
    status: Both[str]
    failure: Both[Failure]
    command: Both[str]
    dispatches: tuple[DispatchRow, ...] = ()
    families: tuple[Family, ...] = ()
    seen: Mapping[str, Both[tuple[Count, ...]]] = {}


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
