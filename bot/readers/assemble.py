"""The metrics of a whole program: what its IR and the compiler's own statistics say of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from bot.core.backends import backend_of
from bot.core.metrics import ARTIFACT_PARTS, CONSTANTS, EXECUTABLES, METRIC_IDS, OTHER, TABLES, UNREAD, VM
from bot.core.reading import ArtifactReading, EntryPoint, Measurement, Products
from bot.core.snapshot import Dispatch
from bot.readers.artifact import read_artifact
from bot.readers.dispatches import (
    Known,
    Parsed,
    Sources,
    kernels,
    listed_entries,
    merge_dispatches,
    of_code_objects,
    of_machine_code,
    parse,
)
from bot.readers.object_code import FunctionCode, function_codes

OF_PROGRAM = ("dispatch_regions", "linalg_ops", "memory_bound_sites", "initializer_sites", "steady_sites")
OF_SCHEDULE = ("variable_bytes", "dynamic_buffers", "program_memory_bytes")
NO_SCHEDULE = "the program's schedule was not read"
NOT_COUNTED = "this release does not count them"
WHY_UNKNOWN = {
    "variable_bytes": "only a run tells the size of a variable",
    "program_memory_bytes": "memory is allocated in a branch or a loop",
}
"""What the schedule may not know, and why."""


def program_metrics(parsed: Parsed) -> dict[str, Known]:
    """Those of the whole program, each by two sources where there are two."""
    program, statistics = parsed.products.program, parsed.statistics

    def of_program(name: str) -> Known:
        return Known(None, parsed.reason("program")) if program is None else Known(getattr(program, name))

    def of_schedule(name: str) -> Known:
        schedule = program.schedule if program else None
        if schedule is None:
            return Known(None, parsed.reason("program") if program is None else NO_SCHEDULE)
        return Known(getattr(schedule, name), WHY_UNKNOWN.get(name, ""))

    def agreed(known: Known, name: str) -> Known:
        if statistics is None and parsed.products.statistics is not None:
            return Known(None, parsed.reason("statistics"))
        return _agreed(known, getattr(statistics, name) if statistics else None, "the compiler's statistics")

    entry_points = of_program("entry_points")
    if program is not None:
        entry_points = Known(len(program.entry_points))
    return {
        **{name: of_program(name) for name in OF_PROGRAM},
        **{name: agreed(of_program(name), name) for name in ("dispatch_sites", "executables")},
        **{name: of_schedule(name) for name in OF_SCHEDULE},
        **{name: agreed(of_schedule(name), name) for name in ("fills", "copies", "awaits", "submissions")},
        "transient_memory_bytes": agreed(of_schedule("allocated_bytes"), "allocated_bytes"),
        "constant_bytes": agreed(Known(None, NOT_COUNTED), "constant_bytes"),
        "entry_points": _agreed(entry_points, listed_entries(parsed.artifact), "the artifact"),
    }


def _agreed(known: Known, said: int | None, who: str) -> Known:
    """What the program's IR and another source say, if they do not contradict each other."""
    if said is None or known.value == said:
        return known
    if known.value is None:
        return Known(said)
    return Known(None, f"the program's IR has {known.value}, {who} {said}")


# All that one compile left behind, put together as the measurement of one cell.
#
# Every metric id is present; a metric that cannot be known is None, with its reason. Where two sources tell one number
# and disagree, neither is believed.


CPU = "llvm-cpu"
ALONE = frozenset({"spirv", "msl"})
"""Formats in which each entry point is an executable of its own."""
NO_STACK_GATE = "only llvm-cpu has stack allocations that the compiler limits"
TOLD_APART = ("executable_bytes", "rodata_bytes")
"""Parts of the artifact that are known together or not at all."""


