"""A snapshot: all cells of one side, as plain values; serialised canonically.

The text form is JSON with sorted keys and sorted cells, without timestamps or absolute paths, so that the same
measurements give the same bytes. What is read again is equal to what was written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

import msgspec
from msgspec import structs

from bot.core.metrics import METRICS
from bot.core.program import Family, Program
from bot.core.record import Amount, Count, Record, always
from bot.core.trace import DispatchTrace

SNAPSHOT_SCHEMA = "code-size-snapshot/1"

STATUSES = ("ok", "over-stack-limit", "failed", "timeout", "unsupported")
"""Ways a cell can end; the first two carry measurements."""
MEASURED = frozenset({"ok", "over-stack-limit"})

UNFETCHED = "fetch"
"""The stage of a failure that says nothing of the compiler: the model was not there to be compiled."""

Status = Annotated[str, msgspec.Meta(pattern=rf"\A({'|'.join(STATUSES)})\Z")]
Metrics = Mapping[str, "Count | None"]


class CellKey(Record, frozen=True, order=True):
    """One model on one target."""

    model: str
    target: str

    def __str__(self) -> str:
        """As a reader is told of it."""
        return f"{self.model} on {self.target}"


class Dispatch(Record, frozen=True, omit_defaults=True):
    """One entry point of one executable.

    Attributes:
        kind: what its main operation is: matmul, conv, reduction, elementwise, pack, …
        sites: dispatch sites that launch it; None where the program's IR could not be read.
        code_bytes: device code of this entry point alone (machine code, PTX, SPIR-V, MSL or bytecode).
        stack_bytes: machine frame or private segment.
        stack_kind: `static`, or `dynamic` where the frame grows at run time.
        alloca_bytes: sum of stack allocations, what the compiler's own gate checks.
        workgroup_bytes: workgroup (shared, threadgroup, group segment) memory.
        vgprs, sgprs, vgpr_spills, sgpr_spills, agprs: register counts of AMD code objects.
        code: digest of the device code up to names (short: 4 characters, 24 bits); None where that is not known.
        strategy: the configuration that the compiler chose: pipeline, workgroup, tile and vector sizes.
        executable_bytes: of the executable in the artifact where each entry point has one of its own (vulkan, metal).
        registers, spill_bytes, sass_bytes: registers, spill stores and loads, and machine code, as `ptxas` made them.
    """

    executable: str
    name: str
    kind: str = always("other")
    sites: Count | None = None
    code_bytes: Count | None = None
    stack_bytes: Count | None = None
    stack_kind: str | None = None
    alloca_bytes: Count | None = None
    workgroup_bytes: Count | None = None
    vgprs: Count | None = None
    sgprs: Count | None = None
    vgpr_spills: Count | None = None
    sgpr_spills: Count | None = None
    code: str | None = None
    strategy: str | None = None
    executable_bytes: Count | None = None
    agprs: Count | None = None
    registers: Count | None = None
    spill_bytes: Count | None = None
    sass_bytes: Count | None = None


class Failure(Record, frozen=True):
    """Why a cell has no (ordinary) artifact.

    Attributes:
        stage: `compile`, `read`, `import`, `fetch`, `option`, `stack-limit`, `timeout` or `target`.
        message: the first diagnostics or the reason, trimmed, without IR dumps.
        exit_code: of the compiler; None where it did not exit by itself.
        signal: its name (`SIGSEGV`) where one ended the compiler.
        figure_bytes: the compiler's own figure where a memory gate refused the cell.
    """

    stage: str
    message: str
    exit_code: Amount | None = None
    signal: str | None = None
    figure_bytes: Count | None = None

    @property
    def first_line(self) -> str:
        """The message's first line."""
        return self.message.strip().partition("\n")[0]


