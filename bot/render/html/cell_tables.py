"""All cells of a report, model by model, for a page that has room for everything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bot.core.metrics import METRICS, Metric
from bot.core.rules.delta import STATES, CellDelta
from bot.core.values.snapshot import Dispatch
from bot.render.html.cell_story import CellStory, Row, cell_story
from bot.render.text.escape import clip
from bot.render.text.filters import UNKNOWN, amount, change, plural, sides
from bot.render.view.facts import NAME_LIMIT, Facts
from bot.render.view.story import NUMBERS

DISPATCH_ROWS = 20_000
"""The most rows of dispatches on one page; cells that are the same on both sides go first."""
STORY_ROWS = 5_000
"""The most rows of what explains changes on one page; report.json has all."""

_STATES = {
    "same": "bit-identical",
    "changed": "changed",
    "broken": "broken on both sides",
    "unmeasured": "not measured",
}
Text = tuple[str, str, str]
"""Values, their change, and a CSS class (`up`, `down` or nothing)."""
_Pair = tuple["Dispatch | None", "Dispatch | None"]
"""An entry point on base and on head; one of them has it."""


@dataclass(frozen=True, slots=True)
class CellTable:
    """The dispatches of one cell.

    Attributes:
        headers: columns that some dispatch has a value for.
        rows: texts in the order of the headers.
        command: of head, or of base where head has no such cell.
        story: why it changed; None where it did not, or where there is no room.
    """

    target: str
    state: str
    headers: Row
    rows: tuple[Row, ...]
    command: str
    story: CellStory | None = None


@dataclass(frozen=True, slots=True)
class ModelTable:
    """One model: metrics by targets, and the dispatches of each cell.

    Attributes:
        summary: what is to see, in words.
        targets: short names, the columns.
        states: the state of each cell.
        rows: a metric's label and one text for each target.
    """

    model: str
    summary: str
    targets: tuple[str, ...]
    states: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Text, ...]], ...]
    cells: tuple[CellTable, ...]


def model_tables(facts: Facts) -> Iterator[ModelTable]:
    """One table at a time: a page of 5,000 cells is not held in memory twice."""
    room = _Room()
    models: dict[str, list[CellDelta]] = {}
    for delta in facts.report.deltas:
        models.setdefault(delta.key.model, []).append(delta)
    crowded = sum(_size(delta) for delta in facts.report.deltas) > DISPATCH_ROWS
    for model, deltas in models.items():
        shown = [delta for delta in deltas if not (crowded and delta.state == "same")]
        tables = [table for delta in shown if (table := _cell_table(facts, delta, room))]
        yield _model_table(facts, model, deltas, tables)


@dataclass(slots=True)
class _Room:
    """How many rows the page still has."""

    dispatches: int = DISPATCH_ROWS
    stories: int = STORY_ROWS


def _size(delta: CellDelta) -> int:
    return max(len(cell.dispatches) if cell else 0 for cell in (delta.base, delta.head))


def _model_table(facts: Facts, model: str, deltas: Sequence[CellDelta], tables: list[CellTable]) -> ModelTable:
    states = [_state(delta) for delta in deltas]
    worst_first = dict.fromkeys(_state(d) for d in sorted(deltas, key=lambda delta: STATES.index(delta.state)))
    counted = ", ".join(f"{states.count(state)} {state}" for state in worst_first) + _left_out(facts, deltas, tables)
    rows = tuple((metric.label, tuple(_text(delta, metric) for delta in deltas)) for metric in METRICS)
    targets = tuple(facts.short[delta.key.target] for delta in deltas)
    return ModelTable(clip(model, NAME_LIMIT), counted, targets, tuple(states), rows, tuple(tables))


def _left_out(facts: Facts, deltas: Sequence[CellDelta], tables: Sequence[CellTable]) -> str:
    undrawn = sum(_size(delta) > 0 for delta in deltas) - sum(bool(table.rows) for table in tables)
    explained = sum(delta.key in facts.report.explanations for delta in deltas)
    untold = explained - sum(table.story is not None for table in tables)
    words = f"; no room for the dispatches of {plural(undrawn, 'cell')}, head.json has them" if undrawn else ""
    return words + (f"; no room to explain {plural(untold, 'cell')}, report.json does" if untold else "")


def _state(delta: CellDelta) -> str:
    if delta.state == "same" and not delta.identical:
        return "equal in every metric"
    return _STATES.get(delta.state, delta.state)


def _text(delta: CellDelta, metric: Metric) -> Text:
    value = delta.metrics.get(metric.id)
    if value is None or (value.base is None and value.head is None):
        return UNKNOWN, "", ""
    if value.base == value.head:
        return amount(value.head, metric.unit), "", ""
    css = ("up" if (value.change or 0) > 0 else "down") if value.change and metric.exact else ""
    return sides(value.base, value.head, metric.unit), change(value.base, value.head, metric.unit), css


def _cell_table(facts: Facts, delta: CellDelta, room: _Room) -> CellTable | None:
    """None where there is nothing to show, or no room for it."""
    explanation = facts.report.explanations.get(delta.key) if room.stories > 0 else None
    told = cell_story(delta, explanation) if explanation else None
    room.stories -= told.size if told else 0
    room.dispatches -= _size(delta)
    pairs = list(_pairs(delta)) if room.dispatches >= 0 else []
    if not pairs and told is None:
        return None
    columns = [number for number in NUMBERS if any(getattr(d, number[0], None) is not None for p in pairs for d in p)]
    headers = ("entry point", "kind", *(label for _, label, _ in columns))
    rows = tuple(_row(*pair, columns) for pair in pairs)
    cell = delta.head or delta.base
    return CellTable(facts.short[delta.key.target], _state(delta), headers, rows, cell.command if cell else "", told)


def _pairs(delta: CellDelta) -> Iterator[_Pair]:
    """Entry points of both sides by their names: head's in order, then those that only base has."""
    cells = (delta.base, delta.head)
    left, right = ({(d.executable, d.name): d for d in cell.dispatches} if cell else {} for cell in cells)
    yield from ((left.get(name), dispatch) for name, dispatch in right.items())
    yield from ((dispatch, None) for name, dispatch in left.items() if name not in right)


def _row(base: Dispatch | None, head: Dispatch | None, columns: Sequence[tuple[str, str, str]]) -> Row:
    """Of an entry point that one side has alone, its values there."""
    only = " (only on head)" if base is None else " (only on base)" if head is None else ""
    left, right = base or head, head or base
    values = (sides(getattr(left, field), getattr(right, field), unit) for field, _, unit in columns)
    name, kind = (right.name, right.kind) if right else ("", "")
    return clip(name, 100) + only, clip(kind, 40), *values
