"""All cells of a report, worst first, each with its tables: for a page that has room for everything."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple

from bot.core.backends import backend_of
from bot.core.delta import STATES, CellDelta, MetricDelta
from bot.core.explanation import ComponentDelta, DispatchDelta, Explanation, code_change
from bot.core.metrics import METRIC_BY_ID, code_words
from bot.core.program import Argument
from bot.core.record import ends
from bot.core.snapshot import CellKey
from bot.show.alarms import failure_words, finding_words, trimmed
from bot.show.blocks import Listing, Phrase, listing
from bot.show.environment import Addressed, MetricLine, Row
from bot.show.escape import clip
from bot.show.facts import (
    MARKS,
    NAME_LIMIT,
    STACK_LIMIT_BYTES,
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
from bot.show.why import NUMBERS, Room, Story, component_line, example_address, story

TABLE_ROWS = 400  # The most rows of one table of a story
ROOM = Room(TABLE_ROWS, 0, 0, 12, 60, members=12, varying=12, varying_chars=400)
SHORT_ROOM = Room(8, members=0)
CARDS = 1_500  # The most cells of a page that are told one by one; what is left out is counted
_WHOLE = 20  # The first cells, of which everything is told however many there are
_SHORT_BYTES, _BARE_BYTES = 5_000, 700
"""What a cell takes without the tables of all dispatches, and what its first line alone takes."""
_FINDINGS, _CAUSES, _LINES, _REASON, _NAME, _VALUES = 12, 3, 12, 200, 120, 16
_ALWAYS = ("code", "stack frame")
_COMPILED_IN = (
    *("input", "abi", "preprocessing", "global-optimization", "dispatch-creation", "flow", "stream"),
    *("executable-sources", "executable-configurations", "executable-targets", "hal", "vm"),
)
"""The compiler's phases in its own order."""
STATE_WORDS = {
    "same": "the same",
    "changed": "changed",
    "broken": "broken on both sides",
    "unmeasured": "not measured",
    "newly-broken": "newly broken",
    "fixed": "compiles now",
}


class Entries(NamedTuple):
    """All entry points of a cell on both sides."""

    headers: Row = ()  # of what some of them has a value for
    rows: tuple[Addressed, ...] = ()
    code: int | None = None  # the column with the size of the code; None without one


NO_ENTRIES = Entries()


@dataclass(frozen=True, slots=True)
class Told:
    """Why a cell changed, and what it is made of."""

    story: Story
    headers: Row  # of `dispatches`, those that are not the same on both sides
    dispatches: Listing[Addressed]
    # all components down to the model's own names: name, sites, code and stack frame
    tree: Listing[Addressed] = field(default_factory=Listing)
    # of the dispatches, with what a dynamic version would have to know
    arguments: Listing[Row] = field(default_factory=Listing)
    phases: Listing[Row] = field(default_factory=Listing)  # of compiling, with the time that they took


class Gauge(NamedTuple):
    """How much of a limit each side uses: value in bytes and in words; `most` is where the scale of both ends."""

    label: str
    limit: int
    most: int
    sides: tuple[tuple[str, int, str], ...]


@dataclass(frozen=True, slots=True)
class Card:
    """One cell."""

    # model, target: as they are shown; `target` is the short name
    model: str
    target: str
    state: str  # one of STATES; `said`: in words
    said: str
    grid: GridCell  # its symbols, level and address
    artifact: str  # base → head; `ratio`: how much more, empty where that is not known
    ratio: str
    css: str
    # size, moved: of head (or base without one) and the change, in bytes, for who sorts
    size: int
    moved: int
    reason: str  # why it was not measured; empty elsewhere
    findings: tuple[tuple[str, Phrase], ...]  # mark and words
    anchors: tuple[str, ...]  # addresses that root causes link to and that no row of the cell has
    causes: tuple[tuple[int, str], ...]  # number and part of the root causes with most of its bytes
    # changed, equal: metrics with a value; of those that did not change, label and value
    changed: tuple[MetricLine, ...] = ()
    equal: tuple[tuple[str, str], ...] = ()
    absent: tuple[tuple[str, str], ...] = ()  # labels of those without, and why they are not known
    gauge: Gauge | None = None
    # side, what happened, and the first lines of what the compiler said
    failures: tuple[tuple[str, Phrase, str], ...] = ()
    commands: tuple[tuple[str, str], ...] = ()  # of which side, and the line
    entries: Entries = NO_ENTRIES
    told: Told | None = None
    traces: tuple[TraceCard, ...] = ()  # the passes of its dispatches, of those that changed most over all cells
    left_out: str = ""  # what there is no room for, in words