class Outcome(Record, frozen=True):
    """What the same command gave another time, when that was something else.

    Attributes:
        artifact_digest: SHA-256 of the artifact, hex; None without one.
    """

    status: Status
    metrics: Metrics = msgspec.field(default_factory=dict)
    artifact_digest: str | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """One measured (or not measurable) cell.

    Attributes:
        metrics: id → value; None is "not known", with its reason in `reasons`.
        command: the command line that gives this very artifact, with paths relative to the repository or suite.
        artifact_digest: SHA-256 of the artifact, hex; None without one.
        others: what differed from the first compile: the compiler does not repeat itself here.
        program: what the target-independent IR says; None where it could not be read.
        phases_ms: phase of the compiler → wall time that the single-threaded compile spent in it; varies.
        parts: every byte of the artifact under one name (`bot.core.parts`); empty where they are not known.
        assembler: what made machine code of the artifact's PTX text, version and level; None without one.
        traces: entry point → what the compiler's passes did to it; of those that were traced.
    """

    key: CellKey
    status: str
    metrics: Metrics = field(default_factory=dict)
    dispatches: tuple[Dispatch, ...] = ()
    failure: Failure | None = None
    command: str = ""
    artifact_digest: str | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    compiles: int = 1
    others: tuple[Outcome, ...] = ()
    program: Program | None = None
    families: tuple[Family, ...] = ()
    phases_ms: Mapping[str, int] = field(default_factory=dict)
    parts: Mapping[str, int] = field(default_factory=dict)
    assembler: str | None = None
    traces: Mapping[str, DispatchTrace] = field(default_factory=dict)

    @property
    def measured(self) -> bool:
        """True where the cell has an artifact and its metrics."""
        return self.status in MEASURED

    @property
    def reason(self) -> str:
        """Why there is no artifact, or only one with the stack gate lifted: one line; empty where there is one."""
        return self.failure.first_line if self.failure else ""

    def value(self, metric_id: str) -> int | None:
        """The metric's value, None where it is not known."""
        return self.metrics.get(metric_id)

    @property
    def outcome(self) -> Outcome:
        """What its command gave."""
        return Outcome(self.status, self.metrics, self.artifact_digest)


class CompilerInfo(Record, frozen=True):
    """Which compiler measured a side.

    Attributes:
        version: as `iree-compile --version` gives it (`3.13.0rc20261016`).
        revision: the source revision it was built from; empty where it does not say.
        digest: SHA-256 (hex) over all files of the compiler that a measurement runs.
        spec: the SPEC as the user gave it, without directories.
    """

    version: str
    revision: str
    digest: str
    spec: str = ""


def titled(version: str) -> str:
    """`IREE 3.13.0`; a version that has its compiler's name before it, such as `triton 3.9.0`, as it is."""
    return version if " " in version else f"IREE {version}"


class SourceInfo(Record, frozen=True):
    """Which repository state the models and configuration came from; all None/False outside a repository."""

    sha: str | None = None
    ref: str | None = None
    dirty: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All cells of one side.

    Attributes:
        targets: target name → its backend's name, for all targets of the plan.
        backends: target backends the compiler registers, named by a target or not; empty where it did not say.
        models: model name → SHA-256 (hex) of its text; says which suite this is.
        only: model → the one target that it is planned for. All others are planned for all targets but these.
        notes: facts about the whole run that a reader should know (such as a lost shard).
    """

    compiler: CompilerInfo
    source: SourceInfo
    cells: tuple[Cell, ...]
    flags: tuple[str, ...] = ()
    targets: Mapping[str, str] = field(default_factory=dict)
    backends: tuple[str, ...] = ()
    models: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    only: Mapping[str, str] = field(default_factory=dict)

    @property
    def planned(self) -> frozenset[CellKey]:
        """The cells that were to be measured; a shard has but some of them."""
        models, targets = self.models.keys() - self.only.keys(), self.targets.keys() - set(self.only.values())
        product = {CellKey(model, target) for model in models for target in targets}
        return frozenset(product | {CellKey(*pair) for pair in self.only.items()})

    def plans(self, key: CellKey) -> bool:
        """True for a cell that was to be measured."""
        if key.model in self.only:
            return self.only[key.model] == key.target
        return key.model in self.models and key.target in self.targets

    def __post_init__(self) -> None:
        """Raise ValueError where cells are out of order or there twice."""
        keys = [cell.key for cell in self.cells]
        if keys != sorted(set(keys)):
            raise ValueError("cells of a snapshot are sorted and unique")


# What a report says of whole models: fusion, what deduplication left, pairs, growth with depth, edits.


class FusionCounts(Record, frozen=True):
    """One model on one side; the same on every target.

    Attributes:
        linalg_ops_before, linalg_ops_after: before fusion, and inside the regions that it formed; None: not known.
        compute_bound_sites, memory_bound_sites: dispatch sites of the steady state: those with a contraction,
            convolution or attention, and the others.
    """

    linalg_ops_before: Count | None
    linalg_ops_after: Count | None
    compute_bound_sites: Count
    memory_bound_sites: Count
    initializer_sites: Count
    executables: Count | None = None
    fills: Count | None = None
    copies: Count | None = None


class Fusion(Record, frozen=True):
    """One model on both sides; None where that side does not know it."""

    model: str
    base: FusionCounts | None
    head: FusionCounts | None


@dataclass(frozen=True, slots=True)
class FoldCounts:
    """What deduplication did to one cell, and what it left behind.

    Attributes:
        families: groups of executables that are identical, or equal but for what their kind says.
        surplus_executables: executables of those families beyond one representative each: an upper bound.
        surplus_bytes: bytes of them, the largest member of each family being the representative: whole executables
            where each entry point has one of its own in the artifact (vulkan, metal), else device code; None where not
            known.
    """

    regions: int | None
    executables: int | None
    families: int | None
    surplus_executables: int | None
    surplus_bytes: int | None

    @property
    def folded(self) -> float | None:
        """Share of the regions that the compiler folded away (0.75 is 75 %); None where it is not known."""
        if not self.regions or self.executables is None:
            return None
        return (self.regions - self.executables) / self.regions


@dataclass(frozen=True, slots=True)
class Folding:
    """One cell on both sides; None where that side has not measured it."""

    key: CellKey
    base: FoldCounts | None
    head: FoldCounts | None


PAIR_METRICS = tuple(metric.id for metric in METRICS if metric.paired)
"""What a table of a static and a dynamic model shows, in this order."""


class Pair(Record, frozen=True):
    """A static and a dynamic version of one model on one target.

    Attributes:
        base, head: `static` or `dynamic` → metric id → value; a side that has not measured one of both lacks it.
    """

    static: str
    dynamic: str
    target: str
    base: Mapping[str, Mapping[str, Count | None]]
    head: Mapping[str, Mapping[str, Count | None]]


class ModelEdit(Record, frozen=True):
    """One model whose text is another one on head.

    Attributes:
        base, head: SHA-256 (hex) of its text; None where the side does not have the model: none of its operations.
        operations: operation → head − base, those that are not as many on both sides, as a `Program` counts them; None
            where that is not known: a side does not say it, measured nothing, or was read by another compiler.
        components: component → head − base of its whole operations, constants not counted; `unattributed` has those
            without a place. None where `operations` is.
    """

    model: str
    base: str | None
    head: str | None
    operations: Mapping[str, Amount] | None = None
    components: Mapping[str, Amount] | None = None


@dataclass(frozen=True, slots=True)
class Overview:
    """Fusion, folding and pairs of a report's models, each sorted."""

    fusion: tuple[Fusion, ...] = ()
    folding: tuple[Folding, ...] = ()
    pairs: tuple[Pair, ...] = ()


