"""One dispatch traced on both sides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.core.ladder import Ladder
from bot.core.machine_passes import MachinePasses
from bot.core.pass_proof import PassProof
from bot.core.program_proof import ProgramProof
from bot.core.proof import KnobProof
from bot.core.snapshot import CellKey, Dispatch
from bot.core.trace import (
    DispatchTrace,
    Parting,
)

TRACE_SCHEMA = "code-size-trace/1"


@dataclass(frozen=True, slots=True)
class Traced:
    """One dispatch on both sides."""

    key: CellKey
    # compilers, rows, traces, commands: side → its compiler's version, the dispatch,
    # its trace, and the commands that print all of it. A side that lacks the dispatch
    # has only a command.
    compilers: Mapping[str, str]
    rows: Mapping[str, Dispatch]
    traces: Mapping[str, DispatchTrace]
    commands: Mapping[str, tuple[str, ...]]
    parting: Parting
    # None with the reason in `no_ladder`
    ladder: Ladder | None = None
    no_ladder: str = ""
    # the experiment on the program of a dispatch that is formed otherwise; None without
    # one
    formed: ProgramProof | None = None
    # the experiment with base's configuration; None if the configurations are equal,
    # or a compiler is not here
    proof: KnobProof | None = None
    # the experiment that divides the MLIR part, and the counts of both code generators;
    # None if their phase carries little of the change, or a compiler is not here
    pass_proof: PassProof | None = None
    machine: MachinePasses | None = None
