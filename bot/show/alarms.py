"""Draw the alarms: findings by metric and root cause, newly failing builds by message.

A table of all findings follows them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from bot.core.delta import CellDelta
from bot.core.findings import Finding
from bot.core.metrics import ARTIFACT_PARTS
from bot.core.policy import OPEN
from bot.core.run_times import MOST_BUILDS
from bot.core.snapshot import Cell, CellKey
from bot.show.addresses import cause_address, cell_address
from bot.show.blocks import (
    ABSENT,
    BREAK,
    Block,
    Fold,
    List,
    Phrase,
    Rank,
    Row,
    Span,
    Stacked,
    Stacks,
    Table,
    Words,
    bounded,
    by,
    code,
    fair_in_order,
    joined,
    kind_of,
    listed,
    listing,
    name_cell,
    part,
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
from bot.show.views import View

_LIMIT_CHARS = 48
_ERROR_CHARS = 200
_WHAT_CHARS = 90
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
BROKEN = "Newly failing"
OVER = "Fails the check"
ACCEPTED = "Accepted"
WARNED = "Warnings"
TITLES = (BROKEN, OVER, ACCEPTED, WARNED)
REASON_LIMIT = 300  # characters of the reason of an acceptance
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
    lines = [
        _newly_broken(facts, deltas)
        for deltas in grouped(facts, "newly-broken", 1)
        if _is_judged(facts, deltas)
    ]
    for cause, findings in groups_of_findings(facts):
        lines.append(_alarm(facts, findings, cause=cause, view=view, names=names))
    groups = []
    for title in TITLES:
        titled_lines = [line for line in lines if line.title == title]
        if titled_lines:
            keys = {key for line in titled_lines for key in line.cells}
            groups.append(AlarmGroup(title, tuple(titled_lines), len(keys)))
    return tuple(groups)


def groups_of_findings(facts: Facts) -> list[tuple[int, list[Finding]]]:
    """Return groups of findings of one level, metric and root cause, the worst first.

    Each group has the number of its cause, or 0.
    """
    groups: dict[tuple[object, ...], tuple[int, list[Finding]]] = {}
    for finding in _wholes_and_parts(facts)[0]:
        cause = 0
        state = ""
        if finding.metric == "artifact_bytes":
            cause = cause_of(facts, finding.key)[0]
        elif finding.metric is None:
            state = facts.deltas[finding.key].state
        level = (
            mark_of(finding),
            finding.metric,
            finding.kind,
            finding.limit,
            finding.is_open,
            state,
        )
        groups.setdefault((*level, cause), (cause, []))[1].append(finding)
    return list(groups.values())


def _wholes_and_parts(facts: Facts) -> tuple[list[Finding], list[Finding]]:
    """Return this change's findings, the worst first, and findings that these cover.

    A finding about a part of an artifact is covered by one about the whole artifact
    that is as bad. Neither list has newly failing builds, which have lines of their
    own, nor builds that were not measured, which the first sentence counts.
    """
    news = []
    for finding in worst_first(facts.report.verdict.news):
        delta = facts.deltas[finding.key]
        has_line = delta.state == "newly-broken" and _is_judged(facts, [delta])
        if not has_line and not is_lost(delta, finding):
            news.append(finding)
    whole_marks = {
        (finding.key, mark_of(finding))
        for finding in news
        if finding.metric == "artifact_bytes"
    }
    wholes = []
    parts = []
    for finding in news:
        is_part = finding.metric in ARTIFACT_PARTS
        if is_part and (finding.key, mark_of(finding)) in whole_marks:
            parts.append(finding)
        else:
            wholes.append(finding)
    return wholes, parts


def cause_of(facts: Facts, key: CellKey) -> tuple[int, float]:
    """Return the number of a build's largest root cause, and its share.

    The share is of the build's total change. Both are 0 if no root cause has a part in
    the build. The number is 0 if most of the change is not explained.
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
    doubt = _doubt(facts, keys)
    marked_builds = phrase(Span(f"{mark} ", kind_of(level)), builds_phrase)
    return Alarm(
        mark=mark,
        level=level,
        text=phrase(builds_phrase, ": ", reason, doubt),
        cells=tuple(keys),
        title=title,
        rows=((marked_builds, phrase(reason, doubt), _NONE, _NONE),),
    )


