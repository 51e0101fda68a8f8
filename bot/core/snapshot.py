"""A snapshot of all cells of one side, and its JSON.

The JSON is sorted, and has no times and no absolute paths.

Read again it is equal.
"""

from __future__ import annotations

import hashlib
import re
from base64 import urlsafe_b64encode
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from sys import intern
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, cast

import msgspec
from msgspec.structs import force_setattr, replace

from bot.core.json_text import canonical, decoded, require_schema, require_single_keys
from bot.core.ladder import Ladder
from bot.core.metrics import ARTIFACT_PARTS, METRIC_BY_ID, METRICS, OwnMetrics, unlike
from bot.core.program import Family, Program
from bot.core.record import (
    DIGEST,
    DIGEST_BYTES,
    INT_LIMIT,
    Amount,
    Count,
    Digest,
    Record,
    always,
)
from bot.core.trace import DispatchTrace
from bot.errors import InputError

SNAPSHOT_SCHEMA = "code-size-snapshot/1"

STATUSES = ("ok", "over-stack-limit", "failed", "timeout", "unsupported")
"""Ways a cell can end; the first two carry measurements."""
MEASURED = frozenset({"ok", "over-stack-limit"})


Status = Annotated[str, msgspec.Meta(pattern=rf"\A({'|'.join(STATUSES)})\Z")]
UNLISTED = "unlisted"
"""Stands for the files that a build reads where not all of them are known."""
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


class Dispatch(Record, frozen=True, omit_defaults=True):
    """One entry point of one executable."""

    executable: str
    name: str
    # what its main operation is: matmul, conv, reduction, elementwise, pack, …
    kind: str = always("other")
    # dispatch sites that launch it; None where the program's IR could not be read
    sites: Count | None = None
    # device code of this entry point alone (machine code, PTX, SPIR-V, MSL or bytecode)
    code_bytes: Count | None = None
    stack_bytes: Count | None = None  # machine frame or private segment
    # sum of stack allocations, what the compiler's own gate checks
    alloca_bytes: Count | None = None
    # workgroup (shared, threadgroup, group segment) memory
    workgroup_bytes: Count | None = None
    # vgprs, sgprs, vgpr_spills, sgpr_spills, agprs: register counts of AMD code objects
    vgprs: Count | None = None
    sgprs: Count | None = None
    vgpr_spills: Count | None = None
    sgpr_spills: Count | None = None
    # of the device code up to names; None where that is not known
    code: Digest | None = None
    # the configuration that the compiler chose: pipeline, workgroup, tile and vector
    # sizes
    strategy: str | None = None
    # of the executable in the artifact where each entry point has one of its own
    # (vulkan, metal)
    executable_bytes: Count | None = None
    agprs: Count | None = None
    # registers, spill_bytes, sass_bytes: registers, spill stores and loads, and machine
    # code, as `ptxas` made them
    registers: Count | None = None
    spill_bytes: Count | None = None
    sass_bytes: Count | None = None


NOT_SHIPPED = "output"
"""The stage of a failure whose compile ended well, but gave nothing that the target ships."""


class Failure(Record, frozen=True):
    """Why a cell has no (ordinary) artifact."""

    # `compile`, `read`, `output`, `import`, `option`, `stack-limit`, `timeout` or
    # `target`
    stage: str
    message: str  # the first diagnostics or the reason, trimmed, without IR dumps
    # of the compiler; None where it did not exit by itself
    exit_code: Amount | None = None
    signal: str | None = None  # its name (`SIGSEGV`) where one ended the compiler
    # the compiler's own figure where a memory gate refused the cell
    figure_bytes: Count | None = None

    @property
    def first_line(self) -> str:
        """The message's first line."""
        return self.message.strip().partition("\n")[0]


class CompileOutcome(Record, frozen=True):
    """What one run of a cell's command gave."""

    status: Status
    metrics: Metrics = msgspec.field(default_factory=dict)
    artifact_digest: str | None = None  # SHA-256 of the artifact, hex; None without one


if TYPE_CHECKING:
    ProgramInJson = Program
