"""Static and dynamic versions of one model, side by side on every target: what it costs not to know the shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.core.values.model_counts import PAIR_METRICS, Pair
from bot.core.values.snapshot import Cell, CellKey, Snapshot

_Values = dict[str, dict[str, "int | None"]]


def pairs(base: Snapshot, head: Snapshot, named: Sequence[tuple[str, str]]) -> tuple[Pair, ...]:
    """The (static, dynamic) pairs on every target where at least one side measured both; sorted by their names."""
    sides = [{cell.key: cell for cell in side.cells if cell.measured} for side in (base, head)]
    targets = sorted({key.target for side in sides for key in side})
    candidates = ((static, dynamic, target) for static, dynamic in sorted(set(named)) for target in targets)
    found = (Pair(*names, *(_values(side, *names) for side in sides)) for names in candidates)
    return tuple(pair for pair in found if len(pair.base) == 2 or len(pair.head) == 2)


def _values(cells: Mapping[CellKey, Cell], static: str, dynamic: str, target: str) -> _Values:
    keys = {"static": CellKey(static, target), "dynamic": CellKey(dynamic, target)}
    return {name: {id_: cells[key].value(id_) for id_ in PAIR_METRICS} for name, key in keys.items() if key in cells}
