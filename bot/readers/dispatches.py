"""The compiler's `--stack-usage-file`: the machine frame of every function of the CPU code generator.

One line a function, `place:function<TAB>bytes<TAB>static|dynamic`, as LLVM's AsmPrinter writes it. The place is
`file:line` (`-:1` for a model read from standard input) where the function has debug information, as all entry points
have, else the module's name, as for the library functions linked to them. All three names may hold colons, so the
function is what follows the first `:line:`, or without one what follows the last colon.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from msgspec import structs

from bot.core.backends import AMD, NVIDIA
from bot.core.metrics import METRIC_BY_ID, Metric
from bot.core.reading import ArtifactReading, EntryPoint, Products, ProgramFacts
from bot.core.record import is_count
from bot.core.snapshot import Dispatch
from bot.errors import MalformedBinary
from bot.readers.cubin import MachineCode, Module, read_assembled
from bot.readers.object_code import FunctionCode
from bot.readers.statistics import Statistics, read_statistics

FRAME_KINDS = ("static", "dynamic")
MAX_DIGITS = 19
FILE_AND_LINE = re.compile(r".*?:\d+:", re.ASCII)


@dataclass(frozen=True, slots=True)
class Frame:
    """A function's machine frame: its bytes, and whether it grows (`dynamic`) beyond them at run time."""

    stack_bytes: int
    kind: str


def read_stack_usage(text: str) -> dict[str, Frame]:
    """Function → frame; of two functions of one name (private helpers) the larger frame.

    Raises MalformedBinary naming the first line that is not of the format.
    """
    frames: dict[str, Frame] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line:
            continue
        function, _, rest = line.partition("\t")
        size, _, kind = rest.partition("\t")
        place = FILE_AND_LINE.match(function)
        name = function[place.end() :] if place else function.rpartition(":")[2]
        is_number = size.isascii() and size.isdecimal() and len(size) < MAX_DIGITS and is_count(int(size))
        if not name or ":" not in function or not is_number or kind not in FRAME_KINDS:
            what = "not `place:function`, a number of bytes, static or dynamic"
            raise MalformedBinary(what, where=f"stack usage file, line {number}")
        if name not in frames or frames[name].stack_bytes < int(size):
            frames[name] = Frame(int(size), kind)
    return frames


# One `Dispatch` per entry point: the program's IR, the artifact and the CPU code generator's files, merged by name.
#
# The artifact's names are those of the program; PTX and Metal kernels, whose languages allow no `$` and the like in a
# name, have `_` in such places. So names match exactly, or else as the only two of one such spelling.


T = TypeVar("T")

UNSPEAKABLE = re.compile(r"[^0-9A-Za-z]+")
"""What a kernel's language may replace, runs of it taken as one (SPIRV-Cross joins underscores)."""


_OF_ENTRY_POINT = tuple(each.name for each in fields(EntryPoint) if each.name != "name")


@dataclass(frozen=True, slots=True)
class Sources:
    """What is known of a cell's entry points; None is "could not be read", an absent name "not known of it".

    Attributes:
        frames, functions: machine frame and code of a CPU function.
        allocas: stack allocations of a CPU function; empty where no function allocates.
        strategies: function → the configuration that the compiler chose for it.
    """

    program: ProgramFacts | None = None
    in_artifact: tuple[EntryPoint, ...] = ()
    frames: Mapping[str, Frame] = field(default_factory=dict)
    allocas: Mapping[str, int] | None = None
    functions: Mapping[str, FunctionCode] = field(default_factory=dict)
    strategies: Mapping[str, str] | None = None
    machine: Mapping[str, MachineCode] = field(default_factory=dict)


def merge_dispatches(sources: Sources) -> tuple[Dispatch, ...]:
    """The entry points in the program's order; without its IR in the artifact's, of unknown executable and kind."""
    if sources.program is None:
        dispatches = [Dispatch("", entry.name) for entry in sources.in_artifact]
    else:
        entries = sources.program.entry_points
        dispatches = [Dispatch(each.executable, each.entry_point, each.kind, each.sites) for each in entries]
    names = [each.name for each in dispatches]
    strategies = _by_name((sources.strategies or {}).items(), names)
    described = _by_name([(entry.name, entry) for entry in sources.in_artifact], names)
    machine = _by_name(sources.machine.items(), names)
    merged = []
    for place, dispatch in enumerate(dispatches):
        name, allocas = dispatch.name, sources.allocas
        # Without a program names may repeat: each entry point is its own.
        entry = described.get(name) if sources.program else sources.in_artifact[place]
        values: dict[str, Any] = {what: getattr(entry, what) for what in _OF_ENTRY_POINT} if entry else {}
        if function := sources.functions.get(name):
            values |= {"code_bytes": function.size_bytes, "code": function.code}
        if frame := sources.frames.get(name):
            values |= {"stack_bytes": frame.stack_bytes, "stack_kind": frame.kind}
        if code := machine.get(name):
            values |= {what: getattr(code, what) for what in ("registers", "spill_bytes", "sass_bytes")}
        values["alloca_bytes"] = None if allocas is None else allocas.get(name) if allocas else 0
        merged.append(structs.replace(dispatch, strategy=strategies.get(name), **values))
    return tuple(merged)


def _by_name(named: Iterable[tuple[str, T]], wanted: Collection[str]) -> dict[str, T]:
    """Wanted name → what is known of it; a name or spelling that two of either side share finds none."""
    named = list(named)
    exact = _unique(named)
    spelled = _unique((UNSPEAKABLE.sub("_", name), each) for name, each in named)
    alone = _unique((UNSPEAKABLE.sub("_", name), name) for name in wanted)
    by_spelling = {name: spelled[spelling] for spelling, name in alone.items() if spelling in spelled}
    return by_spelling | {name: exact[name] for name in wanted if name in exact}


