"""A comparison as blocks: one screen that says what is allowed, what changed, how much, why and what now; then folds.

The comment, the job summary, the check, the report of a pin and the terminal are these blocks, each with its own room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console

from bot.core.delta import CellDelta, exact_changes, value_of
from bot.core.explanation import UNATTRIBUTED
from bot.core.metrics import METRICS
from bot.core.report import ONCE, Adoption, Report
from bot.core.snapshot import CellKey
from bot.show.adoption import adoption_blocks, after_adoption
from bot.show.alarms import (
    BROKEN,
    OVER,
    WARNED,
    AlarmGroup,
    accepted,
    alarms,
    close,
    failure_words,
    failures,
    grouped,
    known_lines,
    over_limit,
    unmeasured,
)
from bot.show.blocks import (
    Block,
    Code,
    Fold,
    Kind,
    Limits,
    Line,
    List,
    Listing,
    Phrase,
    Row,
    Sentence,
    Span,
    Table,
    code,
    fair_in_order,
    joined,
    listing,
    name_cell,
    phrase,
    plain,
    section,
    strong,
)
from bot.show.compared import aged, changes, commands, compared, head_command, notes
from bot.show.escape import clean, clip, is_link
from bot.show.facts import (
    MARKS,
    NAME_LIMIT,
    STACK_LIMIT_BYTES,
    Facts,
    build_facts,
    builds,
    by_model,
    cells_phrase,
    mark_of,
)
from bot.show.filters import amount, change, plural, relative, sides
from bot.show.grid import Grid, GridCell, build_grid
from bot.show.headline import Totals, headline, totals
from bot.show.model_tables import folding_table, fusion_table, pair_tables
from bot.show.renderers import print_blocks
from bot.show.why import Story, held, roots, step_lines, whys


def every_metric(facts: Facts, limits: Limits) -> Listing[tuple[Phrase, Table]]:
    """A title and the changed metrics of each changed model; models take turns where there are too many."""
    pairs = [
        (delta, id_)
        for delta in facts.states["changed"]
        for id_ in [value.id for value in exact_changes(delta.metrics.values())] or [METRICS[0].id]
    ]
    totals = Counter(delta.key.model for delta, _ in pairs)
    cells = by_model(delta.key for delta in facts.states["changed"])
    rows: dict[str, list[Row]] = {}
    for delta, id_ in fair_in_order(pairs, lambda pair: pair[0].key.model, limits.changed):
        metric, both = delta.metrics[id_].quantity, delta.metrics[id_].sides
        mark = next((MARKS[mark_of(one)] for one in facts.findings.get(delta.key, ()) if one.metric == id_), "")
        numbers = sides(*both, metric.unit), f"{change(*both, metric.unit)}{f' {mark}' if mark else ''}"
        name = name_cell(facts.short[delta.key.target])
        row = (name, phrase(facts.label(metric, delta.key)), *map(phrase, numbers))
        rows.setdefault(delta.key.model, []).append(row)
    headers = ("target", "metric", "base → head", "change")
    tables = [
        (
            phrase(code(clip(model, NAME_LIMIT)), f": {plural(len(cells[model]), 'changed build')}"),
            Table(headers, listing(found, totals[model], "changed metric"), numbers_from=2),
        )
        for model, found in rows.items()
    ]
    return listing(tables, len(cells) if limits.changed else 0, "changed model")


def settled(facts: Facts, limits: Limits) -> Listing[Phrase]:
    """Cells that compile now, by what refused them on base; new and removed ones, and how large they are or were."""
    deltas = [delta for state in ("removed", "new") for delta in facts.states[state]]
    shown = fair_in_order(deltas, lambda delta: (delta.state, delta.key.model), limits.names)
    fixed = grouped(facts, "fixed")
    lines = [
        *(_fixed(facts, group, limits) for group in fixed[: limits.names]),
        *(_settled(facts, one) for one in shown),
    ]
    return listing(lines, len(deltas) + len(fixed), "line of builds that came or went")


def _fixed(facts: Facts, group: Sequence[CellDelta], limits: Limits) -> Phrase:
    """Cells that the same thing refused on base: ``13 cells compile now: `m` on `cuda`; on base: does not compile``."""
    cells = cells_phrase(facts, [delta.key for delta in group], limits.names)
    said = phrase("; on base: ", failure_words(*(delta.base for delta in group)))
    verb = "compiles" if len(group) == 1 else "compile"
    return phrase(f"{plural(len(group), 'build')} {verb} now: ", cells, said)


def _settled(facts: Facts, delta: CellDelta) -> Phrase:
    cell = delta.head or delta.base
    size = value_of(cell, "artifact_bytes") if cell else None
    names = phrase(code(clip(delta.key.model, NAME_LIMIT)), " on ", code(facts.short[delta.key.target]))
    return phrase(f"{delta.state}: ", names, f", artifact {amount(size)}")


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The cells that are the same on both sides: how many, and which."""

    identical: int
    identical_cells: Phrase
    equal: int
    equal_cells: Phrase


