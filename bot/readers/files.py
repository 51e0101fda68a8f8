"""Measure the files of a compile as one cell.

Each file is read by its magic number, whatever made it.

A kernel is an entry point of an AMD code object, a cubin, PTX or SPIR-V; of other ELF
files, such as a C library's, each function is one. A file of no known format counts
whole, as `unattributed_bytes`. A compiler's own IR, stage after stage, is counted as
passes are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from bot.core.json_text import nonzero, without_zeros
from bot.core.mappings import only_named
from bot.core.metrics import (
    ARCHIVE,
    CODE,
    EXECUTABLES,
    METRIC_IDS,
    METRICS,
    OTHER,
    UNREAD,
)
from bot.core.reading import Measurement, Reading
from bot.core.record import is_count
from bot.core.snapshot import Dispatch
from bot.core.trace import LLVM, MACHINE, MLIR, SOURCE, DispatchTrace, PassStep
from bot.errors import ImpossibleBinary, InputError, MalformedBinary
from bot.readers.archive import THIN_MAGIC, is_archive, members_of
from bot.readers.artifact import read_executable
from bot.readers.assemble import Known, figures, of_entries
from bot.readers.code_object import CODE_OBJECT
from bot.readers.cubin import CUBIN
from bot.readers.demangling import demangled, stem_of
from bot.readers.elf import ELF, STT_FUNC, parse_elf
from bot.readers.frames import Row, fits, frames_of, rows_of
from bot.readers.object_code import function_codes
from bot.readers.passes import LONGEST_LINE_BYTES, operations_of
from bot.readers.ptx import PTX
from bot.readers.spirv import SPIRV

READERS = (CODE_OBJECT, CUBIN, ELF, SPIRV, PTX)
NO_ARTIFACT_SAYS_IT = "no file of the command has it"
# a file has what a kernel always takes; a launch may add to it
_ADDED_AT_LAUNCH = ("workgroup_memory_max_bytes",)
_ELF_TYPE = slice(16, 18)
_ET_REL = (1).to_bytes(2, "little")
_STACK_USAGE = ".su"
_LLVM_IR = re.compile(rb"^(?:define|declare|target triple)\b", re.MULTILINE)
_MLIR = re.compile(
    rb"^\s*(?:#\w+ = |module\b|tt\.func|llvm\.func|func\.func)", re.MULTILINE
)
# of assembly, PTX with its predicates among it
_INSTRUCTION = re.compile(rb"\s+(?:@!?%\w+ )?([a-z][\w.]+)(?=\s|;|$)")
_BARE_SHAPE = re.compile(rb"(tensordesc|(?<![\w.]))<(?=(?:(?:\d+|\?)x)+[a-z])")
"""The beginning of a type without the word `tensor`.

