"""The builds of a page, each with its blocks, as far as the page has room."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bot.core.backends import backend_of
from bot.core.cell_story import CellStory, cell_story
from bot.core.delta import CellDelta, MetricDelta
from bot.core.explanation import Explanation, code_change
from bot.core.metrics import METRIC_BY_ID, code_words
from bot.core.planned import SIDES
from bot.core.record import Value, ends
from bot.core.snapshot import Cell, CellKey, Dispatch
from bot.show.addresses import (
    EntryPoint,
    cause_address,
    component_address,
    dispatch_addresses,
    entry_points,
)
from bot.show.blocks import (
    SUM_CSS,
    Block,
    Code,
    Fold,
    List,
    Marked,
    Phrase,
    Rank,
    Row,
    Sentence,
    Span,
    Table,
    bounded,
    code,
    joined,
    listed,
    listing,
    marked,
    phrase,
    section,
    several,
    strong,
)
from bot.show.escape import clip
from bot.show.facts import (
    MARKS,
    NAME_LIMIT,
    STACK_LIMIT_BYTES,
    Facts,
    mark_of,
    state_text,
)
from bot.show.failures import MESSAGE_LINES, failure_words, trimmed
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
from bot.show.finding_words import finding_words
from bot.show.fit import drawable, every_block, fit
from bot.show.grid import GridCell, grid_cell
from bot.show.root_causes import example_address
from bot.show.run_times import run_paragraph
from bot.show.sizes import block_bytes
from bot.show.traces import TracedDispatch, largest_traced, trace_folds
from bot.show.views import PAGE
from bot.show.why import (
    NUMBERS,
    component_headers,
    component_row,
    diffs,
    dispatch_line,
    family_lines,
    number_label,
    rest,
    waterfall,
    why_words,
)

_ROWS = 400  # The most rows of one table
_DIFFS = 12, 60  # The most pieces that differ, and lines of each
# The first builds, which share the page's room however many others there are
_WHOLE = 20
# Bytes that each of them keeps, however large the builds before it are
_PART_BYTES = 20_000
_BARE_BYTES = 700  # Bytes of a build's first lines
_WHOLE_BYTES = 300_000  # The room that a later build needs to have its details
_NO_ROOM = (
    "This page has no room for more of this build: report.json, base.json and head.json"
    " have everything."
)
_FINDINGS = 12
_CAUSES = 3
_REASON = 200  # Characters of why a metric is unknown
_NAME = 120  # Characters of a component's name
# The numbers that have a column in the table of changed dispatches even if equal
_ALWAYS = ("code", "stack frame")


@dataclass(slots=True)
class PageRoom:
    """The bytes that a page still has for its builds.

    A template spends what it draws of each build.
    """

    left_bytes: int

    def spend(self, drawn: str) -> str:
        """Return the drawn text as it is, and take its bytes from what is left."""
        self.left_bytes -= len(drawn.encode(errors="surrogatepass"))
        return drawn


@dataclass(frozen=True, slots=True)
class Card:
    """One cell: what can be seen of it before it is opened, and its blocks."""

    model: str  # as it is shown
    target: str  # its short name
    state: str  # one of STATES
    said: str  # the state in words
    grid: GridCell  # its symbols, level and address
    artifact: str  # base → head
    ratio: str  # the relative change; empty if nothing changed or it is not known
    css: str
    # bytes of the artifact by which a reader can sort
    size: int  # on head, or on base if head has none
    moved: int  # the change
    # addresses that root causes link to and that no row of the cell has
    anchors: tuple[str, ...]
    blocks: tuple[Block, ...]


def cards(facts: Facts, chosen: Sequence[CellDelta], room: PageRoom) -> Iterator[Card]:
    """Yield the card of each build.

    Cards come one at a time, so a page of 5,000 builds is not held in memory twice.
    `room`: a build without room has only its first lines.
    """
    traced = largest_traced(facts)
    linked = defaultdict[CellKey, set[str]](set)
    for root in facts.roots:
        if address := example_address(facts, root.example):
            linked[root.example.key].add(address)
    for place, delta in enumerate(chosen):
        story = cell_story(facts.index, delta.key)
        blocks = _first_lines(facts, story)
        room_bytes = _room_of(place, len(chosen), room.left_bytes)
        is_whole = False
        if place < _WHOLE or room_bytes > _WHOLE_BYTES:
            whole = tuple(_whole(facts, story=story, delta=delta, traced=traced))
            details = fit(whole, room_bytes)
            is_whole = details == whole
            if is_whole or sum(map(block_bytes, details)) <= room_bytes:
                blocks += drawable(details)
                linked[delta.key] -= _row_addresses(details)
        if not is_whole:
            blocks.append(Sentence(_NO_ROOM, small=True))
        yield _card(facts, story, blocks, sorted(linked[delta.key]))


def _first_lines(facts: Facts, story: CellStory) -> list[Block]:
    """Return why a build was not measured, its findings and its run times."""
    reason = ""
    if story.reason:
        reason = f"Not measured: {story.reason}"
    blocks: list[Block] = [Sentence(reason)]
    for finding in story.findings[:_FINDINGS]:
        text = finding_words(facts, finding, named=False)
        blocks.append(Sentence(phrase(f"{MARKS[mark_of(finding)]} ", text)))
    blocks.append(Sentence(run_paragraph(story)))
    return blocks


def _room_of(place: int, count: int, left_bytes: int) -> int:
    """Return the bytes for the details of the build at a place.

    Some bytes are kept: for the first lines of this and the later builds, and for the
    parts of the first builds that follow.
    """
    room_bytes = left_bytes - (count - place) * _BARE_BYTES
    waiting = min(_WHOLE, count) - place - 1
    if waiting > 0:
        room_bytes -= waiting * min(_PART_BYTES, room_bytes // (waiting + 1))
    return room_bytes


def _row_addresses(blocks: Sequence[Block]) -> set[str]:
    """Return the addresses of all rows of tables in blocks."""
    addresses = set[str]()
    for block in every_block(blocks):
        if isinstance(block, Table):
            addresses.update(marked(row).address for row in block.rows)
    return addresses


def _card(
    facts: Facts, story: CellStory, blocks: Sequence[Block], anchors: Sequence[str]
) -> Card:
    """Return the card of a build; its artifact is unknown if no side measured it."""
    base: Value = None
    head: Value = None
    moved = 0
    ratio = ""
    artifact = story.metrics.get("artifact_bytes")
    if artifact:
        base, head = artifact.sides
        moved = artifact.change or 0
        if moved or artifact.is_open:
            ratio = relative(base, head)
    largest = base
    if head is not None:
        largest = head
    size = 0
    if largest is not None:
        size = ends(largest)[1]
    return Card(
        model=clip(story.key.model, NAME_LIMIT),
        target=facts.short[story.key.target],
        state=story.state,
        said=_state_text(story),
        grid=grid_cell(facts, story.key),
        artifact=sides(base, head),
        ratio=ratio,
        css=css_of(moved),
        size=size,
        moved=moved,
        anchors=tuple(anchors),
        blocks=tuple(blocks),
    )


def _state_text(story: CellStory) -> str:
    if story.state != "same" or story.noise:
        return state_text(story)
    if story.identical:
        return "bit-identical"
    return "equal in every metric"


def _whole(
    facts: Facts,
    story: CellStory,
    delta: CellDelta,
    traced: Collection[TracedDispatch],
) -> Iterator[Block]:
    """Yield the details of a build."""
    explanation = story.explanation
    changed, entries = _dispatches(story, delta)
    yield from _failures(story)
    traces = list[Fold]()
    if explanation:
        traces += trace_folds(delta, explanation, traced)
        parts = _cause_shares(facts, delta.key)
        sentences = (phrase(why_words(explanation), "."), rest(explanation), parts)
        yield Sentence(joined(filter(None, sentences), " "))
        left_out = 0
        for dispatch in explanation.dispatches:
            if dispatch.passed is not None and (delta.key, dispatch.name) not in traced:
                left_out += 1
        if left_out:
            words = (
                f"the passes of {plural(left_out, 'dispatch')}: use code-size-bot trace"
            )
            yield Sentence(f"This page has no room for {words}.", small=True)
    beside = section(
        "",
        *_stack(story),
        *_falls(explanation),
        css="beside",
    )
    metrics = section("", *_metrics(facts, story, delta))
    if metrics or beside:
        yield section("", metrics, beside, css="sides")
    title = f"Dispatches that changed ({changed.rows.total:,})" if changed else ""
    yield section(title, bounded(changed, Rank.LINE))
    yield several(traces, Rank.STORY)
    if explanation:
        yield several(_differing_pieces(explanation), Rank.STORY)
        yield from _made_of(story, explanation)
    yield Fold(
        f"All dispatches ({plural(len(entries.rows.items), 'entry point')})",
        (bounded(entries, Rank.ROW),),
        css="entries",
    )
    yield several(_commands(story), Rank.COMMAND)


def _failures(story: CellStory) -> Iterator[Fold]:
    """Yield the error of each side that does not compile."""
    for side, result in (("base", story.results.base), ("head", story.results.head)):
        if result and result.failure:
            lines, _ = trimmed(result.failure.message, MESSAGE_LINES)
            yield Fold(
                phrase(strong(side), ": ", failure_words(result)),
                (Code(lines, language="text"),),
                is_open=side == "head" and story.state == "newly-broken",
            )


def _cause_shares(facts: Facts, key: CellKey) -> Phrase:
    """Return the shares of the largest root causes in a build's change.

    It is empty if no root cause of the page is among the largest.
    """
    sizes = facts.causes.get(key, ())
    total = sum(size for size, _ in sizes)
    parts = list[Phrase]()
    for size, number in sizes[:_CAUSES]:
        if 0 < number <= PAGE.causes:
            link = Span(f"cause {number}", to=cause_address(number))
            parts.append(phrase(link, f" ({share(size / total)})"))
    if not parts:
        return ()
    return phrase("Of this build's change: ", joined(parts, ", "))


def _differing_pieces(explanation: Explanation) -> Iterator[Fold]:
    """Yield the smallest differing piece of each dispatch that has one."""
    for name, text, hidden_lines in diffs(explanation.dispatches, *_DIFFS):
        cut = ""
        if hidden_lines:
            cut = f"and {plural(hidden_lines, 'more line')}, in report.json"
        yield Fold(
            phrase("The smallest piece of ", code(name), " that differs"),
            (Code(text, "diff"), Sentence(cut, small=True)),
            css="diff",
        )


def _commands(story: CellStory) -> Iterator[Fold]:
    """Yield the command of each side, or the one that both have."""
    commands = story.commands
    if commands["base"] == commands["head"]:
        commands = {"both": commands["head"]}
    for side, command in commands.items():
        of_side = ""
        if all(commands.values()) and len(commands) > 1:
            of_side = f" of {side}"
        yield Fold(f"The exact command{of_side}", (Code(command),), css="command")


def _metrics(facts: Facts, story: CellStory, delta: CellDelta) -> Iterator[Block]:
    """Yield the metrics that changed, those that did not, and the unknown ones."""
    metrics = [
        metric
        for metric in story.metrics.values()
        if (metric.base, metric.head) != (None, None)
    ]
    changed_ids = {metric.id for metric in story.changed_metrics}
    changed = list[Marked]()
    equal = list[Row]()
    for value in metrics:
        metric = value.quantity
        label = facts.label(metric, story.key)
        base, head = (amount(side, metric.unit) for side in value.sides)
        if value.id in changed_ids:
            texts = (label, base, head, change(*value.sides, metric.unit))
            css = ""
            if metric.exact:
                css = css_of(value.change)
            changed.append(Marked(texts, css=css))
        else:
            equal.append((label, head))
    yield Table(("metric", "base", "head", "change"), listed(changed), css="metrics")
    inside: list[Block] = [
        Table(("metric", "both sides"), listed(equal), css="metrics")
    ]
    if metrics:
        for labels, reason in _absent(delta, metrics):
            inside.append(Sentence(f"n/a: {labels} ({reason})", small=True))
    title = "Unknown metrics"
    if equal:
        title = f"{plural(len(equal), 'metric')} with the same value on both sides"
    yield Fold(title, tuple(inside), is_open=story.state == "same" or not changed)


def _absent(
    delta: CellDelta, metrics: Sequence[MetricDelta]
) -> Iterator[tuple[str, str]]:
    """Yield the labels of all metrics but the given ones, together by their reason."""
    quantities = METRIC_BY_ID | {
        metric.id: metric.quantity for metric in delta.metrics.values()
    }
    unknown = quantities.keys() - {metric.id for metric in metrics}
    reasons = dict.fromkeys(unknown, "not in the snapshot")
    for cell in (delta.base, delta.head):
        if cell is None:
            continue
        for name, reason in cell.reasons.items():
            if name in reasons:
                reasons[name] = reason
    labels = defaultdict[str, list[str]](list)
    for name, quantity in quantities.items():
        if name in reasons:
            labels[reasons[name]].append(quantity.label)
    for reason, names in labels.items():
        yield ", ".join(names), clip(reason, _REASON)


def _stack(story: CellStory) -> Iterator[Block]:
    """Yield the stack allocations against what the compiler allows on a CPU."""
    value = story.metrics.get("stack_alloca_bytes")
    if value is None or not backend_of(story.backend).has_stack_gate:
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
    rows = list[Row | Marked]()
    if explanation:
        for cause, size, parts in waterfall(explanation):
            part_words = ", ".join(f"{part} {grown}" for part, grown in parts)
            rows.append((cause, size, part_words))
    title = ""
    if rows:
        title = "The artifact's change by cause"
        rows[-1] = Marked(marked(rows[-1]).texts, css=SUM_CSS)  # the last is the sum
    headers = ("cause", "change", "parts of the artifact outside of dispatches")
    table = Table(headers, listed(rows), sentences=2, css="falls")
    yield section(title, table)


def _dispatches(story: CellStory, delta: CellDelta) -> tuple[Table, Table]:
    """Return the table of dispatches that changed, and that of all entry points.

    Each address has one row in the two tables.
    """
    addresses = dispatch_addresses(delta.key, entry_points(delta.base, delta.head))
    changed = Table(("",))
    if story.explanation:
        changed = _changed(story.explanation, story.backend, addresses)
    entries = _entries(
        delta,
        backend=story.backend,
        addresses=addresses,
        elsewhere={marked(row).address for row in changed.rows},
    )
    return changed, entries


def _changed(
    explanation: Explanation, backend: str, addresses: Mapping[EntryPoint, str]
) -> Table:
    lines = [dispatch_line(dispatch) for dispatch in explanation.dispatches[:_ROWS]]
    leading = len(_ALWAYS)
    labels = [*_ALWAYS]
    for _, label, _ in NUMBERS:
        differs = any(line.numbers[label].differs for line in lines)
        if label not in _ALWAYS and differs:
            labels.append(label)
    names = [number_label(label, backend) for label in labels]
    headers = (
        "dispatch",
        "change",
        *names[:leading],
        "what differs",
        "cause",
        "component",
        *names[leading:],
        "matched by",
    )
    rows = list[Marked]()
    unplaced = dict(addresses)  # each address is given to one row only
    for dispatch, line in zip(explanation.dispatches, lines, strict=False):
        numbers = [line.numbers[label].text for label in labels]
        size = code_change(dispatch)
        entry_point = dispatch.head or dispatch.base
        note = "; ".join(filter(None, (line.note, line.passed)))
        grown = UNKNOWN
        if size is not None:
            grown = signed(size)
        address = ""
        if entry_point:
            address = unplaced.pop((entry_point.executable, entry_point.name), "")
        texts = (
            line.name,
            grown,
            *numbers[:leading],
            note,
            line.cause,
            line.component,
            *numbers[leading:],
            line.matched,
        )
        rows.append(Marked(texts, address, css_of(size)))
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
    """Return the table of entry points.

    `elsewhere`: addresses that have a row in another table.
    """
    base_dispatches = _by_entry_point(delta.base)
    head_dispatches = _by_entry_point(delta.head)
    pairs = [
        (base_dispatches.get(point), head_dispatches.get(point)) for point in addresses
    ]
    dispatches = [dispatch for pair in pairs for dispatch in pair]
    columns = [
        number
        for number in NUMBERS
        if any(
            getattr(dispatch, number[0], None) is not None for dispatch in dispatches
        )
    ]
    rows = []
    for address, (base, head) in zip(addresses.values(), pairs, strict=True):
        # an entry point of one side alone has the same values on both
        old = base or head
        new = head or base
        only = ""
        if not base:
            only = " (only on head)"
        elif not head:
            only = " (only on base)"
        values = [
            sides(getattr(old, field), getattr(new, field), unit)
            for field, _, unit in columns
        ]
        names = ("", "")
        if new:
            names = (clip(new.name, 100) + only, clip(new.kind, 40))
        row_address = address
        if address in elsewhere:
            row_address = ""
        rows.append(Marked((*names, *values), row_address))
    headers = (number_label(label, backend) for _, label, _ in columns)
    return Table(
        ("entry point", "kind", *headers),
        listed(rows, "entry point"),
        numbers_from=2,
        css="dispatches",
    )


def _by_entry_point(cell: Cell | None) -> dict[EntryPoint, Dispatch]:
    if cell is None:
        return {}
    return {
        (dispatch.executable, dispatch.name): dispatch for dispatch in cell.dispatches
    }


def css_of(size: int | None) -> str:
    """Return `up` for what grew, `down` for what shrank."""
    if not size:
        return ""
    if size > 0:
        return "up"
    return "down"


def _made_of(story: CellStory, explanation: Explanation) -> Iterator[Block]:
    """Yield the components down to the model's own names, and the families."""
    names = {part.name for part in explanation.tree}
    tree = list[Marked]()
    for part in explanation.tree[:_ROWS]:
        # below a component that has a row of its own, a name loses what they share
        above = [
            end
            for end, char in enumerate(part.name)
            if char == "." and part.name[:end] in names
        ]
        tail = part.name
        if above:
            tail = part.name[above[-1] + 1 :]
        _, *sizes = component_row(part)
        address = component_address(story.key, part.name)
        css = css_of(part.change("code_bytes"))
        name = f"{'· ' * len(above)}{clip(tail, _NAME)}"
        tree.append(Marked((name, *sizes), address, css))
    headers = component_headers(code_words("code", story.backend))
    table = Table(
        headers, listing(tree, len(explanation.tree), "component"), css="tree"
    )
    yield Fold(f"Components ({len(explanation.tree):,})", (bounded(table, Rank.STORY),))
    families = family_lines(story.families, _ROWS, roomy=True)
    yield Fold(
        f"What deduplication left behind ({families.total:,})",
        (bounded(List(families), Rank.STORY),),
    )
