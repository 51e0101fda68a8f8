"""The table of metrics, in the order in which they are shown.

A new metric needs a row here, and the code that reads its value. `make goldens` writes
`configs/schema.json` and `docs/metrics.md` from this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import chain
from typing import Annotated, Literal

from msgspec import Meta

from bot.core.backends import AMD, backend_of
from bot.core.record import Record, Small

Unit = Literal["count", "bytes", "ms", "KiB"]
MOST_OWN = 32
OWN_ID = "[a-z][a-z0-9_]{0,39}"
_Label = Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]{1,40}(?![\s\S])")]
_Line = Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]{0,200}(?![\s\S])")]


class Metric(Small, frozen=True):
    """One measured quantity of a cell; its values are integers, and lower is better."""

    id: str  # the name in snapshots, reports and thresholds
    label: str
    unit: Unit
    about: str  # one sentence for help texts, tooltips and documents
    source: str = ""  # where the value comes from, for documents
    # False if two runs of the same compile may differ (time, memory)
    exact: bool = True
    # what the values of several entry points, or of several cells, make together
    over: Literal["sum", "largest"] = "sum"
    # the field of an entry point that it is made of; empty for a figure of the whole
    # program
    of_entry: str = ""
    # the only backend whose entry points have it; empty if others have it, too
    backend: str = ""
    # True if an assembler makes it, so that it depends on the assembler's version, too
    assembled: bool = False
    # True if every version of this program has measured it; a snapshot without any
    # other one is older
    always: bool = False
    # the name of the rule of configs/default.yml that judges it
    rule: str = "everything else"
    # True if a history shows its changes; only exact metrics have it
    tracked: bool = False


_ARTIFACT = "the artifact's own segment table"
_STREAM = "IR after the stream phase"
_BOTH = "IR after the stream phase, equal to the compiler's statistics"
_DISPATCH = "IR after dispatch creation"
_BEFORE_FUSION = "IR after global optimization, before dispatch creation"
_AMD = "AMD metadata"
_PTXAS = "`ptxas -v`, from the extra `cuda`"
_KERNEL = "the kernel's accounting; informational"

METRICS: tuple[Metric, ...] = (
    Metric(
        id="artifact_bytes",
        label="code size",
        unit="bytes",
        about="size of the .vmfb",
        source="the size of the file; its four parts sum to it",
        always=True,
        rule="code size",
        tracked=True,
    ),
    Metric(
        id="executable_bytes",
        label="device code",
        unit="bytes",
        about="executables in the artifact",
        source=_ARTIFACT,
        always=True,
        rule="code size",
    ),
    Metric(
        id="executables",
        label="executables",
        unit="count",
        about="executables left after deduplication",
        source=_BOTH,
        always=True,
        rule="launches and executables",
        tracked=True,
    ),
    Metric(
        id="dispatch_sites",
        label="dispatch sites",
        unit="count",
        about="launches of an executable in the program",
        source=_BOTH,
        always=True,
        rule="other counts",
    ),
    Metric(
        id="steady_sites",
        label="steady sites",
        unit="count",
        about="dispatch sites that run on every call of the program",
        source=_STREAM,
        rule="launches and executables",
    ),
    Metric(
        id="initializer_sites",
        label="initializer sites",
        unit="count",
        about="dispatch sites that run once, at load",
        source=_STREAM,
        rule="launches at load",
    ),
    Metric(
        id="dispatch_regions",
        label="dispatch regions",
        unit="count",
        about="executables before deduplication",
        source=_DISPATCH,
        always=True,
        rule="other counts",
    ),
    Metric(
        id="entry_points",
        label="entry points",
        unit="count",
        about="exported functions of all executables",
        source=f"{_STREAM}, equal to the entry points that the artifact lists",
        always=True,
        rule="launches and executables",
    ),
    Metric(
        id="stack_max_bytes",
        label="stack frame",
        unit="bytes",
        about="largest machine frame or private segment",
        source="`--stack-usage-file`, AMD metadata, PTX, SPIR-V",
        over="largest",
        of_entry="stack_bytes",
        always=True,
        rule="stack and workgroup memory",
        tracked=True,
    ),
    Metric(
        id="stack_alloca_bytes",
        label="stack allocations",
        unit="bytes",
        about="largest sum of stack allocations in one function",
        source="IR before LLVM; the compiler compares the same value with its 32 KiB gate",
        over="largest",
        of_entry="alloca_bytes",
        always=True,
        rule="stack and workgroup memory",
        tracked=True,
    ),
    Metric(
        id="workgroup_memory_max_bytes",
        label="workgroup memory",
        unit="bytes",
        about="largest workgroup memory of an entry point",
        source="AMD metadata, PTX and its launch size, SPIR-V, Metal source",
        over="largest",
        of_entry="workgroup_bytes",
        always=True,
        rule="stack and workgroup memory",
    ),
    Metric(
        id="memory_bound_sites",
        label="memory-bound sites",
        unit="count",
        about="dispatch sites without contraction, convolution or attention",
        source=_STREAM,
        always=True,
        rule="other counts",
    ),
    Metric(
        id="linalg_ops",
        label="linalg operations",
        unit="count",
        about="linalg operations inside dispatch regions",
        source=_DISPATCH,
        always=True,
        rule="other counts",
    ),
    Metric(
        id="linalg_ops_unfused",
        label="linalg operations before fusion",
        unit="count",
        about="linalg operations of the program that fusion starts from",
        source=_BEFORE_FUSION,
        rule="operations before fusion",
    ),
    Metric(
        id="submissions",
        label="submissions",
        unit="count",
        about="command buffers that the program submits",
        source=_BOTH,
        rule="submissions and waits",
    ),
    Metric(
        id="awaits",
        label="awaits",
        unit="count",
        about="places where the host waits for the device",
        source=_BOTH,
        rule="submissions and waits",
    ),
    Metric(
        id="fills",
        label="fills",
        unit="count",
        about="buffer fills in the program",
        source=_BOTH,
        rule="other counts",
    ),
    Metric(
        id="copies",
        label="copies",
        unit="count",
        about="buffer copies in the program",
        source=_BOTH,
        rule="other counts",
    ),
    Metric(
        id="program_memory_bytes",
        label="program memory",
        unit="bytes",
        about="the most memory held at once, where sizes are known",
        source=f"{_STREAM}, [in program order](#memory-of-the-program)",
        rule="memory of the program",
    ),
    Metric(
        id="transient_memory_bytes",
        label="transient memory",
        unit="bytes",
        about="all allocations of a size known to the compiler",
        source=f"{_STREAM}, equal to the compiler's `transient-memory-size`",
        rule="memory of the program",
    ),
    Metric(
        id="variable_bytes",
        label="variables",
        unit="bytes",
        about="allocations that the program keeps in variables",
        source=_STREAM,
        rule="memory of the program",
    ),
    Metric(
        id="dynamic_buffers",
        label="dynamic buffers",
        unit="count",
        about="buffers whose size is known only at run time; no other metric counts them",
        source=_STREAM,
        rule="other counts",
    ),
    Metric(
        id="constant_bytes",
        label="constant data",
        unit="bytes",
        about="constants in the program's text, as the compiler counts them",
        source="the compiler's `constant-size`; 3.11.0 counts names of parameters, 3.8.0 does not",
        rule="constants, as the compiler counts them",
    ),
    Metric(
        id="vm_bytes",
        label="VM bytecode",
        unit="bytes",
        about="bytecode of the host program",
        source=_ARTIFACT,
        always=True,
        rule="rest of the artifact",
    ),
    Metric(
        id="rodata_bytes",
        label="constants",
        unit="bytes",
        about="read-only data other than executables",
        source=_ARTIFACT,
        always=True,
        rule="rest of the artifact",
    ),
    Metric(
        id="unattributed_bytes",
        label="unattributed",
        unit="bytes",
        about="tables, padding and unknown formats",
        source=_ARTIFACT,
        always=True,
        rule="rest of the artifact",
    ),
    Metric(
        id="vgprs_max",
        label="VGPRs",
        unit="count",
        about="most vector registers of a rocm entry point, with accumulation registers",
        source=f"{_AMD}; since gfx90a, vector registers include accumulation registers",
        over="largest",
        of_entry="vgprs",
        backend=AMD,
        rule="registers",
    ),
    Metric(
        id="sgprs_max",
        label="SGPRs",
        unit="count",
        about="most scalar registers of a rocm entry point",
        source=_AMD,
        over="largest",
        of_entry="sgprs",
        backend=AMD,
        rule="registers",
    ),
    Metric(
        id="agprs_max",
        label="AGPRs",
        unit="count",
        about="most accumulation registers of a rocm entry point",
        source=f"{_AMD}, only since gfx90a",
        over="largest",
        of_entry="agprs",
        backend=AMD,
        rule="registers",
    ),
    Metric(
        id="vgpr_spills",
        label="VGPR spills",
        unit="count",
        about="vector register spills, all rocm entry points together",
        source=_AMD,
        of_entry="vgpr_spills",
        backend=AMD,
        rule="register spills",
    ),
    Metric(
        id="sgpr_spills",
        label="SGPR spills",
        unit="count",
        about="scalar register spills, all rocm entry points together",
        source=_AMD,
        of_entry="sgpr_spills",
        backend=AMD,
        rule="register spills",
    ),
    Metric(
        id="registers_max",
        label="registers",
        unit="count",
        about="most registers of a cuda entry point, by ptxas",
        source=_PTXAS,
        over="largest",
        of_entry="registers",
        assembled=True,
        rule="registers",
    ),
    Metric(
        id="spill_bytes",
        label="spills",
        unit="bytes",
        about="bytes of spill stores and loads of all cuda functions, by ptxas",
        source=_PTXAS,
        of_entry="spill_bytes",
        assembled=True,
        rule="register spills",
    ),
    Metric(
        id="sass_bytes",
        label="SASS",
        unit="bytes",
        about="machine code that ptxas makes from the PTX text",
        source="the `.text.*` sections of the cubins that `ptxas` makes",
        of_entry="sass_bytes",
        assembled=True,
        rule="code size",
    ),
    Metric(
        id="compile_cpu_ms",
        label="compile CPU time",
        unit="ms",
        about="user and system time of the compiling processes",
        source=_KERNEL,
        exact=False,
        always=True,
        rule="compile cost",
    ),
    Metric(
        id="compile_peak_rss_kib",
        label="compile peak memory",
        unit="KiB",
        about="largest resident set of a compiling process",
        source=_KERNEL,
        exact=False,
        over="largest",
        always=True,
        rule="compile cost",
    ),
)

METRIC_BY_ID: dict[str, Metric] = {metric.id: metric for metric in METRICS}
METRIC_IDS: tuple[str, ...] = tuple(METRIC_BY_ID)
INEXACT: tuple[str, ...] = tuple(metric.id for metric in METRICS if not metric.exact)

ARTIFACT_PARTS: tuple[str, ...] = (
    "executable_bytes",
    "vm_bytes",
    "rodata_bytes",
    "unattributed_bytes",
)
"""These sum to `artifact_bytes` wherever an artifact was read."""


# The names under which the bytes of an artifact are counted, of the host program and of
# its executables, and words.


VM = "vm"
CONSTANTS = "constants"
TABLES = "tables"
"""Bytecode of the host program.

