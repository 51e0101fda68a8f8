"""What alarms: findings by metric and root cause, newly broken builds by what refused them.

And every finding.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from bot.core.delta import CellDelta
from bot.core.metrics import ARTIFACT_PARTS
from bot.core.policy import OPEN, Finding
from bot.core.run_times import MOST_BUILDS
from bot.core.snapshot import CellKey
from bot.show.addresses import cause_address, cell_address
from bot.show.blocks import (
    ABSENT,
    BREAK,
    Block,
    Fold,
    Limits,
    List,
    Listing,
    Phrase,
    Row,
    Span,
    Stacked,
    Stacks,
    Table,
    by,
    code,
    fair_in_order,
    first,
    joined,
    kind_of,
    listing,
    name_cell,
    phrase,
    plain,
    section,
    sides_phrase,
    some,
)
from bot.show.escape import clean, clip
from bot.show.facts import (
    MARKS,
    NAME_LIMIT,
    Facts,
    cells_phrase,
    counted,
    is_lost,
    mark_of,
    worst_first,
)
from bot.show.failures import MOST_NAMES, failed_builds, failure_words, grouped, trimmed
from bot.show.filters import amount, plural, relative, share, sides, signed
from bot.show.root_causes import shown_roots
from bot.show.run_times import NO_ROWS, RunRows

_LIMIT_CHARS, _ERROR_CHARS, _WHAT_CHARS = 48, 200, 90
_GROUPED_NAMES = 4  # builds named in one row of a table
_ROWS_PER_ALARM = 3  # so many times more rows than lines of alarms have room in a table
_UNIT = re.compile(r"(?<=\d)(?=[A-Za-z%])")
_NOWHERE = "<unknown>:0: error: "
_NONE = phrase(ABSENT)
_VALUES = Stacked(1, phrase(BREAK))
_LIMIT = Stacked(2, phrase(BREAK), "limit: ")
_CAUSE = Stacked(3, phrase(BREAK), "mainly ")
_STACKS = ((Stacked(0), _CAUSE), (Stacked(1), _LIMIT))
_GROUPED_STACKS = ((Stacked(0), _VALUES, _LIMIT, _CAUSE),)
_BROKEN_STACKS = ((Stacked(0), _VALUES),)
UNCONFIRMED = "¹"
"""Stands behind a value of a table that rests on one compile of head."""
BROKEN, OVER, ACCEPTED, WARNED = TITLES = (
    "Newly failing",
    "Fails the check",
    "Accepted",
    "Warnings",
)
REASON_LIMIT = 300  # characters of the reason of an acceptance
_TITLE_OF = {"fail": OVER, "accepted": ACCEPTED, "warn": WARNED}


@dataclass(frozen=True, slots=True)
class Alarm:
    """One line: cells that broke a rule of one metric for one root cause, or that are newly broken alike."""

    mark: str  # the symbol of the worst of it
    level: str  # `fail`, or `warn`, as what is accepted does to the verdict, too
    said: Phrase
    cells: tuple[CellKey, ...]
    title: str  # what it stands below, one of TITLES
    rows: tuple[
        Row, ...
    ]  # as a table: one for each finding, one for builds that fail to compile alike
    grouped: Row = ()  # one for all of them; empty where there is one alone


class AlarmGroup(NamedTuple):
    """The first alarms below one title, and how many cells all of them are about."""

    title: str
    lines: Listing[Alarm]
    cells: int


def alarms(facts: Facts, limits: Limits) -> tuple[AlarmGroup, ...]:
    """Newly broken cells, then what is over a limit, then what was accepted, then warnings: the worst of each first."""
    broken = [
        _newly_broken(facts, group)
        for group in grouped(facts, "newly-broken", 1)
        if _is_judged(facts, group)
    ]
    lines = [
        *broken,
        *(
            _alarm(facts, findings=findings, cause=cause, limits=limits)
            for cause, findings in groups_of_findings(facts)
        ),
    ]
    groups = {
        title: [line for line in lines if line.title == title] for title in TITLES
    }
    return tuple(
        AlarmGroup(
            title,
            first(group, limits.alarms, "line"),
            len({key for line in group for key in line.cells}),
        )
        for title, group in groups.items()
        if group
    )


def groups_of_findings(facts: Facts) -> list[tuple[int, list[Finding]]]:
    """Findings of one level, metric and root cause together, the worst first: the cause's number, or 0, and they."""
    groups: dict[tuple[object, ...], tuple[int, list[Finding]]] = {}
    for part in _wholes_and_parts(facts)[0]:
        cause = cause_of(facts, part.key)[0] if part.metric == "artifact_bytes" else 0
        state = facts.deltas[part.key].state if part.metric is None else ""
        level = (mark_of(part), part.metric, part.kind, part.limit, part.is_open, state)
        groups.setdefault((*level, cause), (cause, []))[1].append(part)
    return list(groups.values())