def _broken_reason(cells: Sequence[Cell | None]) -> Phrase:
    """Return the words about failed builds, and the first line of the first message."""
    lines = [
        trimmed(cell.failure.message, 1)[0]
        for cell in cells
        if cell and cell.failure and cell.failure.stage != "stack-limit"
    ]
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
    keys = _keys(findings)
    text = _alarm_text(facts, findings, names)
    mainly = _mainly(facts, cause=cause, keys=keys, view=view)
    if mainly:
        text = phrase(text, " · mainly ", mainly)
    doubt = _doubt(facts, keys)
    rows = [
        _finding_row(facts, finding=finding, cause=cause, view=view)
        for finding in findings
    ]
    grouped_row: Row = ()
    if len(rows) > 1:
        grouped_row = _grouped_row(facts, findings=findings, mainly=mainly, doubt=doubt)
    mark = mark_of(finding)
    return Alarm(
        mark=MARKS[mark],
        level=finding.weight,
        text=phrase(text, doubt),
        cells=keys,
        title=_TITLE_OF[mark],
        rows=tuple(rows),
        grouped=grouped_row,
    )


def _keys(findings: Sequence[Finding]) -> tuple[CellKey, ...]:
    return tuple(finding.key for finding in findings)


def _alarm_text(facts: Facts, findings: Sequence[Finding], names: int) -> Phrase:
    """Return findings of one metric in words, with at most `names` builds."""
    finding = findings[0]
    if len(findings) == 1:
        return finding_words(facts, finding)
    if finding.metric is None:
        state = facts.state_words[facts.deltas[finding.key].state]
        return phrase(cells_phrase(facts, _keys(findings), MOST_NAMES), f": {state}")
    shown_findings = fair_in_order(findings, lambda finding: finding.key.model, names)
    builds = []
    for shown_finding in shown_findings:
        key = shown_finding.key
        values = plain(_values_phrase(shown_finding))
        builds.append(phrase(facts.named(key, cell_address(key)), f" {values}"))
    label = facts.label(finding.quantity, finding.key)
    return phrase(
        f"{label}, {plural(len(findings), 'build')}: ",
        some(builds, len(findings)),
        limit_words(finding, is_single=False),
    )


def _mainly(facts: Facts, cause: int, keys: Sequence[CellKey], view: View) -> Phrase:
    """Return `cause 2 (69 to 95 %)`: the shares are of each build's total change.

    The text is empty without a cause.
    """
    if not cause:
        return ()
    parts = sorted(cause_of(facts, key)[1] for key in keys)
    low = share(parts[0])
    high = share(parts[-1])
    if cause > shown_roots(facts, view):
        root = facts.roots[cause - 1]
        name = Span(clean(root.what.partition(", with ")[0], _WHAT_CHARS))
    else:
        name = Span(f"cause {cause}", to=cause_address(cause))
    shares = high
    if low != high:
        shares = f"{low.removesuffix(' %')} to {high}"
    return phrase(name, f" ({shares})")


def _finding_row(facts: Facts, finding: Finding, cause: int, view: View) -> Row:
    """Return build, values, limit and cause of one finding.

    A finding about a state has words in place of values.
    """
    mark = Span(f"{MARKS[mark_of(finding)]} ", kind_of(finding.weight))
    named = facts.named(finding.key, cell_address(finding.key))
    doubt = _doubt(facts, [finding.key])
    if finding.metric is None:
        state = joined(_state_parts(facts, finding), ": ")
        return phrase(mark, named), phrase(state, doubt), _NONE, _NONE
    label = facts.label(finding.quantity, finding.key)
    mainly = _mainly(facts, cause=cause, keys=[finding.key], view=view) or _NONE
    values = phrase(_values_phrase(finding), UNCONFIRMED if doubt else "")
    return phrase(mark, named, f": {label}"), values, _limit_cell(finding), mainly