# What of two cells may be held against each other: a figure counts only where both sides made it the same way.
#
# Machine code of cuda is the assembler's as much as the compiler's: figures of two versions of it, or of one side that
# had none, say nothing of the change. And a metric that one side does not even name is younger than the program that
# measured it: it did not come or go with the change. `other_version` says so, as nothing must be able to hide a figure.


ASSEMBLED = tuple(metric.id for metric in METRICS if metric.assembled)
OF_DISPATCH = tuple(metric.of_entry for metric in METRICS if metric.assembled)
"""Metrics that the assembler makes, and fields of a dispatch that it makes."""
FIRST = frozenset(metric.id for metric in METRICS if metric.always)
"""Metrics that every version has measured."""
TOO_OLD = "one side was measured by a version of code-size-bot that did not measure it"


def comparable(base: Cell | None, head: Cell | None) -> tuple[Cell | None, Cell | None]:
    """Both cells, None in place of what cannot be compared, with its reason."""
    if base is None or head is None or not (base.measured and head.measured):
        return base, head
    if base.assembler != head.assembler:
        why = f"not compared: base has {_made_by(base)}, head {_made_by(head)}"
        base, head = _without_machine_code(base, why), _without_machine_code(head, why)
    young = (head.metrics.keys() ^ base.metrics.keys()) - FIRST
    return (_without(base, young, TOO_OLD), _without(head, young, TOO_OLD)) if young else (base, head)


def other_version(base: Iterable[Cell], head: Iterable[Cell]) -> str:
    """Which metrics are not compared because one side does not name them; empty where there are none."""
    left, right = ({id_ for cell in side if cell.measured for id_ in cell.metrics} for side in (base, head))
    lacking = {side: sorted(ids - FIRST) for side, ids in (("base", right - left), ("head", left - right))}
    if not (left and right):
        return ""
    words = "was measured by another version of this program, without"
    sides = [f"{side} {words} {', '.join(ids)}" for side, ids in lacking.items() if ids]
    return f"not compared: {'; '.join(sides)}" if sides else ""


def _made_by(cell: Cell) -> str:
    return f"machine code of {cell.assembler}" if cell.assembler else "no machine code of an assembler"


def _without_machine_code(cell: Cell, why: str) -> Cell:
    unmade = dict.fromkeys(OF_DISPATCH)
    dispatches = tuple(structs.replace(dispatch, **unmade) for dispatch in cell.dispatches)
    return replace(_without(cell, ASSEMBLED, why), dispatches=dispatches)


def _without(cell: Cell, names: Collection[str], why: str) -> Cell:
    """The cell with None for these metrics, in all that its command gave."""
    unknown = dict.fromkeys(names)
    others = tuple(structs.replace(other, metrics={**other.metrics, **unknown}) for other in cell.others)
    reasons = {**cell.reasons, **dict.fromkeys(names, why)}
    return replace(cell, metrics={**cell.metrics, **unknown}, reasons=reasons, others=others)
