"""Joining snapshots, and what can be said of two snapshots before they are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bot.core.snapshot import Cell, CellKey, Snapshot
from bot.errors import InputError


def merge_snapshots(parts: Sequence[tuple[str, Snapshot]]) -> Snapshot:
    """The snapshot of all parts' cells; each part comes with the name to call it by in errors.

    Parts of one run have the same compiler, source and flags; anything else is refused, as is a cell that two parts
    measured.
    """
    (first_name, first), *rest = parts
    for name, part in rest:
        for what in ("compiler", "source", "flags", "backends"):
            if getattr(part, what) != getattr(first, what):
                raise InputError(
                    f"has another {what} than {first_name}", where=name, mend="merge the shards of one run"
                )
    cells: dict[CellKey, Cell] = {}
    for name, part in parts:
        for cell in part.cells:
            if cell.key in cells:
                raise InputError(f"measured {cell.key} once more", where=name, mend="merge every shard once")
            cells[cell.key] = cell
    return replace(
        first,
        cells=tuple(cells[key] for key in sorted(cells)),
        targets={name: backend for _, part in parts for name, backend in part.targets.items()},
        models={name: digest for _, part in parts for name, digest in part.models.items()},
        notes=tuple(sorted({note for _, part in parts for note in part.notes})),
    )


def require_common_cells(base: Snapshot, head: Snapshot) -> None:
    """Refuse two snapshots of different suites: not one cell of theirs could be compared."""
    left, right = ({cell.key for cell in snapshot.cells} for snapshot in (base, head))
    if left and right and not left & right:
        raise InputError(
            f"the snapshots have no cell in common: base measured {min(left)} and others, head {min(right)} and others",
            mend="measure both sides with the same suite",
        )


def unmeasured_models(base: Snapshot, head: Snapshot) -> tuple[str, ...]:
    """One line for every model of which no cell could be measured on either side: most likely it does not parse."""
    cells = (*base.cells, *head.cells)
    measured = {cell.key.model for cell in cells if cell.measured}
    words: dict[str, str] = {}
    for cell in cells:
        if cell.key.model not in measured and cell.failure and cell.status != "unsupported":
            words.setdefault(cell.key.model, cell.failure.message.splitlines()[0])
    return tuple(f"{model} compiles on no target: {word}" for model, word in sorted(words.items()))