def _wholes_and_parts(facts: Facts) -> tuple[list[Finding], list[Finding]]:
    """The findings of this change that are told, the worst first.

    And those for which another one stands.

    That is of a part of an artifact the finding about all of it, where that is as bad.
    Newly broken cells have lines of their own, and how many were not measured is in the
    first sentence.
    """
    news = []
    for one in worst_first(facts.report.verdict.news):
        delta = facts.deltas[one.key]
        told = delta.state == "newly-broken" and _is_judged(facts, [delta])
        if not told and not is_lost(delta, one):
            news.append(one)
    wholes = {
        (finding.key, mark_of(finding))
        for finding in news
        if finding.metric == "artifact_bytes"
    }
    stood_for = by(
        news,
        lambda one: one.metric in ARTIFACT_PARTS and (one.key, mark_of(one)) in wholes,
    )
    return stood_for.get(False, []), stood_for.get(True, [])


def cause_of(facts: Facts, key: CellKey) -> tuple[int, float]:
    """Return the number of the root cause that holds most of the build's change, and its share of the total change.

    0 and 0 where no root cause has a part in the build; 0 and a share where most of the
    change is not explained.
    """
    sizes = facts.causes.get(key, ())
    if not sizes:
        return 0, 0
    size, number = sizes[0]
    return number, size / sum(part for part, _ in sizes)


def _is_judged(facts: Facts, group: Sequence[CellDelta]) -> bool:
    return any(
        finding.metric is None
        for delta in group
        for finding in facts.findings.get(delta.key, ())
    )


def _newly_broken(facts: Facts, group: Sequence[CellDelta]) -> Alarm:
    """Which cells, what happened to them, and the first line of what the compiler said: one cell's, if it differs."""
    keys, heads = [delta.key for delta in group], [delta.head for delta in group]
    failures = [
        cell.failure
        for cell in heads
        if cell and cell.failure and cell.failure.stage != "stack-limit"
    ]
    lines = [trimmed(failure.message, 1)[0] for failure in failures]
    reason = failure_words(*heads)
    if lines and lines[0]:
        error = clip(lines[0].removeprefix(_NOWHERE), _ERROR_CHARS)
        reason = phrase(
            reason, ": " if len(set(lines)) == 1 else ", for example: ", code(error)
        )
    builds_phrase = cells_phrase(facts, keys, MOST_NAMES)
    doubt = _doubt(facts, keys)
    marks = {facts.mark(key) for key in keys}
    level = "fail" if "fail" in marks else "warn"
    mark, title = ("☑️", ACCEPTED) if marks == {"accepted"} else ("💥", BROKEN)
    return Alarm(
        mark=mark,
        level=level,
        said=phrase(builds_phrase, ": ", reason, doubt),
        cells=tuple(keys),
        title=title,
        rows=(
            (
                phrase(Span(f"{mark} ", kind_of(level)), builds_phrase),
                phrase(reason, doubt),
                _NONE,
                _NONE,
            ),
        ),
    )


def _alarm(
    facts: Facts, findings: Sequence[Finding], cause: int, limits: Limits
) -> Alarm:
    """``code size, 4 builds: `m` on `x86_64` 1 → 2 B (+66.5 %), ….

    Limit: … · mainly cause 1 (69 to 95 %)``.
    """
    one, keys = findings[0], tuple(finding.key for finding in findings)
    if len(findings) == 1:
        said = finding_words(facts, one)
    elif one.metric is None:
        said = phrase(
            cells_phrase(facts, keys, MOST_NAMES),
            f": {facts.state_words[facts.deltas[one.key].state]}",
        )
    else:
        shown = fair_in_order(
            findings, lambda finding: finding.key.model, limits.alarms
        )
        named = (
            phrase(facts.named(f.key, cell_address(f.key)), f" {_values(f)}")
            for f in shown
        )
        about = f"{facts.label(one.quantity, one.key)}, {plural(len(keys), 'build')}: "
        said = phrase(about, some(named, len(findings)), limit_words(one, alone=False))
    mainly = _mainly(facts, cause=cause, keys=keys, limits=limits)
    if mainly:
        said = phrase(said, " · mainly ", mainly)
    mark = mark_of(one)
    doubt = _doubt(facts, keys)
    rows = [
        _finding_row(facts, finding=finding, cause=cause, limits=limits)
        for finding in findings
    ]
    return Alarm(
        mark=MARKS[mark],
        level=one.weight,
        said=phrase(said, doubt),
        cells=keys,
        title=_TITLE_OF[mark],
        rows=tuple(rows),
        grouped=_grouped_row(facts, findings=findings, mainly=mainly, doubt=doubt)
        if len(rows) > 1
        else (),
    )


