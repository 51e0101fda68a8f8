"""Show the compiler's limit on stack allocations, as columns of an experiment.

The columns have the builds that it refuses.
"""

from __future__ import annotations

from bot.core.delta import value_of
from bot.core.lab_sums import Sums
from bot.core.planned import LIFTED_LIMIT_FLAG
from bot.core.snapshot import Cell
from bot.show.facts import STACK_LIMIT_BYTES, is_over
from bot.show.filters import UNKNOWN, plural

ALLOCATIONS = "stack_alloca_bytes"
DEFAULT_GATE = f"stack gate of {STACK_LIMIT_BYTES // 1024} KiB"
OWN_GATE = "stack gate"
_LIMIT_OPTION = LIFTED_LIMIT_FLAG.partition("=")[0]


def gate_headers(sums: Sums) -> list[str]:
    """Return the header of the gate's column; empty if nothing is known of the gate.

    The header has the compiler's default limit, unless a build sets another one.
    """
    if ALLOCATIONS not in sums.lab.experiment.columns:
        return []
    cells = list(sums.cells.values())
    if all(value_of(cell, ALLOCATIONS) is None for cell in cells):
        return []
    if any(_has_own_limit(cell) for cell in cells):
        return [OWN_GATE]
    return [DEFAULT_GATE]


def _has_own_limit(cell: Cell) -> bool:
    return _LIMIT_OPTION in cell.command.replace(LIFTED_LIMIT_FLAG, "")


def gate_words(cell: Cell) -> str:
    """Return whether the limit refuses a build; `n/a` for unknown allocations."""
    if is_over(cell):
        return "⚠️ refuses"
    if value_of(cell, ALLOCATIONS) is None:
        return UNKNOWN
    return "passes"


def refused_words(sums: Sums, variant: str) -> str:
    """Return `refuses 1 of 4 builds`, of a variant's builds in the sums.

    Return `n/a` if one of them is unknown.
    """
    texts = []
    refused = 0
    for model in sums.models:
        cell = sums.cells.get((model, variant))
        if cell is not None:
            texts.append(gate_words(cell))
            refused += is_over(cell)
    if not texts or UNKNOWN in texts:
        return UNKNOWN
    if not refused:
        return "passes"
    return f"⚠️ refuses {refused:,} of {plural(len(texts), 'build')}"
