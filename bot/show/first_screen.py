"""Draw the first screen of a comparison: verdict, changes, sizes, causes, next step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from bot.core.report import Adoption, Report
from bot.show.acceptances import accepted_words, grown_words
from bot.show.alarm_rows import UNCONFIRMED
from bot.show.alarm_table import alarm_table
from bot.show.alarms import ACCEPTED, BROKEN, OVER, WARNED, AlarmGroup, alarms
from bot.show.blocks import (
    Block,
    Blocks,
    Fold,
    List,
    Phrase,
    Rank,
    Sentence,
    Words,
    bounded,
    code,
    joined,
    listed,
    listing,
    part,
    phrase,
    plain,
    section,
    strong,
)
from bot.show.changes import changes, compiler_name
from bot.show.compared import baseline_words, reproduce
from bot.show.escape import clean, clip
from bot.show.facts import NAME_LIMIT, Facts, counted, notes
from bot.show.filters import plural, share
from bot.show.folded_line import folded_line
from bot.show.headline import headline
from bot.show.measures import measures_table
from bot.show.next_step import next_block
from bot.show.root_causes import leading, root_lines, unexplained_words
from bot.show.run_times import NO_ROWS, RunRows, run_notes, run_rows
from bot.show.totals import everything
from bot.show.tried_flags import is_only_flag, tried_flag_words
from bot.show.views import View

_BROKE_CHARS = 1_000
_FLAGS = 4  # tried flags above the fold
_NOTES = 2  # that a comment shows
_LEADING = 4  # causes of a page that are above the fold with the others


def first_screen(facts: Facts, view: View) -> Blocks:
    """Return the first screen: verdict, measures, causes, next step and commands.

    The next step for failing builds is directly below them. On a terminal it is at the
    end, where a reader looks.
    """
    groups = alarms(facts, view)
    next_step = (next_block(facts, groups, view),)
    is_step_early = facts.report.verdict.status == "fail" and not view.is_terminal
    return (
        verdict_block(facts),
        changes_block(facts),
        *failing_blocks(facts, groups, view),
        *(next_step if is_step_early else ()),
        measures_block(facts, view),
        folded_line(facts, view),
        causes_block(facts, view),
        *remark_blocks(facts, view),
        *(() if is_step_early else next_step),
        *warning_blocks(facts, groups, view),
        *(() if view.is_terminal else (reproduce(facts, view),)),
    )


def verdict_block(facts: Facts) -> Fold:
    """Return the verdict, and what broke in the analysis if anything did."""
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


def changes_block(facts: Facts) -> Fold:
    """Return the differences between the sides.

    In the first report they are the new configuration and the compiler.
    """
    report = facts.report
    if report.adoption:
        result = phrase(
            _adoption_words(report.adoption), compiler_name(report.head.compiler)
        )
    else:
        phrases = changes(facts)
        differences = joined(phrases, " | ")
        nothing = "nothing: both sides have the same compiler, flags and models"
        result = phrase(strong("What changed:"), " ", differences or nothing)
        if len(phrases) == 1 and is_only_flag(report.changed_flags):
            result = phrase(result, ", and nothing else")
    untrusted = (
        "Measured by the pull request's own workflow run; this report cannot check its"
        " numbers."
    )
    return section(
        "",
        Sentence(result),
        *_tried_flags(report),
        Sentence(
            baseline_words(report) if report.baseline.distance else (), small=True
        ),
        Sentence(untrusted if report.untrusted else "", small=True),
        name="adoption" if report.adoption else "changes",
    )


def _tried_flags(report: Report) -> Iterator[Block]:
    """Yield what experiments say of the flags that differ; nothing without any."""
    tried = [row for row in report.changed_flags if row.tried.is_experiment]
    if tried:
        lines = map(tried_flag_words, tried[:_FLAGS])
        yield Sentence(phrase(strong("Tried on head, one flag at a time:")))
        yield List(listing(lines, len(tried), "flag"))


def _adoption_words(adoption: Adoption) -> Phrase:
    """Return why a first report compares nothing; the compiler's name follows."""
    if adoption.no_compiler:
        reason = clean(adoption.no_compiler)
        return phrase(
            f"Nothing was compared: {reason}. The limits apply to head only. Compiler: "
        )
    file = clip(adoption.file, NAME_LIMIT)
    configuration: Words = "a configuration"
    if file:
        configuration = phrase("the configuration ", code(file))
    return phrase(
        "This pull request brings ",
        configuration,
        ", which the base commit does not have. Nothing was compared. Compiler: ",
    )


def measures_block(facts: Facts, view: View) -> Fold:
    """Return the measures of each target that changed, and a line about the others."""
    table, quiet = measures_table(facts)
    is_measured = everything(facts.report).cells or quiet or facts.report.adoption
    if not is_measured:
        quiet = phrase("No artifact to compare: no build was measured on both sides.")
    return section(
        "Measures by target" if view.is_page else "",
        table,
        Sentence(quiet, small=True),
        name="totals",
    )


def causes_block(facts: Facts, view: View) -> Fold:
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
    if not view.is_page:
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


def failing_blocks(
    facts: Facts, groups: Sequence[AlarmGroup], view: View
) -> Iterator[Block]:
    """Yield builds that newly fail to compile, failing findings, and acceptances."""
    for group in groups:
        if group.title in (BROKEN, OVER):
            if group.title == BROKEN:
                name = "not-compiling"
                runs = NO_ROWS
                sentences: Blocks = ()
            else:
                name = "alarms"
                runs = run_rows(facts)
                sentences = tuple(run_notes(facts, view))
            yield section(
                counted(group.title, group.cells, facts),
                part(partial(_alarm_blocks, group, runs), view.alarms, Rank.ANSWER),
                *sentences,
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


def warning_blocks(
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
                is_open=view.is_page or view.is_terminal,
                name="warnings",
            )


def remark_blocks(facts: Facts, view: View) -> Iterator[Block]:
    """Yield the notes on how the report was made."""
    remarks = notes(facts.report)
    if view.is_page:
        remark_list = List(listed(remarks, "note"), name="note")
        note_part = bounded(remark_list, Rank.LINE, view.failures)
        yield section("Notes", note_part, name="notes")
    else:
        yield from (
            Sentence(phrase("Note: ", note), small=True, name="note")
            for note in remarks[:_NOTES]
        )
