"""The tables of one cell: its entry points; and where it changed, and there is room, why, and what it is made of."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from bot.core.delta import CellDelta
from bot.core.explanation import ComponentDelta, DispatchDelta, Explanation
from bot.core.parts import code_words
from bot.core.program import Argument
from bot.core.snapshot import Cell, CellKey, Dispatch
from bot.render.text.escape import clip
from bot.render.text.filters import UNKNOWN, amount, change, sides, signed
from bot.render.text.page_addresses import EntryPoint, component_address, dispatch_addresses, entry_points
from bot.render.text.selection import Listing, listing
from bot.render.view.story import NUMBERS, DispatchLine, Room, Story, component_line, story

TABLE_ROWS = 400
"""The most rows of one table of a story."""
ROOM = Room(TABLE_ROWS, 0, 0, 12, 60, members=12, varying=12, varying_chars=400)
_NAME = 120
_VALUES = 16
_ALWAYS = ("code", "stack frame")
_COMPILED_IN = (
    *("input", "abi", "preprocessing", "global-optimization", "dispatch-creation", "flow", "stream"),
    *("executable-sources", "executable-configurations", "executable-targets", "hal", "vm"),
)
"""The compiler's phases in its own order."""

Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MetricLine:
    """One metric that is not the same on both sides; `css` as below."""

    label: str
    base: str
    head: str
    change: str
    css: str


@dataclass(frozen=True, slots=True)
class Addressed:
    """A row that has an address.

    Attributes:
        side: `base` or `head` where that side alone has it; empty elsewhere.
        css: `up` or `down` for what grew or shrank, empty elsewhere.
        level: how deep in a tree.
        told: True where another row has the address as its id: that of why it changed.
    """

    address: str
    texts: Row
    side: str = ""
    css: str = ""
    level: int = 0
    told: bool = False


@dataclass(frozen=True, slots=True)
class Entries:
    """All entry points of a cell on both sides.

    Attributes:
        headers: of what some of them has a value for.
        code: the column with the size of the code; None without one.
    """

    headers: Row = ()
    rows: tuple[Addressed, ...] = ()
    code: int | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """Why a cell changed, and what it is made of.

    Attributes:
        headers: of `dispatches`, those that are not the same on both sides.
        tree: all components down to the model's own names: name, sites, code and stack frame.
        arguments: of the dispatches, with what a dynamic version would have to know.
        phases: of compiling, with the time that they took.
    """

    story: Story
    headers: Row
    dispatches: Listing[Addressed]
    tree: Listing[Addressed] = field(default_factory=Listing)
    arguments: Listing[Row] = field(default_factory=Listing)
    phases: Listing[Row] = field(default_factory=Listing)

    @property
    def size(self) -> int:
        """How many rows and lines it takes, but for the few of the change by cause."""
        told = (self.dispatches, self.story.families, self.tree, self.arguments, self.phases)
        return sum(len(table.items) for table in told) + sum(diff.text.count("\n") for diff in self.story.diffs)


def entries(delta: CellDelta, backend: str, told: Collection[str] = ()) -> Entries:
    """The table of entry points; addresses that `told` has are those of other rows already."""
    left, right = ({(d.executable, d.name): d for d in cell.dispatches} if cell else {} for cell in _sides(delta))
    addresses = dispatch_addresses(delta.key, entry_points(delta.base, delta.head))
    pairs = [(left.get(point), right.get(point)) for point in addresses]
    columns = [number for number in NUMBERS if any(getattr(d, number[0], None) is not None for p in pairs for d in p)]
    labels = [label for _, label, _ in columns]
    code = 2 + labels.index("code") if "code" in labels else None
    rows = (
        replace(_entry_row(address, *pair, columns), told=address in told)
        for address, pair in zip(addresses.values(), pairs, strict=True)
    )
    return Entries(("entry point", "kind", *_named(labels, backend)), tuple(rows), code)


def _named(labels: Iterable[str], backend: str) -> Iterable[str]:
    return (code_words(label, backend) if label == "code" else label for label in labels)


def _sides(delta: CellDelta) -> tuple[Cell | None, Cell | None]:
    return delta.base, delta.head


def _entry_row(
    address: str, base: Dispatch | None, head: Dispatch | None, columns: Sequence[tuple[str, str, str]]
) -> Addressed:
    """Of an entry point that one side has alone, its values there."""
    side = "head" if base is None else "base" if head is None else ""
    left, right = base or head, head or base
    values = (sides(getattr(left, field), getattr(right, field), unit) for field, _, unit in columns)
    name, kind = (right.name, right.kind) if right else ("", "")
    only = f" (only on {side})" if side else ""
    return Addressed(address, (clip(name, 100) + only, clip(kind, 40), *values), side)


