"""A comparison as blocks: one screen that says what is allowed, what changed, how much, why and what now; then folds.

The comment, the job summary, the check, the page and the terminal are these blocks, each with its
own room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from rich.console import Console

from bot.core.delta import exact_changes, value_of
from bot.core.explanation import UNATTRIBUTED
from bot.core.metrics import METRIC_BY_ID, METRICS, code_words, own_metrics
from bot.core.publication import APPROVAL_LABEL
from bot.core.report import Adoption, Report
from bot.core.snapshot import (
    CellKey,
)
from bot.show.alarms import BROKEN, OVER, WARNED, AlarmGroup, accepted, alarms, findings, group_lines
from bot.show.blocks import (
    Block,
    Code,
    Fold,
    Limits,
    Line,
    List,
    Phrase,
    Row,
    Sentence,
    Span,
    Table,
    Words,
    by,
    code,
    fair_in_order,
    joined,
    kind_of,
    listed,
    listing,
    more_of,
    name_cell,
    phrase,
    section,
    strong,
)
from bot.show.changes import changes, compiler_name
from bot.show.compared import baseline_words, commands_of, compared
from bot.show.escape import clean, clip, is_link
from bot.show.facts import (
    MARKS,
    NAME_LIMIT,
    Facts,
    build_facts,
    by_cause,
    cause_words,
    component_row,
    counted,
    diffs,
    dispatch_line,
    family_lines,
    leading,
    mark_of,
    notes,
    passed_words,
    rest,
    root_details,
    root_lines,
    shown_roots,
    why_words,
)
from bot.show.failures import failed_builds, unmeasured
from bot.show.filters import amount, change, plural, sides
from bot.show.grid import build_grid, grid_tables
from bot.show.headline import headline
from bot.show.renderers import print_blocks
from bot.show.totals import totals

_UNTRUSTED = "Measured by the pull request's own workflow run; this report cannot check its numbers."
_BROKE_CHARS, _LOUD, _LEADING = 1_000, 2, 4

_NAME, _COMPONENT, _NOTE = 42, 36, 160

Blocks = tuple[Block, ...]


def report_blocks(facts: Facts, limits: Limits, where: str = "") -> Blocks:
    """Everything, in the order in which it is read; `where` a reader finds what this size leaves out."""
    grid = build_grid(facts, limits)
    size = f"{plural(grid.models.total, 'model')} × {plural(len(facts.measured_targets), 'target')}"
    every = Fold(phrase(f"Every build: {size}"), (*grid_tables(grid), *_unmeasured(facts, limits)), name="grid")
    folds = [every, _changed(facts, limits), findings(facts, limits), compared(facts, limits)]
    screen = first_screen(facts, limits)
    if brought := facts.report.adoption:
        screen, folds = _first_report(facts, brought, limits), [_measured_first(facts, limits), *folds[1:]]
    counts = Counter[str]()  # what lists and tables have no room for; the parts of a story are the largest alone
    for one in every_block(folds):
        if shown := one.lines if isinstance(one, List) else one.rows if isinstance(one, Table) else None:
            counts[shown.noun] += shown.more
    missing = ", ".join(plural(count, noun) for noun, count in counts.items() if count)
    said = phrase(f"Shortened to fit. Left out here: {missing}; {where} have everything.") if missing and where else ()
    last = replace(folds[-1], blocks=(*folds[-1].blocks, Sentence(said, small=True, name="left-out")))
    return (*screen, *folds[:-1], last)


def page_blocks(facts: Facts, limits: Limits) -> Mapping[str, Blocks]:
    """What a page has beside pictures, grid and cells, by where it stands."""
    compilers = (side.compiler.metrics for side in (facts.report.base, facts.report.head))
    metrics = (*METRICS, *own_metrics(*compilers).values())
    meanings = List(listed(phrase(f"{metric.label}: {metric.about}") for metric in metrics))
    below = replace(compared(facts, limits), is_open=True)
    return {
        "header": (_verdict(facts), _changes(facts)),
        "why": (_why(facts, limits),),
        "alarms": tuple(_alarms(facts, alarms(facts, limits), limits)),
        "totals": (_totals(facts, limits),),
        "unmeasured": _unmeasured(facts, limits),
        "sections": (findings(facts, limits), below, Fold("What the metrics mean", (meanings,), name="metrics")),
    }


def print_report(report: Report, console: Console, *, quiet: bool = False) -> None:
    """Print what a person in front of a terminal wants to know; the files have the rest. `quiet`: the verdict alone."""
    limits = Limits(40, max(console.width, 40) * 13 // 10, 4, 6, 10, 10, 1, 12, 1, 4, terminal=True)
    facts = build_facts(report)
    if quiet:
        print_blocks((_verdict(facts),), console)
        return
    grid = build_grid(facts, limits)
    blocks = (
        *first_screen(facts, limits),
        section("", *(() if grid.settled else grid_tables(grid)), *_unmeasured(facts, limits), name="grid"),
        failed_builds("Newly broken", facts, "newly-broken", limits),
        failed_builds("Broken on both sides", facts, "broken", limits),
        section("Notes", List(listed(map(phrase, notes(facts.report, limits)))), name="notes"),
    )
    print_blocks(blocks, console)


# The first screen.


def first_screen(facts: Facts, limits: Limits) -> Blocks:
    """Verdict, what changed, totals, root causes, alarms, and what to do now."""
    how_much, why, groups = _totals(facts, limits), _why(facts, limits), alarms(facts, limits)
    return (
        _verdict(facts),
        _changes(facts),
        how_much,
        why,
        *_alarms(facts, groups, limits),
        _next(facts, groups, limits),
    )


def _first_report(facts: Facts, brought: Adoption, limits: Limits) -> Blocks:
    """Of the change that brings the configuration: what it is, and alarms."""
    links = section("", Sentence(_links(facts), small=True), name="next")
    return (_verdict(facts), _brought(facts, brought), *_alarms(facts, alarms(facts, limits), limits), links)


def _verdict(facts: Facts) -> Fold:
    broke = clip(clean(facts.report.broke), _BROKE_CHARS)
    broken = phrase("⚠️ ", strong("The analysis broke:"), " ", code(broke), ". What is known so far:") if broke else ()
    resolved = "Resolved: the earlier alarm on this pull request is gone." if facts.report.resolved else ""
    said = Sentence(headline(facts), name="headline")
    return section("", Sentence(broken), said, Sentence(phrase(resolved)), name="verdict")


def _changes(facts: Facts) -> Fold:
    nothing = phrase("nothing of what is measured: the same compiler, flags and models on both sides")
    return section(
        "",
        Sentence(phrase(strong("What changed:"), " ", joined(changes(facts), " | ") or nothing)),
        Sentence(baseline_words(facts.report) if facts.report.baseline.distance else (), small=True),
        Sentence(phrase(_UNTRUSTED) if facts.report.untrusted else (), small=True),
        name="changes",
    )


def _totals(facts: Facts, limits: Limits) -> Fold:
    """A row for each target that something changed on; its mark stands in the first column, which a telephone shows."""
    rows, still, every = totals(facts)
    cells = list[Row]()
    for row in rows:
        name = name_cell(row.target) if row.target else phrase(strong("all"))
        marked = phrase(name, *(" ", Span(row.mark, kind_of(row.level))) if row.mark else ())
        change = Span(row.change, "up" if row.moved > 0 else "down" if row.moved else "number")
        cells.append((marked, (change,), (Span(row.sizes, "number"),)))
    partly = " (builds compared)" if any(0 < row.cells < row.planned for row in rows) else ""
    quiet = f"No change on {plural(still, 'other target' if rows else 'target')}" if still else ""
    no_sum = "No artifact to compare: no build was measured on both sides." if not (every.cells or still) else ""
    return section(
        "Totals per target" if limits.every else "",
        Table(("target", "change", f"artifacts, base → head{partly}"), listed(cells, "target")),
        Sentence(quiet or no_sum, small=True),
        name="totals",
    )


def _why(facts: Facts, limits: Limits) -> Fold:
    """What all deltas have in common; on a page the few that hold most of the bytes, and the others below them."""
    lines, roots = root_lines(facts, limits), facts.report.root_causes
    shares = [root.share for root in roots[: len(lines.items)] if root.share is not None]
    of_all = f", {sum(shares) * 100:.0f} % of moved bytes" if shares else ""
    title = phrase(strong("Root causes"), f" ({len(lines.items)} of {lines.total}{of_all})")
    if not limits.every:
        return section(title, List(listed(lines.items), numbered=1), name="causes")
    most = min(_LEADING, leading(facts))
    others = listing(lines.items[most:], len(roots) - most, "root cause")
    below = Fold(plural(others.total, "more root cause"), (List(others, numbered=most + 1),), name="more")
    return section("Root causes", List(listed(lines.items[:most]), numbered=1, name="leading"), below, name="causes")


def _alarms(facts: Facts, groups: Sequence[AlarmGroup], limits: Limits) -> Iterator[Block]:
    """What is broken, then what is over a limit; warnings where nothing is worse.

    A page has room for all of them, below one heading.
    """
    titles, sections = {group.title for group in groups}, list[Block]()
    for group in groups:
        loud = group.title in (BROKEN, OVER) or (group.title == WARNED and not titles & {BROKEN, OVER})
        if loud or limits.every:
            title = counted(group.title, group.cells, facts)
            sections.append(section(title, group_lines(group), name="" if limits.every else "alarms"))
    taken = List(accepted(facts, limits), name="accepted")
    remarks = notes(facts.report, limits)
    if limits.every:
        said = List(listing(map(phrase, remarks), remarks.total, "note"), name="note")
        yield section("Alarms" if groups else "Notes", *sections, taken, said, name="alarms")
    else:
        yield from (*sections, taken)
        yield from (Sentence(phrase(f"Note: {note}"), small=True, name="note") for note in remarks.items[:_LOUD])


_TO_DO = {"Newly broken": "make it compile again", "Over the limit": "get it below the limit"}


def _next(facts: Facts, groups: Sequence[AlarmGroup], limits: Limits) -> Fold:
    """What to do, where to read on, how to see the worst of it at home, and last how to accept it."""
    report, more, what = facts.report, _links(facts), ""
    failing = [group for group in groups if group.title in _TO_DO]
    if report.verdict.status == "fail":
        what = " and ".join(_TO_DO[group.title] for group in failing) or "see why the rules forbid it"
    elif report.verdict.status == "warn" and any(group.title == WARNED for group in groups):
        what = "look through it; a warning stops no merge"
    if limits.terminal or not what:
        return section("", Sentence(() if limits.terminal else more, small=True), name="next")
    said = phrase(strong("Next:"), f" {what}.", *(phrase(" ", more, ".") if more else ()))
    worst = [group.lines.items[0].cells[0] for group in failing[:1] if limits.commands]
    reproduced = [Fold(phrase("To reproduce ", facts.named(key)), (commands_of(facts, key),)) for key in worst]
    accept = phrase("To accept: label it ", code(APPROVAL_LABEL), ".")
    is_asked = report.verdict.status == "fail" and bool(report.links or report.state_line)
    return section("", Sentence(said), *reproduced, Sentence(accept if is_asked else (), small=True), name="next")


def _links(facts: Facts) -> Phrase:
    """Where to read on: the page, and what the event gave; empty where there is neither."""
    links = [(Span(label, to=url),) for label, url in facts.report.links]
    links = [*([(Span("the page", to=facts.report.page),)] if is_link(facts.report.page) else []), *links]
    return phrase("More: ", joined(links, " · ")) if links else ()


# The folds.


def _unmeasured(facts: Facts, limits: Limits) -> Blocks:
    return (section("Not measured", List(unmeasured(facts, limits)), name="unmeasured"),)


def _changed(facts: Facts, limits: Limits) -> Fold:
    """Of the changed cells, the alarming first: why; and every metric, where there is room."""
    count = facts.count("changed")
    roots = [] if limits.details else facts.report.root_causes[: shown_roots(facts, limits)]
    details = [(number, root_details(facts, root)) for number, root in enumerate(roots, 1)]
    causes = [Line(phrase(f"Cause {number}: ", detail)) for number, detail in details if detail]
    explained = facts.report.explanations
    known = {d.key for d in facts.report.deltas if d.key in explained and d.state in ("changed", "same")}
    alarming = [one.key for one in facts.report.verdict.news]
    keys = [key for key in dict.fromkeys([*alarming, *facts.deltas]) if key in known]
    shown = fair_in_order(keys, lambda key: key.model, limits.whys)
    stories = listing([_story(facts, key, limits) for key in shown], len(keys), "explained build")
    title = plural(count, "changed build") if count else plural(stories.total, "build")
    return Fold(
        f"Why: {title}" if stories else title,
        (
            List(listed(causes)),
            *stories,
            more_of(stories),
            Fold("Every metric", (_every_metric(facts, limits),), name="metrics"),
        ),
        name="changed",
    )


def _every_metric(facts: Facts, limits: Limits) -> Table:
    """The changed metrics of the changed builds; models take turns where there are too many."""
    pairs = [
        (delta, id_)
        for delta in facts.states["changed"]
        for id_ in [value.id for value in exact_changes(delta.metrics.values())] or [METRICS[0].id]
    ]
    rows = list[Row]()
    for delta, id_ in fair_in_order(pairs, lambda pair: pair[0].key.model, limits.changed):
        metric, both = delta.metrics[id_].quantity, delta.metrics[id_].sides
        mark = next((f" {MARKS[mark_of(one)]}" for one in facts.findings.get(delta.key, ()) if one.metric == id_), "")
        words = facts.label(metric, delta.key), sides(*both, metric.unit), f"{change(*both, metric.unit)}{mark}"
        rows.append((*facts.names(delta.key), *map(phrase, words)))
    headers = ("model", "target", "metric", "base → head", "change")
    return Table(headers, listing(rows, len(pairs) if limits.changed else 0, "changed metric"), numbers_from=3)


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
    notes, lines = by(why.dispatches if most else (), lambda delta: clean(delta.note, _NOTE)), list[Phrase]()
    for told in ("", clean(why.why, _NOTE)):  # what differs, once; not what the cell's `why` said already
        notes.pop(told, None)
    for note, (one, *others) in islice(notes.items(), min(4, most)):
        more, passed = f" and {plural(len(others), 'other dispatch')}" if others else "", passed_words(one)
        alone = "the first " if passed and others else ""
        lines.append(phrase(code(clean(one.name, _NAME)), more, f": {note}", f"; {alone}{passed}" if passed else ""))
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
        phrase(facts.named(key), f": {cause_words(why.cause)}"),
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


def every_block(blocks: Sequence[Block]) -> Iterator[Block]:
    """They and what is in them, but for stories."""
    for one in blocks:
        yield one
        if isinstance(one, Fold) and one.name != "story":
            yield from every_block(one.blocks)


# The first report, of the change that brings the configuration: of the head alone.


_SIZED = ("artifact_bytes", "executables", "stack_max_bytes")


def _brought(facts: Facts, brought: Adoption) -> Fold:
    """Which configuration it is, and the compiler."""
    file = phrase("the configuration ", code(clip(brought.file, NAME_LIMIT))) if brought.file else "a configuration"
    rule = ", which the base commit has not: nothing was compared. Compiler: "
    return section(
        "",
        Sentence(phrase("This pull request brings ", file, rule, compiler_name(facts.report.head.compiler))),
        Sentence(phrase(_UNTRUSTED) if facts.report.untrusted else (), small=True),
        name="adoption",
    )


def _measured_first(facts: Facts, limits: Limits) -> Fold:
    """How large every build is."""
    cells = [cell for cell in facts.report.head.cells if cell.status != "unsupported"]
    rows = list[Row]()
    for cell in fair_in_order(cells, lambda cell: cell.key.model, limits.findings):
        values = (amount(value_of(cell, id_), METRIC_BY_ID[id_].unit) for id_ in _SIZED)
        rows.append((*facts.names(cell.key), *values))
    headers = ("model", "target", "artifact", "executables", "largest stack frame")
    every = Table(headers, listing(rows, len(cells), "build"), numbers_from=2)
    return Fold("Every build: artifact, executables and stack", (every,), name="cells")
