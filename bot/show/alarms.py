"""Group this change's findings and newly failing builds into alarms, one line each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bot.core.delta import CellDelta
from bot.core.findings import Finding
from bot.core.snapshot import Cell, CellKey
from bot.show.addresses import cell_address
from bot.show.alarm_rows import (
    EMPTY_CELL,
    doubt_words,
    finding_row,
    grouped_row,
    main_cause,
)
from bot.show.blocks import (
    Phrase,
    Row,
    Span,
    by,
    code,
    fair_in_order,
    kind_of,
    phrase,
    plain,
    some,
)
from bot.show.escape import clip
from bot.show.facts import MARKS, Facts, cells_phrase, mark_of
from bot.show.failures import MOST_NAMES, failure_words, grouped, trimmed
from bot.show.filters import plural
from bot.show.finding_groups import groups_of_findings, is_judged, keys_of
from bot.show.finding_words import finding_words, limit_words, values_phrase
from bot.show.views import View

_ERROR_CHARS = 200
_NOWHERE = "<unknown>:0: error: "
BROKEN = "Newly failing"
OVER = "Fails the check"
ACCEPTED = "Accepted"
WARNED = "Warnings"
TITLES = (BROKEN, OVER, ACCEPTED, WARNED)
_TITLE_OF = {"fail": OVER, "accepted": ACCEPTED, "warn": WARNED}


@dataclass(frozen=True, slots=True)
class Alarm:
    """One line: builds that broke a rule for one root cause, or newly fail alike."""

    mark: str  # the symbol of its worst finding
    level: str  # `fail`, or `warn`, which accepted findings have, too
    text: Phrase
    cells: tuple[CellKey, ...]
    title: str  # its heading, one of TITLES
    # as a table: one for each finding, one for builds that fail to compile alike
    rows: tuple[Row, ...]
    grouped: Row = ()  # one row for all findings; empty if there is only one


class AlarmGroup(NamedTuple):
    """The alarms below one title, and how many builds they are about."""

    title: str
    lines: tuple[Alarm, ...]
    cells: int


def alarms(facts: Facts, view: View, names: int = 0) -> tuple[AlarmGroup, ...]:
    """Return newly failing builds, failures, accepted findings, and warnings.

    The worst of each come first. `names`: the most builds that one line names.
    """
    lines = []
    for deltas in grouped(facts, "newly-broken", 1):
        if not is_judged(facts, deltas):
            continue
        marks = by(deltas, lambda delta: facts.mark(delta.key) == "accepted")
        for marked_deltas in marks.values():
            lines.append(_newly_broken(facts, marked_deltas))
    for cause, findings in groups_of_findings(facts):
        lines.append(_alarm(facts, findings, cause=cause, view=view, names=names))
    groups = []
    for title in TITLES:
        titled_lines = []
        keys = set[CellKey]()
        for line in lines:
            if line.title == title:
                titled_lines.append(line)
                keys.update(line.cells)
        if titled_lines:
            groups.append(AlarmGroup(title, tuple(titled_lines), len(keys)))
    return tuple(groups)


def _newly_broken(facts: Facts, deltas: Sequence[CellDelta]) -> Alarm:
    """Return builds that fail alike, with the first line of the compiler's message.

    If the messages differ, the line is that of one build.
    """
    keys = [delta.key for delta in deltas]
    marks = {facts.mark(key) for key in keys}
    if marks == {"accepted"}:
        mark = "☑️"
        title = ACCEPTED
    else:
        mark = "💥"
        title = BROKEN
    level = "fail" if "fail" in marks else "warn"
    builds_phrase = cells_phrase(facts, keys, MOST_NAMES)
    reason = _broken_reason([delta.head for delta in deltas])
    doubt = doubt_words(facts, keys)
    marked_builds = phrase(Span(f"{mark} ", kind_of(level)), builds_phrase)
    return Alarm(
        mark=mark,
        level=level,
        text=phrase(builds_phrase, ": ", reason, doubt),
        cells=tuple(keys),
        title=title,
        rows=((marked_builds, phrase(reason, doubt), EMPTY_CELL, EMPTY_CELL),),
    )


def _broken_reason(cells: Sequence[Cell | None]) -> Phrase:
    """Return the words about failed builds, and the first line of the first message."""
    lines = []
    for cell in cells:
        if cell and cell.failure and cell.failure.stage != "stack-limit":
            lines.append(trimmed(cell.failure.message, 1)[0])
    reason = failure_words(*cells)
    if not lines or not lines[0]:
        return reason
    error = clip(lines[0].removeprefix(_NOWHERE), _ERROR_CHARS)
    joint = ": " if len(set(lines)) == 1 else ", for example: "
    return phrase(reason, joint, code(error))


def _alarm(
    facts: Facts, findings: Sequence[Finding], cause: int, view: View, names: int
) -> Alarm:
    """Return the alarm of findings of one metric and cause.

    ``code size, 4 builds: `m` on `x86_64` 1 → 2 B (+66.5 %), …. Limit: … · mainly
    cause 1 (69 to 95 %)``.
    """
    finding = findings[0]
    keys = keys_of(findings)
    text = _alarm_text(facts, findings, names)
    mainly = main_cause(facts, cause=cause, keys=keys, view=view)
    if mainly:
        text = phrase(text, " · mainly ", mainly)
    doubt = doubt_words(facts, keys)
    rows = []
    for finding_of_row in findings:
        rows.append(finding_row(facts, finding=finding_of_row, cause=cause, view=view))
    row_of_all: Row = ()
    if len(rows) > 1:
        row_of_all = grouped_row(facts, findings=findings, mainly=mainly, doubt=doubt)
    mark = mark_of(finding)
    return Alarm(
        mark=MARKS[mark],
        level=finding.weight,
        text=phrase(text, doubt),
        cells=keys,
        title=_TITLE_OF[mark],
        rows=tuple(rows),
        grouped=row_of_all,
    )


def _alarm_text(facts: Facts, findings: Sequence[Finding], names: int) -> Phrase:
    """Return findings of one metric in words, with at most `names` builds."""
    finding = findings[0]
    if len(findings) == 1:
        return finding_words(facts, finding)
    if finding.metric is None:
        state = facts.state_words[facts.deltas[finding.key].state]
        return phrase(cells_phrase(facts, keys_of(findings), MOST_NAMES), f": {state}")
    shown_findings = fair_in_order(findings, lambda finding: finding.key.model, names)
    builds = []
    for shown_finding in shown_findings:
        key = shown_finding.key
        values = plain(values_phrase(shown_finding))
        builds.append(phrase(facts.named(key, cell_address(key)), f" {values}"))
    label = facts.label(finding.quantity, finding.key)
    return phrase(
        f"{label}, {plural(len(findings), 'build')}: ",
        some(builds, len(findings)),
        limit_words(finding, is_single=False),
    )
