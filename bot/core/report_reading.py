"""Read the fields of `report.json` that `explain` shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    Explanation,
    Tally,
)
from bot.core.findings import Finding, Level
from bot.core.flag_changes import TriedFlags
from bot.core.json_text import decoded, require_schema
from bot.core.metrics import METRIC_IDS, Metric, own_metrics
from bot.core.program import Family
from bot.core.proof import UNPROVED, Proof
from bot.core.record import Amount, Count
from bot.core.report import Adoption
from bot.core.report_rows import REPORT_SCHEMA, ReportCellRow
from bot.core.run_times import RunTimes
from bot.core.snapshot import (
    Accepted,
    Cell,
    CellKey,
    CompilerInfo,
)


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
