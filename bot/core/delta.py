"""Compare two snapshots cell by cell, also those of non-deterministic compilers.

Two different outcomes of one command prove that a compiler is non-deterministic. The
same side may have shown them in several compiles. Or both sides have the same compiler,
model and flags, and different outcomes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import product

from msgspec.structs import replace

from bot.core.comparable import comparable
from bot.core.metrics import (
    INEXACT,
    METRIC_BY_ID,
    METRIC_IDS,
    Metric,
    own_metrics,
    unlike,
)
from bot.core.planned import LIFTED_LIMIT_FLAG
from bot.core.record import Small, Value, certain, difference, shown_sides, spread
from bot.core.snapshot import UNLISTED, Cell, CellKey, CompileOutcome, Metrics, Snapshot

_TARGET_OPTIONS = ("--iree-hal-target-backends=", "--iree-hal-target-device=")

Outcomes = tuple[tuple[CompileOutcome, ...], tuple[CompileOutcome, ...]]
"""The outcomes of base and of head: the first one, then those that differ from it.

The outcomes of a side without the cell are empty.
"""


def distinct(outcomes: Iterable[CompileOutcome]) -> tuple[CompileOutcome, ...]:
    """Return each outcome once: they are the same where status and artifact are."""
    first: dict[tuple[str, str | None], CompileOutcome] = {}
    for outcome in outcomes:
        first.setdefault((outcome.status, outcome.artifact_digest), outcome)
    return tuple(first.values())


def seen_values(cell: Cell) -> dict[str, tuple[int, ...]]:
    """Return exact metric → its values, lowest first, if the command gave several."""
    if not cell.others:
        return {}
    values = dict[str, set[int]]()
    for outcome in (cell.outcome, *cell.others):
        for id_, value in outcome.metrics.items():
            if id_ not in INEXACT and value is not None:
                values.setdefault(id_, set()).add(value)
    varying = dict[str, tuple[int, ...]]()
    for outcome in (cell.outcome, *cell.others):
        for id_ in outcome.metrics:
            if len(values.get(id_, ())) > 1:
                varying[id_] = tuple(sorted(values[id_]))
    return varying


def value_of(cell: Cell, id_: str) -> Value:
    """Return all values of a metric of a cell, as reports show them.

    Return None without an artifact.
    """
    if not cell.measured:
        return None
    values = seen_values(cell).get(id_)
    if values:
        return spread(values)
    return cell.value(id_)


def numbers_repeat(outcomes: Outcomes) -> bool:
    """Return whether each side always ended in one way with the same exact metrics."""
    exact = set[str]()
    for side in outcomes:
        for outcome in side:
            exact.update(outcome.metrics.keys() - set(INEXACT))
    for side in outcomes:
        different = set[tuple[object, ...]]()
        for outcome in side:
            values = map(outcome.metrics.get, sorted(exact))
            different.add((outcome.status, *values))
        if len(different) > 1:
            return False
    return True


def _same_command(
    base: Snapshot, head: Snapshot, cells: tuple[Cell | None, Cell | None]
) -> bool:
    """Return whether both sides compiled the same files in the same way.

    They have one compiler and the same flags, and both have an artifact.
    """
    base_cell, head_cell = cells
    if (
        base_cell is None
        or head_cell is None
        or base_cell.artifact_digest is None
        or head_cell.artifact_digest is None
    ):
        return False
    if not same_but_for_flags(base, head, base_cell, head_cell):
        return False
    return _flags(base_cell) == _flags(head_cell) != ""


def same_but_for_flags(
    base: Snapshot, head: Snapshot, base_cell: Cell, head_cell: Cell
) -> bool:
    """Return whether both sides have the same compiler, model and files for a cell.

    It is False if one of them is not known.
    """
    if base_cell.inputs != head_cell.inputs or UNLISTED in (
        base_cell.inputs,
        head_cell.inputs,
    ):
        return False
    models = base.models.get(base_cell.model), head.models.get(base_cell.model)
    if (
        not base.compiler.digest
        or base.compiler.digest != head.compiler.digest
        or None in models
    ):
        return False
    return models[0] == models[1]


def _flags(cell: Cell) -> str:
    """Return the command without the model's path and the option for the stack gate.

    It is empty if it names no target.
    """
    command = cell.command.partition(" < ")[0].replace(f" {LIFTED_LIMIT_FLAG}", "")
    if any(option in command for option in _TARGET_OPTIONS):
        return command
    return ""


def as_outcome(cell: Cell | None, outcome: CompileOutcome | None) -> Cell | None:
    """Return the cell as another compile of it gave it.

    What is only known of the first compile is left out.
    """
    if cell is None or outcome is None or outcome == cell.outcome:
        return cell
    changed = replace(
        cell,
        status=outcome.status,
        metrics=outcome.metrics,
        artifact_digest=outcome.artifact_digest,
    )
    return replace(
        changed, dispatches=(), failure=cell.failure if outcome.status != "ok" else None
    )


STATES = (
    "newly-broken",
    "changed",
    "new",
    "removed",
    "fixed",
    "broken",
    "unmeasured",
    "same",
)
STATES_BY_NEWS = (
    "same",
    "changed",
    "broken",
    "fixed",
    "new",
    "removed",
    "newly-broken",
    "unmeasured",
)
"""The states of a non-deterministic cell.