Read-only data other than executables; the artifact's own tables and padding.
"""
EXECUTABLES = (  # before the name that a reader has for a part of an executable
    "executables/"
)
OTHER = EXECUTABLES + "tables"
"""The bytes of an executable that no part claims: names, tables, padding."""
UNREAD = EXECUTABLES + "unread"
"""Executables that could not be read."""
# what an archive such as `libf.a` adds to its members
ARCHIVE = EXECUTABLES + "archive"
CODE = frozenset({EXECUTABLES + name for name in ("text", "bytecode", "functions")})
"""Where the code of entry points is."""

_WORDS = {
    VM: "VM bytecode",
    CONSTANTS: "constants of the host program",
    TABLES: "tables and padding of the artifact",
    OTHER: "names, tables and padding of the executables",
    UNREAD: "executables that could not be read",
    ARCHIVE: "headers and indexes of archives",
    "symbols": "symbol tables",
    "dynamic": "dynamic symbols",
    "rodata": "read-only data",
    "data": "data",
    "notes": "notes",
    "headers": "headers",
    "header": "headers of the containers",
    "annotations": "SPIR-V decorations",
    "types": "SPIR-V types and constants",
    "interface": "SPIR-V interfaces",
    "debug": "SPIR-V names",
    "module": "shared code of a module's kernels",
    "sources": "embedded sources",
}


def code_words(text: str, backend: str) -> str:
    """Return the name of the code of executables: `text`, unless the code is text.

    Then it is the name of that text's form.
    """
    return backend_of(backend).text_form or text


def metric_words(metric: Metric, backend: str) -> str:
    """Return the name of a cell's metric: its label, unless it is the size of text."""
    if metric.id == "executable_bytes":
        return code_words(metric.label, backend)
    return metric.label


