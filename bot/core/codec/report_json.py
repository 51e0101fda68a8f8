"""Owns `report.json`: its rows, how a report becomes them, and how they are read again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bot.core.codec.json_text import decoded, require_schema
from bot.core.codec.snapshot_json import lines
from bot.core.record import Amount, Count, Record
from bot.core.rules.delta import CellDelta
from bot.core.values.explanation import ComponentDelta, Explanation, PartDelta
from bot.core.values.model_counts import FoldCounts, Folding, Fusion, Pair, Slope
from bot.core.values.program import Argument, Family
from bot.core.values.root_cause import RootCause, Tally
from bot.core.values.snapshot import CellKey, CompilerInfo, Dispatch, Failure, Snapshot, SourceInfo
from bot.core.values.verdict import Accepted, Finding
from bot.core.values.whole_report import REPORT_SCHEMA, Baseline, Report


class SideRow(Record, frozen=True):
    """What was measured on one side, and with what."""

    compiler: CompilerInfo
    source: SourceInfo
    flags: tuple[str, ...] = ()
    targets: Mapping[str, str] = {}
    models: Mapping[str, str] = {}
    notes: tuple[str, ...] = ()


class Numbers(Record, frozen=True):
    """A metric on both sides."""

    base: Count | None
    head: Count | None


class Words(Record, frozen=True):
    """A text on both sides; None where the side has none."""

    base: str | None = None
    head: str | None = None


class Failures(Record, frozen=True):
    """Why a side has no artifact; None where it has one, or no cell."""

    base: Failure | None = None
    head: Failure | None = None


class Phases(Record, frozen=True):
    """Phase → wall time, on both sides."""

    base: Mapping[str, Count] = {}
    head: Mapping[str, Count] = {}


class DispatchRow(Record, frozen=True):
    """One entry point that is not the same; None where a side does not have it."""

    name: str
    cause: str | None
    component: str
    base: Dispatch | None
    head: Dispatch | None
    matched: str
    note: str = ""
    diff: tuple[str, ...] = ()


class ReportCell(Record, frozen=True):
    """One cell; the fields from `cause` on are those of its explanation."""

    model: str
    target: str
    state: str
    identical: bool | None
    reason: str
    metrics: Mapping[str, Numbers]
    status: Words
    failure: Failures
    command: Words
    cause: str | None = None
    first: str | None = None
    why: str = ""
    waterfall: Mapping[str, Amount] = {}
    parts: tuple[PartDelta, ...] = ()
    dispatches: tuple[DispatchRow, ...] = ()
    unchanged: Count | None = None
    rebased: Count | None = None
    renamed_bytes: Amount = 0
    short_digests: bool = False
    components: tuple[ComponentDelta, ...] = ()
    tree: tuple[ComponentDelta, ...] = ()
    arguments: tuple[Argument, ...] = ()
    phases_ms: Phases = Phases()
    families: tuple[Family, ...] = ()


class FindingRow(Record, frozen=True):
    """One finding."""

    model: str
    target: str
    level: str
    metric: str | None
    rule: str
    kind: str
    limit: str
    actual: str
    base: Count | None = None
    head: Count | None = None
    line: Count | None = None
    accepted: Accepted | None = None
    outcomes: tuple[str, str] | None = None


class VerdictRow(Record, frozen=True):
    """The verdict."""

    status: str
    findings: tuple[FindingRow, ...]


class TallyRow(Record, frozen=True):
    """Deltas added up, their bytes signed and absolute."""

    deltas: Count
    net: Amount
    absolute: Count


class ExampleRow(Record, frozen=True):
    """The delta with the largest change."""

    model: str
    target: str
    dispatch: str
    component: str
    base_bytes: Count | None
    head_bytes: Count | None
    change_bytes: Amount
    note: str


class RootRow(Record, frozen=True):
    """One root cause."""

    cause: str | None
    what: str
    targets: tuple[str, ...]
    models: tuple[str, ...]
    cells: tuple[CellKey, ...]
    dispatches: Count
    bytes: TallyRow
    share: float | None
    by_target: Mapping[str, TallyRow]
    example: ExampleRow
    command: str


class FoldRow(Record, frozen=True):
    """What deduplication did to one cell; `folded` is a share."""

    regions: Count | None
    executables: Count | None
    families: Count
    surplus_executables: Count
    surplus_bytes: Count | None
    folded: float | None


class FoldingRow(Record, frozen=True):
    """That of one cell on both sides."""

    model: str
    target: str
    base: FoldRow | None
    head: FoldRow | None


class Slopes(Record, frozen=True):
    """How compile time grows, on both sides."""

    base: Slope | None
    head: Slope | None


class OverviewRow(Record, frozen=True):
    """What there is to say of whole models."""

    fusion: tuple[Fusion, ...] = ()
    folding: tuple[FoldingRow, ...] = ()
    pairs: tuple[Pair, ...] = ()
    slopes: tuple[Slopes, ...] = ()


class ReportRow(Record, frozen=True):
    """The contract's `report.json`."""

    schema: str
    base: SideRow
    head: SideRow
    baseline: Baseline
    verdict: VerdictRow
    cells: tuple[ReportCell, ...]
    root_causes: tuple[RootRow, ...] = ()
    overview: OverviewRow = OverviewRow()
    notes: tuple[str, ...] = ()


