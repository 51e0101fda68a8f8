"""The pipeline's third page: is a changed cell a change, or a compiler that does not repeat itself?

A few releases give one of two artifacts for the same command and input, as addresses happen to fall. Where a handful of
cells changed, as in an ordinary pull request, each of them is compiled once more, plainly, and an artifact that differs
from the measured one marks the cell as unstable: it is reported, and not judged. Where everything changed, as between
two releases, that would cost as much again and tell little, so nothing is compiled twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from bot.compiler.cache import cell_key
from bot.compiler.compiling import Compiled
from bot.compiler.runner import Meter
from bot.compiler.schedule import run_all
from bot.core.plan import PlannedCell
from bot.core.snapshot import Cell, CellKey, Failure, Snapshot
from bot.measuring import SidePlan, Workshop, open_side, scratch_directory

LARGEST_SHARE = 0.1
"""At most this share of the cells is compiled again; above it nothing is."""
FEW = 4
"""So many may always be compiled again, however small the suite."""


def suspects(base: Snapshot, head: Snapshot) -> frozenset[CellKey]:
    """Cells measured on both sides whose artifacts differ; none where they are too many to ask about."""
    left = {cell.key: cell.artifact_digest for cell in base.cells if cell.measured}
    right = {cell.key: cell.artifact_digest for cell in head.cells if cell.measured}
    changed = frozenset(key for key in left.keys() & right.keys() if left[key] != right[key])
    return changed if len(changed) <= max(FEW, LARGEST_SHARE * len(right)) else frozenset()


def recheck(
    plans: Sequence[SidePlan], snapshots: Mapping[str, Snapshot], keys: frozenset[CellKey], workshop: Workshop
) -> dict[str, Snapshot]:
    """The snapshots of these plans, those of their cells among `keys` compiled once more and marked."""
    cells = {plan.label: {cell.key: cell for cell in snapshots[plan.label].cells} for plan in plans}

    def finish(plan: SidePlan, planned: PlannedCell, result: Compiled | Failure) -> None:
        cell = replace(cells[plan.label][planned.key], rechecked=_outcome(cells[plan.label][planned.key], result))
        cells[plan.label][planned.key] = cell
        workshop.cache.store(cell_key(plan.toolchain.info.digest, planned), cell)

    with scratch_directory() as scratch, ExitStack() as stack:
        tasks = []
        for plan in plans:
            if again := [p for p in plan.cells if p.key in keys and cells[plan.label][p.key].rechecked is None]:
                side = stack.enter_context(open_side(plan, workshop, scratch, Meter(), partial(finish, plan)))
                tasks += side.tasks(again, share=False)
        run_all(tasks, workshop.jobs, workshop.cancel.set, workshop.progress)
    return {label: replace(snapshots[label], cells=tuple(found.values())) for label, found in cells.items()}


def _outcome(cell: Cell, result: Compiled | Failure) -> str:
    if isinstance(result, Failure):
        return "not deterministic: the same command compiled once, and then not"
    if hashlib.sha256(result.artifact).hexdigest() == cell.artifact_digest:
        return ""
    first, then = cell.metrics.get("artifact_bytes"), len(result.artifact)
    return f"not deterministic: the same command gave an artifact of {first} bytes, and then of {then}"