The state that proves least about the change comes first.
"""


class MetricDelta(Small, frozen=True):
    """One metric of one cell on both sides."""

    id: str
    # base, head: the values; for a non-deterministic build those of the two outcomes
    # that differ least
    base: int | None
    head: int | None
    # every value seen on base and on head, lowest first; None if each side has only one
    seen: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    # the metric as a configuration declares it; None for a built-in one
    own: Metric | None = None

    @property
    def quantity(self) -> Metric:
        """Return the metric: a row of the configuration, or of this program's table."""
        return self.own or METRIC_BY_ID[self.id]

    @property
    def sides(self) -> tuple[Value, Value]:
        """Return base and head as reports show them."""
        return shown_sides(self.base, self.head, self.seen)

    @property
    def change(self) -> int | None:
        """Return head − base.

        It is None if either is not known, or if ranges leave its sign open. For ranges
        that do not overlap, it is the distance between them. It is 0 if both sides have
        the same values.
        """
        if self.seen is not None:
            if self.seen[0] == self.seen[1]:
                return 0
            return certain(difference(*self.sides))
        if self.base is None or self.head is None:
            return None
        return self.head - self.base

    @property
    def is_open(self) -> bool:
        """Return whether both sides are known, but the sign of the change is not."""
        return self.seen is not None and self.change is None and None not in self.sides

    @property
    def ratio(self) -> float | None:
        """Return the relative change (0.5 is +50 %); None on a missing or zero base."""
        change = self.change
        if change is None or not self.base:
            return None
        if self.seen is None:
            return change / self.base
        return change / self.seen[0][-1 if change > 0 else 0]

    @property
    def least_alarming(self) -> MetricDelta:
        """Return the largest base and the smallest head: the least growth seen."""
        return self._between(-1, 0)

    @property
    def most_alarming(self) -> MetricDelta:
        """Return the smallest base and the largest head."""
        return self._between(0, -1)

    def _between(self, of_base: int, of_head: int) -> MetricDelta:
        if self.seen is None:
            return self
        base, head = self.seen
        return MetricDelta(
            self.id,
            base[of_base] if base else None,
            head[of_head] if head else None,
            own=self.own,
        )


class CellDelta(Small, frozen=True):
    """One cell on both sides."""

    key: CellKey
    state: str
    metrics: Mapping[str, MetricDelta]
    # base, head: the cells themselves; None if that side does not have the cell
    base: Cell | None
    head: Cell | None
    # True if both artifacts are the same bytes, None if that is not known
    identical: bool | None = None
    reason: str = ""
    # why the build is non-deterministic; empty if it is not
    noise: str = ""
    # True if there is noise, but each side always ended alike and with the same
    # exact metrics
    numbers_repeat: bool = False
    # True if it is unmeasured on purpose, and base has nothing either: the
    # configuration says that its target cannot be compiled stand-alone
    excused: bool = False

    @property
    def unstable(self) -> bool:
        """Return whether the compiler is non-deterministic here."""
        return bool(self.noise)

    @property
    def is_open(self) -> bool:
        """Return whether ranges leave open if a deterministic number grew or shrank."""
        return self.unstable and any(metric.is_open for metric in self.metrics.values())

    @property
    def explainable(self) -> bool:
        """Return whether the first compiles show the cause of the change.

        They do if the build is deterministic. If it is not, each side must always have
        ended in one way with the same exact metrics. In the state `changed`, an exact
        metric must differ, too: different bytes alone may be noise.
        """
        moved = self.state != "changed" or bool(exact_changes(self.metrics.values()))
        return not self.unstable or (self.numbers_repeat and moved)


