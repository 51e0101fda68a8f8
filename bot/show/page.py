"""The page: everything there is to say, in one file that needs nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bot.core.backends import backend_of
from bot.core.delta import STATES, CellDelta, MetricDelta
from bot.core.explanation import Explanation, code_change
from bot.core.metrics import METRIC_BY_ID, code_words
from bot.core.planned import SIDES
from bot.core.record import ends
from bot.core.report import Report
from bot.core.snapshot import CellKey
from bot.show.addresses import (
    EntryPoint,
    cause_address,
    cell_address,
    component_address,
    dispatch_addresses,
    entry_points,
)
from bot.show.alarms import finding_words
from bot.show.blocks import (
    SUM_CSS,
    Block,
    Code,
    Fold,
    Limits,
    List,
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
from bot.show.change_map import (
    EMPTY,
    change_map,
    least_shown,
    map_json,
    map_table,
    map_words,
)
from bot.show.escape import clip
from bot.show.facts import (
    MARKS,
    NAME_LIMIT,
    STACK_LIMIT_BYTES,
    Facts,
    build_facts,
    mark_of,
)
from bot.show.failures import failure_words, trimmed
from bot.show.filters import (
    UNKNOWN,
    amount,
    change,
    percent,
    plural,
    relative,
    share,
    sides,
    signed,
)
from bot.show.grid import GridCell, build_grid, grid_cell
from bot.show.page_room import PageRoom, fitting
from bot.show.renderers import data_element, drawn, load, skeleton
from bot.show.report import every_block, page_blocks
from bot.show.root_causes import example_address
from bot.show.traces import TracedDispatch, largest_traced, trace_folds
from bot.show.why import (
    NUMBERS,
    component_row,
    diffs,
    dispatch_line,
    family_lines,
    rest,
    waterfall,
    why_words,
)

_LIMITS = Limits(
    grid_models=400,
    grid_width=1_000_000,
    failures=200,
    lines=40,
    alarms=40,
    findings=1_000,
    changed=1,
    names=200,
    commands=60,
    causes=200,
    whys=0,
    dispatches=0,
    diff_lines=0,
    every=True,
)
# Of a page: what does not fit is counted, and named with the file that has it
LARGEST_BYTES = 5_000_000
_FRAME_BYTES, _LINE_BYTES = 400_000, 260
"""What a page without cells takes, with its scripts; and each cell of the grid, each finding and each row of tables."""
TEMPLATE = "report.html.j2"
STYLE, SCRIPTS = (
    "report/report.css",
    (
        "page/treemap.js",
        "report/cells.js",
        "report/pictures.js",
    ),
)
# All cells, worst first, each with its blocks.
_ROWS = 400  # The most rows of one table
_DIFFS = 12, 60  # The most pieces that differ, and lines of each
CARDS = 1_500  # The most cells of a page that are told one by one; what is left out is counted
_WHOLE = (
    20  # the first builds, which share the page's room however many others there are
)
_PART_BYTES = 20_000  # what each of them keeps, whatever the builds before it take
_BARE_BYTES, _WHOLE_BYTES = 700, 300_000
"""What a build takes whose first lines alone are shown, and the room that any other build needs to show more."""
_NO_ROOM = (
    "This page has no room for more of this build: report.json, base.json and head.json"
    " have everything."
)
_FINDINGS, _CAUSES, _LINES, _REASON, _NAME = 12, 3, 12, 200, 120
_ALWAYS = ("code", "stack frame")


def html_pieces(report: Report, templates_dir: Path | None = None) -> Iterator[str]:
    """A self-contained HTML page, piece by piece: that of a large report need not be held.

    `templates_dir`: the user's templates, searched before the default ones.

    Raises:
        TemplateError: a template does not work.
    """
    facts, template = build_facts(report), load(TEMPLATE, templates_dir)
    grid, parts, chosen, least_bytes = (
        build_grid(facts, _LIMITS),
        page_blocks(facts, _LIMITS),
        selection(facts),
        least_shown(facts),
    )
    tree = change_map(facts, least_bytes)
    data, table = (
        (
            data_element("change-data", map_json(tree, least_bytes))
            if tree.inside
            else ""
        ),
        map_table(tree),
    )
    lines = sum(len(rows) * len(headers) for headers, rows in grid.blocks) + len(
        table.rows.items
    )
    lines += sum(
        len(block.rows.items)
        for block in every_block(parts["sections"])
        if isinstance(block, Table)
    )
    room = PageRoom(LARGEST_BYTES - _FRAME_BYTES - len(data) - _LINE_BYTES * lines)
    yield from drawn(
        template,
        answer="report",
        status=report.verdict.status,
        parts=parts,
        grid=grid,
        cards=cards(facts, chosen=chosen, causes=_LIMITS.causes, room=room),
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
    if not chosen.left_out:
        return ""
    count = len(chosen.shown)
    return (
        f"Of {count + chosen.left_out:,} builds this page shows the {count:,} most"
        f" important ones. The other {chosen.left_out:,} are in report.json; the sums"
        " and pictures above include them."
    )


def _choices(
    facts: Facts, chosen: Selection
) -> Mapping[str, Sequence[tuple[str, str]]]:
    """What cells can be filtered by: value and words of each."""
    models = dict.fromkeys(clip(delta.key.model, NAME_LIMIT) for delta in chosen.shown)
    targets = sorted({facts.short[delta.key.target] for delta in facts.report.deltas})
    return {
        "models": [(name or EMPTY, name or EMPTY) for name in models],
        "targets": [(name, name) for name in targets],
        "states": [
            (state, facts.state_words[state]) for state in STATES if facts.count(state)
        ],
        "levels": [("fail", "fails the check"), ("warn", "warning")],
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
    anchors: tuple[
        str, ...
    ]  # addresses that root causes link to and that no row of the cell has
    blocks: tuple[Block, ...]


class Selection(NamedTuple):
    """The cells of a page, worst first."""

    # those that are told one by one: the worst, and those that a root cause names as
    # its largest
    shown: tuple[CellDelta, ...]
    left_out: int  # how many others there are
    addresses: frozenset[str]  # of those that are shown


def selection(facts: Facts) -> Selection:
    """The cells that a page has room for.

    What does most to the verdict first, then by state and changed bytes; what says
    nothing of a change last.
    """

    def rank(delta: CellDelta) -> tuple[bool, int, int, int]:
        level = ("fail", "warn", "").index(facts.level(delta.key))
        is_idle = delta.state in ("unmeasured", "same") and level == 2
        moved = abs(delta.metrics["artifact_bytes"].change or 0) if delta.metrics else 0
        return is_idle, level, STATES.index(delta.state), -moved

    deltas = sorted(facts.report.deltas, key=rank)
    examples = (
        {root.example.key for root in facts.roots} if len(deltas) > CARDS else set()
    )
    deltas_shown = tuple(
        delta
        for place, delta in enumerate(deltas)
        if place < CARDS or delta.key in examples
    )
    return Selection(
        deltas_shown,
        len(deltas) - len(deltas_shown),
        frozenset(cell_address(delta.key) for delta in deltas_shown),
    )


def cards(
    facts: Facts, chosen: Selection, causes: int, room: PageRoom
) -> Iterator[Card]:
    """One at a time: a page of 5,000 cells is not held in memory twice.

    `causes`: how many root causes the page has; `room`: without it a cell has its first
    lines alone.
    """
    traced, linked = largest_traced(facts), defaultdict[CellKey, set[str]](set)
    for root in facts.roots:
        if address := example_address(facts, root.example):
            linked[root.example.key].add(address)
    for place, delta in enumerate(chosen.shown):
        artifact = delta.metrics.get("artifact_bytes")
        base, head = artifact.sides if artifact else (None, None)
        moved = (artifact.change if artifact else None) or 0
        largest = head if head is not None else base
        state_text = facts.state_words[delta.state] + (
            "; non-deterministic" * delta.unstable
        )
        if delta.state == "same" and not delta.unstable:
            state_text = "bit-identical" if delta.identical else "equal in every metric"
        blocks: list[Block] = [
            Sentence(f"Not measured: {delta.reason}" if delta.reason else "")
        ]
        for finding in facts.findings.get(delta.key, ())[:_FINDINGS]:
            blocks.append(
                Sentence(
                    phrase(
                        f"{MARKS[mark_of(finding)]} ",
                        finding_words(facts, finding, named=False),
                    )
                )
            )
        room_bytes = room.left_bytes - (len(chosen.shown) - place) * _BARE_BYTES
        waiting = min(_WHOLE, len(chosen.shown)) - place - 1
        if waiting > 0:
            room_bytes -= waiting * min(_PART_BYTES, room_bytes // (waiting + 1))
        is_whole = False
        if place < _WHOLE or room_bytes > _WHOLE_BYTES:
            details, is_whole = fitting(
                _whole(
                    facts,
                    delta=delta,
                    tables=_dispatches(facts, delta),
                    traced=traced,
                    causes=causes,
                ),
                room_bytes,
            )
            blocks += details
            linked[delta.key] -= {
                marked(row).address
                for block in every_block(details)
                if isinstance(block, Table)
                for row in block.rows
            }
        if not is_whole:
            blocks.append(Sentence(_NO_ROOM, small=True))
        yield Card(
            model=clip(delta.key.model, NAME_LIMIT),
            target=facts.short[delta.key.target],
            state=delta.state,
            said=state_text,
            grid=grid_cell(facts, delta.key),
            artifact=sides(base, head),
            ratio=(
                relative(base, head) if artifact and (moved or artifact.is_open) else ""
            ),
            css=css_of(moved),
            size=ends(largest)[1] if largest is not None else 0,
            moved=moved,
            anchors=tuple(sorted(linked[delta.key])),
            blocks=tuple(blocks),
        )


def _whole(
    facts: Facts,
    delta: CellDelta,
    tables: tuple[Table, Table],
    traced: Collection[TracedDispatch],
    causes: int,
) -> Iterator[Block]:
    """What a cell is made of; `tables`: of the dispatches that changed, and of all."""
    backend, cells = (
        facts.backends.get(delta.key.target, ""),
        {
            "base": delta.base,
            "head": delta.head,
        },
    )
    explanation, (changed, entries) = facts.report.explanations.get(delta.key), tables
    for side, cell in cells.items():
        if cell and cell.failure:
            failure = phrase(strong(side), ": ", failure_words(cell))
            message = Code(trimmed(cell.failure.message, _LINES)[0], language="text")
            yield Fold(
                failure,
                (message,),
                is_open=side == "head" and delta.state == "newly-broken",
            )
    traces = list(trace_folds(delta, explanation, traced)) if explanation else []
    if explanation:
        sizes = facts.causes.get(delta.key, ())
        total = sum(size for size, _ in sizes)
        parts = [
            phrase(
                Span(f"cause {number}", to=cause_address(number)),
                f" ({share(size / total)})",
            )
            for size, number in sizes[:_CAUSES]
            if 0 < number <= causes
        ]
        of = phrase("Of this build's change: ", joined(parts, ", ")) if parts else ()
        yield Sentence(
            joined(
                filter(
                    None, (phrase(why_words(explanation), "."), rest(explanation), of)
                ),
                " ",
            )
        )
        if untold := sum(
            dispatch.passed is not None for dispatch in explanation.dispatches
        ) - len(traces):
            passes = (
                f"the passes of {plural(untold, 'dispatch')}: use code-size-bot trace"
            )
            yield Sentence(f"This page has no room for {passes}.", small=True)
    beside = section(
        "",
        *_stack(delta.metrics.get("stack_alloca_bytes"), backend),
        *_falls(explanation),
        css="beside",
    )
    metrics = section("", *_metrics(facts, delta))
    if metrics or beside:
        yield section("", metrics, beside, css="sides")
    yield section(
        f"Dispatches that changed ({changed.rows.total:,})" if changed else "", changed
    )
    yield from traces
    for name, text, hidden_lines in diffs(
        explanation.dispatches if explanation else (), *_DIFFS
    ):
        cut = Sentence(
            f"and {plural(hidden_lines, 'more line')}, in report.json"
            if hidden_lines
            else "",
            small=True,
        )
        yield Fold(
            phrase("The smallest piece of ", code(name), " that differs"),
            (Code(text, "diff"), cut),
            css="diff",
        )
    if explanation:
        yield from _made_of(delta, explanation, backend)
    yield Fold(
        f"All dispatches ({plural(len(entries.rows.items), 'entry point')})",
        (entries,),
        css="entries",
    )
    commands = {side: cell.command if cell else "" for side, cell in cells.items()}
    if commands["base"] == commands["head"]:
        commands = {"both": commands["head"]}
    for side, command in commands.items():
        of_side = f" of {side}" if all(commands.values()) and len(commands) > 1 else ""
        yield Fold(f"The exact command{of_side}", (Code(command),), css="command")


def _metrics(facts: Facts, delta: CellDelta) -> Iterator[Block]:
    """The metrics of a build that changed; those that did not, and why others are not known."""
    metrics = [
        metric
        for metric in delta.metrics.values()
        if (metric.base, metric.head) != (None, None)
    ]
    changed, equal = list[Marked](), list[Row]()
    for value in metrics:
        metric = value.quantity
        label, (base, head) = (
            facts.label(metric, delta.key),
            (amount(side, metric.unit) for side in value.sides),
        )
        if value.base != value.head or value.is_open:
            texts = label, base, head, change(*value.sides, metric.unit)
            changed.append(
                Marked(texts, css=css_of(value.change) if metric.exact else "")
            )
        else:
            equal.append((label, head))
    yield Table(("metric", "base", "head", "change"), listed(changed), css="metrics")
    table = Table(("metric", "both sides"), listed(equal), css="metrics")
    absent = (
        Sentence(f"n/a: {labels} ({reason})", small=True)
        for labels, reason in _absent(delta, metrics)
    )
    title = (
        f"{plural(len(equal), 'metric')} with the same value on both sides"
        if equal
        else "Unknown metrics"
    )
    yield Fold(
        title,
        (table, *(absent if metrics else ())),
        is_open=delta.state == "same" or not changed,
    )


def _absent(
    delta: CellDelta, metrics: Sequence[MetricDelta]
) -> Iterator[tuple[str, str]]:
    """Labels of all other metrics, of a cell that has any, with the reason: those together that have the same."""
    quantities = METRIC_BY_ID | {
        metric.id: metric.quantity for metric in delta.metrics.values()
    }
    reasons = dict.fromkeys(
        quantities.keys() - {metric.id for metric in metrics}, "not in the snapshot"
    )
    for cell in (delta.base, delta.head):
        reasons |= (
            {name: reason for name, reason in cell.reasons.items() if name in reasons}
            if cell
            else {}
        )
    reasons = {name: reasons[name] for name in quantities if name in reasons}
    for reason in dict.fromkeys(reasons.values()):
        labels = ", ".join(
            quantities[name].label for name, text in reasons.items() if text == reason
        )
        yield labels, clip(reason, _REASON)


def _stack(value: MetricDelta | None, backend: str) -> Iterator[Block]:
    """Stack allocations against what the compiler allows on a CPU."""
    if value is None or not backend_of(backend).has_stack_gate:
        return
    lines = [
        f"{side}: {amount(size)},"
        f" {percent(ends(size)[1] / STACK_LIMIT_BYTES).removeprefix('+')} of the limit"
        for side, size in zip(SIDES, value.sides, strict=True)
        if size is not None
    ]
    about = (
        "Largest sum of stack allocations in one function; the compiler allows"
        f" {amount(STACK_LIMIT_BYTES)}."
    )
    yield section(
        "Stack against the limit",
        List(listed(lines)),
        Sentence(about if lines else "", small=True),
    )


def _falls(explanation: Explanation | None) -> Iterator[Block]:
    rows: list[Row | Marked] = [
        (cause, size, ", ".join(f"{part} {grown}" for part, grown in parts))
        for cause, size, parts in (waterfall(explanation) if explanation else ())
    ]
    if rows:  # the last one is the sum
        rows[-1] = Marked(marked(rows[-1]).texts, css=SUM_CSS)
    headers = ("cause", "change", "parts of the artifact outside of dispatches")
    table = Table(headers, listed(rows), sentences=2, css="falls")
    yield section("The artifact's change by cause" if rows else "", table)


def _dispatches(facts: Facts, delta: CellDelta) -> tuple[Table, Table]:
    """The tables of dispatches that are not the same on both sides, and of all entry points.

    An address has one row.
    """
    explanation, backend = (
        facts.report.explanations.get(delta.key),
        facts.backends.get(delta.key.target, ""),
    )
    addresses = dispatch_addresses(delta.key, entry_points(delta.base, delta.head))
    changed = _changed(explanation, backend, addresses) if explanation else Table(("",))
    return changed, _entries(
        delta,
        backend=backend,
        addresses=addresses,
        elsewhere={marked(row).address for row in changed.rows},
    )


def _changed(
    explanation: Explanation, backend: str, addresses: Mapping[EntryPoint, str]
) -> Table:
    lines, two = (
        [dispatch_line(dispatch) for dispatch in explanation.dispatches[:_ROWS]],
        len(_ALWAYS),
    )
    optional = (label for _, label, _ in NUMBERS if label not in _ALWAYS)
    labels = [
        *_ALWAYS,
        *(
            label
            for label in optional
            if any(line.numbers[label].differs for line in lines)
        ),
    ]
    names = [
        code_words(label, backend) if label == "code" else label for label in labels
    ]
    headers = (
        "dispatch",
        "change",
        *names[:two],
        "what differs",
        "cause",
        "component",
        *names[two:],
        "matched by",
    )
    rows, unplaced = list[Marked](), dict(addresses)
    for dispatch, line in zip(explanation.dispatches, lines, strict=False):
        numbers, size, entry_point = (
            [line.numbers[label].text for label in labels],
            code_change(dispatch),
            dispatch.head or dispatch.base,
        )
        note = "; ".join(filter(None, (line.note, line.passed)))
        grown = UNKNOWN if size is None else signed(size)
        texts = (
            line.name,
            grown,
            *numbers[:two],
            note,
            line.cause,
            line.component,
            *numbers[two:],
            line.matched,
        )
        rows.append(
            Marked(
                texts,
                unplaced.pop((entry_point.executable, entry_point.name), "")
                if entry_point
                else "",
                css_of(size),
            )
        )
    entries = listing(rows, len(explanation.dispatches), "dispatch")
    return Table(
        headers, entries, sentences=4, unnumbered=(5, 6, len(headers) - 1), css="told"
    )


def _entries(
    delta: CellDelta,
    backend: str,
    addresses: Mapping[EntryPoint, str],
    elsewhere: Collection[str],
) -> Table:
    """Each entry point on both sides; `elsewhere`: addresses that have another row."""
    cells = (delta.base, delta.head)
    base_dispatches, head_dispatches = (
        {(d.executable, d.name): d for d in cell.dispatches} if cell else {}
        for cell in cells
    )
    pairs = [
        (base_dispatches.get(point), head_dispatches.get(point)) for point in addresses
    ]
    columns = [
        number
        for number in NUMBERS
        if any(getattr(d, number[0], None) is not None for p in pairs for d in p)
    ]
    rows = []
    for address, (base, head) in zip(addresses.values(), pairs, strict=True):
        old, new = base or head, head or base  # values of one side alone are of both
        only = "" if base and head else f" (only on {'head' if head else 'base'})"
        values = (
            sides(getattr(old, field), getattr(new, field), unit)
            for field, _, unit in columns
        )
        names = (clip(new.name, 100) + only, clip(new.kind, 40)) if new else ("", "")
        rows.append(Marked((*names, *values), "" if address in elsewhere else address))
    headers = (
        code_words(label, backend) if label == "code" else label
        for _, label, _ in columns
    )
    return Table(
        ("entry point", "kind", *headers),
        listed(rows, "entry point"),
        numbers_from=2,
        css="dispatches",
    )


def css_of(size: int | None) -> str:
    """`up` for what grew, `down` for what shrank."""
    return "" if not size else "up" if size > 0 else "down"


def _made_of(
    delta: CellDelta, explanation: Explanation, backend: str
) -> Iterator[Block]:
    """Components down to the model's own names, and what deduplication left."""
    head, names, tree = (
        delta.head or delta.base,
        {part.name for part in explanation.tree},
        list[Marked](),
    )
    for part in explanation.tree[
        :_ROWS
    ]:  # below a component that has a row of its own it loses the name that they share
        above = [
            end
            for end, char in enumerate(part.name)
            if char == "." and part.name[:end] in names
        ]
        tail, (_, *sizes) = (
            (part.name[above[-1] + 1 :] if above else part.name),
            component_row(part),
        )
        address, css = (
            component_address(delta.key, part.name),
            css_of(part.change("code_bytes")),
        )
        tree.append(
            Marked((f"{'· ' * len(above)}{clip(tail, _NAME)}", *sizes), address, css)
        )
    headers = (
        "component",
        "dispatch sites",
        f"{code_words('code', backend)}, base → head",
        "stack frame, base → head",
    )
    table = Table(
        headers, listing(tree, len(explanation.tree), "component"), css="tree"
    )
    yield Fold(f"Components ({len(explanation.tree):,})", (table,))
    families = family_lines(head.families if head else (), _ROWS, roomy=True)
    yield Fold(
        f"What deduplication left behind ({families.total:,})", (List(families),)
    )
