"""The one table of metrics, in the order in which they are shown: a new one is a row here, and what reads its value.

`configs/schema.json` and `docs/metrics.md` are made from it (`UPDATE_GOLDENS=1` writes
them).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Literal

from msgspec import Meta

from bot.core.backends import backend_of
from bot.core.record import Record, Small

Unit = Literal["count", "bytes", "ms", "KiB"]
MOST_OWN = 32
OWN_ID = "[a-z][a-z0-9_]{0,39}"
_Label = Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]{1,40}(?![\s\S])")]
_Line = Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]{0,200}(?![\s\S])")]


class Metric(Small, frozen=True):
    """One measured quantity of a cell; every value is an integer and lower is better."""

    id: str  # the name in snapshots, reports and thresholds
    label: str
    unit: Unit
    about: str  # one sentence for help texts, tooltips and documents
    source: str = ""  # where the value comes from, for documents
    exact: bool = (
        True  # False where two runs of the same compile may differ (time, memory)
    )
    # what the values of several entry points, or of several cells, make together
    over: Literal["sum", "largest"] = "sum"
    # the field of an entry point that it is made of; empty for a figure of the whole
    # program
    of_entry: str = ""
    # True where an assembler makes it, so that it says as much of that one's version
    assembled: bool = False
    # True where every version of this program has measured it; a snapshot without any
    # other one is older
    always: bool = False
    rule: str = (
        "everything else"  # the name of the rule of configs/default.yml that judges it
    )
    tracked: bool = False  # True where a history tells its moves; of exact ones alone


_ARTIFACT = "the artifact's own segment table"
_STREAM, _BOTH = (
    "IR after the stream phase",
    "IR after the stream phase, equal to the compiler's statistics",
)
_DISPATCH, _BEFORE_FUSION = (
    "IR after dispatch creation",
    "IR after global optimization, before dispatch creation",
)
_AMD, _PTXAS, _KERNEL = (
    "AMD metadata",
    "`ptxas -v`, from the extra `cuda`",
    "the kernel's accounting; informational",
)

METRICS: tuple[Metric, ...] = (
    Metric(
        "artifact_bytes",
        "code size",
        "bytes",
        "size of the .vmfb",
        "the size of the file; its four parts sum to it",
        always=True,
        rule="code size",
        tracked=True,
    ),
    Metric(
        "executable_bytes",
        "device code",
        "bytes",
        "executables in the artifact",
        _ARTIFACT,
        always=True,
        rule="code size",
    ),
    Metric(
        "executables",
        "executables",
        "count",
        "executables left after deduplication",
        _BOTH,
        always=True,
        rule="launches and executables",
        tracked=True,
    ),
    Metric(
        "dispatch_sites",
        "dispatch sites",
        "count",
        "launches of an executable in the program",
        _BOTH,
        always=True,
        rule="other counts",
    ),
    Metric(
        "steady_sites",
        "steady sites",
        "count",
        "dispatch sites that run on every call of the program",
        _STREAM,
        rule="launches and executables",
    ),
    Metric(
        "initializer_sites",
        "initializer sites",
        "count",
        "dispatch sites that run once, at load",
        _STREAM,
        rule="launches at load",
    ),
    Metric(
        "dispatch_regions",
        "dispatch regions",
        "count",
        "executables before deduplication",
        _DISPATCH,
        always=True,
        rule="other counts",
    ),
    Metric(
        "entry_points",
        "entry points",
        "count",
        "exported functions of all executables",
        f"{_STREAM}, equal to the entry points that the artifact lists",
        always=True,
        rule="launches and executables",
    ),
    Metric(
        "stack_max_bytes",
        "stack frame",
        "bytes",
        "largest machine frame or private segment",
        "`--stack-usage-file`, AMD metadata, PTX, SPIR-V",
        over="largest",
        of_entry="stack_bytes",
        always=True,
        rule="stack and workgroup memory",
        tracked=True,
    ),
    Metric(
        "stack_alloca_bytes",
        "stack allocations",
        "bytes",
        "largest sum of stack allocations in one function",
        "IR before LLVM; the compiler compares the same value with its 32 KiB gate",
        over="largest",
        of_entry="alloca_bytes",
        always=True,
        rule="stack and workgroup memory",
        tracked=True,
    ),
    Metric(
        "workgroup_memory_max_bytes",
        "workgroup memory",
        "bytes",
        "largest workgroup memory of an entry point",
        "AMD metadata, PTX and its launch size, SPIR-V, Metal source",
        over="largest",
        of_entry="workgroup_bytes",
        always=True,
        rule="stack and workgroup memory",
    ),
    Metric(
        "memory_bound_sites",
        "memory-bound sites",
        "count",
        "dispatch sites without contraction, convolution or attention",
        _STREAM,
        always=True,
        rule="other counts",
    ),
    Metric(
        "linalg_ops",
        "linalg operations",
        "count",
        "linalg operations inside dispatch regions",
        _DISPATCH,
        always=True,
        rule="other counts",
    ),
    Metric(
        "linalg_ops_unfused",
        "linalg operations before fusion",
        "count",
        "linalg operations of the program that fusion starts from",
        _BEFORE_FUSION,
        rule="operations before fusion",
    ),
    Metric(
        "submissions",
        "submissions",
        "count",
        "command buffers that the program submits",
        _BOTH,
        rule="submissions and waits",
    ),
    Metric(
        "awaits",
        "awaits",
        "count",
        "places where the host waits for the device",
        _BOTH,
        rule="submissions and waits",
    ),
    Metric(
        "fills",
        "fills",
        "count",
        "buffer fills in the program",
        _BOTH,
        rule="other counts",
    ),
    Metric(
        "copies",
        "copies",
        "count",
        "buffer copies in the program",
        _BOTH,
        rule="other counts",
    ),
    Metric(
        "program_memory_bytes",
        "program memory",
        "bytes",
        "the most memory held at once, where sizes are known",
        f"{_STREAM}, [in program order](#memory-of-the-program)",
        rule="memory of the program",
    ),
    Metric(
        "transient_memory_bytes",
        "transient memory",
        "bytes",
        "all allocations of a size known to the compiler",
        f"{_STREAM}, equal to the compiler's `transient-memory-size`",
        rule="memory of the program",
    ),
    Metric(
        "variable_bytes",
        "variables",
        "bytes",
        "allocations that the program keeps in variables",
        _STREAM,
        rule="memory of the program",
    ),
    Metric(
        "dynamic_buffers",
        "dynamic buffers",
        "count",
        "buffers whose size is known only at run time; no other metric counts them",
        _STREAM,
        rule="other counts",
    ),
    Metric(
        "constant_bytes",
        "constant data",
        "bytes",
        "constants in the program's text, as the compiler counts them",
        "the compiler's `constant-size`; 3.11.0 counts names of parameters, 3.8.0 does not",
        rule="constants, as the compiler counts them",
    ),
    Metric(
        "vm_bytes",
        "VM bytecode",
        "bytes",
        "bytecode of the host program",
        _ARTIFACT,
        always=True,
        rule="rest of the artifact",
    ),
    Metric(
        "rodata_bytes",
        "constants",
        "bytes",
        "read-only data other than executables",
        _ARTIFACT,
        always=True,
        rule="rest of the artifact",
    ),
    Metric(
        "unattributed_bytes",
        "unattributed",
        "bytes",
        "tables, padding and unknown formats",
        _ARTIFACT,
        always=True,
        rule="rest of the artifact",
    ),
    Metric(
        "vgprs_max",
        "VGPRs",
        "count",
        "most vector registers of a rocm entry point, with accumulation registers",
        f"{_AMD}; since gfx90a, vector registers include accumulation registers",
        over="largest",
        of_entry="vgprs",
        rule="registers",
    ),
    Metric(
        "sgprs_max",
        "SGPRs",
        "count",
        "most scalar registers of a rocm entry point",
        _AMD,
        over="largest",
        of_entry="sgprs",
        rule="registers",
    ),
    Metric(
        "agprs_max",
        "AGPRs",
        "count",
        "most accumulation registers of a rocm entry point",
        f"{_AMD}, only since gfx90a",
        over="largest",
        of_entry="agprs",
        rule="registers",
    ),
    Metric(
        "vgpr_spills",
        "VGPR spills",
        "count",
        "vector register spills, all rocm entry points together",
        _AMD,
        of_entry="vgpr_spills",
        rule="register spills",
    ),
    Metric(
        "sgpr_spills",
        "SGPR spills",
        "count",
        "scalar register spills, all rocm entry points together",
        _AMD,
        of_entry="sgpr_spills",
        rule="register spills",
    ),
    Metric(
        "registers_max",
        "registers",
        "count",
        "most registers of a cuda entry point, by ptxas",
        _PTXAS,
        over="largest",
        of_entry="registers",
        assembled=True,
        rule="registers",
    ),
    Metric(
        "spill_bytes",
        "spills",
        "bytes",
        "bytes of spill stores and loads of all cuda functions, by ptxas",
        _PTXAS,
        of_entry="spill_bytes",
        assembled=True,
        rule="register spills",
    ),
    Metric(
        "sass_bytes",
        "SASS",
        "bytes",
        "machine code that ptxas makes from the PTX text",
        "the `.text.*` sections of the cubins that `ptxas` makes",
        of_entry="sass_bytes",
        assembled=True,
        rule="code size",
    ),
    Metric(
        "compile_cpu_ms",
        "compile CPU time",
        "ms",
        "user and system time of the compiling processes",
        _KERNEL,
        exact=False,
        always=True,
        rule="compile cost",
    ),
    Metric(
        "compile_peak_rss_kib",
        "compile peak memory",
        "KiB",
        "largest resident set of a compiling process",
        _KERNEL,
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


VM, CONSTANTS, TABLES = "vm", "constants", "tables"
"""Bytecode of the host program; read-only data other than executables; the artifact's own tables and padding."""
EXECUTABLES = (  # before the name that a reader has for a part of an executable
    "executables/"
)
OTHER, UNREAD = EXECUTABLES + "tables", EXECUTABLES + "unread"
"""What of an executable no part claims: names, tables, padding; and executables that could not be read."""
ARCHIVE = (
    EXECUTABLES + "archive"
)  # what an archive such as `libf.a` adds to its members
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