else:
    # JSON has the name of a program that stands among those of the snapshot; `complete`
    # puts the program in its place.
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
    # what was not as the first compile: the compiler does not repeat itself
    others: tuple[CompileOutcome, ...] = always(())
    # what the target-independent IR says; None where it could not be read
    program: ProgramInJson | None = always(None)
    families: tuple[Family, ...] = always(())
    # every byte of the artifact under one name (`bot.core.metrics`); empty where they
    # are not known
    parts: Mapping[str, Count] = always({})
    # what made machine code of the artifact's PTX text, version and level; None without
    # one
    assembler: str | None = always(None)
    # entry point → what the compiler's passes did to it; of those that were traced
    traces: Mapping[str, DispatchTrace] = {}
    # entry point of head → its ladder against base; base has none
    ladders: Mapping[str, Ladder] = {}
    # SHA-256 (hex) of the files that the build reads beside its model; empty for none,
    # and UNLISTED
    inputs: Annotated[str, msgspec.Meta(pattern=_INPUTS)] = ""

    @property
    def key(self) -> CellKey:
        """The name of the cell."""
        return CellKey(self.model, self.target)

    @property
    def measured(self) -> bool:
        """Return whether the cell has an artifact and its metrics."""
        return self.status in MEASURED

    @property
    def is_never_measured(self) -> bool:
        """Return whether the configuration says that no compiler can compile the target."""
        return (
            self.status == "unsupported"
            and self.failure is not None
            and self.failure.stage == "target"
        )

    @property
    def reason(self) -> str:
        """Say why there is no artifact, or only one with the stack gate lifted.

        One line.

        Empty where there is one.
        """
        if self.failure:
            return self.failure.first_line
        return ""

    def value(self, metric_id: str) -> int | None:
        """Return the metric's value, None where it is not known."""
        return self.metrics.get(metric_id)

    @property
    def outcome(self) -> CompileOutcome:
        """What the first run of the command gave."""
        return CompileOutcome(self.status, self.metrics, self.artifact_digest)


class CompilerInfo(Record, frozen=True, omit_defaults=True):
    """Which compiler measured a side."""

    version: str  # as `iree-compile --version` gives it (`3.13.0rc20261016`)
    revision: str  # the source revision it was built from; empty where it does not say
    digest: str  # SHA-256 (hex) over all files of the compiler that a measurement runs
    spec: str = always("")  # the SPEC as the user gave it, without directories
    metrics: OwnMetrics = ()  # those of its own, as the configuration declares them


def titled(version: str) -> str:
    """`IREE 3.13.0`.

    A version that has its compiler's name before it, such as `triton 3.9.0`, as it is.
    """
    if " " in version:
        return version
    return f"IREE {version}"


class SourceInfo(Record, frozen=True):
    """Which repository state the models and configuration came from.

    All None/False outside a repository.
    """

    sha: str | None = None
    ref: str | None = None
    dirty: bool = False


class Accepted(Record, frozen=True):
    """The acceptance of the growth that a commit brought to its branch."""

    who: str
    reason: str = ""


class Snapshot(Record, frozen=True):
    """All cells of one side."""

    compiler: CompilerInfo
    source: SourceInfo
    cells: tuple[Cell, ...]
    flags: tuple[str, ...] = ()
    # target name → its backend's name, for all targets of the plan
    targets: Mapping[str, str] = {}
    # model name → SHA-256 (hex) of its text; says which suite this is
    models: Mapping[str, str] = {}
    # facts about the whole run that a reader should know (such as a lost shard)
    notes: tuple[str, ...] = ()
    # of a stored baseline; UNSET if nothing is recorded
    accepted: Accepted | msgspec.UnsetType = msgspec.UNSET
    # SHA-256 (hex) of the file with the IR beside a stored baseline; UNSET if there is none
    stored_ir: Sha256 | msgspec.UnsetType = msgspec.UNSET

    @property
    def planned(self) -> frozenset[CellKey]:
        """The cells that were to be measured; a shard has but some of them."""
        return frozenset(
            CellKey(model, target) for model in self.models for target in self.targets
        )

    def plans(self, key: CellKey) -> bool:
        """Return True for a cell that was to be measured."""
        return key.model in self.models and key.target in self.targets

    def __post_init__(self) -> None:
        """Raise ValueError where cells are out of order or there twice."""
        keys = [cell.key for cell in self.cells]
        if keys != sorted(set(keys)):
            raise ValueError("cells are not sorted and unique")


