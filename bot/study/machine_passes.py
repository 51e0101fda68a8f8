"""Count a function's instructions after each pass of both code generators.

Both code generators compile the same bitcode.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from bot.core.machine_passes import MachinePasses, MachineStage
from bot.core.snapshot import Failure
from bot.core.trace_rows import more_on_head
from bot.study.code_generator import instructions_after, linker_flags
from bot.study.compiling_alone import compile_with_bitcode
from bot.study.ladder import LadderSide

MILESTONES = ("finalize-isel", "machine-scheduler", "greedy", "prologepilog")
"""Selected, scheduled, with registers, and with a frame.

The order is that in which a code generator runs them.
"""
_OTHER_NAMES = {"prologepilog": "prolog-epilog"}  # as later releases of LLVM call it


def machine_passes(base: LadderSide, head: LadderSide) -> MachinePasses:
    """Return the counts with the same bitcode on both sides.

    It is base's bitcode, or head's if head's code generator cannot read base's.
    """
    sides = {"base": base, "head": head}
    whys = []
    for label in sides:
        stages = _stages(sides[label], sides)
        if not isinstance(stages, str):
            return MachinePasses(label, stages)
        whys.append(stages)
    return MachinePasses(why=whys[0])


def _stages(
    source: LadderSide, sides: Mapping[str, LadderSide]
) -> tuple[MachineStage, ...] | str:
    """Return the counts with this side's bitcode, or why there are none."""
    if isinstance(source.source, Failure):
        return source.source.first_line
    if linker_flags(source.source) is None:
        return "the target has no code generator that compiles bitcode"
    _, bitcode = compile_with_bitcode(
        source.setup, argv=source.argv, text=source.source, entry_point=source.row.name
    )
    if isinstance(bitcode, Failure):
        return bitcode.first_line
    stages = []
    for name in MILESTONES:
        counts = dict[str, Counter[str]]()
        for label, side in sides.items():
            counted = _counted(
                side, bitcode=bitcode, entry_point=source.row.name, pass_name=name
            )
            if isinstance(counted, Failure):
                return f"{label}: {counted.first_line}"
            counts[label] = counted
        stages.append(_stage(name, counts["base"], counts["head"]))
    return tuple(stages)


def _counted(
    side: LadderSide, bitcode: bytes, entry_point: str, pass_name: str
) -> Counter[str] | Failure:
    """Count in this side's code generator; the pass may have its later name there."""
    if isinstance(side.source, str):
        flags = linker_flags(side.source)
    else:
        flags = None
    if flags is None:
        return Failure("read", "the target has no code generator that compiles bitcode")
    counted = instructions_after(
        side.setup,
        bitcode=bitcode,
        flags=flags,
        entry_point=entry_point,
        pass_name=pass_name,
    )
    if isinstance(counted, Failure) and pass_name in _OTHER_NAMES:
        return instructions_after(
            side.setup,
            bitcode=bitcode,
            flags=flags,
            entry_point=entry_point,
            pass_name=_OTHER_NAMES[pass_name],
        )
    return counted


def _stage(name: str, base: Counter[str], head: Counter[str]) -> MachineStage:
    return MachineStage(
        name=name,
        base=base.total(),
        head=head.total(),
        changes=more_on_head(base, head),
    )
