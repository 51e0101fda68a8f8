"""The values of a snapshot of all cells of one side; their fields are the JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import msgspec

from bot.core.ladder import Ladder
from bot.core.metrics import OwnMetrics
from bot.core.program import Family, Program
from bot.core.record import Amount, Count, Digest, Record, always
from bot.core.trace import DispatchTrace

STATUSES = ("ok", "over-stack-limit", "failed", "timeout", "unsupported")
"""Ways a cell can end; the first two carry measurements."""
MEASURED = frozenset({"ok", "over-stack-limit"})
Status = Annotated[str, msgspec.Meta(pattern=rf"\A({'|'.join(STATUSES)})\Z")]
UNLISTED = "unlisted"
"""Stands for the digest of a build's files if not all of these files are known."""
Sha256 = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
_INPUTS = rf"\A([0-9a-f]{{64}}|{UNLISTED})\Z"
Metrics = Mapping[str, "Count | None"]


class CellKey(Record, frozen=True, order=True):
    """One model on one target."""

    model: str
    target: str

    def __str__(self) -> str:
        """Return the cell as reports name it: `MODEL on TARGET`."""
        return f"{self.model} on {self.target}"


class Kernel(Record, frozen=True, kw_only=True, omit_defaults=True):
    """The figures of an entry point that readers measure; None: the format has none."""

    # device code of this entry point alone (machine code, PTX, SPIR-V, MSL or bytecode)
    code_bytes: Count | None = None
    stack_bytes: Count | None = None  # machine frame or private segment
    # workgroup (shared, threadgroup, group segment) memory
    workgroup_bytes: Count | None = None
    # vgprs, sgprs, vgpr_spills, sgpr_spills, agprs: register counts of AMD code objects
    vgprs: Count | None = None
    sgprs: Count | None = None
    vgpr_spills: Count | None = None
    sgpr_spills: Count | None = None
    agprs: Count | None = None
    # digest of the device code without names; None if it is not known
    code: Digest | None = None
    # the entry point's executable in the artifact, if no other entry point shares it
    # (vulkan, metal)
    executable_bytes: Count | None = None
    # registers, spill_bytes, sass_bytes: registers, spill stores and loads, and machine
    # code, as `ptxas` made them
    registers: Count | None = None
    spill_bytes: Count | None = None
    sass_bytes: Count | None = None


class Dispatch(Kernel, frozen=True):
    """One entry point of one executable."""

    executable: str
    name: str
    # what its main operation is: matmul, conv, reduction, elementwise, pack, …
    kind: str = always("other")
    # dispatch sites that launch it; None if the program's IR could not be read
    sites: Count | None = None
    # sum of stack allocations, what the compiler's own gate checks
    alloca_bytes: Count | None = None
    # the configuration that the compiler chose: pipeline, workgroup, tile and vector
    # sizes
    strategy: str | None = None


NOT_SHIPPED = "output"
"""The stage of a failure whose compile succeeded, but wrote nothing that ships."""


class Failure(Record, frozen=True):
    """Why a cell has no (ordinary) artifact."""

    # `compile`, `read`, `output`, `import`, `option`, `stack-limit`, `timeout`,
    # `target`, `model` (a variant cannot have it) or `gap`
    stage: str
    message: str  # the first diagnostics or the reason, trimmed, without IR dumps
    # exit code of the compiler; None if it did not exit by itself
    exit_code: Amount | None = None
    signal: str | None = None  # name of the signal that ended the compiler (`SIGSEGV`)
    # the bytes that the compiler reported when its memory gate refused the cell
    figure_bytes: Count | None = None

    @property
    def first_line(self) -> str:
        """Return the first line of the message."""
        return self.message.strip().partition("\n")[0]


class CompileOutcome(Record, frozen=True):
    """The result of one run of a cell's command."""

    status: Status
    metrics: Metrics = msgspec.field(default_factory=dict)
    artifact_digest: str | None = None  # SHA-256 of the artifact, hex; None without one


if TYPE_CHECKING:
    ProgramInJson = Program
else:
    # JSON has the name of one of the snapshot's programs. `bot.core.snapshot_json` puts
    # the program in its place.
    ProgramInJson = str