def changed_inputs(base: Snapshot, head: Snapshot) -> frozenset[str]:
    """Return the models of builds that read other files beside the model on the two sides."""
    base_inputs = {cell.key: cell.inputs for cell in base.cells}
    pairs = ((cell.key, base_inputs.get(cell.key), cell.inputs) for cell in head.cells)
    return frozenset(
        key.model
        for key, before, after in pairs
        if before is not None and before != after
    )


class ModelEdit(Record, frozen=True):
    """One model whose text is another one on head."""

    model: str
    # base, head: SHA-256 (hex) of its text; None where the side does not have the model
    base: str | None
    head: str | None
    # operation → head − base, where that is not 0, as a `Program` counts them; None
    # where a side does not say it, measured nothing, or was read by another compiler
    operations: Mapping[str, Amount] | None = None
    # component (`unattributed`: no place) → the same of whole operations without
    # constants; None where that is
    components: Mapping[str, Amount] | None = None


# What of two cells may be held against each other. Machine code of cuda is the
# assembler's as much as the compiler's: figures of two versions of it say nothing of
# the change. And a metric that one side does not even name is younger than the program
# that measured it. `other_version` says so, as nothing must be able to hide a figure.

ASSEMBLED = tuple(metric.id for metric in METRICS if metric.assembled)
OF_DISPATCH = tuple(metric.of_entry for metric in METRICS if metric.assembled)
"""Metrics that the assembler makes, and fields of a dispatch that it makes."""
# metrics that every version has measured
FIRST = frozenset(metric.id for metric in METRICS if metric.always)
_NONE: Mapping[str, str] = {}
TOO_OLD = (
    "the version of code-size-bot that measured one side does not have this metric"
)


def comparable(
    base: Cell | None, head: Cell | None, undeclared: Mapping[str, str] = _NONE
) -> tuple[Cell | None, Cell | None]:
    """Return both cells, None in place of what cannot be compared, with its reason.

    `undeclared`: as `unlike` gives it.
    """
    if base is None or head is None or not (base.measured and head.measured):
        return base, head
    for id_, reason in undeclared.items():
        base = _without(base, (id_,), reason)
        head = _without(head, (id_,), reason)
    if base.assembler != head.assembler:
        reason = f"not compared: base has {_maker(base)}, head {_maker(head)}"
        base = _without_machine_code(base, reason)
        head = _without_machine_code(head, reason)
    young = (head.metrics.keys() ^ base.metrics.keys()) - FIRST
    if not young:
        return base, head
    return _without(base, young, TOO_OLD), _without(head, young, TOO_OLD)


def _maker(cell: Cell) -> str:
    if cell.assembler:
        return f"machine code of {cell.assembler}"
    return "no machine code of an assembler"


def other_version(base: Snapshot, head: Snapshot) -> str:
    """Return which metrics are not compared because one side does not name them.

    Empty where there are none.
    """
    undeclared = unlike(base.compiler.metrics, head.compiler.metrics)
    base_ids = _measured_ids(base)
    head_ids = _measured_ids(head)
    if not base_ids or not head_ids:
        return ""
    phrase = "was measured by another version of code-size-bot, without"
    sides = []
    for side, ids in (("base", head_ids - base_ids), ("head", base_ids - head_ids)):
        lacking = sorted(ids - FIRST - undeclared.keys())
        if lacking:
            sides.append(f"{side} {phrase} {', '.join(lacking)}")
    sides += [f"{id_} is {reason}" for id_, reason in undeclared.items()]
    if sides:
        return f"not compared: {'; '.join(sides)}"
    return ""


def _measured_ids(snapshot: Snapshot) -> set[str]:
    """Return the metrics that any measured cell names."""
    ids = set[str]()
    for cell in snapshot.cells:
        if cell.measured:
            ids.update(cell.metrics)
    return ids


def _without_machine_code(cell: Cell, reason: str) -> Cell:
    unmade = dict.fromkeys(OF_DISPATCH)
    dispatches = tuple(replace(dispatch, **unmade) for dispatch in cell.dispatches)
    return replace(_without(cell, ASSEMBLED, reason), dispatches=dispatches)


