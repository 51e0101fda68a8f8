"""The values of readers: one format's bytes as numbers, and facts of a cell's IR."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, NamedTuple

import msgspec
from msgspec import structs

from bot.core.program import Family, Site
from bot.core.record import Count, Name, Record, Small, is_count
from bot.core.snapshot import Dispatch, Kernel
from bot.errors import MalformedBinary

# the name of an MLIR operation
Operation = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z_][A-Za-z0-9_$.-]{0,79}\Z")]

UNSPEAKABLE = re.compile(r"[^0-9A-Za-z]+")
"""Characters of a name that a kernel's language may replace.

A run of them counts as one, because SPIRV-Cross joins underscores.
"""


class EntryPoint(Kernel, frozen=True):
    """One exported function of an executable.

    Raises MalformedBinary for numbers that a snapshot cannot have: formats have 64 bits
    for them, or any digits.
    """

    name: str

    def __post_init__(self) -> None:
        """Raise MalformedBinary for a number that no snapshot may have."""
        for name in _NUMBERS:
            value = getattr(self, name)
            if value is not None and not is_count(value):
                raise MalformedBinary(
                    f"{name.replace('_', ' ')} out of range", where=self.name[:80]
                )


_NUMBERS = tuple(name for name in Kernel.__struct_fields__ if name != "code")


class Reading(Small, frozen=True):
    """One binary, every byte of it under exactly one label."""

    format: str  # `elf`, `hsaco`, `ptx`, `spirv`, `msl`, `vm-bytecode`
    size_bytes: int
    parts: Mapping[str, int]
    entry_points: tuple[EntryPoint, ...] = ()
    # what no label claims; parts and this sum to `size_bytes`
    unattributed_bytes: int = 0

    def __post_init__(self) -> None:
        """Count the bytes that no label claims as unattributed.

        Raises ValueError if the labels claim more bytes than there are.
        """
        unlabelled_bytes = self.size_bytes - sum(self.parts.values())
        if unlabelled_bytes < 0 or min(self.parts.values(), default=0) < 0:
            raise ValueError(
                f"{self.format}: parts {dict(self.parts)} are larger than the whole of"
                f" {self.size_bytes} bytes"
            )
        structs.force_setattr(self, "unattributed_bytes", unlabelled_bytes)


class Reader(NamedTuple):
    """A reader of one format; any bytes give a Reading or raise `MalformedBinary`."""

    # True if the first bytes are those of the reader's format
    accepts: Callable[[bytes], bool]
    read: Callable[[bytes], Reading]


class ArtifactReading(Small, frozen=True):
    """A `.vmfb`: the four parts sum to `artifact_bytes`."""

    artifact_bytes: int
    # executable_bytes, rodata_bytes: both None if they cannot be separated; `unread`
    # has the reason
    executable_bytes: int | None
    vm_bytes: int
    rodata_bytes: int | None
    unattributed_bytes: int
    # the readings of the executables in it, in file order
    executables: tuple[Reading, ...]
    # one line for every executable whose format no reader knows, or whose reader
    # refused it
    unread: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError if the four parts cannot sum to the whole."""
        parts = (
            self.executable_bytes,
            self.vm_bytes,
            self.rodata_bytes,
            self.unattributed_bytes,
        )
        known_parts = [part for part in parts if part is not None]
        short = (
            len(known_parts) == len(parts) and sum(known_parts) < self.artifact_bytes
        )
        if short or sum(known_parts) > self.artifact_bytes or min(known_parts) < 0:
            raise ValueError(
                f"parts sum to {sum(known_parts)}, the artifact has {self.artifact_bytes}"
                " bytes"
            )


class ExecutableFacts(Record, frozen=True):
    """One entry point as the program's IR knows it (`stream` phase)."""

    executable: Name
    entry_point: Name
    kind: str
    memory_bound: bool
    sites: Count
    # digest of its IR with the buffers bound to it: their offsets depend on the rest of
    # the program
    bound: str = ""


class SourceText(Record, frozen=True):
    """The IR of one executable after dispatch creation (`flow`), without locations."""

    executable: Name
    generic: str  # its functions in MLIR's generic form, the executable's own names replaced by `@`
    shown: str  # the same in the form that people read


