"""Compile an executable of AMD's GPUs alone, so that it has the code of the artifact.

The artifact holds the kernels of all executables in one module. LLVM's limits of
register pressure depend on a kernel's workgroup memory. LLVM computes them again only
if the kernel reserves other registers than the one before it (`RegisterClassInfo`). So
a kernel may have the limits of an earlier one, and then it has other code than alone.
Behind a small kernel of the same program it has the code of the artifact again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bot.core.snapshot import Cell, Dispatch, Failure
from bot.study.compiling_alone import CONFIGURATIONS, SOURCES, TARGETS
from bot.study.foreign_ir import executable_in
from bot.study.ladder import LadderSide


def neighbours_of(cell: Cell, row: Dispatch) -> list[Dispatch]:
    """Return the kernels behind which a dispatch is tried, the likeliest first.

    They are the smallest with workgroup memory and the smallest of all. Kernels of the
    same kind reserve the same registers, so these two stand for most others.
    """
    others = [
        other
        for other in cell.dispatches
        if other.code_bytes and other.executable != row.executable
    ]
    others.sort(key=lambda other: (other.code_bytes or 0, other.name))
    with_memory = [other for other in others if other.workgroup_bytes]
    likeliest = with_memory[:1]
    if others and others[0] not in likeliest:
        likeliest.append(others[0])
    return likeliest


def as_in_artifact(side: LadderSide, neighbours: Sequence[LadderSide]) -> LadderSide:
    """Return the side as it has to be compiled to get the code of the artifact.

    Kernels with workgroup memory mostly need a neighbour, so they are tried behind each
    neighbour first. Other kernels are tried alone first. If nothing gives the code of
    the artifact, the kernel is compiled alone.
    """
    if not side.row.workgroup_bytes and side.has_code_of_artifact:
        return side
    for neighbour in neighbours:
        texts = _texts(neighbour)
        if texts is not None:
            behind_it = _behind(side, texts)
            if behind_it.has_code_of_artifact:
                return behind_it
    return side


def _behind(side: LadderSide, texts: Mapping[str, str]) -> LadderSide:
    return replace(side, setup=replace(side.setup, neighbour=texts))


def _texts(neighbour: LadderSide) -> dict[str, str] | None:
    """Return phase → the neighbour's IR; None if it is not known at each phase."""
    texts = dict[str, str]()
    phases = {
        SOURCES: neighbour.source,
        CONFIGURATIONS: neighbour.configured,
        TARGETS: neighbour.translated,
    }
    for phase, text in phases.items():
        if isinstance(text, Failure):
            return None
        executable = executable_in(text)
        if executable is None:
            return None
        texts[phase] = executable
    return texts
