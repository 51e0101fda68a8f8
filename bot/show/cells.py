"""All cells of a report, worst first, each with its tables: for a page that has room for everything."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bot.core.backends import backend_of
from bot.core.delta import STATES, CellDelta, MetricDelta
from bot.core.explanation import Explanation, code_change
from bot.core.metrics import METRIC_BY_ID, code_words
from bot.core.record import ends
from bot.core.snapshot import CellKey
from bot.show.alarms import failure_words, finding_words, trimmed
from bot.show.blocks import (
    Block,
    Code,
    Fold,
    Gauge,
    List,
    Listing,
    Marked,
    Row,
    Sentence,
    Span,
    Table,
    code,
    joined,
    listed,
    listing,
    marked,
    phrase,
    section,
    strong,
)
from bot.show.escape import clip
from bot.show.facts import (
    MARKS,
    NAME_LIMIT,
    STACK_LIMIT_BYTES,
    Facts,
    cause_address,
    cell_address,
    component_address,
    dispatch_addresses,
    entry_points,
    mark_of,
)
from bot.show.filters import UNKNOWN, amount, change, percent, plural, relative, sides, signed
from bot.show.grid import GridCell, grid_cell
from bot.show.traces import TracedDispatch, largest_traced, trace_folds
from bot.show.why import (
    NUMBERS,
    component_row,
    diffs,
    dispatch_line,
    example_address,
    family_lines,
    rest,
    waterfall,
    why_words,
)

_ROWS, _FEW_ROWS = 400, 8  # The most rows of one table, and of that of a cell which has less room
_DIFFS = 12, 60  # The most pieces that differ, and lines of each
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


@dataclass(frozen=True, slots=True)
class Card:
    """One cell: what can be seen of it before it is opened, and its blocks."""

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
    anchors: tuple[str, ...]  # addresses that root causes link to and that no row of the cell has
    blocks: tuple[Block, ...]


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
        is_bare = not is_whole and room.left_bytes < waiting * _BARE_BYTES
        artifact, why = delta.metrics.get("artifact_bytes"), facts.report.explanations.get(delta.key)
        base, head = artifact.sides if artifact else (None, None)
        moved = (artifact.change if artifact else None) or 0
        largest = head if head is not None else base
        said = STATE_WORDS.get(delta.state, delta.state) + ("; the compiler does not repeat itself" * delta.unstable)
        if delta.state == "same" and not delta.unstable:
            said = "bit-identical" if delta.identical else "equal in every metric"
        blocks = [Sentence(f"Not measured: {delta.reason}" if delta.reason else "")]
        for one in facts.findings.get(delta.key, ())[:_FINDINGS]:
            blocks.append(Sentence(phrase(f"{MARKS[mark_of(one)]} ", finding_words(facts, one, named=False))))
        more: list[Block] = []
        if is_bare:
            blocks.append(_no_room("more of it: report.json, base.json and head.json have all"))
        else:
            backend = facts.backends.get(delta.key.target, "")
            changed = _dispatches(delta, why, backend, _ROWS if is_whole else _FEW_ROWS) if why else Table(("",))
            told = {row.address for row in map(marked, changed.rows)}
            every = entries(delta, backend, told) if is_whole else Table(("",))
            told |= {row.address for row in map(marked, every.rows)}
            more = list(_whole(facts, delta, why, (changed, every), traced, causes, is_whole=is_whole))
            linked[delta.key] -= told
        yield Card(
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
            anchors=tuple(sorted(linked.get(delta.key, ()))),
            blocks=(*blocks, *more),
        )


def _no_room(what: str) -> Sentence:
    return Sentence(f"No room on this page for {what}." if what else "", small=True)


def _whole(
    facts: Facts,
    delta: CellDelta,
    why: Explanation | None,
    tables: tuple[Table, Table],
    traced: Collection[TracedDispatch],
    causes: int,
    *,
    is_whole: bool,
) -> Iterator[Block]:
    """What a cell is made of; `tables`: of the dispatches that changed, and of all."""
    backend, both = facts.backends.get(delta.key.target, ""), {"base": delta.base, "head": delta.head}
    for side, cell in both.items():
        if cell and cell.failure:
            said = phrase(strong(side), ": ", failure_words(cell))
            message = Code(trimmed(cell.failure.message, _LINES)[0], language="text")
            yield Fold(said, (message,), is_open=side == "head" and delta.state == "newly-broken")
    traces = list(trace_folds(delta, why, traced)) if why and is_whole else []
    left_out = "" if is_whole else "all of its dispatches: report.json, base.json and head.json have them"
    if why:
        sizes = facts.causes.get(delta.key, ())
        total = sum(size for size, _ in sizes)
        parts = [
            phrase(Span(f"cause {number}", to=cause_address(number)), f" ({percent(size / total).removeprefix('+')})")
            for size, number in sizes[:_CAUSES]
            if number <= causes
        ]
        of = phrase(" Of what moved in the artifact: ", joined(parts, ", ")) if parts else ()
        yield Sentence(phrase(why_words(why), f". {rest(why)}", of))
        untold = sum(one.passed is not None for one in why.dispatches) - len(traces)
        if is_whole and untold:
            left_out = f"the passes of {plural(untold, 'dispatch')}: code-size-bot trace shows them"
    yield _no_room(left_out)
    beside = section("", *_gauge(delta.metrics.get("stack_alloca_bytes"), backend), *_falls(why), css="beside")
    metrics = section("", *_metrics(facts, delta, is_whole=is_whole))
    if metrics or beside:
        yield section("", metrics, beside, css="sides")
    changed, every = tables
    if why:
        yield section(f"Dispatches that changed ({changed.rows.total:,})" if changed else "", changed)
        yield from traces
        for name, text, more in diffs(why.dispatches, *(_DIFFS if is_whole else (0, 0))):
            more_lines = Sentence(f"and {plural(more, 'more line')}, in report.json" if more else "", small=True)
            title = phrase("The smallest piece of ", code(name), " that differs")
            yield Fold(title, (Code(text, language="diff"), more_lines), css="diff")
        if is_whole:
            yield from _made_of(delta, why, backend)
    yield Fold(f"All dispatches ({plural(len(every.rows.items), 'entry point')})", (every,), css="entries")
    commands = {side: cell.command if cell else "" for side, cell in both.items()}
    if commands["base"] == commands["head"]:
        commands = {"both": commands["head"]}
    for side, command in commands.items():
        of_side = f" of {side}" if all(commands.values()) and len(commands) > 1 else ""
        yield Fold(f"The exact command{of_side}", (Code(command),), css="command")


def _metrics(facts: Facts, delta: CellDelta, *, is_whole: bool) -> Iterator[Block]:
    """Those that changed; those that did not, and why others are not known."""
    known = [one for one in delta.metrics.values() if (one.base, one.head) != (None, None)]
    changed, equal = list[Marked](), list[Row]()
    for value in known:
        metric = value.quantity
        label, (base, head) = facts.label(metric, delta.key), (amount(side, metric.unit) for side in value.sides)
        if value.base != value.head or value.is_open:
            texts = label, base, head, change(*value.sides, metric.unit)
            changed.append(Marked(texts, css=css_of(value.change) if metric.exact else ""))
        else:
            equal.append((label, head))
    yield Table(("metric", "base", "head", "change"), listed(changed), css="metrics")
    if is_whole and equal:
        table = Table(("metric", "both sides"), listed(equal), css="metrics")
        absent = (Sentence(f"n/a: {labels} ({reason})", small=True) for labels, reason in _absent(delta, known))
        is_open = delta.state == "same" or not changed
        yield Fold(f"{plural(len(equal), 'metric')} the same on both sides", (table, *absent), is_open)


def _absent(delta: CellDelta, known: Sequence[MetricDelta]) -> Iterator[tuple[str, str]]:
    """Labels of all other metrics, of a cell that has any, with the reason: those together that have the same."""
    every = METRIC_BY_ID | {one.id: one.quantity for one in delta.metrics.values()}
    reasons = dict.fromkeys(every.keys() - {one.id for one in known}, "not in the snapshot")
    for cell in (delta.base, delta.head):
        reasons |= {name: why for name, why in cell.reasons.items() if name in reasons} if cell else {}
    reasons = {name: reasons[name] for name in every if name in reasons}
    for reason in dict.fromkeys(reasons.values()):
        labels = ", ".join(every[name].label for name, why in reasons.items() if why == reason)
        yield labels, clip(reason, _REASON)


def _gauge(value: MetricDelta | None, backend: str) -> Iterator[Block]:
    """Stack allocations against what the compiler allows on a CPU."""
    if value is None or value.sides == (None, None) or not backend_of(backend).has_stack_gate:
        return
    shown = []
    for side, size in zip(("base", "head"), value.sides, strict=True):
        if size is not None:
            share = percent(ends(size)[1] / STACK_LIMIT_BYTES).removeprefix("+")
            shown.append((side, ends(size)[1], f"{amount(size)}, {share} of the limit"))
    most = max(STACK_LIMIT_BYTES, *(size for _, size, _ in shown))
    about = f"Largest sum of stack allocations in one function; the compiler allows {amount(STACK_LIMIT_BYTES)}."
    gauge = Gauge(STACK_LIMIT_BYTES, most, tuple(shown))
    yield section("Stack against the limit", gauge, Sentence(about, small=True), css="gauge")


def _falls(why: Explanation | None) -> Iterator[Block]:
    rows = [
        (cause, size, ", ".join(f"{what} {grown}" for what, grown in parts))
        for cause, size, parts in (waterfall(why) if why else ())
    ]
    headers = ("cause", "change", "parts of the artifact that are no dispatch's code")
    table = Table(headers, listed(rows), sentences=2, css="falls")
    yield section("The artifact's change by cause" if rows else "", table)


def entries(delta: CellDelta, backend: str, told: Collection[str] = ()) -> Table:
    """All entry points of a cell on both sides; addresses that `told` has are those of other rows already."""
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
        rows.append(Marked((*names, *values), address, side, elsewhere=address in told))
    headers = (code_words(label, backend) if label == "code" else label for _, label, _ in columns)
    return Table(("entry point", "kind", *headers), listed(rows), numbers_from=2, css="dispatches")


def _dispatches(delta: CellDelta, why: Explanation, backend: str, most: int) -> Table:
    """Those that are not the same on both sides."""
    lines, two = [dispatch_line(one) for one in why.dispatches[:most]], len(_ALWAYS)
    others = (label for _, label, _ in NUMBERS if label not in _ALWAYS)
    labels = [*_ALWAYS, *(label for label in others if any(line.numbers[label].differs for line in lines))]
    names = [code_words(label, backend) if label == "code" else label for label in labels]
    headers = ("dispatch", "change", *names[:two], "what differs", "cause", "component", *names[two:], "matched by")
    addresses, rows = dispatch_addresses(delta.key, entry_points(delta.base, delta.head)), list[Marked]()
    for one, line in zip(why.dispatches, lines, strict=False):
        numbers, size, known = [line.numbers[label].text for label in labels], code_change(one), one.head or one.base
        note = "; ".join(filter(None, (line.note, line.passed)))
        grown = UNKNOWN if size is None else signed(size)
        texts = (line.name, grown, *numbers[:two], note, line.cause, line.component, *numbers[two:], line.matched)
        address = addresses.pop((known.executable, known.name), "") if known else ""
        side = "head" if one.base is None else "base" if one.head is None else ""
        rows.append(Marked(texts, address, side, css_of(size)))
    shown = listing(rows, len(why.dispatches), "dispatch")
    return Table(headers, shown, sentences=4, unnumbered=(5, 6, len(headers) - 1), css="told")


def css_of(size: int | None) -> str:
    """`up` for what grew, `down` for what shrank."""
    return "" if not size else "up" if size > 0 else "down"


def _made_of(delta: CellDelta, why: Explanation, backend: str) -> Iterator[Block]:
    """Components down to the model's own names, what deduplication left, arguments, phases of compiling."""
    head, names = delta.head or delta.base, {part.name for part in why.tree}

    def fold(title: str, headers: tuple[str, ...], rows: Listing[Row | Marked], begin: int, css: str) -> Fold:
        return Fold(f"{title} ({rows.total:,})", (Table(headers, rows, begin, css=css),))

    tree = list[Marked]()
    for part in why.tree[:_ROWS]:  # below a component that has a row of its own it loses the name that they share
        above = [end for end, char in enumerate(part.name) if char == "." and part.name[:end] in names]
        tail, (_, *sizes) = part.name[above[-1] + 1 :] if above else part.name, component_row(part)
        at, css = component_address(delta.key, part.name), css_of(part.change("code_bytes"))
        tree.append(Marked((clip(tail, _NAME), *sizes), at, css=css, level=len(above)))
    size = code_words("code", backend)
    headers: tuple[str, ...] = ("component", "dispatch sites", f"{size}, base → head", "stack frame, base → head")
    yield fold("Components", headers, listing(tree, len(why.tree), "component"), 1, "tree")
    families = family_lines(head.families if head else (), _ROWS, roomy=True)
    yield Fold(f"What deduplication left behind ({families.total:,})", (List(families),))
    arguments, rows = head.program.arguments if head and head.program else (), list[Row]()
    for one in arguments[:_ROWS]:
        values = ", ".join(f"{value:,}" for value in one.values[:_VALUES])
        more = ", …" if one.distinct > min(len(one.values), _VALUES) else ""
        counts = (amount(count, "count") for count in (one.distinct, one.divisor, one.unknown_sites))
        rows.append((clip(one.entry_point, _NAME), str(one.index), clip(one.type, 40), values + more, *counts))
    headers = ("entry point", "argument", "type", "values", "different", "common divisor", "sites without a constant")
    title = "Arguments of the dispatches: what a dynamic version would have to know"
    yield fold(title, headers, listing(rows, len(arguments), "argument"), 4, "arguments")
    base, now = (cell.phases_ms if cell else {} for cell in (delta.base, delta.head))
    order, phases = {name: at for at, name in enumerate(_COMPILED_IN)}, list[Row]()
    for name in sorted({*base, *now}, key=lambda name: (order.get(name, len(order)), name)):
        both = base.get(name), now.get(name)
        phases.append((clip(name, _NAME), sides(*both, "ms"), change(*both, "ms")))
    shown = listing(phases[:_ROWS], len(phases), "phase")
    yield fold(
        "Compile time by phase (informational)", ("phase", "wall time, base → head", "change"), shown, 1, "phases"
    )
