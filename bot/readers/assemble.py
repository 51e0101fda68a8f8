"""All that one compile left behind, put together as the measurement of one cell.

Every metric id is present; a metric that cannot be known is None, with its reason.
Where two sources tell one number and disagree, neither is believed. Entry points of the
program's IR, the artifact and the CPU code generator's files are merged by name. The
artifact's names are those of the program; PTX and Metal kernels, whose languages allow
no `$` and the like in a name, have `_` in such places. So names match exactly, or else
as the only two of one such spelling.

What the compiler itself reports: `--stack-usage-file` has a line for each function of
the CPU code generator, `place:function<TAB>bytes<TAB>kind`, as LLVM's AsmPrinter writes
it. The place is `file:line` (`-:1` for a model on standard input) where the function
has debug information, as all entry points have, else the module's name, as for the
library functions linked to them. All three names may hold colons, so the function is
what follows the first `:line:`, or without one the last colon.
`--iree-scheduling-dump-statistics-file`, format `json`, has under `stream-aggregate`
the totals over the whole program. Its `variable-size` is always 0: no release works it
out (`DumpStatistics.cpp`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from bot.core.backends import AMD, NVIDIA, backend_of
from bot.core.json_text import decoded
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
from bot.core.record import Count, is_count
from bot.core.snapshot import Dispatch, Kernel
from bot.errors import InputError, MalformedBinary
from bot.readers.artifact import HIDDEN, read_artifact
from bot.readers.elf import ELF, function_codes, read_assembled

T = TypeVar("T")
Product = TypeVar("Product")

MAX_DIGITS = 19
FILE_AND_LINE = re.compile(r".*?:\d+:", re.ASCII)
CPU = "llvm-cpu"
ELF_FORMAT = "elf"
OF_PROGRAM = (
    *(
        "dispatch_regions",
        "linalg_ops",
        "memory_bound_sites",
        "initializer_sites",
        "steady_sites",
    ),
    *("dispatch_sites", "executables", "linalg_ops_unfused"),
)
OF_SCHEDULE = (
    *(
        "variable_bytes",
        "dynamic_buffers",
        "program_memory_bytes",
        "fills",
        "copies",
        "awaits",
        "submissions",
    ),
)
OF_MACHINE_CODE = tuple(metric.id for metric in METRICS if metric.assembled)
NO_SCHEDULE = "the program's schedule could not be read"
NOT_COUNTED = "this release does not count it"
NO_UNFUSED = "the compile wrote no IR of the phase before dispatch creation"
NO_STACK_GATE = "only llvm-cpu has stack allocations that the compiler limits"
ONLY = {AMD: "only code objects of rocm report their registers"}
"""Backend → why no other backend has its metrics, if they have a reason of their own."""
ONLY_NVIDIA = "only cuda has PTX text for ptxas"
NO_ENTRY = "the entry points are unknown"
WHY_UNKNOWN = {
    "variable_bytes": "the size of a variable is known only at run time",
    "program_memory_bytes": "a branch or a loop allocates memory",
}
"""What the schedule may not know, and why."""


class Known(NamedTuple):
    """A metric's value, or None and why."""

    value: int | None
    reason: str = ""


