"""How a report becomes `report.json`, and how that is read again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from msgspec import UNSET, structs

from bot.core.codec.json_text import decoded, require_schema
from bot.core.codec.report_rows import (
    BudgetRow,
    DispatchRow,
    ExampleRow,
    Failures,
    FindingRow,
    FoldingRow,
    FoldRow,
    Numbers,
    OverviewRow,
    Phases,
    ReportCell,
    ReportRow,
    RootRow,
    SeenNumbers,
    SideRow,
    StepRow,
    TallyRow,
    TracedRow,
    VerdictRow,
    Words,
)
from bot.core.codec.snapshot_json import lines
from bot.core.record import Record
from bot.core.rules.delta import CellDelta
from bot.core.spread import lowest, range_of
from bot.core.values.explanation import Explanation
from bot.core.values.model_counts import FoldCounts
from bot.core.values.root_cause import RootCause, Tally
from bot.core.values.snapshot import Snapshot
from bot.core.values.verdict import Finding
from bot.core.values.whole_report import REPORT_SCHEMA, Report

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
