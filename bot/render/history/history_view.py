"""A history as sentences and tables, for Markdown and terminals: totals, steps, and each cell with its first move."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bot.core.history.history_values import TRACKED, History, HistoryStep, Point
from bot.core.values.snapshot import CellKey
from bot.render.history.history_facts import (
    GAP,
    OVER,
    REFUSED,
    HistoryFacts,
    counted,
    gap_reason,
    label,
    total_label,
    value_text,
    varies,
)
from bot.render.text.escape import clean, clip
from bot.render.text.filters import UNKNOWN, change, plural, relative, signed
from bot.render.text.phrase import Phrase, code, joined, phrase, strong
from bot.render.text.selection import Listing, fair_in_order, listing
from bot.render.text.text_tables import Footnotes, Row, Table, name_cell
from bot.render.view.facts import NAME_LIMIT

_WHAT = 160


@dataclass(frozen=True, slots=True)
class HistoryRoom:
    """The most that is shown.

    Attributes:
        releases: columns: the first release and the last ones.
        cells: rows of each table of cells.
        reasons: footnotes.
        causes: root causes of a step.
        metrics: of which cells have tables.
    """

    releases: int
    cells: int
    reasons: int
    steps: int
    causes: int
    metrics: tuple[str, ...] = TRACKED


@dataclass(frozen=True, slots=True)
class HistoryView:
    """What is shown, in the order in which it is read.

    Attributes:
        said: sentences, the headline first.
        notes: releases that are gaps or came twice, and what else a reader must know.
        totals: artifacts of each target; sums: all metrics of all targets.
        cells: a title and a table for each metric.
        footnotes: why there are gaps in these.
    """

    said: tuple[Phrase, ...]
    notes: tuple[Phrase, ...]
    totals: Table
    sums: Table
    steps: Table
    cells: tuple[tuple[str, Table], ...]
    footnotes: Listing[Phrase]


def history_view(history: History, room: HistoryRoom) -> HistoryView:
    """The history as values to lay out."""
    facts, footnotes = HistoryFacts(history), Footnotes(room.reasons)
    columns = _columns(facts.names, room.releases)
    tables = ((_title(metric), _cells(facts, metric, columns, room, footnotes)) for metric in room.metrics)
    return HistoryView(
        said=tuple(_said(facts, columns)),
        notes=tuple(notes_of(history)),
        totals=_totals(facts, columns),
        sums=_sums(facts, columns),
        steps=_steps(facts, room),
        cells=tuple(titled for titled in tables if titled[1]),
        footnotes=footnotes.listed(),
    )


def _columns(names: Sequence[str], most: int) -> tuple[str, ...]:
    return tuple(names) if len(names) <= most else (names[0], *names[len(names) - most + 1 :])


def headline(facts: HistoryFacts) -> Phrase:
    """`Code size from 3.8.0 to 3.13.0: artifacts +12,345 B (+3.1 %)`."""
    shown = facts.shown or ("no release",)
    ends = phrase(strong(_name(shown[0]))) if len(shown) == 1 else phrase("from ", strong(_name(shown[0])), " to ")
    last = () if len(shown) == 1 else phrase(strong(_name(shown[-1])))
    return phrase("Code size ", "of " if len(shown) == 1 else "", ends, last, _grown(facts))


def _grown(facts: HistoryFacts) -> str:
    totals = facts.totals.get(None, ())
    sizes = [total.value("artifact_bytes") for total in totals]
    if len(sizes) < 2 or sizes[0] is None or sizes[-1] is None:
        return ""
    return f": artifacts {change(sizes[0], sizes[-1])} over {over_cells(facts, 'artifact_bytes')}"


def over_cells(facts: HistoryFacts, metric: str, target: str | None = None) -> str:
    """`15 of 33 cells`: how many a total is over."""
    totals = facts.totals.get(target, ())
    of = sum(target in (None, key.target) for key in facts.rows)
    return f"{totals[0].cells.get(metric, 0) if totals else 0:,} of {plural(of, 'cell')}"


def _said(facts: HistoryFacts, columns: Sequence[str]) -> Iterator[Phrase]:
    yield headline(facts)
    measured = sum(point.measured for row in facts.rows.values() for point in row)
    gaps = len(facts.rows) * len(facts.names) - measured
    told = f"{plural(measured, 'point')}, and {plural(gaps, 'gap')} with reasons" if gaps else plural(measured, "point")
    yield phrase(f"{counted(facts)} in {plural(len(facts.names), 'release')}: {told}.")
    yield phrase("Totals are only over cells that every release has measured, so that no gap looks like a change.")
    if len(columns) < len(facts.names):
        left = len(facts.names) - len(columns)
        yield phrase(f"Between the first release and the last ones {plural(left, 'release')} have no column here.")


def notes_of(history: History) -> Iterator[Phrase]:
    """Releases that are gaps, came twice or have notes; then what is true of all."""
    for release in history.releases:
        name = phrase(strong(_name(release.name)), ": ")
        if release.reason:
            yield phrase(name, "could not be measured: ", clip(clean(release.reason), 400))
        if release.repeats:
            yield phrase(name, "asked for more than once, and the same each time: ", _listed(release.repeats))
        for note in release.notes:
            yield phrase(name, clip(clean(note), 400))
    yield from (phrase(clip(clean(note), 400)) for note in history.notes)


def _listed(names: Sequence[str]) -> Phrase:
    return joined((phrase(code(clip(name, NAME_LIMIT))) for name in names), ", ")


def _totals(facts: HistoryFacts, columns: Sequence[str]) -> Table:
    rows = [_total_row(facts, "artifact_bytes", target, columns, _target(target)) for target in facts.totals]
    headers = ("target", "cells", *map(_name, columns), "change")
    caption = phrase("Artifacts of all models, bytes")
    return Table(headers, listing(rows, len(rows), "target"), caption=caption) if facts.shown else Table(headers)


def _target(target: str | None) -> Phrase:
    return phrase(strong("all")) if target is None else name_cell(clip(target, NAME_LIMIT))


def _sums(facts: HistoryFacts, columns: Sequence[str]) -> Table:
    known = facts.totals.get(None, ())
    metrics = [metric for metric in TRACKED if known and known[0].cells.get(metric)]
    rows = [_total_row(facts, metric, None, columns, phrase(total_label(metric))) for metric in metrics]
    headers = ("total", "cells", *map(_name, columns), "change")
    return Table(headers, listing(rows, len(rows), "metric"), caption=phrase("All targets together"))


def _total_row(facts: HistoryFacts, metric: str, target: str | None, columns: Sequence[str], name: Phrase) -> Row:
    by_name = {total.compiler: total.value(metric) for total in facts.totals[target]}
    values = [value_text(metric, by_name[at]) if at in by_name else GAP for at in columns]
    ends = [by_name[at] for at in (facts.shown[0], facts.shown[-1])]
    texts = (over_cells(facts, metric, target).partition(" cell")[0], *values, relative(*ends))
    return (name, *map(phrase, texts))


def _steps(facts: HistoryFacts, room: HistoryRoom) -> Table:
    steps = [step for step in facts.history.steps if step.causes or _importance(step)]
    quiet = len(facts.history.steps) - len(steps)
    kept = set(fair_in_order([step.name for step in sorted(steps, key=_importance)], lambda _: None, room.steps))
    rows = [_step(step, room.causes) for step in steps if step.name in kept]
    headers = ("step", "root causes", "cells", "artifacts", "larger", "smaller", "broken", "fixed")
    words = f"; {plural(quiet, 'step')} without a change of size {'has' if quiet == 1 else 'have'} no row"
    left = words if quiet else ""
    caption = phrase(f"From release to release, over the cells that both have measured{left}")
    return Table(headers, listing(rows, len(steps), "step"), numbers_from=2, caption=caption)


def _importance(step: HistoryStep) -> int:
    return -(step.larger + step.smaller + step.broken + step.fixed)


def _step(step: HistoryStep, most: int) -> Row:
    moved = UNKNOWN if step.base_bytes is None else change(*step.sides)
    numbers = (str(step.cells), moved, *(f"{n:,}" for n in (step.larger, step.smaller, step.broken, step.fixed)))
    return (phrase(f"{_name(step.base)} → {_name(step.head)}"), causes_of(step, most), *map(phrase, numbers))


def causes_of(step: HistoryStep, most: int) -> Phrase:
    """The root causes with most bytes, each with its net change."""
    told = [phrase(f"{clip(clean(one.what), _WHAT)} ({signed(one.net_bytes)})") for one in step.causes[:most]]
    return joined(told, "; ") if told else phrase(GAP)


def _cells(facts: HistoryFacts, metric: str, columns: Sequence[str], room: HistoryRoom, footnotes: Footnotes) -> Table:
    keys = [key for key in facts.rows if metric in facts.metrics_of(key)]
    if metric == TRACKED[0]:
        keys = list(facts.rows)  # what never compiled has a row of gaps
    shown = fair_in_order(keys, lambda key: key.model, room.cells)
    rows = [_cell(facts, metric, key, columns, footnotes) for key in shown]
    headers = ("model", "target", *map(_name, columns), "moved first", "moved most")
    return Table(headers, listing(rows, len(keys), "cell"), numbers_from=2)


def _title(metric: str) -> str:
    words = label(metric)
    return f"{words[:1].upper()}{words[1:]}, of each cell"


def _cell(facts: HistoryFacts, metric: str, key: CellKey, columns: Sequence[str], footnotes: Footnotes) -> Row:
    points = {point.compiler: point for point in facts.rows[key]}
    values = (phrase(_value(metric, points[at], footnotes)) for at in columns)
    name = clip(key.target, NAME_LIMIT)
    return (
        name_cell(clip(key.model, NAME_LIMIT)),
        name_cell(name),
        *values,
        *map(phrase, moved_texts(facts, key, metric)),
    )


def _value(metric: str, point: Point, footnotes: Footnotes) -> str:
    if not point.measured:
        return f"{GAP}{footnotes.mark(gap_reason(point))}"
    mark = footnotes.mark(REFUSED) if point.status == OVER and metric == "stack_alloca_bytes" else ""
    return f"{value_text(metric, point.value(metric))}{mark}{footnotes.mark(varies(point))}"


def moved_texts(facts: HistoryFacts, key: CellKey, metric: str) -> tuple[str, str]:
    """Where a number moved first and most: `3.11.0: +26,464 (+55.3 %), strategy`; `–` where it never moved."""
    moves = facts.moves.get(key, {}).get(metric)
    if moves is None:
        return GAP, GAP
    return facts.told(metric, moves.first), facts.told(metric, moves.largest)


def _name(name: str) -> str:
    return clean(name, NAME_LIMIT)
