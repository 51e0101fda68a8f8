"""All cells of a report, worst first, each with its tables: for a page that has room for everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from bot.core.backends import backend_of
from bot.core.delta import STATES, CellDelta, MetricDelta
from bot.core.explanation import ComponentDelta, DispatchDelta, Explanation, code_change
from bot.core.metrics import METRIC_BY_ID, code_words
from bot.core.program import Argument
from bot.core.record import ends
from bot.core.snapshot import Cell, CellKey, Dispatch
from bot.show.alarms import failure_words, finding_words, trimmed
from bot.show.blocks import Listing, Phrase, listing
from bot.show.environment import Addressed, MetricLine, Row
from bot.show.escape import clip
from bot.show.facts import (
    MARKS,
    NAME_LIMIT,
    STACK_LIMIT_BYTES,
    EntryPoint,
    Facts,
    cell_address,
    component_address,
    dispatch_addresses,
    entry_points,
    mark_of,
)
from bot.show.filters import UNKNOWN, amount, change, percent, plural, relative, sides, signed
from bot.show.grid import GridCell, grid_cell
from bot.show.traces import TraceCard, TracedDispatch, largest_traced, trace_cards
from bot.show.why import NUMBERS, DispatchLine, Room, Story, component_line, example_address, story

TABLE_ROWS = 400
"""The most rows of one table of a story."""
ROOM = Room(TABLE_ROWS, 0, 0, 12, 60, members=12, varying=12, varying_chars=400)
SHORT_ROOM = Room(8, members=0)
_NAME = 120
_VALUES = 16
_ALWAYS = ("code", "stack frame")
_COMPILED_IN = (
    *("input", "abi", "preprocessing", "global-optimization", "dispatch-creation", "flow", "stream"),
    *("executable-sources", "executable-configurations", "executable-targets", "hal", "vm"),
)
"""The compiler's phases in its own order."""


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


