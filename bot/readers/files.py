"""The files of a compile as the measurement of one cell: each is read by its magic number, whatever made it.

A kernel is an entry point of an AMD code object, a cubin, PTX or SPIR-V; of other ELF files, such as a C library's,
each function is one. A file of no known format counts whole, as `unattributed_bytes`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from msgspec import structs

from bot.core.metrics import CODE, EXECUTABLES, METRIC_BY_ID, METRIC_IDS, OTHER, UNREAD
from bot.core.reading import EntryPoint, Measurement, Reading
from bot.core.record import is_count
from bot.core.snapshot import Dispatch
from bot.errors import InputError, MalformedBinary
from bot.readers.cubin import CubinReader
from bot.readers.dispatches import Frame, read_stack_usage
from bot.readers.elf import ElfReader
from bot.readers.hsaco import HsacoReader
from bot.readers.object_code import function_codes
from bot.readers.ptx import PtxReader
from bot.readers.spirv import SpirvReader

READERS = (HsacoReader(), CubinReader(), ElfReader(), SpirvReader(), PtxReader())
STACK_USAGE = ".su"
NO_ARTIFACT_SAYS_IT = "no file that the command left says it"
OF_FILES = {"rodata_bytes": ("rodata", "data")}
_ADDED_AT_LAUNCH = ("workgroup_memory_max_bytes",)
"""A file has what a kernel always takes; a launch may add to it."""
_RELOCATABLE = (1).to_bytes(2, "little"), slice(16, 18)
"""ET_REL, and where a file says so."""
_COLUMN = re.compile(r"^(.*?:\d+):\d+:", re.MULTILINE)
"""GCC writes a column behind the line, and `dynamic,bounded` of what is bounded."""
_NESTED = re.compile(r"N?(?:St|S\d*_|K)*((?:\d+)[A-Za-z_].*)")


def stem_of(name: str) -> str:
    """What a function is called in its source, of names as C++ mangles them: its own name, without what it takes.

    The name itself where it is no such one.
    """
    rest = name[2:].lstrip("L") if name.startswith("_Z") else ""
    nested = _NESTED.match(rest)
    own, rest = "", nested[1] if nested else ""
    while length := re.match(r"L?([1-9]\d{0,2})", rest):
        start = length.end()
        own = f"{own}::{rest[start : start + int(length[1])]}" if own else rest[start : start + int(length[1])]
        rest = rest[start + int(length[1]) :]
        if not name.startswith(("_ZN", "_ZLN")):
            break
    return own or name


def measure_files(
    files: Mapping[str, bytes],
    artifacts: Sequence[str],
    facts: Mapping[str, int],
    costs: tuple[int, int | None],
) -> Measurement:
    """The numbers of one compile; raises InputError for facts that are no metrics.

    Args:
        artifacts: those of the files that ship.
        costs: CPU time in ms, and peak memory in KiB.
    """
    readings: dict[str, Reading] = {}
    unread: list[str] = []
    for name in artifacts:
        try:
            readings[name] = _read(files[name])
        except MalformedBinary as error:
            unread.append(f"{name}: {error.line}")
    frames, no_frames = dict[str, Frame](), ""
    try:
        for name, data in files.items():
            if name.endswith(STACK_USAGE):
                text = _COLUMN.sub(r"\1:", data.decode("utf-8", "replace")).replace("dynamic,bounded", "dynamic")
                frames |= read_stack_usage(text)
    except MalformedBinary as error:
        no_frames = error.line
    dispatches = []
    for name, reading in readings.items():
        for entry in reading.entry_points:
            frame = frames.get(entry.name)
            known = replace(entry, stack_bytes=frame.stack_bytes, stack_kind=frame.kind) if frame else entry
            dispatches.append(_dispatch(name, known))
    sizes = Counter[str]()
    for reading in readings.values():
        sizes.update({EXECUTABLES + label: size for label, size in reading.parts.items()})
        sizes[OTHER] += reading.unattributed_bytes
    sizes[UNREAD] = sum(len(files[name]) for name in artifacts if name not in readings)
    whole_bytes = sum(len(files[name]) for name in artifacts)
    code_bytes = sum(size for label, size in sizes.items() if label in CODE)
    constants = sizes[f"{EXECUTABLES}rodata"] + sizes[f"{EXECUTABLES}data"]
    is_host = any(reading.format == "elf" for reading in readings.values())  # functions are not launched, but called
    values: dict[str, int | None] = {
        "artifact_bytes": whole_bytes,
        "compile_cpu_ms": costs[0],
        "compile_peak_rss_kib": costs[1],
        **({} if unread else {"executable_bytes": code_bytes, "rodata_bytes": constants}),
        **({} if unread else {"unattributed_bytes": whole_bytes - code_bytes - constants}),
        "executables": len(artifacts),
        **({"entry_points": len(dispatches)} if dispatches and not is_host else {}),
    }
    reasons = dict.fromkeys(METRIC_IDS, "; ".join(unread) or no_frames or NO_ARTIFACT_SAYS_IT)
    for metric in METRIC_BY_ID.values():
        if metric.of_entry and not unread:
            values[metric.id], why = _of_entries(dispatches, metric.of_entry, metric.over)
            reasons[metric.id] = no_frames if no_frames and metric.of_entry == "stack_bytes" else why
    values |= _checked(facts, values)
    if len(dispatches) == 1:
        own = {of: facts[id_] for id_ in facts if (of := METRIC_BY_ID[id_].of_entry)}
        dispatches = [structs.replace(dispatches[0], **own)]
    metrics = {id_: values.get(id_) for id_ in METRIC_IDS}
    parts = {label: size for label, size in sizes.items() if size}
    said = {id_: reasons[id_] for id_, value in metrics.items() if value is None}
    return Measurement(metrics, tuple(dispatches), said | ({"unread": "; ".join(unread)} if unread else {}), parts)


def _read(data: bytes) -> Reading:
    for reader in READERS:
        if reader.accepts(data):
            reading = reader.read(data)
            if isinstance(reader, ElfReader) and data[_RELOCATABLE[1]] == _RELOCATABLE[0]:
                codes = function_codes(data)
                entries = (replace(one, code=codes[one.name].code) for one in reading.entry_points)
                return replace(reading, entry_points=tuple(entries))
            return reading
    raise MalformedBinary(f"{len(data)} bytes of an unknown format, starting {data[:8].hex(' ')}", where="file")


def _dispatch(file: str, entry: EntryPoint) -> Dispatch:
    return Dispatch(
        file,
        entry.name,
        stem_of(entry.name),
        code_bytes=entry.code_bytes,
        stack_bytes=entry.stack_bytes,
        stack_kind=entry.stack_kind,
        workgroup_bytes=entry.workgroup_bytes,
        vgprs=entry.vgprs,
        sgprs=entry.sgprs,
        vgpr_spills=entry.vgpr_spills,
        sgpr_spills=entry.sgpr_spills,
        agprs=entry.agprs,
        registers=entry.registers,
        code=entry.code,
        strategy="",
    )


def _of_entries(dispatches: Sequence[Dispatch], field: str, over: str) -> tuple[int | None, str]:
    """The largest or the sum, where every kernel says it; else None and why."""
    values: list[int | None] = [getattr(row, field) for row in dispatches]
    known = [value for value in values if value is not None]
    if not known:
        return None, NO_ARTIFACT_SAYS_IT
    if len(known) < len(values):
        unknown = next(row.name for row in dispatches if getattr(row, field) is None)
        return None, f"not known of {unknown}"
    combine: Callable[[Sequence[int]], int] = max if over == "largest" else sum
    return combine(known), ""


def _checked(facts: Mapping[str, int], values: Mapping[str, int | None]) -> Mapping[str, int]:
    """The facts, if each is a metric, no less than nothing, and nothing else than what the files themselves say."""
    for id_, value in facts.items():
        if id_ not in METRIC_BY_ID:
            raise InputError(f"facts.json names no metric: {id_[:60]!r}")
        if not is_count(value):
            raise InputError(f"facts.json says that {id_} is {str(value)[:40]}")
        least = values.get(id_)
        if least is not None and least != value and not (id_ in _ADDED_AT_LAUNCH and value > least):
            raise InputError(f"facts.json says that {id_} is {value:,}, and the files have {values[id_]:,}")
    return facts
