"""Show a comparison: one screen for all that matters, and folds below it.

The screen has the verdict, the changes, their sizes and causes, and what to do now.

The comment, the job summary, the check, the page and the terminal show these blocks.
Each has another limit of size.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from rich.console import Console

from bot.core.acceptance import APPROVAL_LABEL
from bot.core.delta import value_of
from bot.core.findings import Finding
from bot.core.metrics import METRIC_BY_ID, METRICS, own_metrics
from bot.core.report import Report
from bot.core.snapshot import CellKey
from bot.show.acceptances import accepted_words, grown_words
from bot.show.alarm_rows import UNCONFIRMED
from bot.show.alarm_table import alarm_table
from bot.show.alarms import ACCEPTED, BROKEN, OVER, WARNED, AlarmGroup, alarms
from bot.show.blocks import (
    Block,
    Fold,
    List,
    Part,
    Phrase,
    Rank,
    Row,
    Sentence,
    Span,
    Table,
    Words,
    bounded,
    code,
    fair_in_order,
    joined,
    listed,
    listing,
    part,
    phrase,
    plain,
    section,
    some,
    strong,
)
from bot.show.changed_builds import changed_builds
from bot.show.changes import changes, compiler_name
from bot.show.compared import baseline_words, compared, reproduce
from bot.show.deduplication_table import deduplication_table
from bot.show.escape import clean, clip, is_link
from bot.show.facts import (
    NAME_LIMIT,
    Facts,
    build_facts,
    cells_phrase,
    counted,
    mark_of,
    notes,
)
from bot.show.failures import failed_builds, unmeasured
from bot.show.filters import amount, plural, share
from bot.show.findings import findings
from bot.show.fit import left_out
from bot.show.folded_line import folded_line
from bot.show.grid import grid_blocks
from bot.show.headline import headline
from bot.show.measures import measures_table
from bot.show.renderers import print_blocks
from bot.show.root_causes import leading, root_lines, unexplained_words
from bot.show.run_times import NO_ROWS, RunRows, run_notes, run_rows
from bot.show.totals import everything
from bot.show.views import View, as_asked, terminal_view

_BROKE_CHARS = 1_000
_LOUD = 2
_LEADING = 4
Blocks = tuple[Block, ...]
_NAMED = 2  # builds that each part of the next step names
# What the first report has of every build
_SIZED = (
    "artifact_bytes",
    "executables",
    "stack_max_bytes",
)


def report_blocks(facts: Facts, view: View) -> Blocks:
    """Return the whole report, in the order in which it is read."""
    models = {
        delta.key.model
        for delta in facts.report.deltas
        if delta.key.target in facts.measured_targets
    }
    targets = plural(len(facts.measured_targets), "target")
    builds = Fold(
        phrase(f"Every build: {plural(len(models), 'model')} × {targets}"),
        (_grid(facts, view), _unmeasured(facts, view)),
        name="grid",
    )
    if facts.report.adoption:
        builds = _measured_first(facts, view)
    if view.details:
        inside = (*builds.blocks, deduplication_table(facts, view))
        builds = replace(builds, blocks=inside)
    return (
        *first_screen(facts, view),
        builds,
        changed_builds(facts, view),
        findings(facts, view),
        compared(facts, view),
    )


def _grid(facts: Facts, view: View) -> Part:
    tables = partial(grid_blocks, facts, view.grid_width)
    return part(tables, view.grid_models, Rank.LINE)


def with_left_out(blocks: Blocks, where: str) -> Blocks:
    """Return a report whose last sentence names what its folds leave out.

    `where`: the place that has everything.
    """
    *others, last = blocks
    folds = [block for block in blocks if isinstance(block, Fold) and not block.is_open]
    missing = left_out(folds)
    if not missing or not isinstance(last, Fold):
        return blocks
    words = f"Shortened to fit. Left out here: {missing}; {where} have everything."
    sentence = Sentence(words, small=True, name="left-out")
    return (*others, replace(last, blocks=(*last.blocks, sentence)))


def page_blocks(facts: Facts, view: View) -> Mapping[str, Blocks]:
    """Return the blocks of a page beside pictures, grid and builds, by their place."""
    compilers = (
        side.compiler.metrics for side in (facts.report.base, facts.report.head)
    )
    metrics = (*METRICS, *own_metrics(*compilers).values())
    meanings = List(
        listed(phrase(f"{metric.label}: {metric.about}") for metric in metrics)
    )
    below = replace(compared(facts, view), is_open=True)
    groups = alarms(facts, view)
    return {
        "header": (_verdict(facts), _changes(facts)),
        "alarms": (*_failing(facts, groups, view), *_warnings(facts, groups, view)),
        "totals": (_measures(facts, view), folded_line(facts, view)),
        "why": (_why(facts, view),),
        "next": (
            *_remarks(facts, view),
            _next(facts, groups, view),
            reproduce(facts, view),
        ),
        "unmeasured": (_unmeasured(facts, view),),
        "sections": (
            findings(facts, view),
            deduplication_table(facts, view),
            below,
            Fold("What the metrics mean", (meanings,), name="metrics"),
        ),
    }


def print_report(report: Report, console: Console, *, quiet: bool = False) -> None:
    """Print the report on a terminal; its files have what the screen leaves out.

    `quiet`: print only the verdict.
    """
    view = as_asked(terminal_view(console.width))
    facts = build_facts(report)
    if quiet:
        print_blocks((_verdict(facts),), console)
        return
    grid: Blocks = (_grid(facts, view),)
    drawn_states = {
        delta.state
        for delta in facts.report.deltas
        if delta.key.target in facts.measured_targets
    }
    if drawn_states <= {"same"}:
        grid = ()
    blocks = (
        *first_screen(facts, view),
        section("", *grid, _unmeasured(facts, view), name="grid"),
        failed_builds(facts, "newly-broken", view),
        failed_builds(facts, "broken", view),
        section(
            "Notes",
            List(listed(notes(facts.report)[: view.failures])),
            name="notes",
        ),
    )
    print_blocks(blocks, console)


# The first screen.


def first_screen(facts: Facts, view: View) -> Blocks:
    """Return the first screen: verdict, measures, causes, next step and commands.

    The next step for failing builds is directly below them. On a terminal it is at the
    end, where a reader looks.
    """
    groups = alarms(facts, view)
    next_step = (_next(facts, groups, view),)
    is_first = facts.report.verdict.status == "fail" and not view.terminal
    return (
        _verdict(facts),
        _changes(facts),
        *_failing(facts, groups, view),
        *(next_step if is_first else ()),
        _measures(facts, view),
        folded_line(facts, view),
        _why(facts, view),
        *_remarks(facts, view),
        *(() if is_first else next_step),
        *_warnings(facts, groups, view),
        *(() if view.terminal else (reproduce(facts, view),)),
    )


def _verdict(facts: Facts) -> Fold:
    broke = clip(clean(facts.report.broke), _BROKE_CHARS)
    if broke:
        broken = phrase(
            "⚠️ ",
            strong("The analysis broke:"),
            " ",
            code(broke),
            ". What is known so far:",
        )
    else:
        broken = ()
    resolved = ""
    if facts.report.resolved:
        resolved = "Resolved: the earlier alarm on this pull request is gone."
    lead = Sentence(headline(facts), name="headline")
    return section(
        "", Sentence(broken), lead, Sentence(phrase(resolved)), name="verdict"
    )


def _changes(facts: Facts) -> Fold:
    """Return the differences between the sides.

    In the first report they are the new configuration and the compiler.
    """
    report = facts.report
    nothing = "nothing: both sides have the same compiler, flags and models"
    result = phrase(
        strong("What changed:"), " ", joined(changes(facts), " | ") or nothing
    )
    if report.adoption:
        file = clip(report.adoption.file, NAME_LIMIT)
        brought: Words = "a configuration"
        if file:
            brought = phrase("the configuration ", code(file))
        rule = ", which the base commit does not have. Nothing was compared. Compiler: "
        result = phrase(
            "This pull request brings ",
            brought,
            rule,
            compiler_name(report.head.compiler),
        )
        if report.adoption.no_compiler:
            reason = clean(report.adoption.no_compiler)
            rule = (
                f"Nothing was compared: {reason}. The limits apply to head only."
                " Compiler: "
            )
            result = phrase(rule, compiler_name(report.head.compiler))
    untrusted = (
        "Measured by the pull request's own workflow run; this report cannot check its"
        " numbers."
    )
    return section(
        "",
        Sentence(result),
        Sentence(
            baseline_words(report) if report.baseline.distance else (), small=True
        ),
        Sentence(untrusted if report.untrusted else "", small=True),
        name="adoption" if report.adoption else "changes",
    )


def _measures(facts: Facts, view: View) -> Fold:
    """Return the measures of each target that changed, and a line about the others."""
    table, quiet = measures_table(facts)
    is_measured = everything(facts.report).cells or quiet or facts.report.adoption
    if not is_measured:
        quiet = phrase("No artifact to compare: no build was measured on both sides.")
    return section(
        "Measures by target" if view.every else "",
        table,
        Sentence(quiet, small=True),
        name="totals",
    )


def _why(facts: Facts, view: View) -> Fold:
    """Return the causes.

    On a page the few that hold most of the bytes, and the others below them.
    """
    lines = root_lines(facts, view)
    roots = facts.roots
    shares = [
        root.share for root in roots[: len(lines.items)] if root.share is not None
    ]
    of_all = ""
    if shares:
        of_all = f"{share(sum(shares))} of the total change"
    unexplained = Sentence(unexplained_words(facts), small=True, name="unexplained")
    if not view.every:
        range_text = ""
        if lines.more:
            range_text = f"the first {len(lines.items)} of {lines.total}"
        counted_words = ", ".join(filter(None, (range_text, of_all)))
        title = phrase(strong("Causes"), f" ({counted_words})" if counted_words else "")
        causes = List(listed(lines.items), numbered=1)
        return section(title if lines else "", causes, unexplained, name="causes")
    limit = min(_LEADING, leading(facts))
    remaining = listing(lines.items[limit:], len(roots) - limit, "cause")
    below = Fold(
        plural(remaining.total, "more cause"),
        (List(remaining, numbered=limit + 1),),
        name="more",
    )
    first = List(listed(lines.items[:limit]), numbered=1, name="leading")
    return section("Causes", first, below, unexplained, name="causes")


def _failing(facts: Facts, groups: Sequence[AlarmGroup], view: View) -> Iterator[Block]:
    """Yield builds that newly fail to compile, failing findings, and acceptances."""
    for group in groups:
        if group.title in (BROKEN, OVER):
            name = "alarms"
            runs = run_rows(facts)
            notes = tuple(run_notes(facts, view))
            if group.title == BROKEN:
                name = "not-compiling"
                runs = NO_ROWS
                notes = ()
            yield section(
                counted(group.title, group.cells, facts),
                part(partial(_alarm_blocks, group, runs), view.alarms, Rank.ANSWER),
                *notes,
                name=name,
            )
    yield Sentence(accepted_words(facts, view), name="accepted")
    yield Sentence(grown_words(facts, view), name="grown")


def _alarm_blocks(group: AlarmGroup, runs: RunRows, count: int) -> Blocks:
    """Return the table of a group, and the meaning of its footnote if it has one."""
    table = alarm_table(group, count, runs)
    has_unconfirmed = any(
        plain(cell).endswith(UNCONFIRMED) for row in table.texts for cell in row
    )
    footnote = ""
    if has_unconfirmed:
        footnote = f"{UNCONFIRMED} not confirmed by a second compile"
    return table, Sentence(footnote, small=True)


def _warnings(
    facts: Facts, groups: Sequence[AlarmGroup], view: View
) -> Iterator[Block]:
    """Yield the folded table of warnings: they block nothing."""
    for group in groups:
        if group.title in (WARNED, ACCEPTED):
            title = plain(counted(group.title, group.cells, facts))
            table = partial(_alarm_blocks, group, NO_ROWS)
            yield Fold(
                title,
                (part(table, view.alarms, Rank.ANSWER),),
                is_open=view.every or view.terminal,
                name="warnings",
            )


def _remarks(facts: Facts, view: View) -> Iterator[Block]:
    """Yield the notes on how the report was made."""
    remarks = notes(facts.report)
    if view.every:
        remark_list = List(listed(remarks, "note"), name="note")
        note_part = bounded(remark_list, Rank.LINE, view.failures)
        yield section("Notes", note_part, name="notes")
    else:
        yield from (
            Sentence(phrase("Note: ", note), small=True, name="note")
            for note in remarks[:_LOUD]
        )


def _next(facts: Facts, groups: Sequence[AlarmGroup], view: View) -> Fold:
    """Return what is to be done, by whom, and where to read on."""
    links: Phrase = ()
    if not view.terminal:
        links = _links(facts)
    step = _next_step(facts, groups)
    if not step:
        return section("", Sentence(links, small=True), name="next")
    sentence = phrase(strong("Next:"), " ", step, ".")
    if links:
        sentence = phrase(sentence, " ", links)
    return section("", Sentence(sentence), name="next")


def _next_step(facts: Facts, groups: Sequence[AlarmGroup]) -> Phrase:
    """Return the next step of a reader; empty if the report does not know it."""
    report = facts.report
    status = report.verdict.status
    if status == "fail":
        return phrase(_to_do(facts, groups), _or_accept(report))
    if report.adoption:
        return ()
    if status == "warn" and any(group.title == WARNED for group in groups):
        return phrase("read the warnings; they do not block the merge")
    if status == "pass" and not report.broke:
        return phrase("nothing to do")
    return ()


def _or_accept(report: Report) -> str | Phrase:
    """Return who can accept the findings, and how.

    It is empty without a pull request.
    """
    if not report.links and not report.state_line:
        return ""
    return phrase(", or ask a maintainer to add the label ", code(APPROVAL_LABEL))


def _to_do(facts: Facts, groups: Sequence[AlarmGroup]) -> Phrase:
    """Return the next step for failing builds: ``shrink `m` on `x86_64` by 29,456 B``.

    The first builds are named, and the others counted.
    """
    steps = list[Phrase]()
    broken = [
        key
        for group in groups
        if group.title == BROKEN
        for line in group.lines
        for key in line.cells
    ]
    if broken:
        steps.append(
            phrase("make ", cells_phrase(facts, broken, _NAMED), " compile again")
        )
    failing = _worst_findings(facts, set(broken))
    shrinking = [finding for finding in failing if finding.metric == "artifact_bytes"]
    other_metrics = [
        finding for finding in failing if finding.metric != "artifact_bytes"
    ]
    if shrinking:
        named = [_shrink(facts, finding) for finding in shrinking[:_NAMED]]
        steps.append(phrase("shrink ", some(named, len(shrinking))))
    steps += [_other_step(facts, finding) for finding in other_metrics[:_NAMED]]
    if len(other_metrics) > _NAMED:
        steps.append(
            phrase(f"see {plural(len(other_metrics) - _NAMED, 'more build')} above")
        )
    return joined(steps, "; ") or phrase("see the finding for the reason")


def _worst_findings(facts: Facts, broken: Collection[CellKey]) -> list[Finding]:
    """Return one failing finding for each build that compiles.

    It is that of the code size if there is one.
    """
    failing = [
        finding for finding in facts.report.verdict.news if mark_of(finding) == "fail"
    ]
    worst = dict[CellKey, Finding]()
    for finding in failing:
        if finding.key in broken:
            continue
        if finding.key not in worst or finding.metric == "artifact_bytes":
            worst[finding.key] = finding
    return list(worst.values())


def _excess(finding: Finding) -> str:
    """Return by how much a value is over its limit, with its unit.

    It is empty if the finding has no figure.
    """
    if finding.head is None or finding.allowed is None:
        return ""
    if finding.kind == "limit":
        limit = finding.allowed
    else:
        limit = (finding.base or 0) + finding.allowed
    return amount(finding.head - limit, finding.quantity.unit)


def _shrink(facts: Facts, finding: Finding) -> Phrase:
    """Return a build, and by how much its code size is over the limit."""
    excess = _excess(finding)
    return phrase(facts.named(finding.key), f" by {excess}" if excess else "")


def _other_step(facts: Facts, finding: Finding) -> Phrase:
    """Return the next step for a finding that is not about code size."""
    named = facts.named(finding.key)
    excess = ""
    if finding.metric:
        excess = _excess(finding)
    if not excess:
        return phrase("see the finding for ", named)
    return phrase(
        f"reduce {facts.label(finding.quantity, finding.key)} of ",
        named,
        f" by {excess}",
    )


def _links(facts: Facts) -> Phrase:
    """Return where to read on: the page, and the links of the event.

    It is empty without any.
    """
    links = [(Span(label, to=url),) for label, url in facts.report.links]
    links = [
        *(
            [(Span("the page", to=facts.report.page),)]
            if is_link(facts.report.page)
            else []
        ),
        *links,
    ]
    if links:
        return phrase("More: ", joined(links, " · "))
    return ()


def _unmeasured(facts: Facts, view: View) -> Fold:
    reasons = List(listed(unmeasured(facts, view.names), "reason"))
    reason_part = bounded(reasons, Rank.LINE, view.findings)
    return section("Not measured", reason_part, name="unmeasured")


def _measured_first(facts: Facts, view: View) -> Fold:
    """Return the fold with the size of every build."""
    cells = [cell for cell in facts.report.head.cells if cell.status != "unsupported"]
    headers = ("model", "target", "code size", "executables", "largest stack frame")

    def table(count: int) -> Iterator[Block]:
        rows = list[Row]()
        for cell in fair_in_order(cells, lambda cell: cell.key.model, count):
            values = (
                amount(value_of(cell, id_), METRIC_BY_ID[id_].unit) for id_ in _SIZED
            )
            rows.append((*facts.names(cell.key), *values))
        yield Table(headers, listing(rows, len(cells), "build"), numbers_from=2)

    sizes = part(table, view.findings, Rank.LINE)
    return Fold("Every build: code size, executables and stack", (sizes,), name="cells")