def _state_parts(facts: Facts, finding: Finding) -> list[Words]:
    """Return the words of a build's state, and of its failure if head fails."""
    delta = facts.deltas[finding.key]
    parts: list[Words] = [facts.state_words[delta.state]]
    if delta.head and delta.state in ("newly-broken", "broken"):
        parts.append(failure_words(delta.head))
    return [part for part in parts if part]


def _grouped_row(
    facts: Facts, findings: Sequence[Finding], mainly: Phrase, doubt: str
) -> Row:
    """Return one row for findings of one metric, limit and cause."""
    finding = findings[0]
    mark = Span(f"{MARKS[mark_of(finding)]} ", kind_of(finding.weight))
    keys = _keys(findings)
    builds_phrase = phrase(mark, cells_phrase(facts, keys, _GROUPED_NAMES))
    if finding.metric is None:
        state = facts.state_words[facts.deltas[finding.key].state]
        return builds_phrase, phrase(state, doubt), _NONE, _NONE
    label = facts.label(finding.quantity, finding.key)
    worst_build = phrase(facts.named(finding.key), " ", _values_phrase(finding))
    worst = phrase(f"{plural(len(keys), 'build')}, the worst ", worst_build, doubt)
    return (
        phrase(builds_phrase, f": {label}"),
        worst,
        _limit_cell(finding, is_single=False),
        mainly or _NONE,
    )


def _limit_cell(finding: Finding, *, is_single: bool = True) -> Phrase:
    """Return `54,534 B`.

    For several builds, or if the rule has no single figure, return the rule's words.
    """
    text = limit_words(finding, is_single=is_single)
    text = text.removeprefix("; limit").removeprefix(":").strip()
    if not text:
        return _NONE
    if text[0].isdigit():
        return phrase(Span(text, "number"))
    return phrase(text)


def alarm_table(group: AlarmGroup, count: int, runs: RunRows = NO_ROWS) -> Table:
    """Return a row for each finding of the first `count` lines.

    If these are too many, return one row for each metric, limit and cause. `runs`: the
    rows of runs. Each follows the last finding of its build. If findings share rows,
    they are at the end.
    """
    lines = group.lines[:count]
    rows = [row for line in lines for row in line.rows]
    stacks: Stacks = _STACKS
    if len(rows) > count * _ROWS_PER_ALARM:
        rows = [line.grouped or line.rows[0] for line in lines]
        stacks = _GROUPED_STACKS
        if runs.summary:
            rows.append(runs.summary)
    elif runs.by_build:
        rows = _with_runs(lines, runs)
    headers = ["build", "base → head (change)", "limit", "mainly (share of its change)"]
    if group.title == BROKEN:
        headers[1] = "what happened"
        stacks = _BROKEN_STACKS
    while len(headers) > 2 and all(row[len(headers) - 1] == _NONE for row in rows):
        headers.pop()
        rows = [row[:-1] for row in rows]
    return Table(
        tuple(headers),
        listing(rows, len(rows) + len(group.lines) - len(lines), "finding"),
        numbers_from=len(headers),
        css="alarms",
        stacks=stacks,
    )


def _with_runs(lines: Sequence[Alarm], runs: RunRows) -> list[Row]:
    """Return the rows of findings; those of a build's run follow its last finding.

    Builds whose findings have no room have the row of their run at the end.
    """
    pairs = list[tuple[CellKey, Row]]()
    for line in lines:
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
    """Return the note that an alarm rests on a single compile of head.

    It is empty if none does. Head is not always compiled again, as that costs time.
    """
    heads = [facts.deltas[key].head for key in keys]
    count = sum(head is not None and head.compiles == 1 for head in heads)
    if not count:
        return ""
    if count == len(keys):
        return " · not confirmed by a second compile"
    return f" · {count:,} of them not confirmed by a second compile"