# The results of the printed command on both sides decide the state. `over-stack-limit`
# is refused like `failed`, but measured. Any other pair is `unmeasured`: with more time
# it might have ended in any way.
_STATE: dict[tuple[str, str], str] = {
    ("ok", "ok"): "compared",
    ("over-stack-limit", "over-stack-limit"): "compared",
    ("ok", "over-stack-limit"): "newly-broken",
    ("ok", "failed"): "newly-broken",
    ("absent", "over-stack-limit"): "newly-broken",
    ("absent", "failed"): "newly-broken",
    ("unsupported", "over-stack-limit"): "newly-broken",
    ("unsupported", "failed"): "newly-broken",
    ("over-stack-limit", "failed"): "newly-broken",
    ("absent", "ok"): "new",
    ("unsupported", "ok"): "new",
    ("over-stack-limit", "ok"): "fixed",
    ("failed", "ok"): "fixed",
    ("failed", "over-stack-limit"): "broken",
    ("failed", "failed"): "broken",
    ("ok", "absent"): "removed",
    ("over-stack-limit", "absent"): "removed",
    ("failed", "absent"): "removed",
    ("timeout", "absent"): "removed",
}
_ON_PURPOSE = {
    ("unsupported", "unsupported"),
    ("unsupported", "absent"),
    ("absent", "unsupported"),
}


def _result_on(snapshot: Snapshot, key: CellKey, cell: Cell | None) -> str:
    """Return the cell's status, `lost` if it was planned and has no result, else `absent`."""
    if cell is not None:
        return cell.status
    if snapshot.plans(key):
        return "lost"
    return "absent"


def outcome(cell: Cell | None) -> str:
    """Return how a cell ended, without the compiler's words.

    Examples are `ok`, `absent`, `failed: compile` and `failed: compile, SIGSEGV`.
    """
    if cell is None:
        return "absent"
    if cell.failure is None:
        return cell.status
    details = list(filter(None, (cell.failure.stage, cell.failure.signal)))
    if details:
        return f"{cell.status}: {', '.join(details)}"
    return cell.status


def _reason(base: Cell | None, head: Cell | None, results: tuple[str, str]) -> str:
    """Return why a cell is not measured on a side; empty if it is on both.

    `results` are those of base and head. A side that did not plan the cell is no reason.
    """
    sides = (("head", head, results[1]), ("base", base, results[0]))
    cells = []
    lost = []
    late = []
    for name, cell, result in sides:
        if cell is None:
            if result == "lost":
                lost.append(name)
            continue
        cells.append(cell)
        if cell.status == "timeout":
            late.append(name)
        is_explained = bool(lost or late)
        if cell.status == "unsupported" and cell.failure and not is_explained:
            return cell.failure.message
    if lost:
        where = lost[0] if len(lost) == 1 else "either side"
        return f"not measured on {where}"
    if not late:
        return ""
    where = late[0] if len(late) == 1 else "both sides"
    return f"timed out on {where}: {_timeout_message(cells)}"


def _timeout_message(cells: Sequence[Cell]) -> str:
    for cell in cells:
        if cell.status == "timeout" and cell.failure:
            return cell.failure.message
    return "no end"


def exact_changes(metrics: Iterable[MetricDelta]) -> list[MetricDelta]:
    """Return the metrics that repeat exactly and differ, or may differ.

    A value that only one side has counts as a difference.
    """
    changes = []
    for metric in metrics:
        is_change = metric.base != metric.head or metric.is_open
        if is_change and metric.id not in INEXACT:
            changes.append(metric)
    return changes


_NOTHING: Metrics = {}


def _diff_cell(
    base: Snapshot, head: Snapshot, key: CellKey, cells: tuple[Cell | None, Cell | None]
) -> CellDelta:
    """Compare one cell of two sides.

    `cells` are its values there, None if a side does not have it. If the build is
    non-deterministic, the two outcomes that differ least are compared.
    """
    cells = comparable(*cells, unlike(base.compiler.metrics, head.compiler.metrics))
    base_outcomes = _outcomes_of(cells[0])
    head_outcomes = _outcomes_of(cells[1])
    outcomes = base_outcomes, head_outcomes
    if _same_command(base, head=head, cells=cells):
        # each side may have given what the other side gave
        outcomes = (
            distinct((*base_outcomes, *head_outcomes)),
            distinct((*head_outcomes, *base_outcomes)),
        )
    if any(len(outcome) > 1 for outcome in outcomes):
        return _noisy(base, head=head, key=key, cells=cells, outcomes=outcomes)
    return _compared(base, head=head, key=key, cells=cells)


def _outcomes_of(cell: Cell | None) -> tuple[CompileOutcome, ...]:
    """Return the outcomes of a cell's command, each once."""
    if cell is None:
        return ()
    return distinct((cell.outcome, *cell.others))