def told(delta: CellDelta, explanation: Explanation, backend: str) -> Told:
    """The story of an explained cell."""
    head = delta.head or delta.base
    arguments = head.program.arguments if head and head.program else ()
    names = {part.name for part in explanation.tree}
    base, now = (cell.phases_ms if cell else {} for cell in _sides(delta))
    phases = sorted({*base, *now}, key=lambda name: (_order(name), name))
    said = story(explanation, head.families if head else (), ROOM, backend)
    labels = _labels(said.dispatches.items)
    dispatches = _dispatches(delta, explanation.dispatches, said, labels)
    first, rest = _named(labels[: len(_ALWAYS)], backend), labels[len(_ALWAYS) :]
    headers = ("dispatch", "change", *first, "what differs", "cause", "component", *rest, "matched by")
    tree = (_component_row(delta.key, part, names) for part in explanation.tree)
    return Told(
        said,
        headers,
        listing(dispatches, len(explanation.dispatches), "dispatch"),
        listing(islice(tree, TABLE_ROWS), len(explanation.tree), "component"),
        _rows(map(_argument_row, arguments), len(arguments), "argument"),
        _rows((_phase_row(name, base, now) for name in phases), len(phases), "phase"),
    )


def _labels(lines: Sequence[DispatchLine]) -> list[str]:
    """The numbers that differ somewhere, after those that are always told."""
    labels = (label for _, label, _ in NUMBERS if label not in _ALWAYS)
    return [*_ALWAYS, *(label for label in labels if any(line.numbers[label].differs for line in lines))]


def _dispatches(
    delta: CellDelta, deltas: Sequence[DispatchDelta], said: Story, labels: Sequence[str]
) -> Iterable[Addressed]:
    addresses = dispatch_addresses(delta.key, entry_points(delta.base, delta.head))
    for one, line in zip(deltas, said.dispatches.items, strict=False):
        numbers = [line.numbers[label].text for label in labels]
        first, rest = numbers[: len(_ALWAYS)], numbers[len(_ALWAYS) :]
        note = "; ".join(filter(None, (line.note, line.passed)))
        texts = (line.name, _change(one), *first, note, line.cause, line.component, *rest, line.matched)
        yield Addressed(addresses.pop(_point(one), ""), texts, _side(one), css_of(code_change(one)))


def _point(one: DispatchDelta) -> EntryPoint:
    known = one.head or one.base
    return (known.executable, known.name) if known else ("", "")


def _side(one: DispatchDelta) -> str:
    return "head" if one.base is None else "base" if one.head is None else ""


def code_change(one: DispatchDelta) -> int | None:
    """Head − base; all of it where a side does not have the dispatch at all."""
    left, right = (0 if found is None else found.code_bytes for found in (one.base, one.head))
    return None if left is None or right is None else right - left


def _change(one: DispatchDelta) -> str:
    size = code_change(one)
    return UNKNOWN if size is None else signed(size)


def css_of(size: int | None) -> str:
    """`up` for what grew, `down` for what shrank."""
    return "" if not size else "up" if size > 0 else "down"


def _rows(rows: Iterable[Row], total: int, noun: str) -> Listing[Row]:
    return listing(islice(rows, TABLE_ROWS), total, noun)


def _order(phase: str) -> int:
    return _COMPILED_IN.index(phase) if phase in _COMPILED_IN else len(_COMPILED_IN)


def _component_row(key: CellKey, delta: ComponentDelta, names: Collection[str]) -> Addressed:
    """Below a component that has a row of its own it loses the name that they share."""
    above = [end for end, char in enumerate(delta.name) if char == "." and delta.name[:end] in names]
    tail, line = delta.name[above[-1] + 1 :] if above else delta.name, component_line(delta)
    css = css_of(delta.change("code_bytes"))
    texts = (clip(tail, _NAME), line.sites, line.code, line.stack)
    return Addressed(component_address(key, delta.name), texts, css=css, level=len(above))


def _argument_row(argument: Argument) -> Row:
    values = ", ".join(f"{value:,}" for value in argument.values[:_VALUES])
    more = ", …" if argument.distinct > min(len(argument.values), _VALUES) else ""
    counts = (amount(count, "count") for count in (argument.distinct, argument.divisor, argument.unknown_sites))
    return clip(argument.entry_point, _NAME), str(argument.index), clip(argument.type, 40), values + more, *counts


def _phase_row(name: str, base: Mapping[str, int], head: Mapping[str, int]) -> Row:
    left, right = base.get(name), head.get(name)
    return clip(name, _NAME), sides(left, right, "ms"), change(left, right, "ms")