def _mainly(
    facts: Facts, cause: int, keys: Sequence[CellKey], limits: Limits
) -> Phrase:
    """Return `cause 2 (69 to 95 %)`: the shares are of each build's total change.

    Empty without a cause.
    """
    if not cause:
        return ()
    low, *_, high = map(
        share, sorted(cause_of(facts, key)[1] for key in (*keys, keys[0]))
    )
    name = Span(f"cause {cause}", to=cause_address(cause))
    if cause > shown_roots(facts, limits):
        name = Span(
            clean(facts.roots[cause - 1].what.partition(", with ")[0], _WHAT_CHARS)
        )
    shares = high if low == high else f"{low.removesuffix(' %')} to {high}"
    return phrase(name, f" ({shares})")


def _finding_row(facts: Facts, finding: Finding, cause: int, limits: Limits) -> Row:
    """Return build, values, limit and cause of one finding.

    One about a state has words in place of values.
    """
    mark = Span(f"{MARKS[mark_of(finding)]} ", kind_of(finding.weight))
    named = facts.named(finding.key, cell_address(finding.key))
    doubt = _doubt(facts, [finding.key])
    if finding.metric is None:
        delta = facts.deltas[finding.key]
        why = (
            failure_words(delta.head)
            if delta.head and delta.state in ("newly-broken", "broken")
            else ()
        )
        said = joined(filter(None, (facts.state_words[delta.state], why)), ": ")
        return phrase(mark, named), phrase(said, doubt), _NONE, _NONE
    label = facts.label(finding.quantity, finding.key)
    mainly = _mainly(facts, cause=cause, keys=[finding.key], limits=limits) or _NONE
    values = phrase(_values_phrase(finding), UNCONFIRMED if doubt else "")
    return phrase(mark, named, f": {label}"), values, _limit_cell(finding), mainly


def _grouped_row(
    facts: Facts, findings: Sequence[Finding], mainly: Phrase, doubt: str
) -> Row:
    """Return one row for findings of one metric, limit and cause: the builds, and the range of their growth."""
    finding = findings[0]
    mark = Span(f"{MARKS[mark_of(finding)]} ", kind_of(finding.weight))
    keys = [finding.key for finding in findings]
    builds_phrase = phrase(mark, cells_phrase(facts, keys, _GROUPED_NAMES))
    if finding.metric is None:
        said = facts.state_words[facts.deltas[finding.key].state]
        return builds_phrase, phrase(said, doubt), _NONE, _NONE
    label = facts.label(finding.quantity, finding.key)
    worst_build = phrase(facts.named(finding.key), " ", _values_phrase(finding))
    worst = phrase(f"{plural(len(keys), 'build')}, the worst ", worst_build, doubt)
    return (
        phrase(builds_phrase, f": {label}"),
        worst,
        _limit_cell(finding, alone=False),
        mainly or _NONE,
    )


def _limit_cell(finding: Finding, *, alone: bool = True) -> Phrase:
    """Return `54,534 B`.

    Of several builds, or where the rule has no one figure, the words of the rule.
    """
    words = (
        limit_words(finding, alone=alone)
        .removeprefix("; limit")
        .removeprefix(":")
        .strip()
    )
    if not words:
        return _NONE
    is_figure = words[0].isdigit()
    return phrase(Span(words, "number") if is_figure else words)


def alarm_table(group: AlarmGroup, limits: Limits, runs: RunRows = NO_ROWS) -> Table:
    """Return a row for each finding.

    Where these are too many, one for all of a metric, limit and cause. `runs`: rows
    behind the last finding of their build; one row at the end where findings share
    rows.
    """
    rows = [row for line in group.lines for row in line.rows]
    stacks: Stacks = _STACKS
    if len(rows) > limits.alarms * _ROWS_PER_ALARM:
        rows = [line.grouped or line.rows[0] for line in group.lines]
        stacks = _GROUPED_STACKS
        if runs.summary:
            rows.append(runs.summary)
    elif runs.by_build:
        rows = _with_runs(group, runs)
    headers = ["build", "base → head (change)", "limit", "mainly (share of its change)"]
    if group.title == BROKEN:
        headers[1] = "what happened"
        stacks = _BROKEN_STACKS
    while len(headers) > 2 and all(row[len(headers) - 1] == _NONE for row in rows):
        headers.pop()
        rows = [row[:-1] for row in rows]
    listed_rows = listing(rows, len(rows) + group.lines.more, "finding")
    return Table(
        tuple(headers),
        listed_rows,
        numbers_from=len(headers),
        css="alarms",
        stacks=stacks,
    )


