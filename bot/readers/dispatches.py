"""One `Dispatch` per entry point: the program's IR, the artifact and the CPU code generator's files, merged by name.

The artifact's names are those of the program; PTX and Metal kernels, whose languages allow no `$` and the like in a
name, have `_` in such places. So names match exactly, or else as the only two of one such spelling.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from msgspec import structs

from bot.core.values.reading import EntryPoint, ProgramFacts
from bot.core.values.snapshot import Dispatch
from bot.readers.code.object_code import FunctionCode
from bot.readers.formats.cubin import MachineCode
from bot.readers.stack_usage import Frame

T = TypeVar("T")

UNSPEAKABLE = re.compile(r"[^0-9A-Za-z]+")
"""What a kernel's language may replace, runs of it taken as one (SPIRV-Cross joins underscores)."""


_OF_ENTRY_POINT = tuple(each.name for each in fields(EntryPoint) if each.name != "name")


@dataclass(frozen=True, slots=True)
class Sources:
    """What is known of a cell's entry points; None is "could not be read", an absent name "not known of it".

    Attributes:
        frames, functions: machine frame and code of a CPU function.
        allocas: stack allocations of a CPU function; empty where no function allocates.
        strategies: function → the configuration that the compiler chose for it.
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
    if sources.program is None:
        dispatches = [Dispatch("", entry.name) for entry in sources.in_artifact]
    else:
        entries = sources.program.entry_points
        dispatches = [Dispatch(each.executable, each.entry_point, each.kind, each.sites) for each in entries]
    names = [each.name for each in dispatches]
    strategies = _by_name((sources.strategies or {}).items(), names)
    described = _by_name([(entry.name, entry) for entry in sources.in_artifact], names)
    machine = _by_name(sources.machine.items(), names)
    merged = []
    for place, dispatch in enumerate(dispatches):
        name, allocas = dispatch.name, sources.allocas
        # Without a program names may repeat: each entry point is its own.
        entry = described.get(name) if sources.program else sources.in_artifact[place]
        values: dict[str, Any] = {what: getattr(entry, what) for what in _OF_ENTRY_POINT} if entry else {}
        if function := sources.functions.get(name):
            values |= {"code_bytes": function.size_bytes, "code": function.code}
        if frame := sources.frames.get(name):
            values |= {"stack_bytes": frame.stack_bytes, "stack_kind": frame.kind}
        if code := machine.get(name):
            values |= {what: getattr(code, what) for what in ("registers", "spill_bytes", "sass_bytes")}
        values["alloca_bytes"] = None if allocas is None else allocas.get(name) if allocas else 0
        merged.append(structs.replace(dispatch, strategy=strategies.get(name), **values))
    return tuple(merged)


def _by_name(named: Iterable[tuple[str, T]], wanted: Collection[str]) -> dict[str, T]:
    """Wanted name → what is known of it; a name or spelling that two of either side share finds none."""
    named = list(named)
    exact = _unique(named)
    spelled = _unique((UNSPEAKABLE.sub("_", name), each) for name, each in named)
    alone = _unique((UNSPEAKABLE.sub("_", name), name) for name in wanted)
    by_spelling = {name: spelled[spelling] for spelling, name in alone.items() if spelling in spelled}
    return by_spelling | {name: exact[name] for name in wanted if name in exact}


def _unique(pairs: Iterable[tuple[str, T]]) -> dict[str, T]:
    pairs = list(pairs)
    counts = Counter(key for key, _ in pairs)
    return {key: value for key, value in pairs if counts[key] == 1}