def report_lines(report: Report) -> Iterator[bytes]:
    """The text of `report.json`, its cells made one at a time, so that they are not held twice."""
    explained = report.explanations
    cells = (_cell(delta, explained.get(delta.key)) for delta in report.deltas)
    return lines(_head(report), {"cells": cells})


def report_to_json(report: Report) -> str:
    """The same as one text."""
    return b"".join(report_lines(report)).decode()


def report_of(text: bytes | str, where: str, hint: str) -> ReportRow:
    """Read `report.json`; raises InputError for text that is torn, foreign or of another schema."""
    require_schema(text, REPORT_SCHEMA, "report", where, hint)
    return decoded(text, ReportRow, where, hint)


def _head(report: Report) -> ReportRow:
    """All but the cells; what broke is the first of the notes."""
    findings = tuple(map(_finding, report.verdict.findings))
    broke = (f"the analysis broke: {report.broke}",) if report.broke else ()
    overview = report.overview
    return ReportRow(
        REPORT_SCHEMA,
        base=_side(report.base),
        head=_side(report.head),
        baseline=report.baseline,
        verdict=VerdictRow(report.verdict.status, findings),
        cells=(),
        root_causes=tuple(map(_root_cause, report.root_causes)),
        overview=OverviewRow(
            overview.fusion,
            tuple(map(_folding, overview.folding)),
            overview.pairs,
            tuple(Slopes(base, head) for base, head in overview.slopes),
        ),
        notes=(*broke, *report.notes),
    )


def _side(snapshot: Snapshot) -> SideRow:
    names = SideRow.__struct_fields__
    return SideRow(**{name: getattr(snapshot, name) for name in names})


def _cell(delta: CellDelta, explanation: Explanation | None) -> ReportCell:
    base, head = delta.base, delta.head
    return ReportCell(
        model=delta.key.model,
        target=delta.key.target,
        state=delta.state,
        identical=delta.identical,
        reason=delta.reason,
        metrics={one.id: Numbers(one.base, one.head) for one in delta.metrics.values()},
        status=Words(*(cell.status if cell else None for cell in (base, head))),
        failure=Failures(*(cell.failure if cell else None for cell in (base, head))),
        command=Words(*(cell.command if cell else None for cell in (base, head))),
        families=head.families if head else (),
        **(_explained(explanation, delta) if explanation else {}),
    )


_AS_THEY_ARE = (
    *("cause", "why", "waterfall", "parts", "unchanged", "rebased", "renamed_bytes", "short_digests"),
    *("components", "tree"),
)


def _explained(explanation: Explanation, delta: CellDelta) -> dict[str, Any]:
    program = delta.head.program if delta.head else None
    return {
        **{name: getattr(explanation, name) for name in _AS_THEY_ARE},
        "first": explanation.phase,
        "dispatches": tuple(
            DispatchRow(one.name, one.cause, one.component, one.base, one.head, one.matched, one.note, one.diff)
            for one in explanation.dispatches
        ),
        "arguments": program.arguments if program else (),
        "phases_ms": Phases(*(side.phases_ms if side else {} for side in (delta.base, delta.head))),
    }


def _finding(finding: Finding) -> FindingRow:
    rest: dict[str, Any] = {name: getattr(finding, name) for name in FindingRow.__struct_fields__[2:]}
    return FindingRow(finding.key.model, finding.key.target, **rest)


def _root_cause(root: RootCause) -> RootRow:
    example = root.example
    rest: dict[str, Any] = {name: getattr(example, name) for name in ExampleRow.__struct_fields__[2:]}
    return RootRow(
        root.cause,
        root.what,
        root.targets,
        root.models,
        root.cells,
        root.dispatches,
        _tally(root.total),
        root.share,
        {target: _tally(tally) for target, tally in root.by_target.items()},
        ExampleRow(example.key.model, example.key.target, **rest),
        root.command,
    )


def _tally(tally: Tally) -> TallyRow:
    return TallyRow(tally.deltas, tally.net_bytes, tally.absolute_bytes)


def _folding(folding: Folding) -> FoldingRow:
    sides: Iterable[FoldCounts | None] = (folding.base, folding.head)
    return FoldingRow(folding.key.model, folding.key.target, *map(_fold_counts, sides))


def _fold_counts(counts: FoldCounts | None) -> FoldRow | None:
    return FoldRow(**{name: getattr(counts, name) for name in FoldRow.__struct_fields__}) if counts else None