def _values_phrase(finding: Finding) -> Phrase:
    """Return `50,438 → 83,990 B (+66.5 %)`; no line ends inside a figure."""
    base, head = finding.sides
    unit = finding.quantity.unit
    if head is None:
        return phrase(f"{amount(base, unit)} on base, unknown on head")
    if base is None:
        values = amount(head, unit)
    else:
        values = sides(base, head, unit)
    parts = [*sides_phrase(values)]
    if base is not None and base != head:
        parts += [Span(" "), Span(f"({relative(base, head)})", "number")]
    if finding.is_open:
        parts.append(Span(f", {OPEN}"))
    return tuple(parts)


def finding_words(facts: Facts, finding: Finding, *, named: bool = True) -> Phrase:
    """Return a finding as a clause: metric, build (if `named`), values and limit."""
    build: list[Words] = []
    if named:
        build.append(facts.named(finding.key, cell_address(finding.key)))
    if finding.metric is None:
        return joined([*build, *_state_parts(facts, finding)], ": ")
    label = facts.label(finding.quantity, finding.key)
    values = plain(_values_phrase(finding))
    return phrase(joined([label, *build], ", "), f": {values}", limit_words(finding))


def limit_words(finding: Finding, *, is_single: bool = True) -> str:
    """Return `; limit 54,534 B`.

    For several builds, or if the rule has no single figure, return the rule's words.
    """
    if finding.head is None:
        return ""
    clipped = clip(finding.limit, _LIMIT_CHARS)
    parts = [_UNIT.sub(" ", clean(part)) for part in clipped.split(" and ")]
    if finding.kind == "limit":
        return f"; limit {parts[0]}"
    has_figure = is_single and finding.seen is None
    if has_figure and finding.base is not None and finding.allowed is not None:
        limit = finding.base + finding.allowed
        return f"; limit {amount(limit, finding.quantity.unit)}"
    if parts == ["0"]:
        return "; limit: no growth"
    growth = " and ".join(f"+{part}" for part in parts)
    if len(parts) > 1:
        return f"; limit: the larger of {growth}"
    return f"; limit: {growth}"


def finding_table(
    facts: Facts, findings: Sequence[Finding], count: int
) -> Iterator[Table]:
    """Yield the table of findings with their rules.

    A finding about the state of a build has no metric.
    """
    shown_findings = fair_in_order(findings, lambda finding: finding.key.model, count)
    rows = list[Row]()
    for finding in shown_findings:
        model = code(clip(finding.key.model, NAME_LIMIT), cell_address(finding.key))
        label = "state"
        if finding.metric:
            label = facts.label(finding.quantity, finding.key)
        rows.append(
            (
                (model,),
                facts.names(finding.key)[1],
                label,
                (Span(clip(finding.actual, 160), kind_of(finding.weight)),),
                name_cell(clip(finding.limit, 80)),
                f"{MARKS[mark_of(finding)]} {clip(finding.rule, 80)}",
            )
        )
    headers = ("model", "target", "metric", "actual", "limit", "rule")
    yield Table(
        headers, listing(rows, len(findings), "finding"), numbers_from=len(headers)
    )


def known_lines(facts: Facts, names: int) -> list[Phrase]:
    """Return findings that base has, too, and that head does not make worse.

    ``stack allocations. Limit 32 KiB: `m` on `cuda` ``.
    """
    known_findings = [
        finding
        for finding in facts.report.verdict.findings
        if finding.known and finding.metric is not None
    ]
    groups = by(
        known_findings, lambda finding: (finding.metric, finding.kind, finding.limit)
    )
    lines = list[Phrase]()
    for findings in groups.values():
        finding = findings[0]
        label = facts.label(finding.quantity, finding.key)
        limit = limit_words(finding, is_single=False)
        cells = cells_phrase(facts, _keys(findings), min(MOST_NAMES, names))
        lines.append(phrase(f"◽ {label}{limit}: ", cells))
    return lines


def accepted_words(facts: Facts, view: View) -> Phrase:
    """Return who accepted which findings; empty if there are none."""
    accepted = [
        finding
        for finding in facts.report.verdict.findings
        if finding.accepted is not None
    ]
    if not accepted:
        return ()
    keys = sorted({finding.key for finding in accepted})
    cells = cells_phrase(facts, keys, min(MOST_NAMES, view.names))
    who = code(clean(accepted[0].accepted or "", NAME_LIMIT))
    reason = clean(accepted[0].reason, REASON_LIMIT)
    count = plural(len(accepted), "finding")
    text = phrase("☑️ Accepted by ", who, f" ({count}: ", cells, ")")
    if reason:
        text = phrase(text, ". Reason: ", code(reason))
    return text