def unchanged(facts: Facts, limits: Limits) -> Unchanged:
    """Bit-identical cells, and cells of which only the metrics are known to be equal."""
    same = facts.states["same"]
    identical = [delta.key for delta in same if delta.identical]
    equal = [delta.key for delta in same if not delta.identical]
    texts = [cells_phrase(facts, keys, limits.names) for keys in (identical, equal)]
    return Unchanged(len(identical), texts[0], len(equal), texts[1])


@dataclass(frozen=True, slots=True)
class CostRow:
    """What it cost to compile the cells of one target that were measured on both sides: informational, it varies."""

    target: str
    cells: int
    cpu_base: int
    cpu_head: int
    memory_base: int
    memory_head: int


def costs(facts: Facts) -> tuple[CostRow, ...]:
    """One row per target."""
    found: dict[str, list[tuple[int, int, int, int]]] = {}
    for delta in facts.report.deltas:
        pairs = [delta.metrics.get(id_) for id_ in ("compile_cpu_ms", "compile_peak_rss_kib")]
        values = [value for pair in pairs if pair for value in (pair.base, pair.head) if value is not None]
        if len(values) == 4:
            found.setdefault(delta.key.target, []).append((values[0], values[1], values[2], values[3]))
    return tuple(_cost(facts.short[target], cells) for target, cells in sorted(found.items()))


def _cost(target: str, cells: Sequence[tuple[int, int, int, int]]) -> CostRow:
    cpu_base, cpu_head, memory_base, memory_head = zip(*cells, strict=True)
    return CostRow(target, len(cells), sum(cpu_base), sum(cpu_head), max(memory_base), max(memory_head))


_BROKE_CHARS, _LOUD = 1_000, 2
_NAME, _COMPONENT, _STILL = 42, 36, 3
Blocks = tuple[Block, ...]


def report_blocks(facts: Facts, limits: Limits, where: str = "") -> Blocks:
    """Everything, in the order in which it is read; `where` a reader finds what this size leaves out."""
    folds = _folds(facts, limits)[1 if facts.report.adoption else 0 :]  # whose own table has every cell
    brought = facts.report.adoption
    screen = _first_report(facts, brought, limits) if brought else first_screen(facts, limits)
    missing = ", ".join(_left_out(folds))
    said = phrase(f"Shortened to fit. Left out here: {missing}; {where} have everything.") if missing and where else ()
    last = replace(folds[-1], blocks=(*folds[-1].blocks, Sentence(said, small=True, name="left-out")))
    return (*screen, *folds[:-1], last)


def pin_blocks(facts: Facts, limits: Limits) -> Blocks:
    """The short form, without folds."""
    return first_screen(facts, limits)


def terminal_blocks(facts: Facts, limits: Limits) -> Blocks:
    """What a person in front of a terminal wants to know, where nothing can be opened; the files have the rest."""
    grid = build_grid(facts, limits)
    drawn = () if grid.settled else _grid(grid)
    broken = [phrase(group.cells, ": ", group.what) for group in failures(facts, "broken", limits)]
    return (
        *first_screen(facts, limits),
        section("", *drawn, *_unmeasured(facts, limits), name="grid"),
        *_failed("Newly broken", facts, "newly-broken", limits),
        section(_counted("Broken on both sides", facts.count("broken"), facts), List(listed(broken)), name="broken"),
        section("Notes", List(listed([phrase(note) for note in notes(facts.report, limits)])), name="notes"),
    )