class Cell(Record, frozen=True, omit_defaults=True):
    """One measured (or not measurable) cell."""

    model: str
    target: str
    status: Status
    # id → value; None is "not known", with its reason in `reasons`
    metrics: Metrics = always({})
    dispatches: tuple[Dispatch, ...] = always(())
    failure: Failure | None = always(None)
    # the command line that gives this very artifact, with paths relative to the
    # repository or suite
    command: str = always("")
    # SHA-256 of the artifact, hex; None without one
    artifact_digest: str | None = always(None)
    reasons: Mapping[str, str] = always({})
    compiles: Count = always(1)
    # the other outcomes of a non-deterministic build
    others: tuple[CompileOutcome, ...] = always(())
    # the facts in the target-independent IR; None if it could not be read
    program: ProgramInJson | None = always(None)
    families: tuple[Family, ...] = always(())
    # name of a part (`bot.core.metrics`) → its bytes, which sum to the artifact; empty
    # if they are not known
    parts: Mapping[str, Count] = always({})
    # the assembler that made machine code of the artifact's PTX text, with its version
    # and level; None without one
    assembler: str | None = always(None)
    # traced entry point → what the compiler's passes did to it
    traces: Mapping[str, DispatchTrace] = {}
    # entry point of head → its ladder against base; base has none
    ladders: Mapping[str, Ladder] = {}
    # SHA-256 (hex) of the files that the build reads beside its model; empty for none;
    # UNLISTED if not all of them are known
    inputs: Annotated[str, msgspec.Meta(pattern=_INPUTS)] = ""

    @property
    def key(self) -> CellKey:
        """Return the name of the cell."""
        return CellKey(self.model, self.target)

    @property
    def measured(self) -> bool:
        """Return whether the cell has an artifact and its metrics."""
        return self.status in MEASURED

    @property
    def is_never_measured(self) -> bool:
        """Return whether no compiler can compile the target, by the configuration."""
        return (
            self.status == "unsupported"
            and self.failure is not None
            and self.failure.stage == "target"
        )

    @property
    def reason(self) -> str:
        """Return the first line of the failure; empty without a failure."""
        if self.failure:
            return self.failure.first_line
        return ""

    def value(self, metric_id: str) -> int | None:
        """Return the metric's value; None if it is not known."""
        return self.metrics.get(metric_id)

    @property
    def outcome(self) -> CompileOutcome:
        """Return the result of the first run of the command."""
        return CompileOutcome(self.status, self.metrics, self.artifact_digest)


class CompilerInfo(Record, frozen=True, omit_defaults=True):
    """Which compiler measured a side."""

    version: str  # as `iree-compile --version` gives it (`3.13.0rc20261016`)
    # the source revision it was built from; empty if it does not report one
    revision: str
    digest: str  # SHA-256 (hex) over all files of the compiler that a measurement runs
    spec: str = always("")  # the SPEC as the user gave it, without directories
    metrics: OwnMetrics = ()  # those of its own, as the configuration declares them


def titled(version: str) -> str:
    """Return `IREE 3.13.0`; a version with a compiler's name stays as it is.

    An example of such a version is `triton 3.9.0`.
    """
    if " " in version:
        return version
    return f"IREE {version}"


class SourceInfo(Record, frozen=True):
    """Which repository state the models and configuration came from.

    Outside a repository, all fields are None or False.
    """

    sha: str | None = None
    ref: str | None = None
    dirty: bool = False


class Accepted(Record, frozen=True):
    """The acceptance of the growth that a commit brought to its branch."""

    who: str
    reason: str = ""


class Snapshot(Record, frozen=True):
    """All cells of one side, and the compiler that measured them."""

    compiler: CompilerInfo
    source: SourceInfo
    cells: tuple[Cell, ...]
    flags: tuple[str, ...] = ()
    # target name → its backend's name, for all targets of the plan
    targets: Mapping[str, str] = {}
    # model name → SHA-256 (hex) of its text; identifies the suite
    models: Mapping[str, str] = {}
    # facts about the whole run that a reader should know (such as a lost shard)
    notes: tuple[str, ...] = ()
    # acceptance of a stored baseline; UNSET if nothing is recorded
    accepted: Accepted | msgspec.UnsetType = msgspec.UNSET
    # SHA-256 (hex) of the file with a stored baseline's IR; UNSET without one
    stored_ir: Sha256 | msgspec.UnsetType = msgspec.UNSET

    @property
    def planned(self) -> frozenset[CellKey]:
        """Return the cells that were planned; a shard has only some of them."""
        keys = set()
        for model in self.models:
            for target in self.targets:
                keys.add(CellKey(model, target))
        return frozenset(keys)

    @property
    def by_key(self) -> dict[CellKey, Cell]:
        """Return the cells by their keys, in the order of the cells."""
        return {cell.key: cell for cell in self.cells}

    def plans(self, key: CellKey) -> bool:
        """Return whether the cell was planned."""
        return key.model in self.models and key.target in self.targets

    def __post_init__(self) -> None:
        """Raise ValueError if cells are out of order or occur twice."""
        keys = [cell.key for cell in self.cells]
        if keys != sorted(set(keys)):
            raise ValueError("cells are not sorted and unique")


class ModelEdit(Record, frozen=True):
    """One model whose text differs between base and head."""

    model: str
    # base, head: SHA-256 (hex) of its text; None if the side does not have the model
    base: str | None
    head: str | None
    # operation → head − base, only of counts that differ; None if a side was not
    # measured, its program is not known, or another compiler read it
    operations: Mapping[str, Amount] | None = None
    # component (`unattributed`: no place) → difference of its operations, without
    # constants; None if `operations` is None
    components: Mapping[str, Amount] | None = None
