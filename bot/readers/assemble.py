"""All that one compile left behind, put together as the measurement of one cell.

Every metric id is present; a metric that cannot be known is None, with its reason. Where two sources tell one number
and disagree, neither is believed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from bot.core.backends import backend_of
from bot.core.metrics import ARTIFACT_PARTS, METRIC_IDS
from bot.core.parts import CONSTANTS, EXECUTABLES, OTHER, TABLES, UNREAD, VM
from bot.core.values.reading import ArtifactReading, EntryPoint, Measurement, Products, Reading
from bot.core.values.snapshot import Dispatch
from bot.readers.code.object_code import FunctionCode, function_codes
from bot.readers.dispatches import Sources, merge_dispatches
from bot.readers.formats.artifact import read_artifact
from bot.readers.parsed import Known, Parsed, listed_entries, parse
from bot.readers.program_metrics import program_metrics
from bot.readers.registers import kernels, of_code_objects, of_machine_code

T = TypeVar("T")

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
    dispatches = merge_dispatches(_sources(parsed))
    known = {
        **_artifact_metrics(parsed),
        **program_metrics(parsed),
        **_memory_metrics(parsed, dispatches),
        **_register_metrics(parsed, dispatches),
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
    found: dict[str, int] = {}
    for name, size in named:
        if size:
            found[name] = found.get(name, 0) + size
    return found


def _sources(parsed: Parsed) -> Sources:
    """What says something of single entry points; stack files of other targets hold nothing but zeros."""
    readings = parsed.artifact.executables if parsed.artifact else ()
    sources = Sources(
        program=parsed.products.program,
        in_artifact=tuple(entry for reading in readings for entry in _entries(reading)),
        strategies=parsed.products.strategies,
        machine=kernels(parsed.modules or ()),
    )
    if parsed.products.backend != CPU:
        return sources
    return replace(
        sources,
        frames=parsed.frames or {},
        allocas=parsed.products.allocas,
        functions=parsed.functions or {},
    )


def _entries(reading: Reading) -> Iterable[EntryPoint]:
    if reading.format not in ALONE or len(reading.entry_points) != 1:
        return reading.entry_points
    return [replace(entry, executable_bytes=reading.size_bytes) for entry in reading.entry_points]


def _artifact_metrics(parsed: Parsed) -> dict[str, Known]:
    artifact = parsed.artifact
    if artifact is None:
        reason = parsed.reason("artifact")
        whole = {"artifact_bytes": Known(len(parsed.products.artifact))}
        return whole | {name: Known(None, reason) for name in ARTIFACT_PARTS}
    whole = {
        name: Known(getattr(artifact, name), parsed.reason("unread")) for name in ("artifact_bytes", *ARTIFACT_PARTS)
    }
    hidden = _hidden(parsed)
    return whole | (dict.fromkeys(TOLD_APART, Known(None, hidden)) if hidden else {})


def _hidden(parsed: Parsed) -> str:
    """Why some executables may count as constants; empty where nothing says so."""
    listed, (least, all_there_are) = listed_entries(parsed.artifact), _expected(parsed)
    if listed is None or listed >= least:
        return ""
    of_all = f"{listed} of {all_there_are} entry points"
    return f"the executables that a reader knows hold {of_all}; the others cannot be told apart from constants"


def _expected(parsed: Parsed) -> tuple[int, str]:
    """How many entry points the artifact has at least, and that in words: an executable has one or more."""
    program, statistics = parsed.products.program, parsed.statistics
    if program is not None:
        return len(program.entry_points), f"{len(program.entry_points)}"
    executables = (statistics.executables if statistics else None) or 0
    return executables, f"at least {executables}"


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


def _register_metrics(parsed: Parsed, dispatches: tuple[Dispatch, ...]) -> dict[str, Known]:
    backend, modules = parsed.products.backend, parsed.modules
    unread = "" if parsed.artifact else parsed.reason("artifact")
    told = {
        **of_code_objects(backend, dispatches, unread or parsed.reasons.get("unread", "")),
        **of_machine_code(backend, modules, parsed.reason("assembled")),
    }
    return {name: Known(value, reason) for name, (value, reason) in told.items()}


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
