"""The page: everything there is to say, in one file that needs nothing else."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappush, heappushpop, nlargest
from pathlib import Path
from typing import NamedTuple

from bot.core.backends import backend_of
from bot.core.delta import STATES, CellDelta, MetricDelta
from bot.core.explanation import UNATTRIBUTED, Explanation, code_change, moved_bytes
from bot.core.explanation import UNKNOWN as NO_CAUSE
from bot.core.metrics import METRIC_BY_ID, code_words
from bot.core.record import ends
from bot.core.report import Report
from bot.core.snapshot import CellKey
from bot.show.blocks import (
    Block,
    Code,
    Fold,
    Gauge,
    Limits,
    List,
    Listing,
    Marked,
    Phrase,
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
from bot.show.escape import clean, clip
from bot.show.facts import (
    MARKS,
    NAME_LIMIT,
    NUMBERS,
    STACK_LIMIT_BYTES,
    STATE_WORDS,
    Facts,
    build_facts,
    cause_address,
    cause_words,
    cell_address,
    component_address,
    component_row,
    diffs,
    dispatch_addresses,
    dispatch_line,
    entry_points,
    example_address,
    family_lines,
    mark_of,
    rest,
    waterfall,
    why_words,
)
from bot.show.filters import UNKNOWN, amount, change, percent, plural, relative, sides, signed
from bot.show.renderers import data_element, draw, drawn, load, skeleton
from bot.show.report import (
    GridCell,
    build_grid,
    every_block,
    everything,
    failure_words,
    finding_words,
    grid_cell,
    page_blocks,
    trimmed,
)
from bot.show.traces import TracedDispatch, largest_traced, trace_folds

_LIMITS = Limits(400, 1_000_000, 200, 40, 40, 1_000, 1, 200, 60, 200, 0, 0, 0, every=True)
LARGEST_BYTES = 5_000_000  # Of a page: what does not fit is counted, and named with the file that has it
_FRAME_BYTES, _LINE_BYTES = 400_000, 260
"""What a page without cells takes, with its scripts; and each cell of the grid, each finding and each row of tables."""
TEMPLATE = "report.html.j2"
STYLE, SCRIPTS = "report/report.css", ("page/treemap.js", "report/cells.js", "report/pictures.js")
_EMPTY = "(empty)"
_LEVELS = (("fail", "over the limit"), ("warn", "warning"))


def render_html(report: Report, templates_dir: Path | None = None) -> str:
    """Do what `html_pieces` does, as one text."""
    return "".join(html_pieces(report, templates_dir))


def html_pieces(report: Report, templates_dir: Path | None = None) -> Iterator[str]:
    """A self-contained HTML page, piece by piece: that of a large report need not be held.

    `templates_dir`: the user's templates, searched before the default ones.

    Raises:
        TemplateError: a template does not work.
    """
    facts, template = build_facts(report), load(TEMPLATE, templates_dir)
    grid, parts, tree, chosen = (
        build_grid(facts, _LIMITS),
        page_blocks(facts, _LIMITS),
        change_map(facts),
        selection(facts),
    )
    data, table = data_element("change-data", map_json(tree)) if tree.inside else "", map_table(tree)
    lines = sum(len(rows) * len(headers) for headers, rows in grid.blocks) + len(table.rows.items)
    lines += sum(len(one.rows.items) for one in every_block(parts["sections"]) if isinstance(one, Table))
    room = PageRoom(LARGEST_BYTES - _FRAME_BYTES - len(data) - _LINE_BYTES * lines)
    yield from drawn(
        template,
        answer="report",
        status=report.verdict.status,
        parts=parts,
        grid=grid,
        cards=cards(facts, chosen, _LIMITS.causes, room),
        room=room,
        shown=chosen.addresses,
        unlisted=_unlisted(chosen),
        choices=_choices(facts, chosen),
        map=tree,
        map_words=map_words(facts, tree),
        map_table=table,
        map_data=data,
        skeleton=skeleton(templates_dir, styles=(STYLE,), scripts=SCRIPTS, charts=True),
    )


def _unlisted(chosen: Selection) -> str:
    """What of the cells is not told one by one, in a sentence; empty where all are."""
    counts = [f"{count:,} {STATE_WORDS[state]}" for state, count in chosen.left_out.items()]
    if not counts:
        return ""
    missing, shown = sum(chosen.left_out.values()), len(chosen.shown)
    return (
        f"Of {shown + missing:,} builds this page tells the {shown:,} that matter most. The other {missing:,} are in "
        f"report.json: {', '.join(counts)}. The sums and pictures above have all of them."
    )


def _choices(facts: Facts, chosen: Selection) -> Mapping[str, Iterable[tuple[str, str]] | int]:
    """What cells can be filtered by: value and words of each."""
    models = dict.fromkeys(clip(delta.key.model, NAME_LIMIT) for delta in chosen.shown)
    targets = sorted({facts.short[delta.key.target] for delta in facts.report.deltas})
    return {
        "models": [(name or _EMPTY, name or _EMPTY) for name in models],
        "targets": [(name, name) for name in targets],
        "states": [(state, STATE_WORDS[state]) for state in STATES if facts.count(state)],
        "levels": _LEVELS,
    }


SITE_TEMPLATE = "site.html.j2"
_SHOWN_DIGITS = 10
_ABOUT = {
    "report.html": "The newest baseline against the one before",
    "report.json": "The same as JSON",
    "history.html": "All baselines: when each number moved, and why",
    "history.json": "The same as JSON",
    "history.md": "The same as text",
}


def site_page(made: Report, commits: Sequence[str], files: Sequence[Path], templates_dir: Path | None = None) -> str:
    """The page.

    `made`: of the newest baseline and the one before; `commits`: that have a baseline, the oldest first; `files`: of
    the site, beside the page.

    Raises:
        TemplateError: a template does not work.
    """
    total = everything(build_facts(made))
    return draw(
        load(SITE_TEMPLATE, templates_dir),
        skeleton=skeleton(templates_dir),
        commit=commits[-1][:_SHOWN_DIGITS],
        compiler=made.head.compiler.version,
        said=f"{plural(len(commits), 'baseline')}, {plural(len(made.head.cells), 'build')} in the newest",
        total=total,
        links=[(file.name, _ABOUT[file.name]) for file in files],
    )


# All cells, worst first, each with its blocks.


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
        said = STATE_WORDS[delta.state] + ("; the compiler does not repeat itself" * delta.unstable)
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


# Where the bytes went: the change of all artifacts as a tree, target → model → component → dispatch or part.
# Every cell with an artifact on both sides counts with its whole change: what neither a dispatch nor a part of the
# artifact explains is a leaf of its own. Bytes of a place are the sum of the amounts of its leaves; net is their sum.


PLACES, CELLS = 4_000, 200
"""About how many places the picture has at most, and rows of its table; smaller ones are added up."""
_NO_COMPONENT = "no component known"
_REST = "what no dispatch and no part of the artifact explains"
_STATES = {
    "fixed": ("compiles now", "compile now"),
    "newly-broken": ("newly broken", "newly broken"),
    "new": ("new", "new"),
    "removed": ("removed", "removed"),
    "broken": ("broken on both sides", "broken on both sides"),
}


@dataclass(frozen=True, slots=True)
class Place:
    """A part of what changed."""

    name: str
    # net_bytes, moved_bytes: the sum of its leaves, and that of their amounts
    net_bytes: int
    moved_bytes: int
    address: str = ""  # on the page; empty for what is no cell and in none
    inside: tuple[Place, ...] = ()  # its parts, the largest first; a leaf has none


Leaf = tuple[str, int, str]  # Name, change in bytes and address


def change_map(facts: Facts) -> Place:
    """The tree; a component that is too small for the picture to show what is in it has no leaves."""
    targets, largest = dict[str, list[Place]](), list[int]()
    for delta in facts.report.deltas:
        if (change := _change(delta)) is not None:
            place = _cell(delta.key, change, _leaves(delta, facts.report.explanations.get(delta.key)), largest)
            if place.moved_bytes:
                targets.setdefault(facts.short[delta.key.target], []).append(place)
    return _sum("all targets", (_sum(name, models) for name, models in targets.items()))


def _change(delta: CellDelta) -> int | None:
    artifact = delta.metrics.get("artifact_bytes")
    return artifact.change if artifact else None


def _sum(name: str, inside: Iterable[Place], address: str = "") -> Place:
    parts = tuple(sorted(inside, key=lambda one: (-one.moved_bytes, one.name)))
    return Place(name, sum(p.net_bytes for p in parts), sum(p.moved_bytes for p in parts), address, parts)


def _cell(key: CellKey, change: int, leaves: Mapping[str, list[Leaf]], largest: list[int]) -> Place:
    """`largest`: a heap of what the largest places until now moved, which no smaller one can be shown beside."""
    address, groups, inside = cell_address(key), dict(leaves), list[Place]()
    if rest := change - sum(size for group in leaves.values() for _, size, _ in group):
        groups[UNATTRIBUTED] = [*groups.get(UNATTRIBUTED, ()), (_REST, rest, address)]
    for name, group in groups.items():
        # a component has an address; parts of the artifact are told with their cell
        is_part = name == _NO_COMPONENT or any(to == address for _, _, to in group)
        at, moved_bytes = address if is_part else component_address(key, name), sum(abs(size) for _, size, _ in group)
        if len(largest) <= PLACES or moved_bytes >= largest[0]:
            parts = [Place(clip(clean(leaf), NAME_LIMIT), size, abs(size), to) for leaf, size, to in group]
            inside.append(_sum(name, parts, at))
            for one in (inside[-1], *parts):
                (heappush if len(largest) <= PLACES else heappushpop)(largest, one.moved_bytes)
        else:
            inside.append(Place(name, sum(size for _, size, _ in group), moved_bytes, at))
    return _sum(clip(key.model, NAME_LIMIT) or "(empty)", inside, address)


def _leaves(delta: CellDelta, told: Explanation | None) -> Mapping[str, list[Leaf]]:
    """Component, or what else of the artifact it is, → dispatches or parts that changed."""
    groups: dict[str, list[Leaf]] = {}
    if told is None or (delta.unstable and not delta.numbers_repeat):
        return groups
    own, addresses = cell_address(delta.key), dispatch_addresses(delta.key, entry_points(delta.base, delta.head))
    for one in told.dispatches:
        if (size := moved_bytes(one)) and (known := one.head or one.base):
            name = _NO_COMPONENT if one.component == UNATTRIBUTED else clean(one.component, NAME_LIMIT)
            address = addresses.get((known.executable, known.name), own)
            groups.setdefault(name, []).append((one.name, size, address))
    for part in told.parts:
        name = UNATTRIBUTED if part.cause == NO_CAUSE else cause_words(part.cause)
        groups.setdefault(name, []).append((part.what, part.change_bytes, own))
    return groups


def pruned(place: Place, least_bytes: int) -> Place:
    """The same sums with fewer places: in each, those with less than `least_bytes` are one."""
    if place.moved_bytes < least_bytes:
        return replace(place, inside=())
    inside = [pruned(one, least_bytes) for one in place.inside]
    small = [one for one in inside if one.moved_bytes < least_bytes]
    if len(small) > 1:
        sums = sum(one.net_bytes for one in small), sum(one.moved_bytes for one in small)
        inside = [one for one in inside if one.moved_bytes >= least_bytes]
        inside.append(Place(f"{len(small):,} smaller ones", *sums, place.address))
    return replace(place, inside=tuple(inside))


def map_json(tree: Place) -> str:
    """The tree for the picture: name, net, bytes, address, parts; `<` is escaped, so that it ends no element."""
    sizes = nlargest(PLACES + 1, (one.moved_bytes for one in _all(tree)))
    least_bytes = sizes[-1] + 1 if len(sizes) > PLACES else 1
    return json.dumps(_row(pruned(tree, least_bytes)), separators=(",", ":")).replace("<", "\\u003c")


def _all(place: Place) -> Iterator[Place]:
    yield place
    for one in place.inside:
        yield from _all(one)


def _row(place: Place) -> list[object]:
    row: list[object] = [clean(place.name), place.net_bytes, place.moved_bytes, place.address]
    return [*row, [_row(one) for one in place.inside]] if place.inside else row


def map_table(tree: Place) -> Table:
    """The same cell by cell, those that moved most first."""
    cells = [(target.name, cell) for target in tree.inside for cell in target.inside]
    cells.sort(key=lambda one: (-one[1].moved_bytes, one[0], one[1].name))
    rows = (
        (
            phrase(code(cell.name, cell.address)),
            phrase(code(target)),
            phrase(signed(cell.net_bytes)),
            phrase(signed((cell.moved_bytes + cell.net_bytes) // 2)),
            phrase(signed((cell.net_bytes - cell.moved_bytes) // 2)),
            joined((phrase(f"{one.name} {signed(one.net_bytes)}") for one in cell.inside[:3]), ", "),
        )
        for target, cell in cells[:CELLS]
    )
    headers = ("model", "target", "change", "grew", "shrank", "where, the most first")
    return Table(headers, listing(rows, len(cells), "build"), numbers_from=2, sentences=5)


def map_words(facts: Facts, tree: Place) -> tuple[Phrase, ...]:
    """What the picture has, and which cells it cannot have."""
    grew, shrank = (tree.moved_bytes + tree.net_bytes) // 2, (tree.moved_bytes - tree.net_bytes) // 2
    cells = sum(len(target.inside) for target in tree.inside)
    first = f"{signed(tree.net_bytes)} over {plural(cells, 'build')}: {amount(grew)} grew, {amount(shrank)} shrank."
    counts = [(facts.count(state), *words) for state, words in _STATES.items()]
    missing = [f"{count:,} {one if count == 1 else many}" for count, one, many in counts if count]
    if open_ := sum(one.unstable and _change(one) is None for one in facts.report.deltas):
        missing.append(f"{open_:,} with a compiler that does not repeat itself")
    return (phrase(first), *([phrase(f"Not in it, as they have no change: {', '.join(missing)}.")] if missing else []))
