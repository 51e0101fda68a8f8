"""One `Dispatch` per entry point: the program's IR, the artifact and the CPU code generator's files, merged by name.

The artifact's names are those of the program; PTX and Metal kernels, whose languages allow no `$` and the like in a
name, have `_` in such places. So names match exactly, or else as the only two of one such spelling.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from msgspec import structs

from bot.core.values.reading import EntryPoint, ProgramFacts
from bot.core.values.snapshot import Dispatch
from bot.readers.code.object_code import FunctionCode
from bot.readers.formats.cubin import MachineCode
from bot.readers.stack_usage import Frame

T = TypeVar("T")

UNSPEAKABLE = re.compile(r"[^0-9A-Za-z]+")
"""What a kernel's language may replace, runs of it taken as one (SPIRV-Cross joins underscores)."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What is known of a cell's entry points; None is "could not be read", an absent name "not known of it".

    Attributes:
        in_artifact: as the artifact's executables describe them.
        frames, functions: machine frame and code of a CPU function.
        allocas: stack allocations of a CPU function; empty where no function allocates.
        strategies: function → the configuration that the compiler chose for it.
        machine: kernel → what `ptxas` made of it.
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
    entries = [(entry.name, entry) for entry in sources.in_artifact]
    known = _known(sources)
    names = [each.name for each in known]
    strategies = _by_name((sources.strategies or {}).items(), names)
    described = _by_name(entries, names)
    machine = _by_name(sources.machine.items(), names)
    if sources.program is None:
        # Names may repeat here: each entry point is its own.
        pairs = list(zip(known, sources.in_artifact, strict=True))
    else:
        pairs = [(each, described.get(each.name, EntryPoint(each.name))) for each in known]
    return tuple(
        structs.replace(
            _dispatch(sources, each, said),
            strategy=strategies.get(each.name),
            **_machine(machine.get(each.name)),
        )
        for each, said in pairs
    )


def _machine(code: MachineCode | None) -> dict[str, int | None]:
    """What fields of a dispatch `ptxas` tells of."""
    if code is None:
        return {}
    return {"registers": code.registers, "spill_bytes": code.spill_bytes, "sass_bytes": code.sass_bytes}


def _known(sources: Sources) -> list[Dispatch]:
    if sources.program is None:
        return [Dispatch("", entry.name) for entry in sources.in_artifact]
    entries = sources.program.entry_points
    return [Dispatch(each.executable, each.entry_point, each.kind, each.sites) for each in entries]


def _dispatch(sources: Sources, known: Dispatch, said: EntryPoint) -> Dispatch:
    frame = sources.frames.get(known.name)
    function = sources.functions.get(known.name)
    allocas = sources.allocas
    return Dispatch(
        executable=known.executable,
        name=known.name,
        kind=known.kind,
        sites=known.sites,
        code_bytes=function.size_bytes if function else said.code_bytes,
        stack_bytes=frame.stack_bytes if frame else said.stack_bytes,
        stack_kind=frame.kind if frame else said.stack_kind,
        alloca_bytes=None if allocas is None else allocas.get(known.name) if allocas else 0,
        workgroup_bytes=said.workgroup_bytes,
        vgprs=said.vgprs,
        sgprs=said.sgprs,
        vgpr_spills=said.vgpr_spills,
        sgpr_spills=said.sgpr_spills,
        agprs=said.agprs,
        code=function.code if function else said.code,
        executable_bytes=said.executable_bytes,
    )


def _spelling(name: str) -> str:
    return UNSPEAKABLE.sub("_", name)


def _by_name(named: Iterable[tuple[str, T]], wanted: Collection[str]) -> dict[str, T]:
    """Wanted name → what is known of it; a name or spelling that two of either side share finds none."""
    named = list(named)
    exact = _unique(named)
    spelled = _unique((_spelling(name), each) for name, each in named)
    alone = _unique((_spelling(name), name) for name in wanted)
    found = {name: spelled[spelling] for spelling, name in alone.items() if spelling in spelled}
    return found | {name: exact[name] for name in wanted if name in exact}


def _unique(pairs: Iterable[tuple[str, T]]) -> dict[str, T]:
    pairs = list(pairs)
    counts = Counter(key for key, _ in pairs)
    return {key: value for key, value in pairs if counts[key] == 1}
