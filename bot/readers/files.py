"""The files of a compile as the measurement of one cell: each is read by its magic number, whatever made it.

A kernel is an entry point of an AMD code object, a cubin, PTX or SPIR-V; of other ELF files, such as a C library's,
each function is one. A file of no known format counts whole, as `unattributed_bytes`. A compiler's own IR, stage after
stage, is counted as passes are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from bot.core.metrics import CODE, EXECUTABLES, METRIC_IDS, METRICS, OTHER, UNREAD
from bot.core.reading import Measurement, Reading
from bot.core.record import is_count
from bot.core.snapshot import Dispatch
from bot.core.trace import LLVM, MACHINE, MLIR, SOURCE, DispatchTrace, PassStep
from bot.errors import InputError, MalformedBinary
from bot.readers.artifact import read_executable
from bot.readers.assemble import OF_ENTRY_POINT, of_entries, read_stack_usage
from bot.readers.elf import CODE_OBJECT, CUBIN, ELF, function_codes
from bot.readers.kernel_text import PTX
from bot.readers.passes import LONGEST_LINE_BYTES, operations_of
from bot.readers.spirv import SPIRV

READERS = (CODE_OBJECT, CUBIN, ELF, SPIRV, PTX)
NO_ARTIFACT_SAYS_IT = "no file that the command left says it"
_ADDED_AT_LAUNCH = ("workgroup_memory_max_bytes",)  # a file has what a kernel always takes; a launch may add to it
_RELOCATABLE = (1).to_bytes(2, "little"), slice(16, 18)  # ET_REL, and where a file says so
_COLUMN = re.compile(r"^(.*?:\d+):\d+:", re.MULTILINE)
"""GCC writes a column behind the line, and `dynamic,bounded` of what is bounded."""
_NESTED = re.compile(r"N?(?:St|S\d*_|K)*((?:\d+)[A-Za-z_].*)")
_LLVM_IR = re.compile(rb"^(?:define|declare|target triple)\b", re.MULTILINE)
_MLIR = re.compile(rb"^\s*(?:#\w+ = |module\b|tt\.func|llvm\.func|func\.func)", re.MULTILINE)
_INSTRUCTION = re.compile(rb"\s+(?:@!?%\w+ )?([a-z][\w.]+)(?=\s|;|$)")  # of assembly, PTX with its predicates among it
_SHOWN_OF_MNEMONIC = 2  # `ld.global.v4.b32` counts as `ld.global`: sizes and modes beside it are many


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
    facts: Mapping[str, int | None],
    costs: tuple[int, int | None],
) -> Measurement:
    """The numbers of one compile; raises InputError for facts that the files deny.

    `artifacts`: those of the files that ship; `facts`: metric id → what the command says of it; None for a declared one
    of which it says nothing; `costs`: CPU time in ms, and peak memory in KiB.
    """
    readings, unread = dict[str, Reading](), list[str]()
    for name in artifacts:
        try:
            readings[name] = _read(files[name])
        except MalformedBinary as error:
            unread.append(f"{name}: {error.line}")
    frames, largest, no_frames = dict[str, dict[str, int]](), dict[str, int](), ""  # of each file, and of all
    try:
        for name, data in files.items():
            if name.endswith(".su"):
                text = _COLUMN.sub(r"\1:", data.decode("utf-8", "replace")).replace("dynamic,bounded", "dynamic")
                frames[name.removesuffix(".su")] = read_stack_usage(text)
    except MalformedBinary as error:
        no_frames = error.line
    for one in frames.values():
        largest |= {name: max(frame, largest.get(name, 0)) for name, frame in one.items()}
    dispatches, sizes = list[Dispatch](), Counter[str]()
    for file, reading in readings.items():
        # A local function may have a namesake in another file; what is linked of several has no file of its own.
        own_frames = frames.get(re.sub(r"\.[^./]*$", "", file), largest)
        sizes.update({EXECUTABLES + label: size for label, size in reading.parts.items()})
        sizes[OTHER] += reading.unattributed_bytes
        for entry in reading.entry_points:
            known = {what: getattr(entry, what) for what in OF_ENTRY_POINT}
            if entry.name in own_frames:
                known["stack_bytes"] = own_frames[entry.name]
            dispatches.append(Dispatch(file, entry.name, stem_of(entry.name), strategy="", **known))
    sizes[UNREAD] = sum(len(files[name]) for name in artifacts if name not in readings)
    whole_bytes = sum(len(files[name]) for name in artifacts)
    code_bytes = sum(size for label, size in sizes.items() if label in CODE)
    constants = sizes[f"{EXECUTABLES}rodata"] + sizes[f"{EXECUTABLES}data"]
    is_host = any(reading.format == "elf" for reading in readings.values())  # functions are not launched, but called
    values: dict[str, int | None] = {
        "artifact_bytes": whole_bytes,
        "compile_cpu_ms": costs[0],
        "compile_peak_rss_kib": costs[1],
        "executables": len(artifacts),
        **({"entry_points": len(dispatches)} if dispatches and not is_host else {}),
    }
    reasons = dict.fromkeys(METRIC_IDS, "; ".join(unread) or no_frames or NO_ARTIFACT_SAYS_IT)
    if not unread:
        values |= {"executable_bytes": code_bytes, "rodata_bytes": constants}
        values["unattributed_bytes"] = whole_bytes - code_bytes - constants
        for metric in (each for each in METRICS if each.of_entry):
            none_at_all = "" if dispatches else NO_ARTIFACT_SAYS_IT
            values[metric.id], why = of_entries(dispatches, metric, none_at_all, NO_ARTIFACT_SAYS_IT)
            reasons[metric.id] = no_frames if no_frames and metric.of_entry == "stack_bytes" else why
    _check(facts, values)
    values |= facts
    if len(dispatches) == 1:
        own = {of: facts[metric.id] for metric in METRICS if metric.id in facts and (of := metric.of_entry)}
        dispatches = [replace(dispatches[0], **own)]
    metrics = {id_: values.get(id_) for id_ in dict.fromkeys((*METRIC_IDS, *facts))}
    parts = {label: size for label, size in sizes.items() if size}
    unknown = {id_: reasons.get(id_, "facts.json does not say it") for id_, value in metrics.items() if value is None}
    return Measurement(metrics, tuple(dispatches), unknown | ({"unread": "; ".join(unread)} if unread else {}), parts)


def _read(data: bytes) -> Reading:
    reading = read_executable(data, READERS, "file")
    if reading.format != "elf" or data[_RELOCATABLE[1]] != _RELOCATABLE[0]:
        return reading
    codes = function_codes(data)
    return replace(reading, entry_points=tuple(replace(one, code=codes[one.name].code) for one in reading.entry_points))


def _check(facts: Mapping[str, int | None], values: Mapping[str, int | None]) -> None:
    """Raises InputError for a fact that is less than nothing, or not what the files themselves say."""
    for id_, value in facts.items():
        if value is None:
            continue
        if not is_count(value):
            raise InputError(f"facts.json says that {id_} is {str(value)[:40]}")
        least = values.get(id_)
        if least is not None and least != value and not (id_ in _ADDED_AT_LAUNCH and value > least):
            raise InputError(f"facts.json says that {id_} is {value:,}, and the files have {values[id_]:,}")


def stages_of(files: Mapping[str, bytes], stages: Sequence[str]) -> DispatchTrace | None:
    """What the function consists of at each stage of a compiler's own IR; None where there are no such files."""
    steps, before = list[PassStep](), ("", Counter[str]())
    for stage in stages:
        texts = [data for name, data in sorted(files.items()) if name.endswith(f".{stage}")]
        if not texts:
            continue
        level = LLVM if _LLVM_IR.search(texts[0]) else MLIR if _MLIR.search(texts[0]) else MACHINE
        typed = Counter(item for text in texts for item in _items(text, level))
        changes = Counter(typed)
        changes.subtract(before[1] if before[0] == level else {})
        if not steps:  # so that the first stage can be the one in which two sides part
            steps.append(PassStep(SOURCE, "", level, {}))
        steps.append(PassStep(stage, "", level, {name: count for name, count in sorted(changes.items()) if count}))
        before = level, typed
    return DispatchTrace(tuple(steps), same_code=True) if steps else None


def _items(text: bytes, level: str) -> list[str]:
    lines = [line[:LONGEST_LINE_BYTES] for line in text.split(b"\n")]
    if level != MACHINE:
        return [item for line in lines for item in operations_of(line, level)]
    names = (match[1].decode() for match in map(_INSTRUCTION.match, lines) if match)
    return [".".join(name.split(".")[:_SHOWN_OF_MNEMONIC]) for name in names]
