"""The rows of `report.json`: every field of it, and its type."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET, UnsetType, field

from bot.core.record import Amount, Count, Record
from bot.core.values.explanation import ComponentDelta, PartDelta
from bot.core.values.model_counts import Fusion, ModelEdit, Pair
from bot.core.values.program import Argument, Family
from bot.core.values.root_cause import LookedUp, Suspect
from bot.core.values.snapshot import CellKey, CompilerInfo, Dispatch, Failure, SourceInfo
from bot.core.values.verdict import Accepted
from bot.core.values.whole_report import Baseline


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
