"""A comparison as blocks: one screen that says what is allowed, what changed, how much, why and what now; then folds.

The comment, the job summary, the check, the report of a pin, the page and the terminal are these blocks, each with its
own room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from rich.console import Console

from bot.core.delta import exact_changes, value_of
from bot.core.explanation import UNATTRIBUTED, DispatchDelta
from bot.core.metrics import METRICS, code_words, own_metrics
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
    finding_table,
    grouped,
    known_lines,
    over_table,
    shown_roots,
    unmeasured,
)
from bot.show.blocks import (
    Block,
    Code,
    Fold,
    Limits,
    Line,
    List,
    Listing,
    Phrase,
    Row,
    Sentence,
    Span,
    Table,
    Words,
    code,
    fair_in_order,
    joined,
    kind_of,
    listed,
    listing,
    name_cell,
    phrase,
    plain,
    section,
    strong,
)
from bot.show.compared import age, changes, commits, compared, head_command, notes
from bot.show.escape import clean, clip, is_link
from bot.show.facts import MARKS, NAME_LIMIT, Facts, build_facts, builds, cells_phrase, leading, mark_of
from bot.show.filters import amount, change, percent, plural, sides
from bot.show.grid import Grid, build_grid
from bot.show.headline import headline, totals
from bot.show.model_tables import folding_table, fusion_table, pair_tables
from bot.show.renderers import print_blocks
from bot.show.why import (
    by_cause,
    cause_words,
    component_row,
    diffs,
    dispatch_line,
    family_lines,
    passed_words,
    rest,
    root_details,
    root_lines,
    step_lines,
    why_words,
)

_BROKE_CHARS, _LOUD, _LEADING = 1_000, 2, 4
_NAME, _COMPONENT, _NOTE, _STILL = 42, 36, 160, 3
Blocks = tuple[Block, ...]


def report_blocks(facts: Facts, limits: Limits, where: str = "") -> Blocks:
    """Everything, in the order in which it is read; `where` a reader finds what this size leaves out."""
    grid = build_grid(facts, limits)
    size = f"{plural(grid.models.total, 'model')} × {plural(len(facts.measured_targets), 'target')}"
    every = Fold(phrase(f"Every build: {size}"), (*_grid(grid), *_unmeasured(facts, limits)), name="grid")
    folds = [every, _changed(facts, limits), findings(facts, limits), _overview(facts, limits), compared(facts, limits)]
    screen = first_screen(facts, limits)
    if brought := facts.report.adoption:
        screen, folds = _first_report(facts, brought, limits), folds[1:]  # its own table has every cell
    missing = ", ".join(_left_out(folds))
    said = phrase(f"Shortened to fit. Left out here: {missing}; {where} have everything.") if missing and where else ()
    last = replace(folds[-1], blocks=(*folds[-1].blocks, Sentence(said, small=True, name="left-out")))
    return (*screen, *folds[:-1], last)


def page_blocks(facts: Facts, limits: Limits) -> Mapping[str, Blocks]:
    """What a page has beside pictures, grid and cells, by where it stands."""
    compilers = (side.compiler.metrics for side in (facts.report.base, facts.report.head))
    metrics = (*METRICS, *own_metrics(*compilers).values())
    meanings = List(listed(phrase(f"{metric.label}: {metric.about}") for metric in metrics))
    below = (replace(one, is_open=True) for one in (_overview(facts, limits), compared(facts, limits)))
    return {
        "header": (_verdict(facts), _changes(facts, limits)),
        "why": tuple(_why(facts, limits)),
        "alarms": tuple(_alarms(facts, alarms(facts, limits), limits)),
        "totals": (_totals(facts, limits),),
        "unmeasured": _unmeasured(facts, limits),
        "sections": (findings(facts, limits), *below, Fold("What the metrics mean", (meanings,), name="metrics")),
    }


def print_report(report: Report, console: Console, *, quiet: bool = False) -> None:
    """Print what a person in front of a terminal wants to know; the files have the rest. `quiet`: the verdict alone."""
    limits = Limits(40, max(console.width, 40) * 13 // 10, 4, 6, 10, 10, 1, 12, 1, 4, terminal=True)
    facts = build_facts(report)
    if quiet:
        print_blocks((_verdict(facts),), console)
        return
    grid = build_grid(facts, limits)
    broken = [phrase(group.cells, ": ", group.what) for group in failures(facts, "broken", limits)]
    blocks = (
        *first_screen(facts, limits),
        section("", *(() if grid.settled else _grid(grid)), *_unmeasured(facts, limits), name="grid"),
        *_failed("Newly broken", facts, "newly-broken", limits),
        section(_counted("Broken on both sides", facts.count("broken"), facts), List(listed(broken)), name="broken"),
        section("Notes", List(listed(map(phrase, notes(facts.report, limits)))), name="notes"),
    )
    print_blocks(blocks, console)


# The first screen.


def first_screen(facts: Facts, limits: Limits) -> Blocks:
    """Verdict, what changed, totals, root causes (first where a pin is asked about), alarms, and what to do now."""
    how_much, why, groups = _totals(facts, limits), tuple(_why(facts, limits)), alarms(facts, limits)
    return (
        _verdict(facts),
        _changes(facts, limits),
        *((*why, how_much) if facts.report.pin else (how_much, *why)),
        *_alarms(facts, groups, limits),
        _next(facts, groups, limits),
    )


def _first_report(facts: Facts, brought: Adoption, limits: Limits) -> Blocks:
    """Of the change that brings the configuration: what is measured, what changed and alarms, what is next."""
    moved = (_totals(facts, limits), next(_why(facts, limits))) if facts.count("changed") else ()
    links = section("", Sentence(_links(facts), small=True), name="next")
    start = (_verdict(facts), *adoption_blocks(facts, brought, limits), *moved)
    return (*start, *_alarms(facts, alarms(facts, limits), limits), links, *after_adoption(facts, brought, limits))


def _verdict(facts: Facts) -> Fold:
    broke = clip(clean(facts.report.broke), _BROKE_CHARS)
    broken = phrase("⚠️ ", strong("The analysis broke:"), " ", code(broke), ". What is known so far:") if broke else ()
    resolved = "Resolved: the earlier alarm on this pull request is gone." if facts.report.resolved else ""
    said = Sentence(headline(facts), name="headline")
    return section("", Sentence(broken), said, Sentence(phrase(resolved)), name="verdict")


def _changes(facts: Facts, limits: Limits) -> Fold:
    nothing = phrase("nothing of what is measured: the same compiler, flags and models on both sides")
    untrusted = "Measured by the pull request's own workflow run; this report cannot check its numbers."
    return section(
        "",
        Sentence(phrase(strong("What changed:"), " ", joined(changes(facts), " | ") or nothing)),
        Sentence(commits(facts.report) if limits.every or age(facts.report) else (), small=True),
        Sentence(phrase(untrusted) if facts.report.untrusted else (), small=True),
        name="changes",
    )


def _totals(facts: Facts, limits: Limits) -> Fold:
    """A row for each target that something changed on: its mark is the first column, which a telephone shows.

    On a page it stands behind the target's name, as a row is read by what its first column says.
    """
    rows, still, every = totals(facts)
    cells = []
    for row in rows:
        mark, name = Span(row.mark, kind_of(row.level)), name_cell(row.target) if row.target else phrase(strong("all"))
        change = Span(row.change, "up" if row.moved > 0 else "down" if row.moved else "number")
        numbers = phrase(change), phrase(Span(row.sizes, "number"))
        marked = phrase(name, *(" ", mark) if row.mark else ())
        cells.append((marked, *numbers, phrase(row.ways)) if limits.every else (phrase(mark), name, *numbers))
    partly = " (builds compared)" if any(0 < row.cells < row.planned for row in rows) else ""
    shown = ("target", "change", f"artifacts, base → head{partly}")
    headers = (*shown, "larger / smaller") if limits.every else ("", *shown)
    where = joined([(code(name),) for name in still], ", ")
    if len(still) > _STILL and not limits.every:
        where = phrase(plural(len(still), "other target" if rows else "target"))
    size = f": {plural(every.cells, 'artifact')}, {amount(every.head)} in all" if every.cells and not rows else ""
    no_sum = "No artifact to compare: no build was measured on both sides." if not (every.cells or where) else ""
    return section(
        "Totals per target" if limits.every else "",
        Table(headers, listed(cells, "target"), headers.index("change"), wanted=(2, 3)),
        Sentence(phrase("No change on ", where, size) if where else (), small=True),
        Sentence(phrase(no_sum), small=True),
        name="totals",
    )


def _why(facts: Facts, limits: Limits) -> Iterator[Fold]:
    """What all deltas have in common; on a page the few that hold most of the bytes, and the others below them."""
    lines, roots = root_lines(facts, limits), facts.report.root_causes
    shares = [root.share for root in roots[: len(lines.items)] if root.share is not None]
    held = "in percent of all bytes that moved" if len(shares) > 1 else ""
    if lines.more:
        of_all = f", {sum(shares) * 100:.0f} % of moved bytes" if shares else ""
        held = f"{len(lines.items)} of {lines.total}{of_all}"
    most = min(_LEADING, leading(facts)) if limits.every else len(lines.items)
    rest = [root.share for root in roots[most:]]
    known = [share for share in rest if share is not None]
    of = f", with {percent(sum(known)).removeprefix('+')} of all bytes that moved" if len(known) == len(rest) else ""
    others = listing(lines.items[most:], len(roots) - most, "root cause")
    below = Fold(f"{plural(others.total, 'more root cause')}{of}", (List(others, numbered=most + 1),), name="more")
    leads = List(listed(lines.items[:most]), numbered=1, name="leading" if limits.every else "")
    title = "Root causes" if limits.every else phrase(strong("Root causes"), f" ({held})" if held else "")
    yield section(title, leads, *([below] if limits.every else []), name="causes")
    yield section("Releases between", List(step_lines(facts, limits)), name="steps")


def _counted(title: str, count: int, facts: Facts) -> Phrase:
    return phrase(strong(title), f" ({builds(facts, count)})")


def _alarms(facts: Facts, groups: Sequence[AlarmGroup], limits: Limits) -> Iterator[Block]:
    """What is broken with the command that shows it, then what is over a limit; warnings where nothing is worse.

    A page has room for all of them, below one heading.
    """
    titles, sections = {group.title for group in groups}, list[Block]()
    for group in groups:
        loud = group.title in (BROKEN, OVER) or (group.title == WARNED and not titles & {BROKEN, OVER})
        if loud or limits.every:
            lines = []
            for line in group.lines:  # the first words have the colour of its level, where there are colours
                lead, *rest = line.said
                lead = Span(lead.text, kind_of(line.level)) if lead.kind == "text" else lead
                lines.append(phrase(f"{line.mark} ", lead, *rest))
            command = head_command(facts, group.lines.items[0].cells[0]) if group.title == BROKEN else ""
            reproduced = [Code(command)] if limits.commands and not limits.terminal and not limits.every else []
            is_counted = len(groups) > 1 or limits.every
            title = _counted(group.title, group.cells, facts) if is_counted else phrase(strong(group.title))
            name = "" if limits.every else "alarms"
            sections.append(
                section(title, List(listing(lines, group.lines.total, group.lines.noun)), *reproduced, name=name)
            )
    taken = List(accepted(facts, limits), name="accepted")
    near = close(facts, limits, True)
    more = f"; {plural(near.more, 'more value')}" if near.more else ""
    grown = Sentence(phrase("Close to a limit: ", joined(near, "; "), more) if near else (), name="close")
    remarks = notes(facts.report, limits)
    if limits.every:
        said = List(listing(map(phrase, remarks), remarks.total, "note"), name="note")
        yield section("Alarms" if groups else "Notes", *sections, taken, grown, said, name="alarms")
    else:
        yield from (*sections, taken, grown)
        loud_notes = [note for note in remarks if not note.startswith(ONCE)][:_LOUD]
        yield from (Sentence(phrase(f"Note: {note}"), small=True, name="note") for note in loud_notes)


def _next(facts: Facts, groups: Sequence[AlarmGroup], limits: Limits) -> Fold:
    """What to do, where to read on, how to see the worst of it at home, and last how to accept it."""
    report, titles = facts.report, {group.title: group for group in groups}
    status, more, what = report.verdict.status, _links(facts), ""
    if limits.terminal:
        return section("", name="next")
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
        reproduced = (Fold(title, (Code(head_command(facts, key)),), name="reproduce"),)
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


def _grid(grid: Grid) -> Iterator[Block]:
    for headers, rows in grid.blocks:
        cells = [
            (
                name_cell(model),
                *(phrase(Span(one.text, kind_of(one.level), one.address if one.level else "")) for one in row),
            )
            for model, row in rows
        ]
        yield Table(("model", *headers), listed(cells, "model"), small=True)
    legend = " · ".join(f"{symbol} {meaning}" for symbol, meaning in grid.legend)
    names = joined([phrase(code(short), " is ", code(full)) for short, full in grid.names], ", ")
    yield Sentence(phrase(legend, *(phrase(". Short names: ", names) if names else ())), small=True)
    yield _more(grid.models)


def _unmeasured(facts: Facts, limits: Limits) -> Blocks:
    return (section("Not measured", List(unmeasured(facts, limits)), name="unmeasured"),)


def _changed(facts: Facts, limits: Limits) -> Fold:
    """Of the changed cells, the alarming first: why; every metric, where there is room; and those that came or went."""
    metrics, count = _every_metric(facts, limits), facts.count("changed")
    roots = [] if limits.details else facts.report.root_causes[: shown_roots(facts, limits)]
    details = [(number, root_details(facts, root)) for number, root in enumerate(roots, 1)]
    causes = [Line(phrase(f"Cause {number}: ", detail)) for number, detail in details if detail]
    explained = facts.report.explanations
    known = {d.key for d in facts.report.deltas if d.key in explained and d.state in ("changed", "same")}
    alarming = [one.key for one in facts.report.verdict.news]
    keys = [key for key in dict.fromkeys([*alarming, *facts.deltas]) if key in known]
    shown = fair_in_order(keys, lambda key: key.model, limits.whys)
    stories = listing([_story(facts, key, limits) for key in shown], len(keys), "explained build")
    title = f"Why: {plural(count, 'changed build')}" if stories else plural(count, "changed build")
    return Fold(
        title if count else "Builds that compile now, are new or went",
        (
            List(listed(causes)),
            *stories,
            _more(stories),
            section("Every metric", *metrics, _more(metrics), name="metrics"),
            section("Compile now, are new, or were removed", List(settled(facts, limits)), name="settled"),
        ),
        name="changed",
    )


def _more(found: Listing[object]) -> List:
    """How many there are that are not shown."""
    return List(Listing((), found.more, found.noun))


def _every_metric(facts: Facts, limits: Limits) -> Listing[Fold]:
    """The changed metrics of each changed model; models take turns where there are too many."""
    pairs = [
        (delta, id_)
        for delta in facts.states["changed"]
        for id_ in [value.id for value in exact_changes(delta.metrics.values())] or [METRICS[0].id]
    ]
    totals = Counter(delta.key.model for delta, _ in pairs)
    cells = Counter(delta.key.model for delta in facts.states["changed"])
    rows: dict[str, list[Row]] = {}
    for delta, id_ in fair_in_order(pairs, lambda pair: pair[0].key.model, limits.changed):
        metric, both = delta.metrics[id_].quantity, delta.metrics[id_].sides
        mark = next((f" {MARKS[mark_of(one)]}" for one in facts.findings.get(delta.key, ()) if one.metric == id_), "")
        words = facts.label(metric, delta.key), sides(*both, metric.unit), f"{change(*both, metric.unit)}{mark}"
        rows.setdefault(delta.key.model, []).append((name_cell(facts.short[delta.key.target]), *map(phrase, words)))
    folds = []
    for model, shown in rows.items():
        headers, title = ("target", "metric", "base → head", "change"), f": {plural(cells[model], 'changed build')}"
        table = Table(headers, listing(shown, totals[model], "changed metric"), numbers_from=2)
        folds.append(Fold(phrase(code(clip(model, NAME_LIMIT)), title), (table,)))
    return listing(folds, len(cells) if limits.changed else 0, "changed model")


def settled(facts: Facts, limits: Limits) -> Listing[Phrase]:
    """Cells that compile now, by what refused them on base; new and removed ones, and how large they are or were."""
    fixed, lines = grouped(facts, "fixed"), list[Phrase]()
    for group in fixed[: limits.names]:
        cells = cells_phrase(facts, [delta.key for delta in group], limits.names)
        verb = "compiles" if len(group) == 1 else "compile"
        before = phrase("; on base: ", failure_words(*(delta.base for delta in group)))
        lines.append(phrase(f"{plural(len(group), 'build')} {verb} now: ", cells, before))
    deltas = [delta for state in ("removed", "new") for delta in facts.states[state]]
    for delta in fair_in_order(deltas, lambda delta: (delta.state, delta.key.model), limits.names):
        cell = delta.head or delta.base
        size = amount(value_of(cell, "artifact_bytes") if cell else None)
        model, target = code(clip(delta.key.model, NAME_LIMIT)), code(facts.short[delta.key.target])
        lines.append(phrase(f"{delta.state}: ", model, " on ", target, f", artifact {size}"))
    return listing(lines, len(deltas) + len(fixed), "line of builds that came or went")


def _story(facts: Facts, key: CellKey, limits: Limits) -> Fold:
    """Why one cell changed: its sentence, its dispatches, what differs in them, and what moved."""
    why, head, most = facts.report.explanations[key], facts.deltas[key].head, limits.dispatches
    size = code_words("code", facts.backends.get(key.target, ""))
    causes = ("cause",) * any(delta.cause != why.cause for delta in why.dispatches)
    headers = ("dispatch", *causes, "component", size, "stack frame")
    rows = list[Row]()
    for line in map(dispatch_line, why.dispatches[:most]):
        numbers = (line.numbers[label].text for label in ("code", "stack frame"))
        about = (*(line.cause for _ in causes), _component(line.component, _COMPONENT))
        rows.append((name_cell(clip(line.name, _NAME)), *about, *numbers))
    notes: dict[str, list[DispatchDelta]] = {}  # what differs, once; not what the cell's `why` said already
    for delta in why.dispatches if most else ():
        if (note := clean(delta.note, _NOTE)) and note != clean(why.why, _NOTE):
            notes.setdefault(note, []).append(delta)
    lines = []
    for note, (first, *others) in islice(notes.items(), min(4, most)):
        more, passed = f" and {plural(len(others), 'other dispatch')}" if others else "", passed_words(first)
        alone = "the first " if passed and others else ""
        lines.append(phrase(code(clean(first.name, _NAME)), more, f": {note}", f"; {alone}{passed}" if passed else ""))
    pieces: list[Block] = []
    for name, text, more_lines in diffs(why.dispatches, 1 + limits.details, limits.diff_lines):
        hidden = f"and {plural(more_lines, 'more line')}, in report.json" if more_lines else ""
        title = phrase("The smallest piece of ", code(name), " that differs:")
        pieces += [Sentence(title, small=True), Code(text, language="diff"), Sentence(hidden, small=True)]
    moved = [component_row(delta) for delta in why.components[: min(8, most)]]
    components = [(_component(name, 2 * _COMPONENT), *sizes) for name, *sizes in moved]
    parts = ("component", "dispatch sites", f"{size}, base → head", "stack frame, base → head")
    families = List(family_lines(head.families if head else (), most))
    said = by_cause(why)
    return Fold(
        phrase(code(clip(key.model, NAME_LIMIT)), " on ", code(facts.short[key.target]), f": {cause_words(why.cause)}"),
        (
            Sentence(phrase(why_words(why), f". {rest(why)}", f" By cause: {said}." if said else "")),
            Table(headers, listing(rows, len(why.dispatches), "dispatch"), len(headers) - 2, small=True),
            List(listing(lines, len(notes), "note")),
            *pieces,
            Table(parts, listing(components, len(why.components), "moved component"), small=True),
            section("What deduplication left behind", *([families] * limits.details), name="families"),
        ),
        name="story",
    )


def _component(name: str, most: int) -> Words:
    return name if name == UNATTRIBUTED else name_cell(clip(name, most))


def findings(facts: Facts, limits: Limits) -> Fold:
    """Every finding, by what it has in common; what base had; what is broken, newly and still.

    On a page each finding has a row, and what came or went stands here, too.
    """
    verdict, broken = facts.report.verdict, facts.count("broken")
    known, over, groups = known_lines(facts, limits), over_table(facts, limits), list[Block]()
    had = [one for one in verdict.findings if one.known]
    counts = [f"{len(verdict.news):,} of this change"] if verdict.news else []
    counts += [f"{len(verdict.findings) - len(verdict.news):,} that base had"] if known else []
    counts += [f"{broken:,} broken on both sides"] if broken else []
    title = phrase(f"Findings: {', '.join(counts)}" if counts else "Close to a limit")
    last = (
        section("Close to a limit, and no closer than base", List(close(facts, limits, False)), name="closer"),
        *([section("Compile now, new, removed", List(settled(facts, limits)), name="settled")] * limits.every),
        section(_counted("Over the compiler's stack limit on both sides", over.rows.total, facts), over, name="over"),
        *_failed("Broken on both sides", facts, "broken", limits),
    )
    if limits.every:
        each = [
            Fold(f"{plural(len(some), 'finding')} {words}", (finding_table(facts, some, limits),))
            for words, some in (("of this change", verdict.news), ("that base had, and head is not worse", had))
        ]
        blocks = (*_failed(BROKEN, facts, "newly-broken", limits), *each, *last)
        return Fold("Findings", blocks, is_open=True, name="findings")
    for group in alarms(facts, replace(limits, alarms=limits.findings)):
        if group.title != BROKEN:
            lines = listing([phrase(f"{one.mark} ", one.said) for one in group.lines], group.lines.total, "finding")
            groups.append(section(_counted(group.title, group.cells, facts), List(lines), name="group"))
    before = section("Known: base had them, and head is not worse", List(known), name="known")
    return Fold(title, (*_failed(BROKEN, facts, "newly-broken", limits), *groups, before, *last), name="findings")


def _failed(title: str, facts: Facts, state: str, limits: Limits) -> Blocks:
    """The cells of a state by what the compiler says of them; what is still broken is a line each, and no more."""
    groups, blocks = failures(facts, state, limits), list[Block]()
    for group in groups:
        alike = f", {plural(group.cell_count, 'build')} alike" if group.cell_count > 1 else ""
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


def _left_out(blocks: Sequence[Block]) -> Iterator[str]:
    """What the lists and tables of the folds have no room for, in words; the parts of a story are the largest alone."""
    counts = Counter[str]()
    for one in every_block(blocks):
        shown = one.lines if isinstance(one, List) else one.rows if isinstance(one, Table) else None
        if shown is not None:
            counts[shown.noun] += shown.more
    yield from (plural(count, noun) for noun, count in counts.items() if count)


def every_block(blocks: Sequence[Block]) -> Iterator[Block]:
    """They and what is in them, but for stories."""
    for one in blocks:
        yield one
        if isinstance(one, Fold) and one.name != "story":
            yield from every_block(one.blocks)