def _with_runs(group: AlarmGroup, runs: RunRows) -> list[Row]:
    """Return the rows of findings, and behind the last one of each build those of its run.

    Builds whose findings have no room have the row of their run at the end.
    """
    pairs = list[tuple[CellKey, Row]]()
    for line in group.lines:
        pairs += zip(line.cells, line.rows, strict=False)
    last = {key: place for place, (key, _) in enumerate(pairs)}
    rows = list[Row]()
    for place, (key, row) in enumerate(pairs):
        rows.append(row)
        if last[key] == place:
            rows += runs.by_build.get(key, ())
    unplaced = [key for key in runs.by_build if key not in last]
    for key in unplaced[:MOST_BUILDS]:
        rows += runs.by_build[key]
    return rows


def _doubt(facts: Facts, keys: Sequence[CellKey]) -> str:
    """The note that an alarm rests on a single compile of the head, as repeating costs time.

    Empty where none does.
    """
    heads = [facts.deltas[key].head for key in keys]
    once = sum(head is not None and head.compiles == 1 for head in heads)
    which = "" if once == len(keys) else f"{once:,} of them "
    return f" · {which}not confirmed by a second compile" if once else ""


def _values(finding: Finding) -> str:
    return plain(_values_phrase(finding))


def _values_phrase(finding: Finding) -> Phrase:
    """Return `50,438 → 83,990 B (+66.5 %)`; no line ends inside a figure."""
    base, head = finding.sides
    unit = finding.quantity.unit
    if head is None:
        return phrase(f"{amount(base, unit)} on base, unknown on head")
    values = amount(head, unit) if base is None else sides(base, head, unit)
    parts = [*sides_phrase(values)]
    if base is not None and base != head:
        parts += [Span(" "), Span(f"({relative(base, head)})", "number")]
    if finding.is_open:
        parts.append(Span(f", {OPEN}"))
    return tuple(parts)


def finding_words(facts: Facts, finding: Finding, *, named: bool = True) -> Phrase:
    """A finding as a clause: what, where (unless not `named`), both values, and the limit."""
    where, delta = (
        (facts.named(finding.key, cell_address(finding.key)) if named else ()),
        facts.deltas[finding.key],
    )
    if finding.metric is None:
        why = (
            failure_words(delta.head)
            if delta.head and delta.state in ("newly-broken", "broken")
            else ()
        )
        return joined(filter(None, (where, facts.state_words[delta.state], why)), ": ")
    about = joined(
        filter(None, (facts.label(finding.quantity, finding.key), where)), ", "
    )
    return phrase(about, f": {_values(finding)}", limit_words(finding))


def limit_words(finding: Finding, *, alone: bool = True) -> str:
    """`; limit 54,534 B`; of several builds, or where it is no figure, as the rule has it."""
    if finding.head is None:
        return ""
    parts = [
        _UNIT.sub(" ", clean(part))
        for part in clip(finding.limit, _LIMIT_CHARS).split(" and ")
    ]
    if finding.kind == "limit":
        return f"; limit {parts[0]}"
    if (
        alone
        and finding.base is not None
        and finding.allowed is not None
        and finding.seen is None
    ):
        return (
            f"; limit {amount(finding.base + finding.allowed, finding.quantity.unit)}"
        )
    words = (
        "no growth" if parts == ["0"] else " and ".join(f"+{part}" for part in parts)
    )
    return f"; limit: the larger of {words}" if len(parts) > 1 else f"; limit: {words}"


def finding_table(facts: Facts, findings: Sequence[Finding], limits: Limits) -> Table:
    """Each finding with its rule; one about the state of a cell has no metric."""
    rows = list[Row]()
    for one in fair_in_order(
        findings, lambda finding: finding.key.model, limits.findings
    ):
        model = code(clip(one.key.model, NAME_LIMIT), cell_address(one.key))
        label = facts.label(one.quantity, one.key) if one.metric else "state"
        actual = Span(clip(one.actual, 160), kind_of(one.weight))
        rule = f"{MARKS[mark_of(one)]} {clip(one.rule, 80)}"
        limit = name_cell(clip(one.limit, 80))
        rows.append(((model,), facts.names(one.key)[1], label, (actual,), limit, rule))
    headers = ("model", "target", "metric", "actual", "limit", "rule")
    return Table(
        headers, listing(rows, len(findings), "finding"), numbers_from=len(headers)
    )