def _compared(
    base: Snapshot, head: Snapshot, key: CellKey, cells: tuple[Cell | None, Cell | None]
) -> CellDelta:
    base_cell, head_cell = cells
    base_metrics = base_cell.metrics if base_cell else _NOTHING
    head_metrics = head_cell.metrics if head_cell else _NOTHING
    declared = own_metrics(base.compiler.metrics, head.compiler.metrics)
    metrics = dict[str, MetricDelta]()
    for id_ in (*METRIC_IDS, *declared):
        metrics[id_] = _metric_delta(
            id_, base_metrics.get(id_), head_metrics.get(id_), declared.get(id_)
        )
    identical = _identical(base_cell, head_cell)
    results = (_result_on(base, key, base_cell), _result_on(head, key, head_cell))
    state = _STATE.get(results, "unmeasured")
    if state == "unmeasured":
        reason = _reason(base_cell, head_cell, results)
    else:
        reason = ""
    if state == "compared":
        differs = identical is False or exact_changes(metrics.values())
        state = "changed" if differs else "same"
    return CellDelta(
        key=key,
        state=state,
        metrics=metrics,
        base=base_cell,
        head=head_cell,
        identical=identical,
        reason=reason,
        excused=results in _ON_PURPOSE,
    )


@lru_cache(maxsize=4096)
def _metric_delta(
    id_: str, base: int | None, head: int | None, own: Metric | None
) -> MetricDelta:
    """Return the delta of one metric: the same object for the builds that share it.

    Builds of one model have many numbers in common.
    """
    return MetricDelta(id_, base, head, own=own)


def _identical(base: Cell | None, head: Cell | None) -> bool | None:
    """Return whether both artifacts are the same bytes; None if that is not known."""
    if base is None or head is None:
        return None
    if base.artifact_digest is None or head.artifact_digest is None:
        return None
    return base.artifact_digest == head.artifact_digest


def _noisy(
    base: Snapshot,
    head: Snapshot,
    key: CellKey,
    cells: tuple[Cell | None, Cell | None],
    outcomes: Outcomes,
) -> CellDelta:
    """Compare the two outcomes that differ least.

    Each metric of the result has every value that was seen.
    """
    pairs = list[CellDelta]()
    all_outcomes = product(outcomes[0] or (None,), outcomes[1] or (None,))
    for base_outcome, head_outcome in all_outcomes:
        base_cell = as_outcome(cells[0], base_outcome)
        head_cell = as_outcome(cells[1], head_outcome)
        pairs.append(_compared(base, head, key, (base_cell, head_cell)))

    closest = min(pairs, key=_distance)
    metrics = dict[str, MetricDelta]()
    for id_, metric in closest.metrics.items():
        of_base = _known_values(pair.metrics[id_].base for pair in pairs)
        of_head = _known_values(pair.metrics[id_].head for pair in pairs)
        has_several = id_ not in INEXACT and max(len(of_base), len(of_head)) > 1
        metrics[id_] = replace(metric, seen=(of_base, of_head) if has_several else None)
    sizes = []
    for side, side_outcomes in zip(("base", "head"), outcomes, strict=True):
        if len(side_outcomes) > 1:
            sizes.append(f"on {side} {_sizes(side_outcomes)}")
    noise = f"non-deterministic: the same command gives {', '.join(sizes)}"
    repeat = numbers_repeat(outcomes)
    return replace(
        closest, identical=None, noise=noise, numbers_repeat=repeat, metrics=metrics
    )


def _distance(delta: CellDelta) -> tuple[int, int]:
    """Return the sort key: how much the state proves, then how far sizes differ."""
    artifact_bytes = delta.metrics["artifact_bytes"].change
    return STATES_BY_NEWS.index(delta.state), abs(artifact_bytes or 0)


def _known_values(values: Iterable[int | None]) -> tuple[int, ...]:
    return tuple(sorted({value for value in values if value is not None}))


def _sizes(outcomes: Sequence[CompileOutcome]) -> str:
    """Return `82,408 B or 86,872 B`.

    If all sizes are equal, return `2 artifacts of 106,312 B`.
    """
    sizes = []
    for outcome in outcomes:
        size = outcome.metrics.get("artifact_bytes")
        sizes.append("a failure" if size is None else f"{size:,} B")
    is_one_size = len(set(sizes)) == 1
    if is_one_size and all(outcome.artifact_digest for outcome in outcomes):
        return f"{len(sizes)} artifacts of {sizes[0]}"
    return " or ".join(dict.fromkeys(sizes))


def diff(base: Snapshot, head: Snapshot) -> tuple[CellDelta, ...]:
    """Return all cells of both sides, sorted by key.

    What was planned and has no cell is `unmeasured`.
    """
    base_cells = base.by_key
    head_cells = head.by_key
    keys = base_cells.keys() | head_cells.keys() | base.planned | head.planned
    deltas = []
    for key in sorted(keys):
        cells = (base_cells.get(key), head_cells.get(key))
        deltas.append(_diff_cell(base, head=head, key=key, cells=cells))
    return tuple(deltas)