def part_words(name: str) -> str:
    """Return the name of a part in a sentence."""
    short = name.removeprefix(EXECUTABLES)
    return _WORDS.get(name) or _WORDS.get(short) or short


class OwnMetric(Record, frozen=True):
    """A metric that a configuration declares and a command writes to `facts.json`.

    It must repeat exactly.
    """

    id: Annotated[str, Meta(pattern=rf"\A{OWN_ID}\Z")]
    unit: Unit
    label: _Label
    about: _Line
    # the name of the rule that judges it before any other; empty: the first rule whose
    # globs match its id
    rule: _Line


OwnMetrics = Annotated[tuple[OwnMetric, ...], Meta(max_length=MOST_OWN)]


@lru_cache(maxsize=64)
def own_metrics(*sides: OwnMetrics) -> Mapping[str, Metric]:
    """Return the declared metrics of all sides, by id; the last side's words count."""
    metrics = dict[str, Metric]()
    for metric in chain.from_iterable(sides):
        metrics[metric.id] = Metric(
            id=metric.id,
            label=metric.label,
            unit=metric.unit,
            about=metric.about,
            rule=metric.rule,
        )
    return metrics


@lru_cache(maxsize=64)
def unlike(base: OwnMetrics, head: OwnMetrics) -> Mapping[str, str]:
    """Return id → why it is not compared.

    One side does not declare it, or the sides count it in different units.
    """
    base_units = {metric.id: metric.unit for metric in base}
    head_units = {metric.id: metric.unit for metric in head}
    reasons = dict[str, str]()
    for id_ in sorted({*base_units, *head_units}):
        base_unit = base_units.get(id_)
        head_unit = head_units.get(id_)
        if head_unit is None:
            reasons[id_] = "not declared on head"
        elif base_unit is None:
            reasons[id_] = "not declared on base"
        elif base_unit != head_unit:
            reasons[id_] = (
                f"declared in {base_unit} on base, and in {head_unit} on head"
            )
    return reasons