def _unique(pairs: Iterable[tuple[str, T]]) -> dict[str, T]:
    pairs = list(pairs)
    counts = Counter(key for key, _ in pairs)
    return {key: value for key, value in pairs if counts[key] == 1}


# Registers and what did not fit into them: of AMD code objects, and of the machine code that `ptxas` makes.
#
# A value is the largest of all entry points, or for spills the sum of them all, so that one that appears anywhere
# shows. Like every metric it is known only where it is known of each entry point.


OF_CODE_OBJECTS = ("vgprs_max", "sgprs_max", "agprs_max", "vgpr_spills", "sgpr_spills")
OF_MACHINE_CODE = ("registers_max", "spill_bytes", "sass_bytes")
ONLY_AMD = "only the code objects of rocm say how many registers they take"
ONLY_NVIDIA = "only cuda has PTX text that ptxas assembles"
NO_ENTRY = "no entry point is known"

Told = tuple["int | None", str]
"""A value, or None and why."""


def of_code_objects(backend: str, dispatches: Sequence[Dispatch], unread: str) -> dict[str, Told]:
    """The metrics of AMD's registers; `unread` says why code objects could not be read."""
    if backend != AMD:
        return dict.fromkeys(OF_CODE_OBJECTS, (None, ONLY_AMD))
    return {name: _of_all(dispatches, METRIC_BY_ID[name], unread) for name in OF_CODE_OBJECTS}


def _of_all(dispatches: Sequence[Dispatch], metric: Metric, unread: str) -> Told:
    values = {dispatch.name: getattr(dispatch, metric.of_entry) for dispatch in dispatches}
    unknown = [name for name, value in values.items() if value is None]
    if values and not unknown:
        return (max if metric.over == "largest" else sum)(values.values()), ""
    if unread or not unknown:
        return None, unread or NO_ENTRY
    none_at_all = len(unknown) == len(values)
    return None, f"the code objects do not say {metric.of_entry}" if none_at_all else f"not known of {unknown[0]}"


def of_machine_code(backend: str, modules: Sequence[Module] | None, unread: str) -> dict[str, Told]:
    """The metrics of NVIDIA's machine code; `unread` says why there is none."""
    if backend != NVIDIA or modules is None:
        return dict.fromkeys(OF_MACHINE_CODE, (None, ONLY_NVIDIA if backend != NVIDIA else unread))
    functions = [function for module in modules for function in module.functions]
    registers = [function.registers for function in functions if function.registers is not None]
    return {
        "registers_max": (max(registers), "") if registers else (None, NO_ENTRY),
        "spill_bytes": (sum(function.spill_bytes for function in functions), ""),
        "sass_bytes": (sum(module.sass_bytes for module in modules), ""),
    }


def kernels(modules: Iterable[Module]) -> dict[str, MachineCode]:
    """The functions of all modules by name, without names that two modules share."""
    functions = [function for module in modules for function in module.functions]
    counts = Counter(function.name for function in functions)
    return {function.name: function for function in functions if counts[function.name] == 1}


# The products of one finished compile once they are parsed, and what a metric is that cannot be known.


@dataclass(frozen=True, slots=True)
class Known:
    """A metric's value, or why it is None."""

    value: int | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Parsed:
    """The products, each parsed or None; `reasons` then says why, by the product's name."""

    products: Products
    artifact: ArtifactReading | None
    statistics: Statistics | None
    frames: Mapping[str, Frame] | None
    functions: Mapping[str, FunctionCode] | None
    modules: tuple[Module, ...] | None = None
    reasons: dict[str, str] = field(default_factory=dict)

    def reason(self, product: str) -> str:
        """Why a product is None."""
        return self.reasons.get(product) or f"the compile left no {product.replace('_', ' ')}"


def parse(
    products: Products,
    artifact_reader: Callable[[bytes], ArtifactReading],
    object_reader: Callable[[bytes], Mapping[str, FunctionCode]],
) -> Parsed:
    """Parse each product for itself: one that cannot be read is None, and takes no other with it."""
    reasons = dict(products.reasons)

    def attempt(name: str, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except MalformedBinary as error:
            reasons[name] = error.line
            return None

    stack_usage, statistics, assembled = products.stack_usage, products.statistics, products.assembled
    artifact = attempt("artifact", lambda: artifact_reader(products.artifact))
    if artifact and artifact.unread:
        reasons["unread"] = "; ".join(artifact.unread)
    return Parsed(
        products=products,
        artifact=artifact,
        statistics=None if statistics is None else attempt("statistics", lambda: read_statistics(statistics)),
        frames=None if stack_usage is None else attempt("stack_usage", lambda: read_stack_usage(stack_usage)),
        functions=attempt(
            "objects", lambda: {name: code for each in products.objects for name, code in object_reader(each).items()}
        ),
        modules=attempt("assembled", lambda: None if assembled is None else tuple(map(read_assembled, assembled))),
        reasons=reasons,
    )


def listed_entries(artifact: ArtifactReading | None) -> int | None:
    """Entry points of the artifact; None unless all its executables list theirs (stripped CPU libraries do not)."""
    if artifact is None or artifact.unread or not artifact.executables:
        return None
    listed = [len(reading.entry_points) for reading in artifact.executables]
    return sum(listed) if all(listed) else None
