"""The rows of `report.json`: every field of it, and its type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from msgspec import UNSET, UnsetType, field, structs

from bot.core.delta import CellDelta
from bot.core.explanation import ComponentDelta, Explanation, LookedUp, PartDelta, RootCause, Suspect, Tally
from bot.core.json_text import decoded, require_schema
from bot.core.policy import Accepted, Finding
from bot.core.program import Argument, Family
from bot.core.record import Amount, Count, Record
from bot.core.report import REPORT_SCHEMA, Baseline, Report
from bot.core.snapshot import (
    CellKey,
    CompilerInfo,
    Dispatch,
    Failure,
    FoldCounts,
    Fusion,
    ModelEdit,
    Pair,
    Snapshot,
    SourceInfo,
)
from bot.core.snapshot_json import lines
from bot.core.spread import lowest, range_of


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


class SeenNumbers(Record, frozen=True):
    """Every value that a metric was seen to have on both sides, the lowest first."""

    base: tuple[Count, ...]
    head: tuple[Count, ...]


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
    passed: str | UnsetType = field(default=UNSET, name="pass")
    operations: Mapping[str, Amount] | UnsetType = UNSET
    untraced: str | UnsetType = UNSET


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
    first_compiles: bool = False
    components: tuple[ComponentDelta, ...] = ()
    tree: tuple[ComponentDelta, ...] = ()
    arguments: tuple[Argument, ...] = ()
    phases_ms: Phases = Phases()
    families: tuple[Family, ...] = ()
    seen: Mapping[str, SeenNumbers] | UnsetType = UNSET


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
    allowed: Amount | None = None
    known: bool = False
    is_open: bool | UnsetType = UNSET
    seen: tuple[tuple[Count, ...], tuple[Count, ...]] | UnsetType = UNSET


class BudgetRow(Record, frozen=True):
    """A value that uses most of a limit."""

    model: str
    target: str
    metric: str
    rule: str
    base: Count | None
    head: Count
    limit: Count


class VerdictRow(Record, frozen=True):
    """The verdict."""

    status: str
    findings: tuple[FindingRow, ...]
    budgets: tuple[BudgetRow, ...] = ()


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


class TracedRow(Record, frozen=True):
    """Dispatches that were traced to a pass, and the amounts of their changes in bytes."""

    dispatches: Count
    bytes: Count


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
    passed: str | None = field(default=None, name="pass")
    operations: Mapping[str, Amount] = {}
    traced: TracedRow = TracedRow(0, 0)
    seen: tuple[str, ...] | UnsetType = UNSET
    suspects: tuple[Suspect, ...] | UnsetType = UNSET
    looked_up: LookedUp | UnsetType = UNSET


class StepRow(Record, frozen=True):
    """One step between the two compilers."""

    base: str
    head: str
    skipped: Count
    base_bytes: Count | None
    head_bytes: Count | None
    larger: Count
    smaller: Count
    broken: Count
    causes: tuple[tuple[str, Amount], ...]
    base_range: tuple[Count, Count] | UnsetType = UNSET
    head_range: tuple[Count, Count] | UnsetType = UNSET


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


class OverviewRow(Record, frozen=True):
    """What there is to say of whole models."""

    fusion: tuple[Fusion, ...] = ()
    folding: tuple[FoldingRow, ...] = ()
    pairs: tuple[Pair, ...] = ()


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
    edits: tuple[ModelEdit, ...] = ()
    notes: tuple[str, ...] = ()
    steps: tuple[StepRow, ...] | UnsetType = UNSET


# How a report becomes `report.json`, and how that is read again.


_Row = TypeVar("_Row", bound=Record)


def report_lines(report: Report) -> Iterator[bytes]:
    """The text of `report.json`, its cells made one at a time, so that they are not held twice."""
    explained = report.explanations
    cells = (_cell(delta, explained.get(delta.key)) for delta in report.deltas)
    return lines(_head(report), cells)


def report_of(text: bytes | str, where: str, hint: str) -> ReportRow:
    """Read `report.json`; raises InputError for text that is torn, foreign or of another schema."""
    require_schema(text, REPORT_SCHEMA, "report", where, hint)
    return decoded(text, ReportRow, where, hint, "report")


def _head(report: Report) -> ReportRow:
    """All but the cells; what broke is the first of the notes, and that base has no configuration the next."""
    verdict = report.verdict
    broke = (f"the analysis broke: {report.broke}",) if report.broke else ()
    first = ("base has no configuration: code size is measured from now on",) if report.adoption else ()
    overview = report.overview
    return ReportRow(
        REPORT_SCHEMA,
        base=_side(report.base),
        head=_side(report.head),
        baseline=report.baseline,
        verdict=VerdictRow(
            verdict.status,
            tuple(map(_finding, verdict.findings)),
            tuple(_row(BudgetRow, budget) for budget in verdict.budgets),
        ),
        cells=(),
        root_causes=tuple(map(_root_cause, report.root_causes)),
        overview=OverviewRow(
            overview.fusion,
            tuple(
                FoldingRow(folding.key.model, folding.key.target, _fold(folding.base), _fold(folding.head))
                for folding in overview.folding
            ),
            overview.pairs,
        ),
        edits=report.edits,
        notes=(*broke, *first, *report.notes),
        steps=tuple(
            StepRow(
                *(step.base, step.head, step.skipped, lowest(step.base_bytes), lowest(step.head_bytes)),
                *(step.larger, step.smaller, step.broken, step.causes),
                *(range_of(step.base_bytes) or UNSET, range_of(step.head_bytes) or UNSET),
            )
            for step in report.steps
        )
        or UNSET,
    )


def _row(kind: type[_Row], value: Any) -> _Row:
    """A row that has a value's model and target first, and its other fields as they are."""
    names = kind.__struct_fields__[2:]
    return kind(value.key.model, value.key.target, **{name: getattr(value, name) for name in names})


