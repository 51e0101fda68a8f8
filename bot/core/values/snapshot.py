"""A snapshot: all cells of one side, as plain values; serialised canonically.

The text form is JSON with sorted keys and sorted cells, without timestamps or absolute paths, so that the same
measurements give the same bytes. What is read again is equal to what was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from bot.core.record import Amount, Count, Record, always
from bot.core.values.program import Family, Program
from bot.core.values.trace import DispatchTrace

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