@dataclass(slots=True)
class PageRoom:
    """How many bytes a page still has for its cells: a template spends what it draws of each."""

    left_bytes: int

    def spend(self, drawn: str) -> str:
        """The same text, which takes its bytes."""
        self.left_bytes -= len(drawn.encode(errors="surrogatepass"))
        return drawn


class Selection(NamedTuple):
    """The cells of a page, worst first."""

    # those that are told one by one: the worst, and those that a root cause names as its largest
    shown: tuple[CellDelta, ...]
    left_out: Mapping[str, int]  # state → how many others there are
    addresses: frozenset[str]  # of those that are shown


def selection(facts: Facts, most: int = CARDS) -> Selection:
    """As many cells as a page has room for.

    What does most to the verdict first, then by state and bytes that moved; what says nothing of a change last.
    """

    def rank(delta: CellDelta) -> tuple[bool, int, int, int]:
        level = ("fail", "warn", "").index(facts.level(delta.key))
        is_idle = delta.state in ("unmeasured", "same") and level > 0
        moved = abs(delta.metrics["artifact_bytes"].change or 0) if delta.metrics else 0
        return is_idle, level, STATES.index(delta.state), -moved

    deltas = sorted(facts.report.deltas, key=rank)
    examples = {root.example.key for root in facts.report.root_causes} if len(deltas) > most else set()
    shown = tuple(delta for at, delta in enumerate(deltas) if at < most or delta.key in examples)
    counts = Counter(delta.state for delta in deltas)
    counts.subtract(delta.state for delta in shown)
    addresses = frozenset(cell_address(delta.key) for delta in shown)
    return Selection(shown, {state: counts[state] for state in STATES if counts[state]}, addresses)


def cards(facts: Facts, chosen: Selection, causes: int, room: PageRoom) -> Iterator[Card]:
    """One at a time: a page of 5,000 cells is not held in memory twice.

    `causes`: how many root causes the page has; `room`: without it a cell has its first line alone.
    """
    traced, linked = largest_traced(facts), defaultdict[CellKey, set[str]](set)
    for root in facts.report.root_causes:
        if address := example_address(facts, root.example):
            linked[root.example.key].add(address)
    for at, delta in enumerate(chosen.shown):
        waiting = len(chosen.shown) - at
        is_whole = at < _WHOLE or room.left_bytes > waiting * _SHORT_BYTES
        card = _card(facts, delta, linked.get(delta.key, set()), causes)
        if not is_whole and room.left_bytes < waiting * _BARE_BYTES:
            yield replace(card, left_out="more of it: report.json, base.json and head.json have all")
        else:
            yield _whole_card(facts, delta, card, traced, ROOM if is_whole else SHORT_ROOM)


def _card(facts: Facts, delta: CellDelta, linked: Collection[str], causes: int) -> Card:
    """Its first line, its findings and its causes."""
    artifact = delta.metrics.get("artifact_bytes")
    base, head = artifact.sides if artifact else (None, None)
    moved = (artifact.change if artifact else None) or 0
    largest, sizes = head if head is not None else base, facts.causes.get(delta.key, ())
    said = STATE_WORDS.get(delta.state, delta.state) + ("; the compiler does not repeat itself" * delta.unstable)
    if delta.state == "same" and not delta.unstable:
        said = "bit-identical" if delta.identical else "equal in every metric"
    findings = facts.findings.get(delta.key, ())[:_FINDINGS]
    total = sum(size for size, _ in sizes)
    parts = [(number, percent(size / total).removeprefix("+")) for size, number in sizes[:_CAUSES] if number <= causes]
    return Card(
        clip(delta.key.model, NAME_LIMIT),
        facts.short[delta.key.target],
        delta.state,
        said,
        grid_cell(facts, delta.key),
        artifact=sides(base, head),
        ratio=relative(base, head) if artifact and (moved or artifact.is_open) else "",
        css=css_of(moved),
        size=ends(largest)[1] if largest is not None else 0,
        moved=moved,
        reason=delta.reason,
        findings=tuple((MARKS[mark_of(one)], finding_words(facts, one, named=False)) for one in findings),
        anchors=tuple(sorted(linked)),
        causes=tuple(parts),
    )


