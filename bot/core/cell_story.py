"""All that a report says of one build: the comment, the page and `explain` draw it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from bot.core.backends import backends_of
from bot.core.delta import CellDelta, MetricDelta
from bot.core.explanation import Explanation, RootCause, Tally
from bot.core.findings import Finding
from bot.core.program import Family
from bot.core.proof import Proof
from bot.core.record import Small
from bot.core.report import Report
from bot.core.run_times import BuildRun, RunTimes
from bot.core.snapshot import Cell, CellKey, Failure

_T = TypeVar("_T")


class Both(msgspec.Struct, Generic[_T], frozen=True):
    """A value on base and on head; None if a side does not have it."""

    base: _T | None
    head: _T | None


class SideResult(Small, frozen=True):
    """How a build ended on one side."""

    status: str
    failure: Failure | None
    command: str


class BuildCause(Small, frozen=True):
    """A root cause that has a part in a build; its figures are of all builds."""

    cause: str | None
    what: str
    dispatches: int
    total: Tally
    pass_name: str | None
    proof: Proof
    parts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ReportIndex:
    """The values of a report by build; `cell_story` reads them."""

    backends: Mapping[str, str]  # target → its backend
    deltas: Mapping[CellKey, CellDelta]
    findings: Mapping[CellKey, Sequence[Finding]]  # worst first
    explanations: Mapping[CellKey, Explanation]
    causes: Mapping[CellKey, Sequence[BuildCause]]
    runs: Mapping[CellKey, BuildRun]
    # True for a first report: base has no configuration or no compiler
    is_first: bool


@dataclass(frozen=True, slots=True)
class CellStory:
    """All that a report says of one build."""

    key: CellKey
    backend: str
    state: str
    is_first: bool  # True in a first report, in which nothing is newly failing
    noise: str  # the words for a non-deterministic compiler; empty for any other
    identical: bool | None  # whether both artifacts are the same bytes
    reason: str  # why it was not measured
    findings: Sequence[Finding]  # worst first
    metrics: Mapping[str, MetricDelta]
    results: Both[SideResult]
    # why it changed; None if it did not, a side was not measured, or chance may be why
    explanation: Explanation | None
    families: Sequence[Family]  # those that deduplication left behind on head
    causes: Sequence[BuildCause]
    run: BuildRun | None  # the run times; None if they were not asked for

    @property
    def changed_metrics(self) -> list[MetricDelta]:
        """Return the metrics that differ, or may differ, between the sides."""
        return [
            metric
            for metric in self.metrics.values()
            if metric.base != metric.head or metric.is_open
        ]

    @property
    def commands(self) -> dict[str, str]:
        """Return side → its command; empty if the side does not have the build."""
        base = self.results.base
        head = self.results.head
        return {
            "base": base.command if base else "",
            "head": head.command if head else "",
        }


def cell_story(report: ReportIndex, key: CellKey) -> CellStory:
    """Return all that a report says of a build."""
    delta = report.deltas[key]
    families: Sequence[Family] = ()
    if delta.head:
        families = delta.head.families
    return CellStory(
        key=key,
        backend=report.backends.get(key.target, ""),
        state=delta.state,
        is_first=report.is_first,
        noise=delta.noise,
        identical=delta.identical,
        reason=delta.reason,
        findings=report.findings.get(key, ()),
        metrics=delta.metrics,
        results=Both(_result(delta.base), _result(delta.head)),
        explanation=report.explanations.get(key),
        families=families,
        causes=report.causes.get(key, ()),
        run=report.runs.get(key),
    )


def _result(cell: Cell | None) -> SideResult | None:
    if cell is None:
        return None
    return SideResult(status=cell.status, failure=cell.failure, command=cell.command)


def report_index(report: Report) -> ReportIndex:
    """Return the index of a report."""
    causes = [(_build_cause(root), root.cells) for root in report.root_causes]
    return ReportIndex(
        backends=backends_of(report.base.targets, report.head.targets),
        deltas={delta.key: delta for delta in report.deltas},
        findings=findings_by_build(report.verdict.findings),
        explanations=report.explanations,
        causes=causes_by_build(causes),
        runs=runs_by_build(report.run_times),
        is_first=report.adoption is not None,
    )


def _build_cause(root: RootCause) -> BuildCause:
    return BuildCause(
        cause=root.cause,
        what=root.what,
        dispatches=root.dispatches,
        total=root.total,
        pass_name=root.passed.name if root.passed else None,
        proof=root.proof,
        parts=root.parts,
    )


def causes_by_build(
    causes: Iterable[tuple[BuildCause, Iterable[CellKey]]],
) -> dict[CellKey, list[BuildCause]]:
    """Return build → its causes, in their order.

    `causes`: each cause with the builds in which it has a part.
    """
    groups = defaultdict[CellKey, list[BuildCause]](list)
    for cause, keys in causes:
        for key in keys:
            groups[key].append(cause)
    return dict(groups)


def findings_by_build(findings: Iterable[Finding]) -> dict[CellKey, list[Finding]]:
    """Return build → its findings, in their order."""
    groups = defaultdict[CellKey, list[Finding]](list)
    for finding in findings:
        groups[finding.key].append(finding)
    return dict(groups)


def runs_by_build(runs: RunTimes | None) -> dict[CellKey, BuildRun]:
    """Return build → the result of running it; empty if none was asked for."""
    if runs is None:
        return {}
    return runs.by_build