def _without(cell: Cell, names: Collection[str], reason: str) -> Cell:
    """Return the cell with None for these metrics, in all that its command gave."""
    unknown = dict.fromkeys(names)
    outcomes = tuple(
        replace(outcome, metrics={**outcome.metrics, **unknown})
        for outcome in cell.others
    )
    reasons = {**cell.reasons, **dict.fromkeys(names, reason)}
    return replace(
        cell, metrics={**cell.metrics, **unknown}, reasons=reasons, others=outcomes
    )


# `snapshot.json`: strict on the way in, canonical on the way out; a program that cells
# share stands in it once.

MOST_TRACED = 40_000_000
"""The largest sum of the sizes of all traces in a snapshot.

Those of the suite's 13 models have 5 million.
"""
MEASURE_AGAIN = "measure it again with this version of code-size-bot"


_READ: Final = 0  # stands in the text for a cell that was read already


class _Rest(Snapshot, frozen=True, kw_only=True):
    """The whole of `snapshot.json`, with _READ for each cell that was read before."""

    schema: str
    cells: tuple[Literal[0] | Cell, ...]  # type: ignore[assignment]
    programs: Mapping[str, Program] = {}

    def __post_init__(self) -> None:
        """Leave the check of the order to the snapshot that has all cells."""


_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
_CELLS = (b'{"cells":[\n', b',"cells":[\n')
_decoder = msgspec.json.Decoder(Cell)
_TEXTS = ("executable", "name", "kind", "strategy")
_NUMBERS = (
    "code_bytes",
    "stack_bytes",
    "alloca_bytes",
    "workgroup_bytes",
    "executable_bytes",
)
"""What dispatches have in common with others, here and on the other side."""

_PILED = frozenset({"cells", "points"})  # each entry on a line of its own


def key_of(program: Program) -> str:
    """Return the name of a program in a snapshot: the SHA-256 of its JSON, in hex."""
    return hashlib.sha256(canonical(program)).hexdigest()


def snapshot_lines(snapshot: Snapshot) -> Iterator[bytes]:
    """Yield the text of `snapshot.json`, the same one for the same snapshot."""
    programs = {
        id(cell.program): cell.program for cell in snapshot.cells if cell.program
    }
    names = {identity: key_of(program) for identity, program in programs.items()}
    fields = msgspec.structs.asdict(snapshot)
    fields["schema"] = SNAPSHOT_SCHEMA
    fields["programs"] = {names[identity]: programs[identity] for identity in names}
    cells = (
        replace(cell, program=names.get(id(cell.program))) for cell in snapshot.cells
    )
    return lines(fields, cells)


def lines(
    record: Record | Mapping[str, Any], cells: Iterable[Any] | None = None
) -> Iterator[bytes]:
    """Yield the canonical JSON of one object.

    Sorted keys, and a line for each field that is set, for each cell and program.

    `cells`: come one by one, in place of the record's own.
    """
    if not isinstance(record, Mapping):
        record = {name: getattr(record, name) for name in record.__struct_fields__}
    fields = {
        name: value for name, value in record.items() if value is not msgspec.UNSET
    }
    for index, (name, value) in enumerate(sorted(fields.items())):
        yield b"%c%s:" % (b"{,"[index > 0], canonical(name))
        if name in _PILED:
            yield from _piled(b"[]", map(canonical, value if cells is None else cells))
        elif name == "programs":
            entries = (
                canonical(key) + b":" + canonical(value[key]) for key in sorted(value)
            )
            yield from _piled(b"{}", entries)
        else:
            yield canonical(value) + b"\n"
    yield b"}\n"


def _piled(brackets: bytes, entries: Iterable[bytes]) -> Iterator[bytes]:
    yield brackets[:1]
    for number, entry in enumerate(entries):
        yield (b",\n" if number else b"\n") + entry
    yield brackets[1:] + b"\n"


def filled(**values: object) -> dict[str, object]:
    """Return the values that say something.

    Numbers, 0 included, and what is not empty.
    """
    return {
        name: value for name, value in values.items() if value or isinstance(value, int)
    }


