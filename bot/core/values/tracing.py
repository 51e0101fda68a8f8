"""One dispatch traced on both sides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.core.values.root_cause import LookedUp, Suspect
from bot.core.values.snapshot import CellKey, Dispatch
from bot.core.values.trace import DispatchTrace, IrAround, Parting

TRACE_SCHEMA = "code-size-trace/1"


@dataclass(frozen=True, slots=True)
class Traced:
    """One dispatch on both sides.

    Attributes:
        compilers, rows, traces, commands: side → its compiler's version, the dispatch, its trace, and the two commands
            that print all of it.
        around: the IR around the pass that is named, on base and on head; none where no pass is.
        looked_up, suspects: which commits may have done it, as in a root cause.
    """

    key: CellKey
    compilers: Mapping[str, str]
    rows: Mapping[str, Dispatch]
    traces: Mapping[str, DispatchTrace]
    commands: Mapping[str, tuple[str, str]]
    parting: Parting
    around: tuple[IrAround, ...] = ()
    looked_up: LookedUp | None = None
    suspects: tuple[Suspect, ...] = ()
