"""All cells of a report, model by model, for a page that has room for everything."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from bot.core.metrics import METRICS, Metric
from bot.core.parts import code_words
from bot.core.rules.delta import STATES, CellDelta
from bot.core.values.explanation import ComponentDelta, Explanation
from bot.core.values.program import Argument
from bot.core.values.snapshot import Dispatch
from bot.render.text.escape import clip
from bot.render.text.filters import UNKNOWN, amount, change, plural, sides
from bot.render.text.selection import Listing, listing
from bot.render.view.facts import NAME_LIMIT, Facts
from bot.render.view.story import NUMBERS, Room, Story, component_line, story

DISPATCH_ROWS = 20_000
"""The most rows of dispatches on one page; cells that are the same on both sides go first."""
STORY_ROWS = 5_000
"""The most rows of what explains changes on one page; report.json has all."""
TABLE_ROWS = 400
"""The most rows of one table of a story."""

_ROOM = Room(TABLE_ROWS, 0, 0, 12, 60, members=12, varying=12, varying_chars=400)
_NAME = 120
_VALUES = 16
_STATES = {
    "same": "bit-identical",
    "changed": "changed",
    "broken": "broken on both sides",
    "unmeasured": "not measured",
}
_COMPILED_IN = (
    *("input", "abi", "preprocessing", "global-optimization", "dispatch-creation", "flow", "stream"),
    *("executable-sources", "executable-configurations", "executable-targets", "hal", "vm"),
)
"""The compiler's phases in its own order."""

Row = tuple[str, ...]
Text = tuple[str, str, str]
"""Values, their change, and a CSS class (`up`, `down` or nothing)."""


@dataclass(frozen=True, slots=True)
class CellTable:
    """One cell: its dispatches; and where it changed, and there is room, why, and what it is made of.

    Attributes:
        headers: columns that some dispatch has a value for.
        rows: texts in the order of the headers.
        command: of head, or of base where head has no such cell.
        story: why it changed; None where it did not, or where there is no room; what follows is then empty.
        tree: all components down to the model's own names: name with its depth, sites, code and stack frame.
        arguments: of the dispatches, with what a dynamic version would have to know.
        phases: of compiling, with the time that they took.
    """

    target: str
    state: str
    headers: Row
    rows: tuple[Row, ...]
    command: str
    story: Story | None = None
    tree: Listing[Row] = field(default_factory=Listing)
    arguments: Listing[Row] = field(default_factory=Listing)
    phases: Listing[Row] = field(default_factory=Listing)

    @property
    def story_size(self) -> int:
        """How many rows and lines the story takes, but for the few of the change by cause."""
        told = (self.story.dispatches, self.story.families) if self.story else ()
        rows = sum(len(table.items) for table in (*told, self.tree, self.arguments, self.phases))
        return rows + sum(diff.text.count("\n") for diff in (self.story.diffs if self.story else ()))


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
    room = _Left()
    models: dict[str, list[CellDelta]] = {}
    for delta in facts.report.deltas:
        models.setdefault(delta.key.model, []).append(delta)
    crowded = sum(_size(delta) for delta in facts.report.deltas) > DISPATCH_ROWS
    for model, deltas in models.items():
        shown = [delta for delta in deltas if not (crowded and delta.state == "same")]
        tables = [table for delta in shown if (table := _cell_table(facts, delta, room))]
        yield _model_table(facts, model, deltas, tables)


@dataclass(slots=True)
class _Left:
    """How many rows the page still has room for."""

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


def _cell_table(facts: Facts, delta: CellDelta, room: _Left) -> CellTable | None:
    """None where there is nothing to show, or no room for it."""
    explanation = facts.report.explanations.get(delta.key) if room.stories > 0 else None
    room.dispatches -= _size(delta)
    cells = (delta.base, delta.head)
    left, right = ({(d.executable, d.name): d for d in cell.dispatches} if cell else {} for cell in cells)
    names = dict.fromkeys((*right, *left)) if room.dispatches >= 0 else ()  # head's in order, then what only base has
    if not names and explanation is None:
        return None
    pairs = [(left.get(name), right.get(name)) for name in names]
    columns = [number for number in NUMBERS if any(getattr(d, number[0], None) is not None for p in pairs for d in p)]
    backend = facts.backends.get(delta.key.target, "")
    headers = (
        "entry point",
        "kind",
        *(code_words(label, backend) if label == "code" else label for _, label, _ in columns),
    )
    rows = tuple(_row(*pair, columns) for pair in pairs)
    cell = delta.head or delta.base
    table = CellTable(facts.short[delta.key.target], _state(delta), headers, rows, cell.command if cell else "")
    table = _explained(table, delta, explanation, backend) if explanation else table
    room.stories -= table.story_size
    return table


def _row(base: Dispatch | None, head: Dispatch | None, columns: Sequence[tuple[str, str, str]]) -> Row:
    """Of an entry point that one side has alone, its values there."""
    only = " (only on head)" if base is None else " (only on base)" if head is None else ""
    left, right = base or head, head or base
    values = (sides(getattr(left, field), getattr(right, field), unit) for field, _, unit in columns)
    name, kind = (right.name, right.kind) if right else ("", "")
    return clip(name, 100) + only, clip(kind, 40), *values


def _explained(table: CellTable, delta: CellDelta, explanation: Explanation, backend: str) -> CellTable:
    head = delta.head or delta.base
    arguments = head.program.arguments if head and head.program else ()
    names = {part.name for part in explanation.tree}
    base, now = (cell.phases_ms if cell else {} for cell in (delta.base, delta.head))
    phases = sorted({*base, *now}, key=lambda name: (_order(name), name))
    return replace(
        table,
        story=story(explanation, head.families if head else (), _ROOM, backend),
        tree=_rows((_component_row(part, names) for part in explanation.tree), len(explanation.tree), "component"),
        arguments=_rows(map(_argument_row, arguments), len(arguments), "argument"),
        phases=_rows((_phase_row(name, base, now) for name in phases), len(phases), "phase"),
    )


def _rows(rows: Iterable[Row], total: int, noun: str) -> Listing[Row]:
    return listing(islice(rows, TABLE_ROWS), total, noun)


def _order(phase: str) -> int:
    return _COMPILED_IN.index(phase) if phase in _COMPILED_IN else len(_COMPILED_IN)


def _component_row(delta: ComponentDelta, names: Collection[str]) -> Row:
    """Below a component that has a row of its own it is indented, and loses the name that they share."""
    above = [end for end, char in enumerate(delta.name) if char == "." and delta.name[:end] in names]
    tail, line = delta.name[above[-1] + 1 :] if above else delta.name, component_line(delta)
    return "· " * len(above) + clip(tail, _NAME), line.sites, line.code, line.stack


def _argument_row(argument: Argument) -> Row:
    values = ", ".join(f"{value:,}" for value in argument.values[:_VALUES])
    more = ", …" if argument.distinct > min(len(argument.values), _VALUES) else ""
    counts = (amount(count, "count") for count in (argument.distinct, argument.divisor, argument.unknown_sites))
    return clip(argument.entry_point, _NAME), str(argument.index), clip(argument.type, 40), values + more, *counts


def _phase_row(name: str, base: Mapping[str, int], head: Mapping[str, int]) -> Row:
    left, right = base.get(name), head.get(name)
    return clip(name, _NAME), sides(left, right, "ms"), change(left, right, "ms")