def measure(
    products: Products,
    artifact_reader: Callable[[bytes], ArtifactReading] = read_artifact,
    object_reader: Callable[[bytes], Mapping[str, FunctionCode]] = function_codes,
) -> Measurement:
    """The numbers of one compile; whatever cannot be read is None with a reason, never an exception.

    `reasons` has a line for each metric that is None; under `objects` and `unread` it tells of binaries that no
    reader could read, though every metric is known without them.
    """
    parsed = parse(products, artifact_reader, object_reader)
    in_artifact: list[EntryPoint] = []
    for reading in parsed.artifact.executables if parsed.artifact else ():
        is_alone = reading.format in ALONE and len(reading.entry_points) == 1
        sized = (replace(each, executable_bytes=reading.size_bytes) for each in reading.entry_points)
        in_artifact += sized if is_alone else reading.entry_points
    is_cpu = products.backend == CPU  # stack files of other targets hold nothing but zeros
    dispatches = merge_dispatches(
        Sources(
            program=products.program,
            in_artifact=tuple(in_artifact),
            frames=(parsed.frames or {}) if is_cpu else {},
            allocas=products.allocas if is_cpu else None,
            functions=(parsed.functions or {}) if is_cpu else {},
            strategies=products.strategies,
            machine=kernels(parsed.modules or ()),
        )
    )
    unread = parsed.reasons.get("unread", "") if parsed.artifact else parsed.reason("artifact")
    registers = {
        **of_code_objects(products.backend, dispatches, unread),
        **of_machine_code(products.backend, parsed.modules, parsed.reason("assembled")),
    }
    known = {
        **_artifact_metrics(parsed),
        **program_metrics(parsed),
        **_memory_metrics(parsed, dispatches),
        **{name: Known(value, reason) for name, (value, reason) in registers.items()},
        **{name: Known(getattr(products, name), "not measured") for name in ("compile_cpu_ms", "compile_peak_rss_kib")},
    }
    reasons = {name: known[name].reason for name in METRIC_IDS if known[name].value is None}
    reasons |= {name: line for name, line in parsed.reasons.items() if name in ("objects", "unread")}
    return Measurement({name: known[name].value for name in METRIC_IDS}, dispatches, reasons, _parts(parsed))


def _parts(parsed: Parsed) -> dict[str, int]:
    """Every byte of the artifact under one name; empty where executables cannot be told apart from constants."""
    artifact = parsed.artifact
    if artifact is None or artifact.executable_bytes is None or artifact.rodata_bytes is None or _hidden(parsed):
        return {}
    named = [(VM, artifact.vm_bytes), (CONSTANTS, artifact.rodata_bytes), (TABLES, artifact.unattributed_bytes)]
    for reading in artifact.executables:
        named += [(EXECUTABLES + label, size) for label, size in reading.parts.items()]
        named.append((OTHER, reading.unattributed_bytes))
    named.append((UNREAD, artifact.executable_bytes - sum(reading.size_bytes for reading in artifact.executables)))
    parts: dict[str, int] = {}
    for name, size in named:
        if size:
            parts[name] = parts.get(name, 0) + size
    return parts


def _artifact_metrics(parsed: Parsed) -> dict[str, Known]:
    artifact = parsed.artifact
    if artifact is None:
        unknown = dict.fromkeys(ARTIFACT_PARTS, Known(None, parsed.reason("artifact")))
        return {"artifact_bytes": Known(len(parsed.products.artifact)), **unknown}
    names, hidden = ("artifact_bytes", *ARTIFACT_PARTS), _hidden(parsed)
    whole = {name: Known(getattr(artifact, name), parsed.reason("unread")) for name in names}
    return whole | (dict.fromkeys(TOLD_APART, Known(None, hidden)) if hidden else {})


def _hidden(parsed: Parsed) -> str:
    """Why some executables may count as constants; empty where nothing says so."""
    listed, program = listed_entries(parsed.artifact), parsed.products.program
    if program is not None:
        expected = len(program.entry_points)
    else:  # an executable has one entry point or more
        expected = (parsed.statistics.executables if parsed.statistics else None) or 0
    if listed is None or listed >= expected:
        return ""
    of_all = f"{listed} of {'' if program else 'at least '}{expected} entry points"
    return f"the executables that a reader knows hold {of_all}; the others cannot be told apart from constants"


def _memory_metrics(parsed: Parsed, dispatches: tuple[Dispatch, ...]) -> dict[str, Known]:
    backend, allocas = backend_of(parsed.products.backend), parsed.products.allocas
    frames_from = "stack_usage" if backend.name == CPU else "artifact"
    if not backend.has_stack_gate:
        stack_alloca = Known(None, NO_STACK_GATE)
    elif allocas is None:
        stack_alloca = Known(None, parsed.reason("allocas"))
    else:
        stack_alloca = Known(max(allocas.values(), default=0))
    return {
        "stack_max_bytes": _largest(parsed, dispatches, "stack_bytes", frames_from, backend.no_frames),
        "stack_alloca_bytes": stack_alloca,
        "workgroup_memory_max_bytes": _largest(
            parsed, dispatches, "workgroup_bytes", "artifact", backend.no_workgroup_memory
        ),
    }


def _largest(parsed: Parsed, dispatches: tuple[Dispatch, ...], what: str, product: str, absent: str) -> Known:
    """The largest of all entry points; None unless it is known of each of them."""
    if absent:
        return Known(None, absent)
    values = {dispatch.name: getattr(dispatch, what) for dispatch in dispatches}
    unknown = [name for name, value in values.items() if value is None]
    if values and not unknown:
        return Known(max(values.values()))
    source = parsed.frames if product == "stack_usage" else parsed.artifact
    if source is None:
        return Known(None, parsed.reason(product))
    fallback = f"not known of {unknown[0]}" if unknown else "no entry point is known"
    return Known(None, parsed.reasons.get("unread") or fallback)
