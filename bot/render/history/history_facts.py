"""What all views of a history ask of it, worked out once: rows of cells, first moves, totals, and how numbers read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote

from bot.core.history.first_moves import NumberMoves, OneMove, number_moves, rows_of
from bot.core.history.history_totals import measured_releases
from bot.core.history.history_values import TRACKED, History, HistoryTotal, Point
from bot.core.metrics import METRIC_BY_ID, METRICS
from bot.core.selecting import short_names
from bot.core.spread import Spread, Value
from bot.core.values.snapshot import CellKey
from bot.render.text.escape import clean, clip
from bot.render.text.filters import MINUS, amount, percent, plural, signed
from bot.render.view.facts import NAME_LIMIT

GAP = "–"
"""What stands in the place of a value where there is no artifact."""
_UNITS = {"bytes": "bytes", "ms": "seconds", "count": ""}
WORDS = {metric.id: metric.plural for metric in METRICS if metric.plural}
"""What a metric is called where there are many of it; by its label elsewhere."""


@dataclass(frozen=True)
class HistoryFacts:
    """A history, indexed."""

    history: History

    @cached_property
    def rows(self) -> Mapping[CellKey, tuple[Point, ...]]:
        """Each cell that something was tried for, with its points in the order of the releases."""
        found = rows_of(self.history)
        return {key: row for key, row in found.items() if any(_was_tried(point) for point in row)}

    @cached_property
    def moves(self) -> Mapping[CellKey, Mapping[str, NumberMoves]]:
        """Cell → metric → where it moved first, and most."""
        return number_moves(self.history)

    @cached_property
    def totals(self) -> Mapping[str | None, tuple[HistoryTotal, ...]]:
        """Target, or None for all → its totals, release after release."""
        found: dict[str | None, list[HistoryTotal]] = {}
        for total in self.history.totals:
            found.setdefault(total.target, []).append(total)
        return {target: tuple(each) for target, each in found.items()}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of all releases, gaps too."""
        return tuple(release.name for release in self.history.releases)

    @cached_property
    def shown(self) -> tuple[str, ...]:
        """Of the releases that measured anything."""
        return measured_releases(self.history.releases, self.history.points)

    @cached_property
    def models(self) -> Mapping[str, tuple[CellKey, ...]]:
        """Each with its cells that have a row."""
        found: dict[str, list[CellKey]] = {}
        for key in self.rows:
            found.setdefault(key.model, []).append(key)
        return {model: tuple(keys) for model, keys in found.items()}

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """Of the cells with a row."""
        return tuple(sorted({key.target for key in self.rows}))

    @cached_property
    def short(self) -> Mapping[str, str]:
        """Target → its name for narrow columns."""
        return short_names(self.targets, {name: self.history.targets.get(name, "") for name in self.targets})

    def metrics_of(self, key: CellKey) -> tuple[str, ...]:
        """Tracked metrics that some release knows of the cell."""
        return tuple(id_ for id_ in TRACKED if any(point.metrics.get(id_) is not None for point in self.rows[key]))

    def told(self, metric: str, one: OneMove) -> str:
        """`3.11.0: +26,464 (+55.3 %), strategy`."""
        head, move = one.point.metrics.get(metric) or 0, one.point.move
        moved = move.change(metric) if move else one.change
        since = since_words(self.names, one.point.compiler, move.since) if move else ""
        cause = f", {move.cause}" if move and move.cause else ""
        told = change_text(metric, moved, head - one.change)
        return f"{clean(one.point.compiler, NAME_LIMIT)}{since}: {told}{clean(cause)}"


def _was_tried(point: Point) -> bool:
    return point.status not in ("unsupported", "unmeasured")


def since_words(names: tuple[str, ...], release: str, since: str) -> str:
    """` (since 3.10.0)` where that is not the neighbour; empty elsewhere."""
    at = names.index(release)
    return "" if at and names[at - 1] == since else f" (since {clean(since, NAME_LIMIT)})"


def label(metric: str) -> str:
    """What a metric is called, with its unit."""
    words, unit = METRIC_BY_ID[metric].label, _UNITS[METRIC_BY_ID[metric].unit]
    return f"{words}, {unit}" if unit else words


def total_label(metric: str) -> str:
    """The same of a total, which says whether it is a sum."""
    return f"{label(metric)}, {'the largest' if METRIC_BY_ID[metric].over == 'largest' else 'all together'}"


def value_text(metric: str, value: Value) -> str:
    """Without its unit: `47,832`, `54,168..55,288`, `2.9` seconds; `n/a` for None."""
    if value is None or isinstance(value, Spread):
        return amount(value, "count")
    return f"{value / 1000:,.1f}" if METRIC_BY_ID[metric].unit == "ms" else f"{value:,}"


def change_text(metric: str, change: Value, base: int | None) -> str:
    """`+26,464 (+55.3 %)`, in the unit of `value_text`; of a range without the share."""
    if change is None or isinstance(change, Spread):
        return signed(change, "count")
    said = f"{change / 1000:+,.1f}" if METRIC_BY_ID[metric].unit == "ms" else f"{change:+,}"
    share = f" ({percent(change / base)})" if base else ""
    return f"{said.replace('-', MINUS)}{share}"


def gap_reason(point: Point) -> str:
    """Why a point has no value, in one line."""
    words = clip(clean(point.reason), 300) or "no reason is known"
    return words if point.status == "unmeasured" else f"{point.status}: {words}"


OVER = "over-stack-limit"
REFUSED = "over the compiler's stack limit: measured with the limit lifted"


def varies(point: Point) -> str:
    """That its command gives artifacts of several sizes; empty where it does not."""
    if len(set(point.sizes)) < 2:
        return ""
    return f"not deterministic: the same command gives {' or '.join(f'{size:,} B' for size in point.sizes)}"


def address(*names: str) -> str:
    """`model/target` as it stands behind `#`."""
    return "/".join(quote(name, safe="", errors="replace") for name in names)


def counted(facts: HistoryFacts) -> str:
    """`36 cells of 4 models on 9 targets`."""
    models, targets = plural(len(facts.models), "model"), plural(len(facts.targets), "target")
    return f"{plural(len(facts.rows), 'cell')} of {models} on {targets}"
