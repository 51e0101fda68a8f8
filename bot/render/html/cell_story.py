"""The story of one cell on a page that has room for it: all components, arguments of the dispatches, compile time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

from bot.core.rules.delta import CellDelta
from bot.core.values.explanation import ComponentDelta, Explanation
from bot.core.values.program import Argument
from bot.render.text.escape import clip
from bot.render.text.filters import amount, change, sides
from bot.render.text.selection import Listing, listing
from bot.render.view.story import Room, Story, component_line, story

TABLE_ROWS = 400
"""The most rows of one table; report.json has all."""
_ROOM = Room(TABLE_ROWS, 0, 0, 12, 60, members=12, varying=12, varying_chars=400)
_NAME = 120
_VALUES = 16
_COMPILED_IN = (
    *("input", "abi", "preprocessing", "global-optimization", "dispatch-creation", "flow", "stream"),
    *("executable-sources", "executable-configurations", "executable-targets", "hal", "vm"),
)
"""The compiler's phases in its own order."""

Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CellStory:
    """Why one cell changed, and what it is made of.

    Attributes:
        tree: all components down to the model's own names: name with its depth, sites, code and stack.
        arguments: of the dispatches, with what a dynamic version would have to know.
        phases: of compiling, with the time that they took.
    """

    told: Story
    tree: Listing[Row]
    arguments: Listing[Row]
    phases: Listing[Row]

    @property
    def size(self) -> int:
        """How many rows and lines it takes, but for the few of the change by cause."""
        told = self.told
        rows = (told.dispatches, told.families, self.tree, self.arguments, self.phases)
        return sum(len(table.items) for table in rows) + sum(diff.text.count("\n") for diff in told.diffs)


def cell_story(delta: CellDelta, explanation: Explanation) -> CellStory:
    """Everything there is to say of one changed cell."""
    head = delta.head or delta.base
    arguments = head.program.arguments if head and head.program else ()
    names = {part.name for part in explanation.tree}
    base, now = (cell.phases_ms if cell else {} for cell in (delta.base, delta.head))
    phases = sorted({*base, *now}, key=lambda name: (_order(name), name))
    return CellStory(
        story(explanation, head.families if head else (), _ROOM),
        _rows((_component_row(part, names) for part in explanation.tree), len(explanation.tree), "component"),
        _rows(map(_argument_row, arguments), len(arguments), "argument"),
        _rows((_phase_row(name, base, now) for name in phases), len(phases), "phase"),
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
