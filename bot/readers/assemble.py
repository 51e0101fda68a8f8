"""Put together the files of one compile as the measurement of one cell.

Every metric id is present; a metric that cannot be known is None, with its reason.
Where two sources give one number and disagree, neither is believed. Entry points of the
program's IR, the artifact and the CPU code generator's files are merged by name. The
artifact's names are those of the program; PTX and Metal kernels, whose languages allow
no `$` and the like in a name, have `_` in such places. So names match exactly, or else
as the only two of one such spelling.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from bot.core.backends import AMD, NVIDIA, backend_of
from bot.core.json_text import without_zeros
from bot.core.mappings import known_values
from bot.core.metrics import (
    ARTIFACT_PARTS,
    CONSTANTS,
    EXECUTABLES,
    METRIC_IDS,
    METRICS,
    OTHER,
    TABLES,
    UNREAD,
    VM,
    Metric,
)
from bot.core.reading import (
    UNSPEAKABLE,
    ArtifactReading,
    EntryPoint,
    Measurement,
    Products,
)
from bot.core.record import is_count
from bot.core.snapshot import Dispatch, Kernel
from bot.errors import MalformedBinary
from bot.readers.artifact import HIDDEN, read_artifact
from bot.readers.compiler_reports import read_stack_usage, read_statistics
from bot.readers.cubin import read_assembled
from bot.readers.elf import ELF
from bot.readers.object_code import function_codes

T = TypeVar("T")
Product = TypeVar("Product")

CPU = "llvm-cpu"
ELF_FORMAT = "elf"
OF_PROGRAM = (
    "dispatch_regions",
    "linalg_ops",
    "memory_bound_sites",
    "initializer_sites",
    "steady_sites",
    "dispatch_sites",
    "executables",
    "linalg_ops_unfused",
)
OF_SCHEDULE = (
    "variable_bytes",
    "dynamic_buffers",
    "program_memory_bytes",
    "fills",
    "copies",
    "awaits",
    "submissions",
)
OF_MACHINE_CODE = tuple(metric.id for metric in METRICS if metric.assembled)
NO_SCHEDULE = "the program's schedule could not be read"
NOT_COUNTED = "this release does not count it"
NO_UNFUSED = "the compile wrote no IR of the phase before dispatch creation"
NO_STACK_GATE = "only llvm-cpu has stack allocations that the compiler limits"
ONLY = {AMD: "only code objects of rocm report their registers"}
"""Backend → why no other backend has its metrics, if there is a special reason."""
ONLY_NVIDIA = "only cuda has PTX text for ptxas"
NO_ENTRY = "the entry points are unknown"
WHY_UNKNOWN = {
    "variable_bytes": "the size of a variable is known only at run time",
    "program_memory_bytes": "a branch or a loop allocates memory",
}
"""Metric that the schedule may not know → why."""


class Known(NamedTuple):
    """The value of a metric; if it is None, the reason."""

    value: int | None
    reason: str = ""


def measure(
    products: Products,
    artifact_reader: Callable[[bytes], ArtifactReading] = read_artifact,
) -> Measurement:
    """Return the numbers of one compile.

    Whatever cannot be read is None with a reason, never an exception. `reasons` has a
    line for each metric that is None. Under `objects` and `unread` it names binaries
    that no reader could read, even if every metric is known without them.
    """
    parsed = _Parsed(products, artifact_reader)
    dispatches = parsed.dispatches()
    values = {
        **parsed.artifact_metrics(),
        **parsed.program_metrics(),
        **parsed.entry_metrics(dispatches),
        "compile_cpu_ms": Known(products.compile_cpu_ms, "not measured"),
        "compile_peak_rss_kib": Known(products.compile_peak_rss_kib, "not measured"),
    }
    metrics = dict[str, int | None]()
    reasons = dict[str, str]()
    for name in METRIC_IDS:
        metrics[name] = values[name].value
        if metrics[name] is None:
            reasons[name] = values[name].reason
    for name, line in parsed.reasons.items():
        if name in ("objects", "unread"):
            reasons[name] = line
    return Measurement(
        metrics=metrics, dispatches=dispatches, reasons=reasons, parts=parsed.parts()
    )


def with_library(artifact: ArtifactReading, library: bytes) -> ArtifactReading:
    """Return an artifact together with the static library that has its machine code.

    Both ship. A library of an unknown format counts whole, and leaves a line in
    `unread`. The functions of a library are read as those of any object file.
    """
    unread = tuple(line for line in artifact.unread if line != HIDDEN)
    executables = artifact.executables
    try:
        executables += (replace(ELF.read(library), entry_points=()),)
    except MalformedBinary as error:
        unread += (f"static library of {len(library)} bytes: {error.line}",)
    known_bytes = artifact.executable_bytes or 0
    segment_bytes = (
        artifact.artifact_bytes - artifact.vm_bytes - artifact.unattributed_bytes
    )
    return ArtifactReading(
        artifact_bytes=artifact.artifact_bytes + len(library),
        executable_bytes=known_bytes + len(library),
        vm_bytes=artifact.vm_bytes,
        rodata_bytes=segment_bytes - known_bytes,
        unattributed_bytes=artifact.unattributed_bytes,
        executables=executables,
        unread=unread,
    )


class _Parsed:
    """The products of a compile, each parsed by itself.

    A product that cannot be read is None, and the others are read all the same.

    Attributes:
        hidden: why some executables may count as constants; empty where nothing says
            so.
        reasons: why a product is None, by its name.
    """

    def __init__(
        self, products: Products, artifact_reader: Callable[[bytes], ArtifactReading]
    ) -> None:
        self.products = products
        self.program = products.program
        self.reasons = dict(products.reasons)
        self.artifact = self._attempt("artifact", artifact_reader, products.artifact)
        if self.artifact and products.library is not None:
            self.artifact = with_library(self.artifact, products.library)
        if self.artifact and self.artifact.unread:
            self.reasons["unread"] = "; ".join(self.artifact.unread)
        self.statistics = self._attempt(
            "statistics", read_statistics, products.statistics
        )
        self.frames = self._attempt(
            "stack_usage", read_stack_usage, products.stack_usage
        )
        self.functions = self._attempt("objects", _codes_of, products.objects) or {}
        self.modules = self._attempt(
            "assembled",
            lambda all_: tuple(map(read_assembled, all_)),
            products.assembled,
        )
        self.listed = self._listed()
        self.hidden = ""
        if self.program is not None:
            expected = len(self.program.entry_points)
        else:  # an executable has one entry point or more
            expected = (self.statistics or {}).get("executables") or 0
        if self.listed is not None and self.listed < expected:
            bound = "" if self.program else "at least "
            of_all = f"{self.listed} of {bound}{expected} entry points"
            consequence = "the others cannot be separated from constants"
            self.hidden = f"the readable executables have {of_all}; {consequence}"

    def _attempt(
        self, name: str, read: Callable[[Product], T], product: Product | None
    ) -> T | None:
        try:
            if product is None:
                return None
            return read(product)
        except MalformedBinary as error:
            self.reasons[name] = error.line
            return None

    def _listed(self) -> int | None:
        """Return how many entry points the artifact has.

        None unless all its executables list theirs (stripped CPU libraries do not).
        """
        if (
            self.artifact is None
            or self.artifact.unread
            or not self.artifact.executables
        ):
            return None
        listed = 0
        for reading in self.artifact.executables:
            # The symbols of an ELF file, where it has any, are those of all functions.
            if reading.format == ELF_FORMAT or not reading.entry_points:
                return None
            listed += len(reading.entry_points)
        return listed

    def reason(self, product: str) -> str:
        """Return why a product is None."""
        return (
            self.reasons.get(product)
            or f"the compile wrote no {product.replace('_', ' ')}"
        )

    def dispatches(self) -> tuple[Dispatch, ...]:
        """Return the entry points in the program's order.

        Without the program's IR they are in the artifact's order, and their executables
        and kinds are unknown.
        """
        in_artifact = self._entries_of_artifact()
        rows = self._rows(in_artifact)
        names = [row.name for row in rows]
        described = _by_name([(entry.name, entry) for entry in in_artifact], names)
        strategies = _by_name((self.products.strategies or {}).items(), names)
        of_modules = list[tuple[str, EntryPoint]]()
        for module in self.modules or ():
            of_modules += [(entry.name, entry) for entry in module.entry_points]
        machine = _by_name(_unique(of_modules).items(), names)
        merged = []
        for place, row in enumerate(rows):
            # Without a program names may repeat: each entry point is its own.
            if self.program:
                entry = described.get(row.name)
            else:
                entry = in_artifact[place]
            values = figures(entry)
            if self.products.backend == CPU:
                values |= figures(self.functions.get(row.name))
                if self.frames and row.name in self.frames:
                    values["stack_bytes"] = self.frames[row.name]
            values |= figures(machine.get(row.name))
            values["alloca_bytes"] = self._alloca_bytes(row.name)
            merged.append(replace(row, strategy=strategies.get(row.name), **values))
        return tuple(merged)

    def _entries_of_artifact(self) -> list[EntryPoint]:
        """Return the entry points of all executables in the artifact."""
        entries: list[EntryPoint] = []
        for reading in self.artifact.executables if self.artifact else ():
            # In these formats each entry point is an executable of its own.
            is_alone = (
                reading.format in ("spirv", "msl") and len(reading.entry_points) == 1
            )
            for entry in reading.entry_points:
                if is_alone:
                    entries.append(replace(entry, executable_bytes=reading.size_bytes))
                else:
                    entries.append(entry)
        return entries

    def _rows(self, in_artifact: Sequence[EntryPoint]) -> list[Dispatch]:
        """Return the program's entry points; without its IR, those of the artifact."""
        if self.program is None:
            return [Dispatch("", entry.name) for entry in in_artifact]
        rows = []
        for entry in self.program.entry_points:
            row = Dispatch(
                executable=entry.executable,
                name=entry.entry_point,
                kind=entry.kind,
                sites=entry.sites,
            )
            rows.append(row)
        return rows

    def _alloca_bytes(self, name: str) -> int | None:
        """Return the bytes of an entry point's stack allocations; None if unknown."""
        # Stack files of other targets hold nothing but zeros.
        if self.products.backend != CPU or self.products.allocas is None:
            return None
        # Where no function allocates the table is empty: then each has 0.
        if not self.products.allocas:
            return 0
        return self.products.allocas.get(name)

    def parts(self) -> dict[str, int]:
        """Return the bytes of the artifact by part: every byte is in one part.

        Empty if executables cannot be told from constants.
        """
        artifact = self.artifact
        if (
            artifact is None
            or artifact.executable_bytes is None
            or artifact.rodata_bytes is None
            or self.hidden
        ):
            return {}
        sizes = Counter(
            {
                VM: artifact.vm_bytes,
                CONSTANTS: artifact.rodata_bytes,
                TABLES: artifact.unattributed_bytes,
            }
        )
        unread_bytes = artifact.executable_bytes
        for reading in artifact.executables:
            for label, size in reading.parts.items():
                sizes[EXECUTABLES + label] += size
            sizes[OTHER] += reading.unattributed_bytes
            unread_bytes -= reading.size_bytes
        sizes[UNREAD] = unread_bytes
        return without_zeros(sizes)

    def artifact_metrics(self) -> dict[str, Known]:
        """Return the size of the artifact and its parts."""
        reason = self.reason("unread" if self.artifact else "artifact")
        artifact_bytes = len(self.products.artifact) + len(self.products.library or b"")
        values = {"artifact_bytes": Known(artifact_bytes)}
        for name in ARTIFACT_PARTS:
            values[name] = Known(getattr(self.artifact, name, None), reason)
        if self.hidden:  # these two are known together or not at all
            values["executable_bytes"] = Known(None, self.hidden)
            values["rodata_bytes"] = Known(None, self.hidden)
        return values

    def program_metrics(self) -> dict[str, Known]:
        """Return the metrics of the whole program.

        A second source checks each metric that it has, too.
        """
        no_program = "" if self.program else self.reason("program")
        schedule = self.program.schedule if self.program else None
        no_schedule = no_program or ("" if schedule else NO_SCHEDULE)
        values = dict[str, Known]()
        for name in OF_PROGRAM:
            values[name] = Known(getattr(self.program, name, None), no_program)
        if self.program is not None and self.program.linalg_ops_unfused is None:
            values["linalg_ops_unfused"] = Known(None, NO_UNFUSED)
        for name in OF_SCHEDULE:
            values[name] = Known(
                getattr(schedule, name, None), no_schedule or WHY_UNKNOWN.get(name, "")
            )
        values["transient_memory_bytes"] = Known(
            schedule.allocated_bytes if schedule else None, no_schedule
        )
        values["constant_bytes"] = Known(None, NOT_COUNTED)
        if self.statistics is not None:
            for name, value in self.statistics.items():
                values[name] = _agreed(values[name], value, "the compiler's statistics")
        elif self.products.statistics is not None:
            no_statistics = Known(None, self.reason("statistics"))
            values |= dict.fromkeys(read_statistics("{}"), no_statistics)
        entry_points = Known(None, no_program)
        if self.program:
            entry_points = Known(len(self.program.entry_points))
        values["entry_points"] = _agreed(entry_points, self.listed, "the artifact")
        return values

    def entry_metrics(self, dispatches: Sequence[Dispatch]) -> dict[str, Known]:
        """Return the memory and the registers that entry points take.

        They come from code objects, and from what ptxas makes.
        """
        backend = backend_of(self.products.backend)
        unread = self.reasons.get("unread", "")
        if self.artifact:
            artifact = unread
        else:
            artifact = self.reason("artifact")
        if backend.name != CPU:
            frames = artifact
        elif self.frames is None:
            frames = self.reason("stack_usage")
        else:
            frames = unread
        values = {"stack_alloca_bytes": Known(None, NO_STACK_GATE)}
        if backend.has_stack_gate:
            allocas = self.products.allocas
            if allocas is None:
                largest = None
            else:
                largest = max(allocas.values(), default=0)
            values["stack_alloca_bytes"] = Known(largest, self.reason("allocas"))
        memory = {
            "stack_max_bytes": (backend.no_frames, frames),
            "workgroup_memory_max_bytes": (backend.no_workgroup_memory, artifact),
        }
        for metric in METRICS:
            if not metric.of_entry or metric.assembled or metric.id in values:
                continue
            absent, reason = memory.get(metric.id, ("", artifact))
            silent = ""
            if metric.backend:
                silent = f"the code objects do not have {metric.of_entry}"
                if backend.name != metric.backend:
                    absent = ONLY.get(metric.backend, f"only {metric.backend} has it")
            if absent:
                values[metric.id] = Known(None, absent)
            else:
                values[metric.id] = of_entries(
                    dispatches, metric, reason=reason, silent=silent
                )
        return values | self._machine_code(no_artifact=artifact)

    def _machine_code(self, no_artifact: str) -> dict[str, Known]:
        """Return the metrics of the machine code that ptxas makes."""
        if self.products.backend != NVIDIA:
            return dict.fromkeys(OF_MACHINE_CODE, Known(None, ONLY_NVIDIA))
        if self.modules is None:
            not_read = Known(None, self.reason("assembled"))
            return dict.fromkeys(OF_MACHINE_CODE, not_read)
        has_code = self.program is None or self.program.executables > 0
        if not self.modules and has_code:
            return dict.fromkeys(OF_MACHINE_CODE, Known(None, no_artifact or NO_ENTRY))
        registers = list[int]()
        spill_bytes = 0
        sass_bytes = 0
        for module in self.modules:
            sass_bytes += module.parts.get("text", 0)
            for function in module.entry_points:
                spill_bytes += function.spill_bytes or 0
                if function.registers is not None:
                    registers.append(function.registers)
        return {
            "registers_max": Known(max(registers, default=None), NO_ENTRY),
            "spill_bytes": Known(spill_bytes),
            "sass_bytes": Known(sass_bytes),
        }