def told(delta: CellDelta, explanation: Explanation, backend: str, room: Room = ROOM) -> Told:
    """The story of an explained cell; with less room than ROOM without what it is made of."""
    head = delta.head or delta.base
    arguments = head.program.arguments if head and head.program else ()
    names = {part.name for part in explanation.tree}
    base, now = (cell.phases_ms if cell else {} for cell in _sides(delta))
    phases = sorted({*base, *now}, key=lambda name: (_order(name), name))
    said = story(explanation, head.families if head and room is ROOM else (), room, backend)
    labels = _labels(said.dispatches.items)
    dispatches = _dispatches(delta, explanation.dispatches, said, labels)
    first, rest = _named(labels[: len(_ALWAYS)], backend), labels[len(_ALWAYS) :]
    headers = ("dispatch", "change", *first, "what differs", "cause", "component", *rest, "matched by")
    changed = listing(dispatches, len(explanation.dispatches), "dispatch")
    if room is not ROOM:
        return Told(said, headers, changed)
    tree = (_component_row(delta.key, part, names) for part in explanation.tree)
    return Told(
        said,
        headers,
        changed,
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


CARDS = 1_500
"""The most cells of a page that are told one by one; what is left out is counted."""
_WHOLE = 20
"""The first cells, of which everything is told however many there are."""
_SHORT_BYTES, _BARE_BYTES = 5_000, 700
"""What a cell takes without the tables of all dispatches, and what its first line alone takes."""
_FINDINGS, _CAUSES, _LINES, _REASON = 12, 3, 12, 200
STATE_WORDS = {
    "same": "the same",
    "changed": "changed",
    "broken": "broken on both sides",
    "unmeasured": "not measured",
    "newly-broken": "newly broken",
    "fixed": "compiles now",
}
_SIDES = ("base", "head")


@dataclass(frozen=True, slots=True)
class Gauge:
    """How much of a limit each side uses: value in bytes and in words."""

    label: str
    limit: int
    sides: tuple[tuple[str, int, str], ...]

    @property
    def most(self) -> int:
        """Where the scale ends: both sides have the same."""
        return max(self.limit, *(size for _, size, _ in self.sides))


@dataclass(frozen=True, slots=True)
class Card:
    """One cell.

    Attributes:
        model, target: as they are shown; `target` is the short name.
        state: one of STATES; `said`: in words.
        grid: its symbols, level and address.
        artifact: base → head; `ratio`: how much more, empty where that is not known.
        size, moved: of head (or base without one) and the change, in bytes, for who sorts.
        reason: why it was not measured; empty elsewhere.
        changed, equal: metrics with a value; of those that did not change, label and value.
        absent: labels of those without, and why they are not known.
        findings: mark and words.
        causes: number and part of the root causes with most of its bytes.
        failures: side, what happened, and the first lines of what the compiler said.
        commands: of which side, and the line.
        traces: the passes of its dispatches, of those that changed most over all cells.
        left_out: what there is no room for, in words.
        anchors: addresses that root causes link to and that no row of the cell has.
    """

    model: str
    target: str
    state: str
    said: str
    grid: GridCell
    artifact: str
    ratio: str
    css: str
    size: int
    moved: int
    reason: str
    findings: tuple[tuple[str, Phrase], ...]
    anchors: tuple[str, ...]
    changed: tuple[MetricLine, ...] = ()
    equal: tuple[tuple[str, str], ...] = ()
    absent: tuple[tuple[str, str], ...] = ()
    gauge: Gauge | None = None
    causes: tuple[tuple[int, str], ...] = ()
    failures: tuple[tuple[str, Phrase, str], ...] = ()
    commands: tuple[tuple[str, str], ...] = ()
    entries: Entries = Entries()
    told: Told | None = None
    traces: tuple[TraceCard, ...] = ()
    left_out: str = ""


@dataclass(slots=True)
class PageRoom:
    """How many bytes a page still has for its cells: a template spends what it draws of each."""

    left_bytes: int

    def spend(self, drawn: str) -> str:
        """The same text, which takes its bytes."""
        self.left_bytes -= len(drawn.encode(errors="surrogatepass"))
        return drawn


@dataclass(frozen=True, slots=True)
class Selection:
    """The cells of a page, worst first.

    Attributes:
        shown: those that are told one by one: the worst, and those that a root cause names as its largest.
        left_out: state → how many others there are.
    """

    shown: tuple[CellDelta, ...]
    left_out: Mapping[str, int]

    @property
    def addresses(self) -> frozenset[str]:
        """Of those that are shown."""
        return frozenset(cell_address(delta.key) for delta in self.shown)


def selection(facts: Facts, most: int = CARDS) -> Selection:
    """As many cells as a page has room for, those that are the same on both sides last."""
    deltas = sorted(facts.report.deltas, key=lambda delta: _rank(facts, delta))
    examples = {root.example.key for root in facts.report.root_causes} if len(deltas) > most else set()
    shown = tuple(delta for at, delta in enumerate(deltas) if at < most or delta.key in examples)
    counts = Counter(delta.state for delta in deltas)
    counts.subtract(delta.state for delta in shown)
    return Selection(shown, {state: counts[state] for state in STATES if counts[state]})


def cards(facts: Facts, chosen: Selection, causes: int, room: PageRoom) -> Iterator[Card]:
    """One at a time: a page of 5,000 cells is not held in memory twice.

    Args:
        causes: how many root causes the page has.
        room: without it a cell has its first line alone.
    """
    linked, traced = _linked(facts), largest_traced(facts)
    for at, delta in enumerate(chosen.shown):
        waiting = len(chosen.shown) - at
        is_whole = at < _WHOLE or room.left_bytes > waiting * _SHORT_BYTES
        is_bare = not is_whole and room.left_bytes < waiting * _BARE_BYTES
        room_of_story = None if is_bare else ROOM if is_whole else SHORT_ROOM
        card = _card(facts, delta, linked.get(delta.key, frozenset()), traced, room_of_story)
        yield replace(card, causes=tuple(_causes(facts.causes.get(delta.key, ()), causes)))


def _linked(facts: Facts) -> dict[CellKey, set[str]]:
    found: dict[CellKey, set[str]] = {}
    for root in facts.report.root_causes:
        if address := example_address(facts, root.example):
            found.setdefault(root.example.key, set()).add(address)
    return found


def _rank(facts: Facts, delta: CellDelta) -> tuple[bool, int, int, int]:
    """What does most to the verdict first, then by state and bytes that moved; what says nothing of a change last."""
    level = ("fail", "warn", "").index(facts.level(delta.key))
    is_idle = delta.state in ("unmeasured", "same") and level > 0
    return (
        is_idle,
        level,
        STATES.index(delta.state),
        -abs(delta.metrics["artifact_bytes"].change or 0) if delta.metrics else 0,
    )


def _card(
    facts: Facts, delta: CellDelta, linked: Collection[str], traced: Collection[TracedDispatch], room: Room | None
) -> Card:
    artifact, backend = delta.metrics.get("artifact_bytes"), facts.backends.get(delta.key.target, "")
    explanation = facts.report.explanations.get(delta.key)
    base, head = artifact.sides if artifact else (None, None)
    moved = (artifact.change if artifact else None) or 0
    largest = head if head is not None else base
    card = Card(
        model=clip(delta.key.model, NAME_LIMIT),
        target=facts.short[delta.key.target],
        state=delta.state,
        said=_said(delta),
        grid=grid_cell(facts, delta.key),
        artifact=sides(base, head),
        ratio=relative(base, head) if artifact and (moved or artifact.is_open) else "",
        css=css_of(moved),
        size=ends(largest)[1] if largest is not None else 0,
        moved=moved,
        reason=delta.reason,
        findings=tuple(
            (MARKS[mark_of(one)], finding_words(facts, one, named=False))
            for one in facts.findings.get(delta.key, ())[:_FINDINGS]
        ),
        anchors=tuple(sorted(linked)),
    )
    if room is None:
        return replace(card, left_out="more of it: report.json, base.json and head.json have all")
    story = told(delta, explanation, backend, room) if explanation else None
    known_rows = {row.address for row in story.dispatches} if story else set()
    is_whole = room is ROOM
    table = entries(delta, backend, known_rows) if is_whole else Entries()
    traces = tuple(trace_cards(delta, explanation, traced)) if explanation and is_whole else ()
    untold = sum(one.passed is not None for one in explanation.dispatches) - len(traces) if explanation else 0
    known = [one for one in delta.metrics.values() if (one.base, one.head) != (None, None)]
    changed = [value for value in known if value.base != value.head or value.is_open]
    return replace(
        card,
        changed=tuple(_metric(facts, delta, value) for value in changed),
        equal=tuple(_equal(facts, delta, value) for value in known if value not in changed and is_whole),
        absent=tuple(_absent(delta, {value.id for value in known})) if is_whole else (),
        gauge=_gauge(delta, backend),
        failures=tuple(_failures(delta)),
        commands=_commands(delta),
        entries=table,
        told=story,
        traces=traces,
        left_out=_left_out(untold, is_whole),
        anchors=tuple(sorted(set(linked) - known_rows - {row.address for row in table.rows})),
    )


def _left_out(untold: int, is_whole: bool) -> str:
    if not is_whole:
        return "all of its dispatches: report.json, base.json and head.json have them"
    return f"the passes of {plural(untold, 'dispatch')}: code-size-bot trace shows them" if untold else ""


def _said(delta: CellDelta) -> str:
    if delta.state == "same" and not delta.unstable:
        return "bit-identical" if delta.identical else "equal in every metric"
    return STATE_WORDS.get(delta.state, delta.state) + ("; the compiler does not repeat itself" * delta.unstable)


def _absent(delta: CellDelta, known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Labels of all other metrics, of a cell that has any, with the reason: those together that have the same."""
    every = METRIC_BY_ID | {one.id: one.quantity for one in delta.metrics.values()}
    reasons = {id_: "not in the snapshot" for id_ in every if known and id_ not in known}
    for cell in (delta.base, delta.head):
        reasons |= {name: why for name, why in cell.reasons.items() if name in reasons} if cell else {}
    for reason in dict.fromkeys(reasons.values()):
        labels = ", ".join(every[name].label for name, why in reasons.items() if why == reason)
        yield labels, clip(reason, _REASON)


def _metric(facts: Facts, delta: CellDelta, value: MetricDelta) -> MetricLine:
    metric = value.quantity
    base, head = (amount(side, metric.unit) for side in value.sides)
    moved = change(*value.sides, metric.unit)
    return MetricLine(facts.label(metric, delta.key), base, head, moved, css_of(value.change) if metric.exact else "")


def _equal(facts: Facts, delta: CellDelta, value: MetricDelta) -> tuple[str, str]:
    metric = value.quantity
    return facts.label(metric, delta.key), amount(value.sides[1], metric.unit)


def _gauge(delta: CellDelta, backend: str) -> Gauge | None:
    """Stack allocations against what the compiler allows on a CPU."""
    value = delta.metrics.get("stack_alloca_bytes")
    if value is None or not backend_of(backend).has_stack_gate:
        return None
    found = [(side, size) for side, size in zip(_SIDES, value.sides, strict=True) if size is not None]
    told = tuple((s, ends(size)[1], f"{amount(size)}, {_share(ends(size)[1])} of the limit") for s, size in found)
    return Gauge("stack allocations", STACK_LIMIT_BYTES, told) if told else None


def _share(size: int) -> str:
    return percent(size / STACK_LIMIT_BYTES).removeprefix("+")


def _causes(sizes: Sequence[tuple[int, int]], shown: int) -> Iterator[tuple[int, str]]:
    total = sum(size for size, _ in sizes)
    for size, number in sizes[:_CAUSES]:
        if size and number <= shown:
            yield number, percent(size / total).removeprefix("+")


def _failures(delta: CellDelta) -> Iterator[tuple[str, Phrase, str]]:
    cells: Mapping[str, Cell | None] = dict(zip(_SIDES, (delta.base, delta.head), strict=True))
    for side, cell in cells.items():
        if cell is not None and cell.failure is not None:
            yield side, failure_words(cell), trimmed(cell.failure.message, _LINES)[0]


def _commands(delta: CellDelta) -> tuple[tuple[str, str], ...]:
    """One for both sides where they were compiled alike."""
    base, head = (cell.command if cell else "" for cell in (delta.base, delta.head))
    if base == head:
        return (("both sides", head),) if head else ()
    return tuple((side, line) for side, line in zip(_SIDES, (base, head), strict=True) if line)