def print_report(report: Report, console: Console, *, quiet: bool = False) -> None:
    """Print what a person in front of a terminal wants to know; the files have the rest. `quiet`: the verdict alone."""
    limits = Limits(40, max(console.width, 40) * 13 // 10, 4, 6, 10, 10, 1, 12, 1, 4, terminal=True)
    facts = build_facts(report)
    print_blocks((_verdict(facts),) if quiet else terminal_blocks(facts, limits), console)


def listed(lines: Sequence[Phrase | Line]) -> Listing[Phrase | Line]:
    """All of them."""
    return listing(lines, len(lines), "line")


# The first screen.


def first_screen(facts: Facts, limits: Limits) -> Blocks:
    """Verdict, what changed, totals, root causes (first where a pin is asked about), alarms, and what to do now."""
    steps = section("Releases between", List(_any(step_lines(facts, limits))), name="steps")
    how_much, why = (_totals(totals(facts)),), (_causes(facts, limits), steps)
    told = alarms(facts, limits)
    return (
        _verdict(facts),
        _changes(facts),
        *((*why, *how_much) if facts.report.pin else (*how_much, *why)),
        *_alarms(facts, told, limits),
        _next(facts, told, limits),
    )


def _first_report(facts: Facts, brought: Adoption, limits: Limits) -> Blocks:
    """Of the change that brings the configuration: what is measured, what changed and alarms, what is next."""
    moved = (_totals(totals(facts)), _causes(facts, limits)) if facts.count("changed") else ()
    told = alarms(facts, limits)
    links = section("", Sentence(_links(facts), small=True), name="next")
    start = (_verdict(facts), *adoption_blocks(facts, brought, limits), *moved, *_alarms(facts, told, limits))
    return (*start, links, *after_adoption(facts, brought, limits))


def _any(lines: Listing[Line]) -> Listing[Phrase | Line]:
    return listing(lines.items, lines.total, lines.noun)


def _verdict(facts: Facts) -> Fold:
    report = facts.report
    resolved = phrase("Resolved: the earlier alarm on this pull request is gone.") if report.resolved else ()
    said = Sentence(headline(facts), name="headline")
    return section("", Sentence(broke_words(facts)), said, Sentence(resolved), name="verdict")


def broke_words(facts: Facts) -> Phrase:
    """What broke in the analysis; empty where nothing did."""
    broke = clip(clean(facts.report.broke), _BROKE_CHARS)
    return phrase("⚠️ ", strong("The analysis broke:"), " ", code(broke), ". What is known so far:") if broke else ()


def _changes(facts: Facts) -> Fold:
    nothing = phrase("nothing of what is measured: the same compiler, flags and models on both sides")
    untrusted = "Measured by the pull request's own workflow run; this report cannot check its numbers."
    return section(
        "",
        Sentence(phrase(strong("What changed:"), " ", joined(changes(facts), " | ") or nothing)),
        Sentence(compared(facts.report).commits if aged(facts.report) else (), small=True),
        Sentence(phrase(untrusted) if facts.report.untrusted else (), small=True),
        name="changes",
    )


def _totals(sums: Totals) -> Fold:
    """A row for each target that something changed on: its mark is the first column, which a telephone shows."""
    rows = [
        (
            phrase(Span(row.mark, kind_of(row.level))),
            name_cell(row.target) if row.target else phrase(strong("all")),
            phrase(Span(row.change, "number")),
            phrase(Span(row.sizes, "number")),
        )
        for row in sums.rows
    ]
    partly = " (builds)" if any(0 < row.cells < row.planned for row in sums.rows) else ""
    headers = ("", "target", "change", f"artifacts, base → head{partly}")
    table = Table(headers, listing(rows, len(rows), "target"), numbers_from=2, wanted=(2, 3))
    names = joined([(code(name),) for name in sums.still], ", ")
    still = (
        names if len(sums.still) <= _STILL else phrase(plural(len(sums.still), "other target" if rows else "target"))
    )
    every = sums.everything
    size = f": {plural(every.cells, 'artifact')}, {amount(every.head)} in all" if every.cells and not rows else ""
    no_sum = "No artifact to compare: no build was measured on both sides." if not (every.cells or still) else ""
    return section(
        "",
        table,
        Sentence(phrase("No change on ", still, size) if still else (), small=True),
        Sentence(phrase(no_sum), small=True),
        name="totals",
    )


def _causes(facts: Facts, limits: Limits) -> Fold:
    """What all deltas have in common; where there is no room for their details, these are in a fold."""
    lines = roots(facts, limits)
    share = held(facts, lines)
    title = phrase(strong("Root causes"), f" ({share})" if share else "")
    return section(title, List(listed(lines.items), numbered=True), name="causes")


def _counted(title: str, count: int, facts: Facts) -> Phrase:
    return phrase(strong(title), f" ({builds(facts, count)})")


def _alarms(facts: Facts, told: Sequence[AlarmGroup], limits: Limits) -> Iterator[Block]:
    """What is broken with the command that shows it, then what is over a limit; warnings where nothing is worse."""
    titles = {group.title for group in told}
    for group in told:
        if group.title in (BROKEN, OVER) or (group.title == WARNED and not titles & {BROKEN, OVER}):
            lines = [phrase(f"{line.mark} ", _levelled(line.said, line.level)) for line in group.lines]
            shown = listing(lines, group.lines.total, group.lines.noun)
            reproduced = _reproduced(facts, group.lines.items[0].cells[0], limits) if group.title == BROKEN else ()
            title = _counted(group.title, group.cells, facts) if len(told) > 1 else phrase(strong(group.title))
            yield section(title, List(shown), *reproduced, name="alarms")
    taken = [_taken(group.who, group.why, group.findings, group.cells) for group in accepted(facts, limits)]
    yield List(listing(taken, accepted(facts, limits).total, "acceptance"), name="accepted")
    near = close(facts, limits, True)
    more = f"; {plural(near.more, 'more value')}" if near.more else ""
    yield Sentence(phrase("Close to a limit: ", joined(near, "; "), more) if near else (), name="close")
    loud = [note for note in notes(facts.report, limits) if not note.startswith(ONCE)][:_LOUD]
    yield from (Sentence(phrase(f"Note: {note}"), small=True, name="note") for note in loud)


def kind_of(level: str) -> Kind:
    """How words of a level are drawn where there are colours."""
    return "fail" if level == "fail" else "warn" if level == "warn" else "text"


def _levelled(said: Phrase, level: str) -> Phrase:
    """The same with the first words in the colour of its level, where there are colours."""
    lead, *rest = said
    return phrase(Span(lead.text, kind_of(level)) if lead.kind == "text" else lead, *rest)


def _taken(who: str, why: str, findings: int, cells: Phrase) -> Phrase:
    because = phrase(": ", code(why)) if why else ()
    return phrase("☑️ Accepted by ", code(who), because, f" ({plural(findings, 'finding')}: ", cells, ")")


def _reproduced(facts: Facts, key: CellKey, limits: Limits) -> Blocks:
    return (Code(head_command(facts, key)),) if limits.commands and not limits.terminal else ()


def _next(facts: Facts, told: Sequence[AlarmGroup], limits: Limits) -> Fold:
    """What to do, where to read on, how to see the worst of it at home, and last how to accept it."""
    report, titles = facts.report, {group.title: group for group in told}
    status, more = report.verdict.status, _links(facts)
    if limits.terminal:
        return section("", name="next")
    what = ""
    if status == "fail":
        broken, over = BROKEN in titles, OVER in titles
        what = "see why the rules forbid it"
        if broken or over:
            what = "make it compile again" if broken else "get it below the limit"
        if broken and over:
            what = "make the broken builds compile again and get the others below the limit"
    elif status == "warn" and WARNED in titles:
        what = "look through it; a warning stops no merge"
    if not what:
        return section("", Sentence(more, small=True), name="next")
    said = phrase(strong("Next:"), f" {what}.", *(phrase(" ", more, ".") if more else ()))
    over_group = titles.get(OVER) if BROKEN not in titles else None
    reproduced: Blocks = ()
    if over_group and limits.commands:
        key = over_group.lines.items[0].cells[0]
        title = phrase("To reproduce ", code(clip(key.model, NAME_LIMIT)), " on ", code(facts.short[key.target]))
        reproduced = (Fold(title, _reproduced(facts, key, limits), name="reproduce"),)
    accept = phrase("To accept: comment ", code('/code-size accept "reason"'), " or label it ")
    accept = phrase(accept, code("code-size-approved"), ".")
    is_asked = status == "fail" and bool(report.links or report.state_line)
    return section("", Sentence(said), *reproduced, Sentence(accept if is_asked else (), small=True), name="next")


def _links(facts: Facts) -> Phrase:
    """Where to read on: the page, and what the event gave; empty where there is neither."""
    links = [(Span(label, to=url),) for label, url in facts.report.links]
    links = [*([(Span("the page", to=facts.report.page),)] if is_link(facts.report.page) else []), *links]
    return phrase("More: ", joined(links, " · ")) if links else ()


# The folds.


def page_sections(facts: Facts, limits: Limits) -> Blocks:
    """What a page has below its cells: the same, not folded away."""
    return tuple(replace(one, is_open=True) for one in (_overview(facts, limits), _compared(facts, limits)))


def _folds(facts: Facts, limits: Limits) -> tuple[Fold, ...]:
    grid = build_grid(facts, limits)
    size = f"{plural(grid.models.total, 'model')} × {plural(len(facts.measured_targets), 'target')}"
    return (
        Fold(phrase(f"Every build: {size}"), (*_grid(grid), *_unmeasured(facts, limits)), name="grid"),
        _changed(facts, limits),
        _findings(facts, limits),
        _overview(facts, limits),
        _compared(facts, limits),
    )


def _grid(grid: Grid) -> Iterator[Block]:
    for block in grid.blocks:
        rows = [(name_cell(row.model), *map(_grid_cell, row.cells)) for row in block.rows]
        yield Table(("model", *block.headers), listing(rows, len(rows), "model"), small=True)
    legend = " · ".join(f"{symbol} {meaning}" for symbol, meaning in grid.legend)
    names = joined([phrase(code(short), " is ", code(full)) for short, full in grid.names], ", ")
    yield Sentence(phrase(legend, *(phrase(". Short names: ", names) if names else ())), small=True)
    yield _more(grid.models)


def _grid_cell(cell: GridCell) -> Phrase:
    return phrase(Span(cell.text, kind_of(cell.level), cell.address if cell.level else ""))


def _unmeasured(facts: Facts, limits: Limits) -> Blocks:
    groups = unmeasured(facts, limits)
    lines = [phrase(group.cells, f": {group.reason}") for group in groups]
    return (section("Not measured", List(listing(lines, groups.total, groups.noun)), name="unmeasured"),)


def _changed(facts: Facts, limits: Limits) -> Fold:
    """Of the changed cells, the alarming first: why; every metric, where there is room; and those that came or went."""
    stories, metrics, count = whys(facts, limits), every_metric(facts, limits), facts.count("changed")
    details = [
        Line(phrase(f"Cause {number}: ", line.detail), ())
        for number, line in enumerate(roots(facts, replace(limits, details=True)) if not limits.details else (), 1)
        if line.detail
    ]
    cells = [
        Fold(
            phrase(code(one.model), " on ", code(one.target), f": {one.story.cause}"),
            _story(one.story, limits),
            name="story",
        )
        for one in stories
    ]
    title = f"Why: {plural(count, 'changed build')}" if stories else plural(count, "changed build")
    return Fold(
        phrase(title if count else "Builds that compile now, are new or went"),
        (
            List(listed(details)),
            *cells,
            _more(stories),
            section(
                "Every metric", *(Fold(title, (table,)) for title, table in metrics), _more(metrics), name="metrics"
            ),
            section("Compile now, are new, or were removed", List(_lines(settled(facts, limits))), name="settled"),
        ),
        name="changed",
    )


def _lines(found: Listing[Phrase]) -> Listing[Phrase | Line]:
    return listing(found.items, found.total, found.noun)


def _more(found: Listing[Any]) -> List:
    """How many there are that are not shown."""
    return List(Listing((), found.more, found.noun))


def _story(story: Story, limits: Limits) -> Blocks:
    """Why one cell changed: its sentence, its dispatches, what differs in them, and what moved."""
    by_cause = f" By cause: {story.by_cause}." if story.by_cause else ""
    causes = ("cause",) * story.mixed
    headers = ("dispatch", *causes, "component", story.code, "stack frame")
    rows = [
        (
            name_cell(clip(line.name, _NAME)),
            *(phrase(line.cause) for _ in causes),
            _component(line.component),
            *(phrase(line.numbers[label].text) for label in ("code", "stack frame")),
        )
        for line in story.dispatches
    ]
    moved = [
        (_component(line.name, 2 * _COMPONENT), *map(phrase, (line.sites, line.code, line.stack)))
        for line in story.components
    ]
    sizes = ("component", "dispatch sites", f"{story.code}, base → head", "stack frame, base → head")
    dispatches = listing(rows, story.dispatches.total, story.dispatches.noun)
    diffs: list[Block] = []
    for diff in story.diffs:
        more = f"and {plural(diff.more_lines, 'more line')}, in report.json" if diff.more_lines else ""
        diffs += [
            Sentence(phrase("The smallest piece of ", code(diff.name), " that differs:"), small=True),
            Code(diff.text, language="diff"),
            Sentence(phrase(more), small=True),
        ]
    return (
        Sentence(phrase(story.said, f". {story.rest}", by_cause)),
        Table(headers, dispatches, numbers_from=len(headers) - 2, small=True),
        List(_lines(story.notes)),
        *diffs,
        Table(sizes, listing(moved, story.components.total, story.components.noun), small=True),
        section("What deduplication left behind", *([List(_lines(story.families))] * limits.details), name="families"),
    )


def _component(name: str, most: int = _COMPONENT) -> Phrase:
    return phrase(name) if name == UNATTRIBUTED else name_cell(clip(name, most))


def _findings(facts: Facts, limits: Limits) -> Fold:
    """Every finding, by what it has in common; what base had; what is broken, newly and still."""
    told = alarms(facts, replace(limits, alarms=limits.findings))
    groups = [
        section(
            _counted(group.title, group.cells, facts),
            List(listing([phrase(f"{one.mark} ", one.said) for one in group.lines], group.lines.total, "finding")),
            name="group",
        )
        for group in told
        if group.title != BROKEN
    ]
    known, over, near = known_lines(facts, limits), over_limit(facts, limits), close(facts, limits, False)
    rows = [
        (
            name_cell(row.model),
            name_cell(row.target),
            phrase(sides(row.base, row.head)),
            phrase(change(row.base, row.head)),
        )
        for row in over
    ]
    gate = f"What the compiler says that a function needs; it allows {amount(STACK_LIMIT_BYTES)}."
    table = Table(("model", "target", "base → head", "change"), listing(rows, over.total, over.noun), 2, about=gate)
    broken = facts.count("broken")
    verdict = facts.report.verdict
    counts = [f"{len(verdict.news):,} of this change"] if verdict.news else []
    counts += [f"{len(verdict.findings) - len(verdict.news):,} that base had"] if known else []
    counts += [f"{broken:,} broken on both sides"] if broken else []
    return Fold(
        phrase(f"Findings: {', '.join(counts)}" if counts else "Close to a limit"),
        (
            *_failed(BROKEN, facts, "newly-broken", limits),
            *groups,
            section("Known: base had them, and head is not worse", List(_lines(known)), name="known"),
            section("Close to a limit, and no closer than base", List(_lines(near)), name="closer"),
            section(_counted("Over the compiler's stack limit on both sides", over.total, facts), table, name="over"),
            *_failed("Broken on both sides", facts, "broken", limits),
        ),
        name="findings",
    )


def _failed(title: str, facts: Facts, state: str, limits: Limits) -> Blocks:
    """The cells of a state by what the compiler says of them; what is still broken is a line each, and no more."""
    groups, blocks = failures(facts, state, limits), list[Block]()
    for group in groups:
        alike = f", {plural(group.count, 'build')} alike" if group.count > 1 else ""
        said = phrase(strong(plain(group.what)), f"{alike}: ", group.cells)
        shown = state == "newly-broken" or limits.every
        first_line = group.diagnostics.partition("\n")[0]
        blocks.append(Sentence(said if shown or not first_line else phrase(said, ": ", code(clip(first_line, 120)))))
        if shown and group.diagnostics:
            more = f"and {plural(group.more_lines, 'more line')}, in report.json" if group.more_lines else ""
            blocks += [Code(group.diagnostics, language="text"), Sentence(phrase(more), small=True)]
    return (section(_counted(title, facts.count(state), facts), *blocks, _more(groups), name=state),)


def _overview(facts: Facts, limits: Limits) -> Fold:
    fusion, folding, pairs = fusion_table(facts, limits), folding_table(facts, limits), pair_tables(facts, limits)
    fused, folded = ("", "") if limits.every else (" fused differently", " folded differently")
    is_open = not limits.every
    return Fold(
        "Fusion, deduplication, static and dynamic",
        (
            Fold(f"Fusion: {plural(fusion.rows.total, 'model')}{fused}", (fusion,), is_open, name="fusion"),
            Fold(f"Deduplication: {plural(folding.rows.total, 'build')}{folded}", (folding,), is_open, "deduplication"),
            Fold("Static and dynamic", (*pairs, _more(pairs)), is_open, name="pairs"),
        ),
        name="overview",
    )


def _compared(facts: Facts, limits: Limits) -> Fold:
    """Commands of alarming cells, both sides, and what there is to say of the rest."""
    told, both, same = commands(facts, limits), compared(facts.report), unchanged(facts, limits)
    exact = [
        block for one in told for block in (Sentence(phrase(code(one.model), " on ", code(one.target))), Code(one.text))
    ]
    rows = [(phrase(row.what), row.base, row.head) for row in both.rows]
    spent = [
        (
            name_cell(row.target),
            phrase(amount(row.cells, "count")),
            phrase(sides(row.cpu_base, row.cpu_head, "ms")),
            phrase(relative(row.cpu_base, row.cpu_head)),
            phrase(sides(row.memory_base, row.memory_head, "KiB")),
        )
        for row in costs(facts)
    ]
    headers = ("target", "builds", "CPU time, base → head", "change", "peak memory, base → head")
    about = "Cost of compiling (informational: two runs of the same compile differ)"
    equal = [
        phrase(f"{words} ({count:,}): ", cells)
        for words, count, cells in (
            ("Bit-identical", same.identical, same.identical_cells),
            ("Equal in every metric, bytes not compared", same.equal, same.equal_cells),
        )
        if count
    ]
    remarks = listing((), 0, "note") if limits.every else notes(facts.report, limits)  # a page has them above
    title = f"How to reproduce: the exact commands of {plural(told.total, 'alarming build')}"
    return Fold(
        "How to reproduce, and what was compared" if told and not limits.every else "What was compared",
        (
            Fold(title if limits.every else "", (*exact, _more(told)), not limits.every, name="commands"),
            Table(("", "base", "head"), listing(rows, len(rows), "row"), numbers_from=3),
            Sentence(phrase("Suite: ", both.suite, ". Baseline: ", both.baseline, ".")),
            List(listing([phrase(note) for note in remarks], remarks.total, remarks.noun)),
            List(listed(equal)),
            Table(headers, listing(spent, len(spent), "target"), about=about),
        ),
        name="compared",
    )


def _left_out(blocks: Sequence[Block]) -> Iterator[str]:
    """What the lists and tables of the folds have no room for, in words; the parts of a story are the largest alone."""
    counts = Counter[str]()
    for one in every_block(blocks):
        found = one.lines if isinstance(one, List) else one.rows if isinstance(one, Table) else None
        if found is not None:
            counts[found.noun] += found.more
    yield from (plural(count, noun) for noun, count in counts.items() if count)


def every_block(blocks: Sequence[Block]) -> Iterator[Block]:
    """They and what is in them, but for stories."""
    for one in blocks:
        yield one
        if isinstance(one, Fold) and one.name != "story":
            yield from every_block(one.blocks)