def _whole_card(facts: Facts, delta: CellDelta, card: Card, traced: Collection[TracedDispatch], room: Room) -> Card:
    """The card with what it is made of; in less room than ROOM without its longest tables."""
    explanation, backend = facts.report.explanations.get(delta.key), facts.backends.get(delta.key.target, "")
    story, is_whole = told(delta, explanation, backend, room) if explanation else None, room is ROOM
    rows = {row.address for row in story.dispatches} if story else set()
    table = entries(delta, backend, rows) if is_whole else NO_ENTRIES
    traces = tuple(trace_cards(delta, explanation, traced)) if explanation and is_whole else ()
    untold = sum(one.passed is not None for one in explanation.dispatches) - len(traces) if explanation else 0
    left_out = f"the passes of {plural(untold, 'dispatch')}: code-size-bot trace shows them" if untold else ""
    known = [one for one in delta.metrics.values() if (one.base, one.head) != (None, None)]
    changed, equal = list[MetricLine](), list[tuple[str, str]]()
    for value in known:
        metric = value.quantity
        label, (base, head) = facts.label(metric, delta.key), (amount(side, metric.unit) for side in value.sides)
        if value.base != value.head or value.is_open:
            css = css_of(value.change) if metric.exact else ""
            changed.append(MetricLine(label, base, head, change(*value.sides, metric.unit), css))
        elif is_whole:
            equal.append((label, head))
    both = {"base": delta.base, "head": delta.head}
    lines = {side: cell.command if cell else "" for side, cell in both.items()}
    if lines["base"] == lines["head"]:
        lines = {"both sides": lines["head"]}
    return replace(
        card,
        changed=tuple(changed),
        equal=tuple(equal),
        absent=tuple(_absent(delta, {value.id for value in known})) if is_whole else (),
        gauge=_gauge(delta.metrics.get("stack_alloca_bytes"), backend),
        failures=tuple(
            (side, failure_words(cell), trimmed(cell.failure.message, _LINES)[0])
            for side, cell in both.items()
            if cell and cell.failure
        ),
        commands=tuple((side, line) for side, line in lines.items() if line),
        entries=table,
        told=story,
        traces=traces,
        left_out=left_out if is_whole else "all of its dispatches: report.json, base.json and head.json have them",
        anchors=tuple(sorted(set(card.anchors) - rows - {row.address for row in table.rows})),
    )