class Schedule(Record, frozen=True):
    """What a program submits to the device, and the memory that it asks for.

    The program's IR in the `stream` phase has these numbers.
    """

    # fills, copies, awaits, submissions: how many there are in the program's text
    fills: Count
    copies: Count
    awaits: Count
    submissions: Count
    # sum of all allocations of known size: what the compiler's statistics call
    # transient memory
    allocated_bytes: Count
    # those kept in variables; None if a size is not known
    variable_bytes: Count | None
    # buffers, inputs included, whose size is known only in a run
    dynamic_buffers: Count
    # the most that is held at once, of the other buffers; None if branches decide
    program_memory_bytes: Count | None


class ProgramFacts(Record, frozen=True):
    """The facts in the target-independent IR of one model."""

    # `flow.dispatch.workgroups` after dispatch creation, before deduplication
    dispatch_regions: Count
    # linalg and iree_linalg_ext operations inside those regions (terminators not
    # counted)
    linalg_ops: Count
    executables: Count
    entry_points: tuple[ExecutableFacts, ...]
    # phase → digest of the whole program's IR at its end
    phases: Mapping[str, str] = {}
    sources: tuple[SourceText, ...] = ()
    # the families that deduplication left behind; None if they are not known
    families: tuple[Family, ...] | None = None
    sites: tuple[Site, ...] = ()
    # operations, places: as `bot.core.program.Program` has them; None and empty without
    # the input's phase
    operations: (
        Annotated[Mapping[Operation, Count], msgspec.Meta(max_length=500)] | None
    ) = None
    places: Annotated[Mapping[str, Count], msgspec.Meta(max_length=1_001)] = {}
    initializer_sites: Count = 0  # launches that run once, when the module is loaded
    schedule: Schedule | None = None
    # operations of the same kind as `linalg_ops`, in the whole program before dispatch
    # creation; None without that phase
    linalg_ops_unfused: Count | None = None

    @property
    def steady_sites(self) -> int:
        """Return the launches that happen in each run of the program."""
        return self.dispatch_sites - self.initializer_sites

    @property
    def dispatch_sites(self) -> int:
        """Return the launches of all entry points."""
        return sum(entry.sites for entry in self.entry_points)

    @property
    def memory_bound_sites(self) -> int:
        """Return the launches without contraction, convolution or attention."""
        return sum(entry.sites for entry in self.entry_points if entry.memory_bound)


class PtxModule(Small, frozen=True):
    """One PTX module of an artifact: its device (`sm_80`), and its text without NUL."""

    device: str
    text: bytes


class Assembled(Small, frozen=True):
    """The cubin that `ptxas -v` made of one PTX module, and what it printed.

    The cubin is an ELF file with the machine code.
    """

    cubin: bytes
    said: str


class Products(Small, frozen=True):
    """All that one finished compile left behind, for the readers."""

    artifact: bytes
    backend: str
    # relocatable objects of the CPU code generator (they still have their symbols);
    # empty elsewhere
    objects: tuple[bytes, ...] = ()
    # the static library that holds the machine code in place of the artifact; it is
    # among `objects`, too
    library: bytes | None = None
    # text of `--stack-usage-file`; None if the compiler has no such option or the
    # target no frames
    stack_usage: str | None = None
    statistics: str | None = None  # text of `--iree-scheduling-dump-statistics-file`
    program: ProgramFacts | None = None
    # function → sum of its stack allocations in bytes
    allocas: Mapping[str, int] | None = None
    # function → the configuration chosen for it
    strategies: Mapping[str, str] | None = None
    # compile_cpu_ms, compile_peak_rss_kib: of the processes that made the artifact, as
    # the kernel counted them
    compile_cpu_ms: int | None = None
    compile_peak_rss_kib: int | None = None
    # the PTX modules of a cuda artifact as machine code
    assembled: tuple[Assembled, ...] | None = None
    reasons: Mapping[str, str] = {}  # field that is None → why


class Measurement(Small, frozen=True):
    """The numbers of one cell: every metric id is present; a None has its reason.

    `parts`: the parts of the artifact, as in `Cell`.
    """

    metrics: Mapping[str, int | None]
    dispatches: tuple[Dispatch, ...]
    reasons: Mapping[str, str]
    parts: Mapping[str, int] = {}