def _side(snapshot: Snapshot) -> SideRow:
    return SideRow(**{name: getattr(snapshot, name) for name in SideRow.__struct_fields__})


def _fold(counts: FoldCounts | None) -> FoldRow | None:
    return FoldRow(**{name: getattr(counts, name) for name in FoldRow.__struct_fields__}) if counts else None


def _cell(delta: CellDelta, explanation: Explanation | None) -> ReportCell:
    base, head = delta.base, delta.head
    explained: dict[str, Any] = {}
    if explanation:
        program = head.program if head else None
        explained = {name: getattr(explanation, name) for name in _AS_THEY_ARE}
        explained["first"] = explanation.phase
        explained["arguments"] = program.arguments if program else ()
        explained["phases_ms"] = Phases(*(side.phases_ms if side else {} for side in (base, head)))
        explained["dispatches"] = tuple(
            DispatchRow(
                *(one.name, one.cause, one.component, one.base, one.head, one.matched, one.note, one.diff),
                passed=one.passed.name if one.passed else UNSET,
                operations=one.passed.operations if one.passed else UNSET,
                untraced=one.untraced or UNSET,
            )
            for one in explanation.dispatches
        )
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
        seen={one.id: SeenNumbers(*one.seen) for one in delta.metrics.values() if one.seen} or UNSET,
        **explained,
    )


_AS_THEY_ARE = (
    *("cause", "why", "waterfall", "parts", "unchanged", "rebased", "renamed_bytes", "short_digests"),
    *("first_compiles", "components", "tree"),
)


def _finding(finding: Finding) -> FindingRow:
    row = _row(FindingRow, finding)  # with what is seldom where it says something
    return structs.replace(row, is_open=row.is_open or UNSET, seen=row.seen or UNSET)


def _root_cause(root: RootCause) -> RootRow:
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
        _row(ExampleRow, root.example),
        root.command,
        passed=root.passed.name if root.passed else None,
        operations=root.passed.operations if root.passed else {},
        traced=TracedRow(*root.traced),
        seen=UNSET if root.seen is None else root.seen,
        suspects=root.suspects if root.looked_up else UNSET,
        looked_up=root.looked_up or UNSET,
    )


def _tally(tally: Tally) -> TallyRow:
    return TallyRow(tally.deltas, tally.net_bytes, tally.absolute_bytes)
