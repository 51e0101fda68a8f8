"""Deltas: what changed between two snapshots, cell by cell. Pure arithmetic on what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bot.core.metrics import METRIC_BY_ID, METRIC_IDS
from bot.core.snapshot import Cell, CellKey, Metrics, Snapshot

STATES = ("newly-broken", "changed", "new", "removed", "fixed", "broken", "unmeasured", "same")


@dataclass(frozen=True, slots=True)
class MetricDelta:
    """One metric of one cell on both sides."""

    id: str
    base: int | None
    head: int | None

    @property
    def change(self) -> int | None:
        """head − base; None where either is not known."""
        return None if self.base is None or self.head is None else self.head - self.base

    @property
    def ratio(self) -> float | None:
        """Relative change (0.5 is +50 %); None on a missing or zero base."""
        return None if self.change is None or not self.base else self.change / self.base

    def swapped(self) -> MetricDelta:
        """The same with the sides exchanged."""
        return MetricDelta(self.id, self.head, self.base)


@dataclass(frozen=True, slots=True)
class CellDelta:
    """One cell on both sides.

    Attributes:
        state: one of STATES.
        identical: True where both artifacts are the same bytes, None where that is not known.
        base, head: the cells themselves; None where that side does not have the cell.
        reason: why the cell is unmeasured; empty otherwise.
        excused: True where it is unmeasured on purpose: the configuration says of its target that it cannot be compiled
            stand-alone, and base has nothing either.
    """

    key: CellKey
    state: str
    metrics: Mapping[str, MetricDelta]
    base: Cell | None
    head: Cell | None
    identical: bool | None = None
    reason: str = ""
    excused: bool = False

    @property
    def unstable(self) -> bool:
        """True where the compiler does not repeat itself, so that there is no one number to compare or to judge."""
        return self.state == "unmeasured" and any(cell and cell.rechecked for cell in (self.base, self.head))


# What the compiler does with the printed command on either side decides the state. `over` is refused like `failed`,
# but measured: only there do both sides of a refusal have numbers to compare. What is not listed is `unmeasured`: a
# timeout, too, as nobody knows what the compiler would have made of the cell with more time.
_STATE: dict[tuple[str, str], str] = {
    ("ok", "ok"): "compared",
    ("over", "over"): "compared",
    ("ok", "over"): "newly-broken",
    ("ok", "failed"): "newly-broken",
    ("over", "failed"): "newly-broken",
    ("absent", "over"): "newly-broken",
    ("absent", "failed"): "newly-broken",
    ("unsupported", "over"): "newly-broken",
    ("unsupported", "failed"): "newly-broken",
    ("absent", "ok"): "new",
    ("unsupported", "ok"): "new",
    ("over", "ok"): "fixed",
    ("failed", "ok"): "fixed",
    ("failed", "over"): "broken",
    ("failed", "failed"): "broken",
    ("ok", "absent"): "removed",
    ("over", "absent"): "removed",
    ("failed", "absent"): "removed",
    ("timeout", "absent"): "removed",
}
_COLUMN = {"over-stack-limit": "over"}
_ON_PURPOSE = frozenset(
    {
        ("unsupported", "unsupported"),
        ("unsupported", "absent"),
        ("absent", "unsupported"),
    }
)


def _column(snapshot: Snapshot, key: CellKey, cell: Cell | None) -> str:
    if cell is not None:
        return _COLUMN.get(cell.status, cell.status)
    planned = key.model in snapshot.models and key.target in snapshot.targets
    return "lost" if planned else "absent"


def outcome(cell: Cell | None) -> str:
    """How a cell ended, but for the compiler's words: `ok`, `absent`, `failed: compile`, `failed: compile, SIGSEGV`."""
    if cell is None:
        return "absent"
    failure = cell.failure
    told = [part for part in (failure.stage, failure.signal) if part] if failure else []
    return f"{cell.status}: {', '.join(told)}" if told else cell.status


def _identical(base: Cell | None, head: Cell | None) -> bool | None:
    digests = [cell.artifact_digest if cell else None for cell in (base, head)]
    return None if None in digests else digests[0] == digests[1]


def _unstable(base: Cell | None, head: Cell | None) -> str:
    return next((cell.rechecked for cell in (head, base) if cell is not None and cell.rechecked), "")


def _reason(base: Cell | None, head: Cell | None) -> str:
    sides = {"head": head, "base": base}
    cells = [cell for cell in sides.values() if cell is not None]
    for cell in cells:
        if cell.status == "unsupported" and cell.failure is not None:
            return cell.failure.message
    if lost := [name for name, cell in sides.items() if cell is None]:
        return f"not measured on {lost[0] if cells else 'either side'}"
    late = [name for name, cell in sides.items() if cell and cell.status == "timeout"]
    words = next((cell.failure.message for cell in cells if cell.status == "timeout" and cell.failure), "no end")
    return f"timed out on {late[0] if len(late) == 1 else 'both sides'}: {words}" if late else ""


def exact_changes(metrics: Iterable[MetricDelta]) -> list[MetricDelta]:
    """Those that differ (a value lost or won counts), among the metrics that repeat exactly."""
    return [m for m in metrics if m.base != m.head and METRIC_BY_ID[m.id].exact]


_NOTHING: Metrics = {}


def diff_cell(base: Snapshot, head: Snapshot, key: CellKey, cells: tuple[Cell | None, Cell | None]) -> CellDelta:
    """Compare one cell of two sides; `cells` are its values there, None where a side does not have it."""
    left, right = cells
    base_of, head_of = (cell.metrics.get if cell else _NOTHING.get for cell in cells)
    metrics = {id_: MetricDelta(id_, base_of(id_), head_of(id_)) for id_ in METRIC_IDS}
    identical = _identical(left, right)
    columns = (_column(base, key, left), _column(head, key, right))
    state = _STATE.get(columns, "unmeasured")
    reason = _reason(left, right) if state == "unmeasured" else ""
    if state == "compared" and identical is False and (reason := _unstable(left, right)):
        state = "unmeasured"  # there is no one number to compare
    if state == "compared":
        state = "same" if identical is not False and not exact_changes(metrics.values()) else "changed"
    return CellDelta(key, state, metrics, left, right, identical, reason, columns in _ON_PURPOSE)


def diff(base: Snapshot, head: Snapshot) -> tuple[CellDelta, ...]:
    """All cells of both sides, sorted by key; what was planned and has no cell is `unmeasured`."""
    left = {cell.key: cell for cell in base.cells}
    right = {cell.key: cell for cell in head.cells}
    keys = left.keys() | right.keys() | _planned(base) | _planned(head)
    return tuple(diff_cell(base, head, key, (left.get(key), right.get(key))) for key in sorted(keys))


def _planned(snapshot: Snapshot) -> set[CellKey]:
    return {CellKey(model, target) for model in snapshot.models for target in snapshot.targets}