def measure(
    products: Products,
    artifact_reader: Callable[[bytes], ArtifactReading] = read_artifact,
) -> Measurement:
    """Return the numbers of one compile.

    Whatever cannot be read is None with a reason, never an exception.

    `reasons` has a line for each metric that is None. Under `objects` and `unread` it
    names binaries that no reader could read, even if every metric is known without
    them.
    """
    parsed = _Parsed(products, artifact_reader)
    dispatches = parsed.dispatches()
    values = {
        **parsed.artifact_metrics(),
        **parsed.program_metrics(),
        **parsed.entry_metrics(dispatches),
        **{
            name: Known(getattr(products, name), "not measured")
            for name in ("compile_cpu_ms", "compile_peak_rss_kib")
        },
    }
    reasons = {
        name: values[name].reason for name in METRIC_IDS if values[name].value is None
    }
    reasons |= {
        name: line
        for name, line in parsed.reasons.items()
        if name in ("objects", "unread")
    }
    return Measurement(
        metrics={name: values[name].value for name in METRIC_IDS},
        dispatches=dispatches,
        reasons=reasons,
        parts=parsed.parts(),
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
    """The products of a compile, each parsed for itself.

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
        codes = self._attempt(
            "objects", lambda all_: [*map(function_codes, all_)], products.objects
        )
        self.functions = {
            name: code
            for object_functions in codes or ()
            for name, code in object_functions.items()
        }
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
            of_all = (
                f"{self.listed} of {'' if self.program else 'at least '}{expected}"
                " entry points"
            )
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
        if any(reading.format == ELF_FORMAT for reading in self.artifact.executables):
            return None  # its symbols, where it has any, are those of all functions
        listed = [len(reading.entry_points) for reading in self.artifact.executables]
        if all(listed):
            return sum(listed)
        return None

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
        of_modules = _unique(
            (point.name, point)
            for module in self.modules or ()
            for point in module.entry_points
        )
        machine = _by_name(of_modules.items(), names)
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
        """Return the program's entry points; without its IR those of the artifact."""
        if self.program is None:
            return [Dispatch("", entry.name) for entry in in_artifact]
        return [
            Dispatch(
                executable=entry.executable,
                name=entry.entry_point,
                kind=entry.kind,
                sites=entry.sites,
            )
            for entry in self.program.entry_points
        ]

    def _alloca_bytes(self, name: str) -> int | None:
        """Return the bytes of an entry point's stack allocations; None for unknown."""
        # Stack files of other targets hold nothing but zeros.
        if self.products.backend != CPU or self.products.allocas is None:
            return None
        # Where no function allocates the table is empty: then each has 0.
        if not self.products.allocas:
            return 0
        return self.products.allocas.get(name)

    def parts(self) -> dict[str, int]:
        """Return the bytes of the artifact by part: every byte is in one part.

        Empty where executables cannot be separated from constants.
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
        for reading in artifact.executables:
            sizes.update(
                {EXECUTABLES + label: size for label, size in reading.parts.items()}
            )
            sizes[OTHER] += reading.unattributed_bytes
        sizes[UNREAD] += artifact.executable_bytes - sum(
            reading.size_bytes for reading in artifact.executables
        )
        return {name: size for name, size in sizes.items() if size}

    def artifact_metrics(self) -> dict[str, Known]:
        """Return the size of the artifact and its parts."""
        reason = self.reason("unread" if self.artifact else "artifact")
        values = {
            name: Known(getattr(self.artifact, name, None), reason)
            for name in ARTIFACT_PARTS
        }
        if self.hidden:  # these two are known together or not at all
            values |= dict.fromkeys(
                ("executable_bytes", "rodata_bytes"), Known(None, self.hidden)
            )
        artifact_bytes = len(self.products.artifact) + len(self.products.library or b"")
        return {"artifact_bytes": Known(artifact_bytes), **values}

    def program_metrics(self) -> dict[str, Known]:
        """Return the metrics of the whole program.

        A second source checks each metric that it has, too.
        """
        no_program = "" if self.program else self.reason("program")
        schedule = self.program.schedule if self.program else None
        no_schedule = no_program or ("" if schedule else NO_SCHEDULE)
        values = {
            name: Known(getattr(self.program, name, None), no_program)
            for name in OF_PROGRAM
        }
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
            values |= dict.fromkeys(
                read_statistics("{}"), Known(None, self.reason("statistics"))
            )
        entry_points = Known(
            len(self.program.entry_points) if self.program else None, no_program
        )
        return {
            **values,
            "entry_points": _agreed(entry_points, self.listed, "the artifact"),
        }

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
    """Return what a reader measured of an entry point; nothing of None."""
    values = {name: getattr(kernel, name, None) for name in Kernel.__struct_fields__}
    return {name: value for name, value in values.items() if value is not None}


def _agreed(first: Known, second: int | None, who: str) -> Known:
    """Return what the program's IR and another source say.

    The value is None where they contradict each other.
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

    It is known where the value of each entry point is known.

    `reason`: why it is unknown; empty where nothing else explains it. `silent`: the
    reason where no entry point has a value; empty for the name of the first one.
    """
    values = [getattr(row, metric.of_entry) for row in dispatches]
    unknown = [
        row.name for row, value in zip(dispatches, values, strict=True) if value is None
    ]
    if values and not unknown:
        value = (max if metric.over == "largest" else sum)(values)
        if is_count(value):
            return Known(value)
        return Known(None, f"the sum of {len(values):,} values is out of range")
    if reason or not values:
        return Known(None, reason or NO_ENTRY)
    if silent and len(unknown) == len(values):
        return Known(None, silent)
    return Known(None, f"unknown for {unknown[0]}")


def _by_name(named: Iterable[tuple[str, T]], names: Collection[str]) -> dict[str, T]:
    """Return wanted name → its value.

    A name or a spelling that two of either side share has none.
    """
    named = list(named)
    exact = _unique(named)
    spelled = _unique((UNSPEAKABLE.sub("_", name), value) for name, value in named)
    name_of_spelling = _unique((UNSPEAKABLE.sub("_", name), name) for name in names)
    by_spelling = {
        name: spelled[spelling]
        for spelling, name in name_of_spelling.items()
        if spelling in spelled
    }
    return by_spelling | {name: exact[name] for name in names if name in exact}


def _unique(pairs: Iterable[tuple[str, T]]) -> dict[str, T]:
    pairs = list(pairs)
    counts = Counter(key for key, _ in pairs)
    return {key: value for key, value in pairs if counts[key] == 1}


# What the compiler itself reports of a compile.


def read_stack_usage(text: str) -> dict[str, int]:
    """Return function → bytes of its machine frame.

    Of two functions of one name (private helpers) the larger frame counts. Raises as
    `stack_usage_rows`.
    """
    frames: dict[str, int] = {}
    for name, size in stack_usage_rows(text):
        frames[name] = max(size, frames.get(name, 0))
    return frames


def stack_usage_rows(text: str) -> Iterator[tuple[str, int]]:
    """Yield function and bytes of its machine frame, line by line.

    Raises MalformedBinary naming the first line that is not of the format.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        if not line:
            continue
        function, _, columns = line.partition("\t")
        size, _, kind = columns.partition("\t")
        place = FILE_AND_LINE.match(function)
        if place:
            name = function[place.end() :]
        else:
            name = function.rpartition(":")[2]
        is_number = (
            size.isascii()
            and size.isdecimal()
            and len(size) < MAX_DIGITS
            and is_count(int(size))
        )
        if (
            not name
            or ":" not in function
            or not is_number
            or kind not in ("static", "dynamic")
        ):
            problem = "not `place:function`, a number of bytes, static or dynamic"
            raise MalformedBinary(problem, where=f"stack usage file, line {number}")
        yield name, int(size)


class _Section(msgspec.Struct, frozen=True, rename="kebab"):
    """What the four sections of the totals have that is read."""

    constant_size: Count | None = None
    await_count: Count | None = None
    submission_count: Count | None = None
    transient_memory_size: Count | None = None
    fill_count: Count | None = None
    copy_count: Count | None = None
    dispatch_count: Count | None = None
    executable_count: Count | None = None


class _Totals(msgspec.Struct, frozen=True, rename={"global_": "global"}):
    global_: _Section = _Section()
    synchronization: _Section = _Section()
    execution: _Section = _Section()
    executable: _Section = _Section()


class _Document(msgspec.Struct, frozen=True, rename="kebab"):
    stream_aggregate: _Totals = _Totals()


def read_statistics(text: str) -> dict[str, int | None]:
    """Return metric → what the statistics count of the program.

    None where a release does not write the key.

    Transient memory is all allocations of constant size, also those for constants that
    are made at load, and for outputs; what is dynamic is in no figure. Constants are
    data in the program's text; from 3.11.0 on the names of parameters are among them.
    Raises MalformedBinary where the text is not JSON, or a count is no count.
    """
    try:
        totals = decoded(text, _Document, "scheduling statistics").stream_aggregate
    except InputError as error:
        raise MalformedBinary(error.what, where=error.where) from None
    return {
        "dispatch_sites": totals.execution.dispatch_count,
        "executables": totals.executable.executable_count,
        "fills": totals.execution.fill_count,
        "copies": totals.execution.copy_count,
        "awaits": totals.synchronization.await_count,
        "submissions": totals.execution.submission_count,
        "transient_memory_bytes": totals.execution.transient_memory_size,
        "constant_bytes": totals.global_.constant_size,
    }