def grown_words(facts: Facts, view: View) -> Phrase:
    """Return which failing findings grew since they were accepted, and by how much.

    The text is empty if none did.
    """
    parts = list[Phrase]()
    for finding in facts.report.verdict.findings:
        if finding.grown_since is not None and finding.metric is not None:
            label = facts.label(finding.quantity, finding.key)
            cell = cells_phrase(facts, [finding.key], 1)
            growth = signed(finding.grown_since, finding.quantity.unit)
            parts.append(phrase(cell, f": {label} {growth}"))
    if not parts:
        return ()
    shown_parts = parts[: view.findings]
    hidden = len(parts) - len(shown_parts)
    text = phrase("Grown since the acceptance: ", joined(shown_parts, "; "))
    if hidden:
        text = phrase(text, f"; {hidden} more")
    return text


def _group_lines(group: AlarmGroup, count: int) -> List:
    """Return the first alarms with their marks."""
    lines = [
        phrase(Span(f"{alarm.mark} ", kind_of(alarm.level)), alarm.text)
        for alarm in group.lines[:count]
    ]
    return List(listing(lines, len(group.lines), "line"))


def findings(facts: Facts, view: View) -> Fold:
    """Return every finding: on a page one row each, else grouped as the alarms are.

    Around them are the builds that fail, newly or already on base.
    """
    newly_broken = failed_builds(facts, "newly-broken", view)
    still_broken = failed_builds(facts, "broken", view)
    if view.every:
        blocks = (newly_broken, *_finding_folds(facts, view), still_broken)
        return Fold("Findings", blocks, is_open=True, name="findings")

    def groups(count: int) -> Iterator[Block]:
        for group in alarms(facts, view, count):
            if group.title != BROKEN:
                title = counted(group.title, group.cells, facts)
                yield section(title, _group_lines(group, count), name="group")

    known_list = List(listed(known_lines(facts, view.names), "known finding"))
    on_base = section(
        "Known: base has them too, and head is not worse",
        bounded(known_list, Rank.LINE, view.findings),
        name="known",
    )
    return Fold(
        phrase(_findings_title(facts)),
        (
            newly_broken,
            part(groups, view.findings, Rank.LINE),
            on_base,
            still_broken,
        ),
        name="findings",
    )


def _finding_folds(facts: Facts, view: View) -> Iterator[Fold]:
    """Yield the table of this change's findings, then that of the known ones."""
    verdict = facts.report.verdict
    known_findings = [finding for finding in verdict.findings if finding.known]
    for label, findings in (
        ("of this change", verdict.news),
        ("that base has too, and head is not worse", known_findings),
    ):
        title = f"{plural(len(findings), 'finding')} {label}"
        table = partial(finding_table, facts, findings)
        yield Fold(title, (part(table, view.findings, Rank.LINE),))


def _findings_title(facts: Facts) -> str:
    """Return `Findings: 4 of this change, 2 that base had`."""
    wholes, parts = _wholes_and_parts(facts)
    newly_broken = sum(
        _is_judged(facts, [delta]) for delta in facts.states["newly-broken"]
    )
    known_count = sum(
        finding.known and finding.metric is not None
        for finding in facts.report.verdict.findings
    )
    counted_keys = {finding.key for finding in wholes if finding.metric is None}
    broken_keys = {delta.key for delta in facts.states["broken"]}
    counts = {
        "of this change": len(wholes) + newly_broken,
        "of parts of the same artifacts": len(parts),
        "that base had": known_count,
        "already failing on base": len(broken_keys - counted_keys),
    }
    text = ", ".join(f"{count:,} {label}" for label, count in counts.items() if count)
    if text:
        return f"Findings: {text}"
    return "Findings"
