"""The metrics: their ids, units and meaning, in the order in which they are shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Unit = Literal["count", "bytes", "ms", "KiB"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One measured quantity of a cell; every value is an integer and lower is better.

    Attributes:
        id: the name in snapshots, reports and thresholds.
        label: the name in tables.
        unit: what one step of the integer is.
        about: one sentence for help texts and tooltips.
        exact: False where two runs of the same compile may differ (time, memory).
    """

    id: str
    label: str
    unit: Unit
    about: str
    exact: bool = True


METRICS: tuple[Metric, ...] = (
    Metric("artifact_bytes", "artifact", "bytes", "size of the .vmfb"),
    Metric("executable_bytes", "device code", "bytes", "executables in the artifact"),
    Metric("executables", "executables", "count", "executables left after deduplication"),
    Metric("dispatch_sites", "dispatch sites", "count", "launches of an executable in the program"),
    Metric("steady_sites", "steady sites", "count", "dispatch sites that run each time the program does"),
    Metric("initializer_sites", "initializer sites", "count", "dispatch sites that run once, at load"),
    Metric("dispatch_regions", "dispatch regions", "count", "executables before deduplication"),
    Metric("entry_points", "entry points", "count", "exported functions of all executables"),
    Metric("stack_max_bytes", "stack frame", "bytes", "largest machine frame or private segment"),
    Metric("stack_alloca_bytes", "stack allocations", "bytes", "largest sum of stack allocations in one function"),
    Metric("workgroup_memory_max_bytes", "workgroup memory", "bytes", "largest workgroup memory of an entry point"),
    Metric(
        "memory_bound_sites",
        "memory-bound sites",
        "count",
        "dispatch sites without contraction, convolution or attention",
    ),
    Metric("linalg_ops", "linalg operations", "count", "linalg operations inside dispatch regions"),
    Metric("submissions", "submissions", "count", "command buffers that the program submits"),
    Metric("awaits", "awaits", "count", "places where the host waits for the device"),
    Metric("fills", "fills", "count", "buffer fills in the program"),
    Metric("copies", "copies", "count", "buffer copies in the program"),
    Metric("program_memory_bytes", "program memory", "bytes", "the most memory held at once, where sizes are known"),
    Metric("transient_memory_bytes", "transient memory", "bytes", "all allocations of a size known to the compiler"),
    Metric("variable_bytes", "variables", "bytes", "allocations that the program keeps in variables"),
    Metric("dynamic_buffers", "dynamic buffers", "count", "buffers whose size only a run tells; in no other figure"),
    Metric("constant_bytes", "constant data", "bytes", "constants in the program's text, as the compiler counts them"),
    Metric("vm_bytes", "VM bytecode", "bytes", "bytecode of the host program"),
    Metric("rodata_bytes", "constants", "bytes", "read-only data that is no executable"),
    Metric("unattributed_bytes", "unattributed", "bytes", "tables, padding and unknown formats"),
    Metric("vgprs_max", "VGPRs", "count", "most vector registers of a rocm entry point, with accumulation registers"),
    Metric("sgprs_max", "SGPRs", "count", "most scalar registers of a rocm entry point"),
    Metric("agprs_max", "AGPRs", "count", "most accumulation registers of a rocm entry point"),
    Metric("vgpr_spills", "VGPR spills", "count", "vector register spills, all rocm entry points together"),
    Metric("sgpr_spills", "SGPR spills", "count", "scalar register spills, all rocm entry points together"),
    Metric("registers_max", "registers", "count", "most registers of a cuda entry point, by ptxas"),
    Metric("spill_bytes", "spills", "bytes", "bytes of spill stores and loads of all cuda functions, by ptxas"),
    Metric("sass_bytes", "SASS", "bytes", "machine code that ptxas makes of the PTX text"),
    Metric("compile_cpu_ms", "compile CPU time", "ms", "user and system time of the compiling processes", exact=False),
    Metric(
        "compile_peak_rss_kib", "compile peak memory", "KiB", "largest resident set of a compiling process", exact=False
    ),
)

METRIC_BY_ID: dict[str, Metric] = {metric.id: metric for metric in METRICS}
METRIC_IDS: tuple[str, ...] = tuple(METRIC_BY_ID)

ARTIFACT_PARTS: tuple[str, ...] = ("executable_bytes", "vm_bytes", "rodata_bytes", "unattributed_bytes")
"""These sum to `artifact_bytes` wherever an artifact was read."""
