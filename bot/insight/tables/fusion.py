"""How coarse fusion is: linalg operations before and after it, and the dispatch sites that came of them.

The program is the same on every target, so any measured cell of a model can say it. Its sites name entry points; what
an entry point does is in the cell's rows. Where a row is missing, the split would be a guess, and there is none.
"""

from __future__ import annotations

from bot.core.values.model_counts import FusionCounts
from bot.core.values.snapshot import Cell, Snapshot

COMPUTE_BOUND = frozenset({"attention", "conv", "matmul"})
"""Kinds of entry points that compute more than they load and store; all others are memory-bound."""


def fusion_counts(snapshot: Snapshot) -> dict[str, FusionCounts]:
    """Model → its counts, by the first of its cells that has them all; without the models where none has."""
    found: dict[str, FusionCounts] = {}
    for cell in snapshot.cells:
        if cell.measured and cell.key.model not in found and (counts := _counts(cell)) is not None:
            found[cell.key.model] = counts
    return found


def _counts(cell: Cell) -> FusionCounts | None:
    program, compute_bound = cell.program, _compute_bound(cell)
    if program is None:
        return None
    steady = [site.entry_point for site in program.sites if not site.initializer]
    found = [compute_bound.get(name) for name in steady]
    if None in found:
        return None
    return FusionCounts(
        linalg_ops_before=program.linalg_ops_before,
        linalg_ops_after=cell.value("linalg_ops"),
        compute_bound_sites=found.count(True),
        memory_bound_sites=found.count(False),
        initializer_sites=len(program.sites) - len(steady),
    )


def _compute_bound(cell: Cell) -> dict[str, bool | None]:
    """Entry point → is it compute-bound; None where executables share a name and disagree."""
    found: dict[str, bool | None] = {}
    for row in cell.dispatches:
        bound = row.kind in COMPUTE_BOUND
        found[row.name] = bound if found.get(row.name, bound) is bound else None
    return found
