"""Joining snapshots, and what can be said of two snapshots before they are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from bot.core.values.snapshot import UNFETCHED, Cell, CellKey, Snapshot
from bot.errors import InputError

_HINT = "merge the shards of one run"


def merge_snapshots(parts: Sequence[tuple[str, Snapshot]]) -> Snapshot:
    """The snapshot of all parts' cells; each part comes with the name to call it by in errors.

    Parts of one run have the same compiler, source and flags; anything else is refused, as are a model or target that
    two parts know differently, and a cell that two parts measured.
    """
    first_name, first = next((named for named in parts if named[1].cells), parts[0])
    for name, part in parts:
        for what in ("compiler", "source", "flags", "backends"):
            differs = getattr(part, what) != getattr(first, what)
            if differs and (what != "flags" or part.cells):  # a shard without cells does not know the flags
                raise InputError(f"has a different {what} than {first_name}", where=name, hint=_HINT)
    cells: dict[CellKey, Cell] = {}
    for name, part in parts:
        for cell in part.cells:
            if cell.key in cells:
                raise InputError(f"measured {cell.key} a second time", where=name, hint="merge every shard once")
            cells[cell.key] = cell
    return replace(
        first,
        cells=tuple(cells[key] for key in sorted(cells)),
        targets=_united("targets", parts),
        models=_united("models", parts),
        only=_united("only", parts),
        notes=tuple(sorted({note for _, part in parts for note in part.notes})),
    )


def _united(what: Literal["models", "targets", "only"], parts: Sequence[tuple[str, Snapshot]]) -> dict[str, str]:
    united: dict[str, str] = {}
    for name, part in parts:
        for key, value in getattr(part, what).items():
            if united.setdefault(key, value) != value:
                said = f"has a different {key!r} among its {what} than the parts before"
                raise InputError(said, where=name, hint=_HINT)
    return united


def nothing_in_common(base: Snapshot, head: Snapshot) -> str:
    """That two snapshots are of different suites, and what to do about it; empty where they have a cell in common."""
    left, right = ({cell.key for cell in snapshot.cells} for snapshot in (base, head))
    if not left or not right or left & right:
        return ""
    return f"measure both sides with the same suite: base has {min(left)} and others, head {min(right)} and others"


def unmeasured_models(base: Snapshot, head: Snapshot) -> tuple[str, ...]:
    """One line for every model of which no cell could be measured on either side: most likely it does not parse."""
    cells = (*base.cells, *head.cells)
    measured = {cell.key.model for cell in cells if cell.measured}
    words: dict[str, str] = {}
    for cell in cells:
        is_tried = cell.status != "unsupported" and cell.failure is not None and cell.failure.stage != UNFETCHED
        if cell.key.model not in measured and cell.failure and is_tried:
            words.setdefault(cell.key.model, cell.failure.message.partition("\n")[0])
    return tuple(f"{model} compiles on no target: {word}" for model, word in sorted(words.items()))