def figures(kernel: Kernel | None) -> dict[str, Any]:
    """Return the known figures of an entry point, as its reader measured them."""
    values = {name: getattr(kernel, name, None) for name in Kernel.__struct_fields__}
    return known_values(values)


def _agreed(first: Known, second: int | None, who: str) -> Known:
    """Return the value on which the program's IR and another source agree.

    It is None if they contradict each other.
    """
    if second is None or first.value == second:
        return first
    if first.value is None:
        return Known(second)
    return Known(None, f"the program's IR has {first.value}, {who} {second}")


def of_entries(
    dispatches: Sequence[Dispatch], metric: Metric, reason: str = "", silent: str = ""
) -> Known:
    """Return a metric that is the largest value of all entry points, or their sum.

    It is known if the value of each entry point is known.

    `reason`: why it is unknown; empty if nothing else explains it. `silent`: the
    reason if no entry point has a value; empty for the name of the first one.
    """
    values = [getattr(row, metric.of_entry) for row in dispatches]
    if values and None not in values:
        value = (max if metric.over == "largest" else sum)(values)
        if is_count(value):
            return Known(value)
        return Known(None, f"the sum of {len(values):,} values is out of range")
    if reason or not values:
        return Known(None, reason or NO_ENTRY)
    if silent and values.count(None) == len(values):
        return Known(None, silent)
    return Known(None, f"unknown for {dispatches[values.index(None)].name}")


def _by_name(named: Iterable[tuple[str, T]], names: Collection[str]) -> dict[str, T]:
    """Return wanted name → its value.

    A name or a spelling that two of one side share has no value.
    """
    named = list(named)
    exact = _unique(named)
    spelled = _unique((UNSPEAKABLE.sub("_", name), value) for name, value in named)
    name_of_spelling = _unique((UNSPEAKABLE.sub("_", name), name) for name in names)
    by_name = dict[str, T]()
    for spelling, name in name_of_spelling.items():
        if spelling in spelled:
            by_name[name] = spelled[spelling]
    for name in names:
        if name in exact:
            by_name[name] = exact[name]
    return by_name


def _codes_of(objects: Iterable[bytes]) -> dict[str, EntryPoint]:
    """Return function → its code in any of the object files."""
    codes = dict[str, EntryPoint]()
    for object_bytes in objects:
        codes |= function_codes(object_bytes)
    return codes


def _unique(pairs: Iterable[tuple[str, T]]) -> dict[str, T]:
    pairs = list(pairs)
    counts = Counter(key for key, _ in pairs)
    return {key: value for key, value in pairs if counts[key] == 1}
