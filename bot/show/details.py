"""What is folded away: all changed cells with all metrics, settled and unchanged cells, the cost of compiling."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bot.core.delta import CellDelta, exact_changes, value_of
from bot.core.metrics import METRIC_BY_ID, METRICS
from bot.show.escape import clip
from bot.show.facts import MARKS, NAME_LIMIT, Facts, by_model, cells_phrase, mark_of
from bot.show.failures import failure_words, grouped
from bot.show.filters import amount, change, plural, sides
from bot.show.phrase import Phrase, code, phrase
from bot.show.selection import Limits, Listing, fair_in_order, listing
from bot.show.text_tables import Row, Table, name_cell


def every_metric(facts: Facts, limits: Limits) -> Listing[tuple[Phrase, Table]]:
    """A title and the changed metrics of each changed model; models take turns where there are too many."""
    pairs = [
        (delta, id_)
        for delta in facts.states["changed"]
        for id_ in [value.id for value in exact_changes(delta.metrics.values())] or [METRICS[0].id]
    ]
    totals = Counter(delta.key.model for delta, _ in pairs)
    cells = by_model(delta.key for delta in facts.states["changed"])
    rows: dict[str, list[Row]] = {}
    for delta, id_ in fair_in_order(pairs, lambda pair: pair[0].key.model, limits.changed):
        metric, both = METRIC_BY_ID[id_], delta.metrics[id_].sides
        mark = next((MARKS[mark_of(one)] for one in facts.findings.get(delta.key, ()) if one.metric == id_), "")
        numbers = sides(*both, metric.unit), f"{change(*both, metric.unit)}{f' {mark}' if mark else ''}"
        name = name_cell(facts.short[delta.key.target])
        row = (name, phrase(facts.label(metric, delta.key)), *map(phrase, numbers))
        rows.setdefault(delta.key.model, []).append(row)
    headers = ("target", "metric", "base → head", "change")
    tables = [
        (
            phrase(code(clip(model, NAME_LIMIT)), f": {plural(len(cells[model]), 'changed build')}"),
            Table(headers, listing(found, totals[model], "changed metric"), numbers_from=2),
        )
        for model, found in rows.items()
    ]
    return listing(tables, len(cells) if limits.changed else 0, "changed model")


def settled(facts: Facts, limits: Limits) -> Listing[Phrase]:
    """Cells that compile now, by what refused them on base; new and removed ones, and how large they are or were."""
    deltas = [delta for state in ("removed", "new") for delta in facts.states[state]]
    shown = fair_in_order(deltas, lambda delta: (delta.state, delta.key.model), limits.names)
    fixed = grouped(facts, "fixed")
    lines = [
        *(_fixed(facts, group, limits) for group in fixed[: limits.names]),
        *(_settled(facts, one) for one in shown),
    ]
    return listing(lines, len(deltas) + len(fixed), "line of builds that came or went")


def _fixed(facts: Facts, group: Sequence[CellDelta], limits: Limits) -> Phrase:
    """Cells that the same thing refused on base: ``13 cells compile now: `m` on `cuda`; on base: does not compile``."""
    cells = cells_phrase(facts, [delta.key for delta in group], limits.names)
    said = phrase("; on base: ", failure_words(*(delta.base for delta in group)))
    verb = "compiles" if len(group) == 1 else "compile"
    return phrase(f"{plural(len(group), 'build')} {verb} now: ", cells, said)


def _settled(facts: Facts, delta: CellDelta) -> Phrase:
    cell = delta.head or delta.base
    size = value_of(cell, "artifact_bytes") if cell else None
    names = phrase(code(clip(delta.key.model, NAME_LIMIT)), " on ", code(facts.short[delta.key.target]))
    return phrase(f"{delta.state}: ", names, f", artifact {amount(size)}")


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The cells that are the same on both sides: how many, and which."""

    identical: int
    identical_cells: Phrase
    equal: int
    equal_cells: Phrase


def unchanged(facts: Facts, limits: Limits) -> Unchanged:
    """Bit-identical cells, and cells of which only the metrics are known to be equal."""
    same = facts.states["same"]
    identical = [delta.key for delta in same if delta.identical]
    equal = [delta.key for delta in same if not delta.identical]
    texts = [cells_phrase(facts, keys, limits.names) for keys in (identical, equal)]
    return Unchanged(len(identical), texts[0], len(equal), texts[1])


@dataclass(frozen=True, slots=True)
class CostRow:
    """What it cost to compile the cells of one target that were measured on both sides: informational, it varies."""

    target: str
    cells: int
    cpu_base: int
    cpu_head: int
    memory_base: int
    memory_head: int


def costs(facts: Facts) -> tuple[CostRow, ...]:
    """One row per target."""
    found: dict[str, list[tuple[int, int, int, int]]] = {}
    for delta in facts.report.deltas:
        pairs = [delta.metrics.get(id_) for id_ in ("compile_cpu_ms", "compile_peak_rss_kib")]
        values = [value for pair in pairs if pair for value in (pair.base, pair.head) if value is not None]
        if len(values) == 4:
            found.setdefault(delta.key.target, []).append((values[0], values[1], values[2], values[3]))
    return tuple(_cost(facts.short[target], cells) for target, cells in sorted(found.items()))


def _cost(target: str, cells: Sequence[tuple[int, int, int, int]]) -> CostRow:
    cpu_base, cpu_head, memory_base, memory_head = zip(*cells, strict=True)
    return CostRow(target, len(cells), sum(cpu_base), sum(cpu_head), max(memory_base), max(memory_head))
