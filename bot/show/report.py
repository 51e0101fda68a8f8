"""A comparison as blocks: one screen that says what is allowed, what changed, how much, why and what now; then folds.

The comment, the job summary, the check, the page and the terminal are these blocks, each with its own room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rich.console import Console

from bot.core.delta import value_of
from bot.core.metrics import METRIC_BY_ID, METRICS, own_metrics
from bot.core.publication import APPROVAL_LABEL
from bot.core.report import Report
from bot.show.alarms import BROKEN, OVER, WARNED, AlarmGroup, accepted_words, alarms, findings, group_lines
from bot.show.blocks import (
    Block,
    Fold,
    Limits,
    List,
    Phrase,
    Row,
    Sentence,
    Span,
    Table,
    code,
    fair_in_order,
    joined,
    kind_of,
    listed,
    listing,
    name_cell,
    phrase,
    section,
    strong,
)
from bot.show.changed_builds import changed_builds
from bot.show.changes import changes, compiler_name
from bot.show.compared import baseline_words, commands_of, compared
from bot.show.escape import clean, clip, is_link
from bot.show.facts import NAME_LIMIT, Facts, build_facts, counted, notes
from bot.show.failures import failed_builds, unmeasured
from bot.show.filters import amount, plural, share
from bot.show.grid import build_grid, grid_tables
from bot.show.headline import headline
from bot.show.renderers import print_blocks
from bot.show.root_causes import leading, root_lines
from bot.show.totals import totals

_BROKE_CHARS, _LOUD, _LEADING = 1_000, 2, 4
Blocks = tuple[Block, ...]
_TO_DO = {"Newly broken": "make it compile again", "Over the limit": "get it below the limit"}
_SIZED = ("artifact_bytes", "executables", "stack_max_bytes")  # What the first report has of every build


def report_blocks(facts: Facts, limits: Limits, where: str = "") -> Blocks:
    """Everything, in the order in which it is read; `where` a reader finds what this size leaves out."""
    grid = build_grid(facts, limits)
    size = f"{plural(grid.models.total, 'model')} × {plural(len(facts.measured_targets), 'target')}"
    every = Fold(phrase(f"Every build: {size}"), (*grid_tables(grid), *_unmeasured(facts, limits)), name="grid")
    folds = [every, changed_builds(facts, limits), findings(facts, limits), compared(facts, limits)]
    if facts.report.adoption:
        folds[0] = _measured_first(facts, limits)
    counts = Counter[str]()  # what lists and tables have no room for; the parts of a story are the largest alone
    for one in every_block(folds):
        if shown := one.lines if isinstance(one, List) else one.rows if isinstance(one, Table) else None:
            counts[shown.noun] += shown.more
    missing = ", ".join(plural(count, noun) for noun, count in counts.items() if count)
    said = phrase(f"Shortened to fit. Left out here: {missing}; {where} have everything.") if missing and where else ()
    last = replace(folds[-1], blocks=(*folds[-1].blocks, Sentence(said, small=True, name="left-out")))
    return (*first_screen(facts, limits), *folds[:-1], last)


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
        failed_builds(facts, "newly-broken", limits),
        failed_builds(facts, "broken", limits),
        section("Notes", List(listed(map(phrase, notes(facts.report, limits)))), name="notes"),
    )
    print_blocks(blocks, console)


# The first screen.


def first_screen(facts: Facts, limits: Limits) -> Blocks:
    """Verdict, what changed, totals, root causes, alarms, and what to do now."""
    how_much, why, groups = _totals(facts, limits), _why(facts, limits), alarms(facts, limits)
    below = (*_alarms(facts, groups, limits), _next(facts, groups, limits))
    return _verdict(facts), _changes(facts), how_much, why, *below


def _verdict(facts: Facts) -> Fold:
    broke = clip(clean(facts.report.broke), _BROKE_CHARS)
    broken = phrase("⚠️ ", strong("The analysis broke:"), " ", code(broke), ". What is known so far:") if broke else ()
    resolved = "Resolved: the earlier alarm on this pull request is gone." if facts.report.resolved else ""
    said = Sentence(headline(facts), name="headline")
    return section("", Sentence(broken), said, Sentence(phrase(resolved)), name="verdict")


def _changes(facts: Facts) -> Fold:
    """What is not the same on both sides; of the first report, which configuration it is, and the compiler."""
    report, nothing = facts.report, "nothing of what is measured: the same compiler, flags and models on both sides"
    said = phrase(strong("What changed:"), " ", joined(changes(facts), " | ") or nothing)
    if report.adoption:
        file = clip(report.adoption.file, NAME_LIMIT)
        brought = phrase("the configuration ", code(file)) if file else "a configuration"
        rule = ", which the base commit has not: nothing was compared. Compiler: "
        said = phrase("This pull request brings ", brought, rule, compiler_name(report.head.compiler))
        if report.adoption.no_compiler:
            reason = clean(report.adoption.no_compiler)
            rule = f"Nothing was compared: {reason}. The limits apply to head alone. Compiler: "
            said = phrase(rule, compiler_name(report.head.compiler))
    untrusted = "Measured by the pull request's own workflow run; this report cannot check its numbers."
    return section(
        "",
        Sentence(said),
        Sentence(baseline_words(report) if report.baseline.distance else (), small=True),
        Sentence(untrusted if report.untrusted else "", small=True),
        name="adoption" if report.adoption else "changes",
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
    is_told = every.cells or still or facts.report.adoption
    no_sum = "" if is_told else "No artifact to compare: no build was measured on both sides."
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
    of_all = f", {share(sum(shares))} of what moved" if shares else ""
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
    taken = Sentence(accepted_words(facts, limits), name="accepted")
    remarks = notes(facts.report, limits)
    if limits.every:
        said = List(listing(map(phrase, remarks), remarks.total, "note"), name="note")
        yield section("Alarms" if groups else "Notes", *sections, taken, said, name="alarms")
    else:
        yield from (*sections, taken)
        yield from (Sentence(phrase(f"Note: {note}"), small=True, name="note") for note in remarks.items[:_LOUD])


def _next(facts: Facts, groups: Sequence[AlarmGroup], limits: Limits) -> Fold:
    """What to do, where to read on, how to see the worst of it at home, and last how to accept it."""
    report, more, what = facts.report, _links(facts), ""
    failing = [group for group in groups if group.title in _TO_DO]
    if report.verdict.status == "fail":
        what = " and ".join(_TO_DO[group.title] for group in failing) or "see why the rules forbid it"
    elif report.verdict.status == "warn" and not report.adoption and any(group.title == WARNED for group in groups):
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


def _unmeasured(facts: Facts, limits: Limits) -> Blocks:
    return (section("Not measured", List(unmeasured(facts, limits)), name="unmeasured"),)


def every_block(blocks: Sequence[Block]) -> Iterator[Block]:
    """They and what is in them, but for stories."""
    for one in blocks:
        yield one
        if isinstance(one, Fold) and one.name != "story":
            yield from every_block(one.blocks)


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