def code_words(words: str, backend: str) -> str:
    """What the code of executables is called: `words`, but where it is text, by that text's name."""
    return backend_of(backend).text_form or words


def metric_words(metric: Metric, backend: str) -> str:
    """What a metric of a cell is called: its label, but where it is the size of text."""
    return (
        code_words(metric.label, backend)
        if metric.id == "executable_bytes"
        else metric.label
    )


def part_words(name: str) -> str:
    """What a part is called in a sentence."""
    short = name.removeprefix(EXECUTABLES)
    return _WORDS.get(name) or _WORDS.get(short) or short


class OwnMetric(Record, frozen=True):
    """A metric that a configuration declares, for what a command writes to `facts.json`.

    It repeats exactly.
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
    """What sides declare, by id; the last one's words count."""
    return {
        one.id: Metric(one.id, one.label, one.unit, one.about, rule=one.rule)
        for own in sides
        for one in own
    }


@lru_cache(maxsize=64)
def unlike(base: OwnMetrics, head: OwnMetrics) -> Mapping[str, str]:
    """Id → why it is not compared: one side does not declare it, or the sides count it in different units."""
    left, right = ({one.id: one.unit for one in own} for own in (base, head))
    reasons = {
        id_: f"declared in {unit} on base, and in {right.get(id_)} on head"
        for id_, unit in left.items()
    }
    reasons |= dict.fromkeys(left.keys() - right.keys(), "not declared on head")
    reasons |= dict.fromkeys(right.keys() - left.keys(), "not declared on base")
    return {
        id_: reasons[id_] for id_ in sorted(reasons) if left.get(id_) != right.get(id_)
    }