def known_lines(facts: Facts, limits: Limits) -> Listing[Phrase]:
    """What base had and head is no worse in: ``stack allocations.

    Limit 32 KiB: `m` on `cuda` ``.
    """
    known = (
        finding
        for finding in facts.report.verdict.findings
        if finding.known and finding.metric is not None
    )
    groups, lines = (
        by(known, lambda one: (one.metric, one.kind, one.limit)),
        list[Phrase](),
    )
    for group in groups.values():
        label = facts.label(group[0].quantity, group[0].key)
        cells = cells_phrase(
            facts, [one.key for one in group], min(MOST_NAMES, limits.names)
        )
        lines.append(phrase(f"◽ {label}{limit_words(group[0], alone=False)}: ", cells))
    return first(lines, limits.findings, "known finding")


def accepted_words(facts: Facts, limits: Limits) -> Phrase:
    """Who accepted which findings; empty where there are none."""
    taken = [
        finding
        for finding in facts.report.verdict.findings
        if finding.accepted is not None
    ]
    if not taken:
        return ()
    cells = cells_phrase(
        facts, sorted({one.key for one in taken}), min(MOST_NAMES, limits.names)
    )
    who = code(clean(taken[0].accepted or "", NAME_LIMIT))
    reason = clean(taken[0].reason, REASON_LIMIT)
    because = phrase(". Reason: ", code(reason)) if reason else ()
    return phrase(
        "☑️ Accepted by ",
        who,
        f" ({plural(len(taken), 'finding')}: ",
        cells,
        ")",
        *because,
    )


def grown_words(facts: Facts, limits: Limits) -> Phrase:
    """Which failing findings grew since they were accepted, and by how much; empty without any."""
    parts = list[Phrase]()
    for finding in facts.report.verdict.findings:
        if finding.grown_since is not None and finding.metric is not None:
            label = facts.label(finding.quantity, finding.key)
            cell = cells_phrase(facts, [finding.key], 1)
            growth = signed(finding.grown_since, finding.quantity.unit)
            parts.append(phrase(cell, f": {label} {growth}"))
    if not parts:
        return ()
    shown = parts[: limits.findings]
    more = len(parts) - len(shown)
    words = [phrase("; " if number else "", part) for number, part in enumerate(shown)]
    return phrase(
        "Grown since the acceptance: ", *words, f"; {more} more" if more else ""
    )


def group_lines(group: AlarmGroup) -> List:
    """Each alarm with its mark."""
    lines = [
        phrase(Span(f"{line.mark} ", kind_of(line.level)), line.said)
        for line in group.lines
    ]
    return List(listing(lines, group.lines.total, group.lines.noun))


def findings(facts: Facts, limits: Limits) -> Fold:
    """Every finding, by what it has in common, on a page a row each.

    What base had; what is broken, newly and still.
    """
    verdict, known, groups = (
        facts.report.verdict,
        known_lines(facts, limits),
        list[Block](),
    )
    had = [finding for finding in verdict.findings if finding.known]
    newly, still = (
        failed_builds(facts, state, limits) for state in ("newly-broken", "broken")
    )
    if limits.every:
        tables = [
            Fold(
                f"{plural(len(each), 'finding')} {words}",
                (finding_table(facts, each, limits),),
            )
            for words, each in (
                ("of this change", verdict.news),
                ("that base has too, and head is not worse", had),
            )
        ]
        blocks = (newly, *tables, still)
        return Fold("Findings", blocks, is_open=True, name="findings")
    for group in alarms(facts, replace(limits, alarms=limits.findings)):
        if group.title != BROKEN:
            groups.append(
                section(
                    counted(group.title, group.cells, facts),
                    group_lines(group),
                    name="group",
                )
            )
    (wholes, parts), broken = (
        _wholes_and_parts(facts),
        {delta.key for delta in facts.states["broken"]},
    )
    listed = {finding.key for finding in wholes if finding.metric is None}
    counts = {
        "of this change": (
            len(wholes)
            + sum(_is_judged(facts, [delta]) for delta in facts.states["newly-broken"])
        ),
        "of parts of the same artifacts": len(parts),
        "that base had": sum(one.metric is not None for one in had),
        "already failing on base": len(broken - listed),
    }
    counted_words = ", ".join(
        f"{count:,} {words}" for words, count in counts.items() if count
    )
    title = f"Findings: {counted_words}" if counted_words else "Findings"
    before = section(
        "Known: base has them too, and head is not worse", List(known), name="known"
    )
    return Fold(phrase(title), (newly, *groups, before, still), name="findings")