Triton 3.8 writes `<128x64xf16>` and `!tt.tensordesc<128x64xf16>` where 3.6 has a
`tensor` between the brackets.
"""
# `ld.global.v4.b32` counts as `ld.global`: sizes and modes beside it are many
_SHOWN_OF_MNEMONIC = 2


class _Piece(NamedTuple):
    """A file that ships, or a member of an archive that ships."""

    name: str  # `libf.a(f.o)` for a member
    # the name of the compiler's file of stack usage for it, without folder and ending
    stack_usage: str
    data: bytes


def measure_files(
    files: Mapping[str, bytes],
    artifacts: Sequence[str],
    facts: Mapping[str, int | None],
    costs: tuple[int, int | None],
) -> Measurement:
    """Return the numbers of one compile.

    Args:
        files: all files of the compile, by name.
        artifacts: the names of the files that ship.
        facts: metric id → what the command says of it; None for a declared metric of
            which it says nothing.
        costs: CPU time in ms, and peak memory in KiB.

    Raises:
        InputError: a fact is impossible.
    """
    pieces, unread = _pieces(files, artifacts)
    readings = _readings(pieces, unread)
    usages, no_frames = _usages(files)
    dispatches = _dispatches(pieces, readings, usages)
    sizes = _sizes(files, artifacts, pieces=pieces, readings=readings, unread=unread)
    whole_bytes = sum(len(files[name]) for name in artifacts)
    code_bytes = sum(only_named(sizes, CODE).values())
    constants = sizes[f"{EXECUTABLES}rodata"] + sizes[f"{EXECUTABLES}data"]
    values: dict[str, int | None] = {
        "artifact_bytes": whole_bytes,
        "compile_cpu_ms": costs[0],
        "compile_peak_rss_kib": costs[1],
        "executables": len(artifacts),
    }
    if dispatches and not _is_host(readings):
        values["entry_points"] = len(dispatches)
    not_read = "; ".join(f"{name}: {reason}" for name, reason in unread.items())
    reasons = dict.fromkeys(METRIC_IDS, not_read or NO_ARTIFACT_SAYS_IT)
    if not unread:
        values["executable_bytes"] = code_bytes
        values["rodata_bytes"] = constants
        values["unattributed_bytes"] = whole_bytes - code_bytes - constants
        for id_, summed in _metrics_of_entries(dispatches, no_frames).items():
            values[id_] = summed.value
            reasons[id_] = summed.reason
    _check(facts, values)
    values |= facts
    if len(dispatches) == 1:
        dispatches = [_with_facts(dispatches[0], facts)]
    metrics = dict.fromkeys((*METRIC_IDS, *facts))
    unknown = dict[str, str]()
    for id_ in metrics:
        metrics[id_] = values.get(id_)
        if metrics[id_] is None:
            unknown[id_] = reasons.get(id_, "facts.json does not have it")
    if unread:
        unknown["unread"] = not_read
    return Measurement(
        metrics=metrics,
        dispatches=tuple(dispatches),
        reasons=unknown,
        parts=without_zeros(sizes),
    )


def _is_host(readings: Mapping[str, Reading]) -> bool:
    """Return True for code of the host, whose functions are called, not launched."""
    return any(reading.format == "elf" for reading in readings.values())


def _metrics_of_entries(
    dispatches: Sequence[Dispatch], no_frames: str
) -> dict[str, Known]:
    """Return the metrics that sum up the entry points.

    `no_frames`: why the frames are unknown; empty where they are known.
    """
    metrics = dict[str, Known]()
    reason = "" if dispatches else NO_ARTIFACT_SAYS_IT
    for metric in METRICS:
        if not metric.of_entry:
            continue
        metrics[metric.id] = of_entries(
            dispatches, metric, reason=reason, silent=NO_ARTIFACT_SAYS_IT
        )
        if no_frames and metric.of_entry == "stack_bytes":
            metrics[metric.id] = metrics[metric.id]._replace(reason=no_frames)
    return metrics


def _readings(pieces: Sequence[_Piece], unread: dict[str, str]) -> dict[str, Reading]:
    """Return the reading of each piece by its name.

    `unread` gets the reason for each piece that is malformed. Raises InputError for a
    piece whose numbers are impossible.
    """
    readings = dict[str, Reading]()
    for piece in pieces:
        try:
            readings[piece.name] = _read(piece.data)
        except ImpossibleBinary as error:
            raise InputError(f"{piece.name}: {error.what}") from None
        except MalformedBinary as error:
            unread[piece.name] = error.line
    return readings


def _dispatches(
    pieces: Sequence[_Piece],
    readings: Mapping[str, Reading],
    usages: Mapping[str, tuple[Row, ...]],
) -> list[Dispatch]:
    """Return the entry points of all pieces that could be read."""
    names = set[str]()
    for contents in readings.values():
        names.update(entry.name for entry in contents.entry_points)
    texts = demangled(names)
    dispatches = list[Dispatch]()
    for piece in pieces:
        reading = readings.get(piece.name)
        if reading is None:
            continue
        frames = dict[str, int]()
        if usages and reading.format == "elf":
            frames = _frames(piece, usages, texts)
        for entry in reading.entry_points:
            values = figures(entry)
            if entry.name in frames:
                values["stack_bytes"] = frames[entry.name]
            kind = stem_of(entry.name, texts.get(entry.name))
            dispatches.append(
                Dispatch(piece.name, entry.name, kind, strategy="", **values)
            )
    return dispatches


def _sizes(
    files: Mapping[str, bytes],
    artifacts: Sequence[str],
    *,
    pieces: Sequence[_Piece],
    readings: Mapping[str, Reading],
    unread: Mapping[str, str],
) -> Counter[str]:
    """Return the bytes of each part of all files that ship."""
    sizes = Counter[str]()
    for piece in pieces:
        reading = readings.get(piece.name)
        if reading is not None:
            for label, size in reading.parts.items():
                sizes[EXECUTABLES + label] += size
            sizes[OTHER] += reading.unattributed_bytes
    data_of = {piece.name: piece.data for piece in pieces}
    unread_piece_bytes = 0
    unread_archive_bytes = 0
    for name in unread:
        if name in data_of:
            unread_piece_bytes += len(data_of[name])
        else:
            unread_archive_bytes += len(files[name])
    whole_bytes = sum(len(files[name]) for name in artifacts)
    held_bytes = sum(len(piece.data) for piece in pieces)
    sizes[UNREAD] = unread_piece_bytes + unread_archive_bytes
    sizes[ARCHIVE] = whole_bytes - held_bytes - unread_archive_bytes
    return sizes


def _with_facts(dispatch: Dispatch, facts: Mapping[str, int | None]) -> Dispatch:
    """Return the only entry point with the facts that are about entry points."""
    values = dict[str, int | None]()
    for metric in METRICS:
        if metric.of_entry and metric.id in facts:
            values[metric.of_entry] = facts[metric.id]
    return replace(dispatch, **values)


def _pieces(
    files: Mapping[str, bytes], artifacts: Sequence[str]
) -> tuple[list[_Piece], dict[str, str]]:
    """Return the files that ship, and damaged archives with the reason.

    An archive counts as its members. Raises InputError for a thin archive, because what
    ships is in other files.
    """
    pieces = list[_Piece]()
    unread = dict[str, str]()
    for name in artifacts:
        data = files[name]
        if data.startswith(THIN_MAGIC):
            raise InputError(
                f"{name} is a thin archive without code: create it without `ar`'s T or"
                " --thin"
            )
        if not is_archive(data):
            pieces.append(_Piece(name, _without_ending(name), data))
            continue
        try:
            members = members_of(data)
        except MalformedBinary as error:
            unread[name] = error.line
            continue
        for member in members:
            pieces.append(
                _Piece(
                    f"{name}({member.name})",
                    _without_ending(member.file_name),
                    member.data,
                )
            )
    return pieces, unread


def _without_ending(name: str) -> str:
    return re.sub(r"\.[^./]*$", "", name)


def _usages(files: Mapping[str, bytes]) -> tuple[dict[str, tuple[Row, ...]], str]:
    """Return the stack usage by file name without ending.

    If a file is malformed, the first value is empty, and the second one is the
    reason.
    """
    usages = dict[str, tuple[Row, ...]]()
    for name, data in files.items():
        if not name.endswith(_STACK_USAGE):
            continue
        try:
            usages[name.removesuffix(_STACK_USAGE)] = rows_of(data)
        except MalformedBinary as error:
            return {}, f"{name}: {error.line}"
    return usages, ""


def _frames(
    piece: _Piece, usages: Mapping[str, tuple[Row, ...]], texts: Mapping[str, str]
) -> dict[str, int]:
    """Return function → frame of one object.

    The frames come from its own file of stack usage, else from those of all files. A
    local function may have a namesake in another file. What is linked of several files
    has no file of its own.
    """
    functions = parse_elf(piece.data).symbols(STT_FUNC)
    if piece.stack_usage in usages:
        usage_files = [piece.stack_usage]
    else:
        usage_files = []
    if not usage_files and "(" in piece.name:  # a member has no folder
        for name in usages:
            if name.rpartition("/")[2] == piece.stack_usage:
                usage_files.append(name)
        if len(usage_files) > 1:
            candidates = usage_files
            usage_files = []
            for name in candidates:
                if fits(functions, usages[name], texts):
                    usage_files.append(name)
    is_own = len(usage_files) == 1 and _is_relocatable(piece.data)
    rows = list[Row]()
    for name in usage_files or usages:
        rows += usages[name]
    return frames_of(functions, rows=rows, texts=texts, is_own=is_own)


def _is_relocatable(data: bytes) -> bool:
    """Return whether an ELF file is an object that is not linked yet."""
    return data[_ELF_TYPE] == _ET_REL


def _read(data: bytes) -> Reading:
    reading = read_executable(data, READERS, "file")
    if reading.format != "elf" or not _is_relocatable(data):
        return reading
    codes = function_codes(data)
    entries = []
    for entry in reading.entry_points:
        entries.append(replace(entry, code=codes[entry.name].code))
    return replace(reading, entry_points=tuple(entries))


def _check(facts: Mapping[str, int | None], values: Mapping[str, int | None]) -> None:
    """Raise InputError for a negative fact.

    Raise it as well for a fact that contradicts the files themselves.
    """
    for id_, value in facts.items():
        if value is None:
            continue
        if not is_count(value):
            raise InputError(
                f"facts.json has an invalid value for {id_}: {str(value)[:40]}"
            )
        measured = values.get(id_)
        if (
            measured is not None
            and measured != value
            and not (id_ in _ADDED_AT_LAUNCH and value > measured)
        ):
            raise InputError(
                f"facts.json has {id_} = {value:,}, but the files have {values[id_]:,}"
            )


def stages_of(
    files: Mapping[str, bytes], stages: Sequence[str]
) -> DispatchTrace | None:
    """Return what the function consists of at each stage of a compiler's own IR.

    None if there are no such files.
    """
    steps = list[PassStep]()
    before = ("", Counter[str]())
    for stage in stages:
        names = [name for name in sorted(files) if name.endswith(f".{stage}")]
        texts = [files[name] for name in names]
        if not texts:
            continue
        if _LLVM_IR.search(texts[0]):
            level = LLVM
        elif _MLIR.search(texts[0]):
            level = MLIR
        else:
            level = MACHINE
        typed = Counter[str]()
        for text in texts:
            typed.update(_items(text, level))
        changes = Counter(typed)
        changes.subtract(before[1] if before[0] == level else {})
        if not steps:  # so that the first stage can be the one in which two sides part
            steps.append(PassStep(name=SOURCE, class_name="", level=level, changes={}))
        steps.append(
            PassStep(
                name=stage,
                class_name="",
                level=level,
                changes=nonzero(changes),
            )
        )
        before = level, typed
    if steps:
        return DispatchTrace(tuple(steps), same_code=True)
    return None


def _items(text: bytes, level: str) -> list[str]:
    items = list[str]()
    for whole_line in text.split(b"\n"):
        line = whole_line[:LONGEST_LINE_BYTES]
        if level != MACHINE:
            items += operations_of(_BARE_SHAPE.sub(rb"\1<tensor<", line), level)
        elif match := _INSTRUCTION.match(line):
            parts = match[1].decode().split(".")
            items.append(".".join(parts[:_SHOWN_OF_MNEMONIC]))
    return items
