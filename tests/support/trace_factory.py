"""Traces by hand: of what there is after each pass, and for all dispatches of a snapshot."""

from __future__ import annotations

from collections.abc import Mapping

from replacing import replace

from bot.core.snapshot import Snapshot
from bot.core.trace import MACHINE, MLIR, DispatchTrace, PassStep

Counts = Mapping[str, int]


def trace(*states: tuple[str, Counts] | tuple[str, Counts, str]) -> DispatchTrace:
    """Of what there is after each pass."""
    steps = []
    before = dict[str, int]()
    last = MLIR
    for name, counts, *level in states:
        step_level = level[0] if level else MLIR
        base = before if step_level == last else {}
        changes = {
            key: counts.get(key, 0) - base.get(key, 0) for key in {*counts, *base}
        }
        steps.append(
            PassStep(
                name,
                name,
                step_level,
                {key: change for key, change in changes.items() if change},
            )
        )
        before = dict(counts)
        last = step_level
    return DispatchTrace(tuple(steps))


def traced(side: Snapshot, added: int, passes: int = 60, word: str = "") -> Snapshot:
    """Every dispatch traced: from the half of MLIR's passes on each adds so many operations.

    Two are the machine's.
    """
    same = (
        (f"{word}same-{number}", {f"arith.addi{word}": 40 + number % 5})
        for number in range(passes // 2)
    )
    grown = (
        (f"{word}pass-{number}", {f"arith.addi{word}": 40, "v.extract": added * number})
        for number in range(passes // 2)
    )
    machine = (
        (name, {f"MOV{word}": 20, "ADD": 5 + added}, MACHINE)
        for name in ("isel", "greedy")
    )
    dispatch_trace = trace(*same, *grown, *machine)
    cells = (
        replace(cell, traces={row.name: dispatch_trace for row in cell.dispatches})
        for cell in side.cells
    )
    return replace(side, cells=tuple(cells))
