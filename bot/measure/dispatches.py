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

from bot.core.reading import EntryPoint, ExecutableFacts, ProgramFacts
from bot.core.snapshot import Dispatch
from bot.measure.stack_usage import Frame

T = TypeVar("T")

UNSPEAKABLE = re.compile(r"[^0-9A-Za-z]+")
"""What a kernel's language may replace, runs of it taken as one (SPIRV-Cross joins underscores)."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What is known of a cell's entry points; None is "could not be read", an absent name "not known of it".

    Attributes:
        in_artifact: as the artifact's executables describe them.
        frames, code_bytes: machine frame and code of a CPU function.
        allocas: stack allocations of a CPU function; empty where no function allocates.
    """

    program: ProgramFacts | None = None
    in_artifact: tuple[EntryPoint, ...] = ()
    frames: Mapping[str, Frame] = field(default_factory=dict)
    allocas: Mapping[str, int] | None = None
    code_bytes: Mapping[str, int] = field(default_factory=dict)


def merge_dispatches(sources: Sources) -> tuple[Dispatch, ...]:
    """The entry points in the program's order; without its IR in the artifact's, of unknown executable and kind."""
    if sources.program is None:
        return tuple(_dispatch(sources, Dispatch("", entry.name), entry) for entry in sources.in_artifact)
    facts = sources.program.entry_points
    described = _by_name(sources.in_artifact, [each.entry_point for each in facts])
    return tuple(_dispatch(sources, _of_program(each), described.get(each.entry_point)) for each in facts)


def _of_program(facts: ExecutableFacts) -> Dispatch:
    return Dispatch(facts.executable, facts.entry_point, facts.kind, facts.sites)


def _dispatch(sources: Sources, known: Dispatch, entry: EntryPoint | None) -> Dispatch:
    said = entry or EntryPoint(known.name)
    frame = sources.frames.get(known.name)
    allocas = sources.allocas
    return Dispatch(
        executable=known.executable,
        name=known.name,
        kind=known.kind,
        sites=known.sites,
        code_bytes=sources.code_bytes.get(known.name, said.code_bytes),
        stack_bytes=frame.stack_bytes if frame else said.stack_bytes,
        stack_kind=frame.kind if frame else said.stack_kind,
        alloca_bytes=None if allocas is None else allocas.get(known.name) if allocas else 0,
        workgroup_bytes=said.workgroup_bytes,
        vgprs=said.vgprs,
        sgprs=said.sgprs,
        vgpr_spills=said.vgpr_spills,
        sgpr_spills=said.sgpr_spills,
    )


def _spelling(name: str) -> str:
    return UNSPEAKABLE.sub("_", name)


def _by_name(entries: Collection[EntryPoint], wanted: Collection[str]) -> dict[str, EntryPoint]:
    """Wanted name → its entry point; a name or spelling that two entry points share finds none."""
    exact = _unique((entry.name, entry) for entry in entries)
    spelled = _unique((_spelling(entry.name), entry) for entry in entries)
    alone = _unique((_spelling(name), name) for name in wanted)
    found = {name: spelled[spelling] for spelling, name in alone.items() if spelling in spelled}
    return found | {name: exact[name] for name in wanted if name in exact}


def _unique(pairs: Iterable[tuple[str, T]]) -> dict[str, T]:
    pairs = list(pairs)
    counts = Counter(key for key, _ in pairs)
    return {key: value for key, value in pairs if counts[key] == 1}