def from_json(text: bytes | str, where: str = "snapshot") -> Snapshot:
    """Read `snapshot.json`.

    Raises InputError for text that is torn, foreign or of another schema.
    """
    data = text.encode() if isinstance(text, str) else text
    return from_lines((line[0] for line in _LINE.finditer(data)), where)


def from_lines(text: Iterable[bytes], where: str) -> Snapshot:
    """Read `snapshot.json` line by line, so that it need not be held.

    Raises InputError as `from_json`.

    That is so for cells on lines of their own, as `lines` writes them; any other layout
    is read as well.
    """
    cells = list[Cell]()
    remainder = b"".join(_without_cells(text, cells))
    require_schema(
        remainder,
        schema=SNAPSHOT_SCHEMA,
        noun="snapshot",
        where=where,
        hint=MEASURE_AGAIN,
    )
    rest = decoded(remainder, kind=_Rest, where=where, hint=MEASURE_AGAIN)
    if rest.cells.count(_READ) != len(cells):
        raise InputError(
            "a line looks like a build, but is not one", where=where, hint=MEASURE_AGAIN
        )
    early = iter(cells)
    fields = {name: getattr(rest, name) for name in Snapshot.__struct_fields__}
    fields["cells"] = tuple(
        next(early) if isinstance(cell, int) else cell for cell in rest.cells
    )
    try:
        snapshot = Snapshot(**fields)
    except ValueError as error:
        raise InputError(str(error), where=where) from None
    _complete(snapshot, rest.programs, where)
    return snapshot


def _without_cells(text: Iterable[bytes], cells: list[Cell]) -> Iterator[bytes]:
    """Yield the text with _READ for each cell that is whole on its line.

    The cells go to the list.
    """
    inside = False
    pool = dict[Any, Any]()
    for line in text:
        if inside and line.startswith(b"{"):
            end = len(line.rstrip(b"],\n"))
            try:
                cell = _decoder.decode(line[:end])
                require_single_keys(line[:end], "cell")
                cells.append(_shared(cell, pool))
            except (msgspec.DecodeError, RecursionError, InputError):
                yield line  # which is refused with the whole, in words that say where
            else:
                yield b"%d%s" % (_READ, line[end:])
        else:
            inside = inside or line in _CELLS
            yield line


def _complete(snapshot: Snapshot, programs: Mapping[str, Program], where: str) -> None:
    """Give each cell that was read its program.

    Raises InputError where the snapshot contradicts itself.
    """
    _require_names_fit(programs, where)
    declared = {metric.id for metric in snapshot.compiler.metrics}
    if clashing := declared & METRIC_BY_ID.keys():
        raise InputError(
            f"declares {min(clashing)!r}, which is a built-in metric",
            where=where,
            hint=MEASURE_AGAIN,
        )
    for i, cell in enumerate(snapshot.cells):
        complete(cell, programs, where=f"{where}: cells[{i}]", declared=declared)
    _require_small(snapshot.cells, where)
    traced = sum(
        trace.size for cell in snapshot.cells for trace in cell.traces.values()
    )
    if traced > MOST_TRACED:
        raise InputError(
            "has traces above the size limit", where=where, hint=MEASURE_AGAIN
        )


def _require_names_fit(programs: Mapping[str, Program], where: str) -> None:
    """Raise InputError for a program whose name is not the digest of its content."""
    for name, program in programs.items():
        if name != key_of(program):
            message = "the name of a program is not the digest of its content"
            raise InputError(message, where=f"{where}: programs.{name[:20]}")


def complete(
    cell: Cell,
    programs: Mapping[str, Program],
    where: str,
    declared: Set[str] = frozenset(),
) -> None:
    """Give a cell that was read its program in place of the program's name.

    Raises InputError naming `where` for a cell that contradicts itself.

    `declared`: ids of its own.
    """
    for metrics in _all_metrics(cell):
        if unknown := metrics.keys() - METRIC_BY_ID.keys() - declared:
            raise InputError(f"unknown metric {min(unknown)[:60]!r}", where=where)
    if cell.parts and sum(cell.parts.values()) != cell.metrics.get("artifact_bytes"):
        raise InputError(
            f"its parts sum to {sum(cell.parts.values())}, not to its artifact_bytes",
            where=where,
        )
    _require_possible(cell, where)
    _require_ladders_fit(cell, where)
    name = cast("str | None", cell.program)
    if name is None:
        return
    if name not in programs:
        raise InputError(f"no program is called {name[:60]!r}", where=where)
    force_setattr(cell, "program", programs[name])