def _absent(delta: CellDelta, known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Labels of all other metrics, of a cell that has any, with the reason: those together that have the same."""
    every = METRIC_BY_ID | {one.id: one.quantity for one in delta.metrics.values()}
    reasons = {id_: "not in the snapshot" for id_ in every if known and id_ not in known}
    for cell in (delta.base, delta.head):
        reasons |= {name: why for name, why in cell.reasons.items() if name in reasons} if cell else {}
    for reason in dict.fromkeys(reasons.values()):
        labels = ", ".join(every[name].label for name, why in reasons.items() if why == reason)
        yield labels, clip(reason, _REASON)


def _gauge(value: MetricDelta | None, backend: str) -> Gauge | None:
    """Stack allocations against what the compiler allows on a CPU."""
    if value is None or not backend_of(backend).has_stack_gate:
        return None
    shown = []
    for side, size in zip(("base", "head"), value.sides, strict=True):
        if size is not None:
            share = percent(ends(size)[1] / STACK_LIMIT_BYTES).removeprefix("+")
            shown.append((side, ends(size)[1], f"{amount(size)}, {share} of the limit"))
    most = max(STACK_LIMIT_BYTES, *(size for _, size, _ in shown), 0)
    return Gauge("stack allocations", STACK_LIMIT_BYTES, most, tuple(shown)) if shown else None


def entries(delta: CellDelta, backend: str, told: Collection[str] = ()) -> Entries:
    """The table of entry points; addresses that `told` has are those of other rows already."""
    both = (delta.base, delta.head)
    left, right = ({(d.executable, d.name): d for d in cell.dispatches} if cell else {} for cell in both)
    addresses = dispatch_addresses(delta.key, entry_points(*both))
    pairs = [(left.get(point), right.get(point)) for point in addresses]
    columns = [number for number in NUMBERS if any(getattr(d, number[0], None) is not None for p in pairs for d in p)]
    rows = []
    for address, (base, head) in zip(addresses.values(), pairs, strict=True):  # values of one side alone are of both
        side = "head" if base is None else "base" if head is None else ""
        old, new = base or head, head or base
        values = (sides(getattr(old, field), getattr(new, field), unit) for field, _, unit in columns)
        only = f" (only on {side})" if side else ""
        names = (clip(new.name, 100) + only, clip(new.kind, 40)) if new else ("", "")
        rows.append(Addressed(address, (*names, *values), side, told=address in told))
    labels = [label for _, label, _ in columns]
    code = 2 + labels.index("code") if "code" in labels else None
    return Entries(("entry point", "kind", *_headers(labels, backend)), tuple(rows), code)


def _headers(labels: Sequence[str], backend: str) -> list[str]:
    return [code_words(label, backend) if label == "code" else label for label in labels]


def told(delta: CellDelta, explanation: Explanation, backend: str, room: Room = ROOM) -> Told:
    """The story of an explained cell; with less room than ROOM without what it is made of."""
    head = delta.head or delta.base
    said = story(explanation, head.families if head and room is ROOM else (), room, backend)
    lines, two = said.dispatches.items, len(_ALWAYS)
    others = (label for _, label, _ in NUMBERS if label not in _ALWAYS)
    labels = [*_ALWAYS, *(label for label in others if any(line.numbers[label].differs for line in lines))]
    headers = ("dispatch", "change", *_headers(labels[:two], backend), "what differs", "cause", "component")
    headers = (*headers, *labels[two:], "matched by")
    addresses, rows = dispatch_addresses(delta.key, entry_points(delta.base, delta.head)), list[Addressed]()
    for one, line in zip(explanation.dispatches, lines, strict=False):
        numbers, size, known = [line.numbers[label].text for label in labels], code_change(one), one.head or one.base
        note = "; ".join(filter(None, (line.note, line.passed)))
        grown = UNKNOWN if size is None else signed(size)
        texts = (line.name, grown, *numbers[:two], note, line.cause, line.component, *numbers[two:], line.matched)
        address = addresses.pop((known.executable, known.name), "") if known else ""
        rows.append(Addressed(address, texts, _side(one), css_of(size)))
    changed = listing(rows, len(explanation.dispatches), "dispatch")
    if room is not ROOM:
        return Told(said, headers, changed)
    names = {part.name for part in explanation.tree}
    tree = (_component_row(delta.key, part, names) for part in islice(explanation.tree, TABLE_ROWS))
    arguments = head.program.arguments if head and head.program else ()
    base, now = (cell.phases_ms if cell else {} for cell in (delta.base, delta.head))
    order = {name: at for at, name in enumerate(_COMPILED_IN)}
    phases = []
    for name in sorted({*base, *now}, key=lambda name: (order.get(name, len(order)), name)):
        both = base.get(name), now.get(name)
        phases.append((clip(name, _NAME), sides(*both, "ms"), change(*both, "ms")))
    return Told(
        said,
        headers,
        changed,
        listing(tree, len(explanation.tree), "component"),
        listing(map(_argument_row, arguments[:TABLE_ROWS]), len(arguments), "argument"),
        listing(phases[:TABLE_ROWS], len(phases), "phase"),
    )


def _side(one: DispatchDelta) -> str:
    return "head" if one.base is None else "base" if one.head is None else ""


def css_of(size: int | None) -> str:
    """`up` for what grew, `down` for what shrank."""
    return "" if not size else "up" if size > 0 else "down"


def _component_row(key: CellKey, delta: ComponentDelta, names: Collection[str]) -> Addressed:
    """Below a component that has a row of its own it loses the name that they share."""
    above = [end for end, char in enumerate(delta.name) if char == "." and delta.name[:end] in names]
    tail, line = delta.name[above[-1] + 1 :] if above else delta.name, component_line(delta)
    texts = (clip(tail, _NAME), line.sites, line.code, line.stack)
    css = css_of(delta.change("code_bytes"))
    return Addressed(component_address(key, delta.name), texts, css=css, level=len(above))


def _argument_row(argument: Argument) -> Row:
    values = ", ".join(f"{value:,}" for value in argument.values[:_VALUES])
    more = ", …" if argument.distinct > min(len(argument.values), _VALUES) else ""
    counts = (amount(count, "count") for count in (argument.distinct, argument.divisor, argument.unknown_sites))
    return clip(argument.entry_point, _NAME), str(argument.index), clip(argument.type, 40), values + more, *counts