def _all_metrics(cell: Cell) -> Iterator[Metrics]:
    """Yield the metrics of everything that the cell's command gave."""
    yield cell.metrics
    for outcome in cell.others:
        yield outcome.metrics


def _require_ladders_fit(cell: Cell, where: str) -> None:
    """Raise InputError for a ladder of no dispatch of the cell, or of other code."""
    if not cell.ladders:
        return
    rows = {row.name: row for row in cell.dispatches}
    for name, ladder in cell.ladders.items():
        row = rows.get(name)
        if row is None:
            raise InputError(
                f"has a ladder of {name[:60]!r}, which is no dispatch of it",
                where=where,
            )
        if row.code != ladder.head_code:
            raise InputError(
                f"the ladder of {name[:60]!r} is of other code", where=where
            )
        if ladder.head.code_bytes not in (None, row.code_bytes):
            message = (
                f"the ladder of {name[:60]!r} ends at {ladder.head.code_bytes:,} B, not"
                " at its code_bytes"
            )
            raise InputError(message, where=where)


def _require_possible(cell: Cell, where: str) -> None:
    """Raise InputError for a part that is larger than the artifact it is in.

    Also for the code of an entry point.
    """
    for metrics in _all_metrics(cell):
        whole = metrics.get("artifact_bytes")
        known_bytes = sum(metrics.get(id_) or 0 for id_ in ARTIFACT_PARTS)
        if whole is not None and known_bytes > whole:
            message = (
                f"{', '.join(ARTIFACT_PARTS)} sum to {known_bytes:,}, and"
                f" artifact_bytes is {whole:,}"
            )
            raise InputError(message, where=where)
    whole = cell.metrics.get("artifact_bytes")
    if whole is None:
        return
    for dispatch in cell.dispatches:
        for name in ("code_bytes", "executable_bytes"):
            size = getattr(dispatch, name)
            if size is not None and size > whole:
                message = (
                    f"{name} of {dispatch.name[:60]!r} is {size:,}, and artifact_bytes"
                    f" is {whole:,}"
                )
                raise InputError(message, where=where)


def _require_small(cells: Sequence[Cell], where: str) -> None:
    """Raise InputError for figures whose sum over all cells no reader of JSON holds exactly."""
    for id_ in {id_ for cell in cells for id_ in cell.metrics}:
        if sum(cell.metrics.get(id_) or 0 for cell in cells) > INT_LIMIT:
            raise InputError(
                f"{id_} of all cells sums to more than {INT_LIMIT:,}", where=where
            )


def _shared(cell: Cell, pool: dict[Any, Any]) -> Cell:
    """Return the cell, what it has in common with others held once.

    Texts and numbers of its dispatches, families, reasons.
    """
    for dispatch in cell.dispatches:
        for name in _TEXTS:
            if (text := getattr(dispatch, name)) is not None:
                force_setattr(dispatch, name, intern(text))
        for name in _NUMBERS:
            if number := getattr(dispatch, name):
                force_setattr(dispatch, name, pool.setdefault(number, number))
    force_setattr(
        cell,
        "families",
        tuple(pool.setdefault(family, family) for family in cell.families),
    )
    force_setattr(
        cell, "reasons", pool.setdefault(tuple(cell.reasons.items()), cell.reasons)
    )
    force_setattr(cell, "command", intern(cell.command))
    return cell


# Digests of code and IR: equal ones, equal texts.


def written(sha256: bytes) -> str:
    """Return a digest: its first 96 bits, as 16 characters of base64url."""
    return urlsafe_b64encode(sha256[:DIGEST_BYTES]).decode("ascii")


def is_digest(text: str) -> bool:
    """Return True for what `written` gives."""
    return re.fullmatch(DIGEST, text) is not None
