"""What alarms and what failed: findings by metric and root cause, cells by what refused them, values near a limit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from bot.core.delta import CellDelta, outcome
from bot.core.metrics import ARTIFACT_PARTS
from bot.core.policy import OPEN, RAN_OUT, Accepted, Finding, is_local
from bot.core.record import difference
from bot.core.report import Report
from bot.core.snapshot import Cell, CellKey
from bot.show.blocks import (
    Limits,
    Listing,
    Phrase,
    Span,
    Table,
    code,
    fair,
    fair_in_order,
    first,
    joined,
    kind_of,
    listing,
    name_cell,
    phrase,
)
from bot.show.escape import clean, clean_block, clip
from bot.show.facts import (
    MARKS,
    NAME_LIMIT,
    STACK_LIMIT_BYTES,
    Facts,
    cause_address,
    cell_address,
    cells_phrase,
    figure_bytes,
    is_over,
    leading,
    mark_of,
    worst_first,
)
from bot.show.filters import amount, change, plural, relative, sides, signed

_NAMES = 12
_LINE_CHARS, _LINES_WORTH_READING = 200, 400
_WHY_CHARS, _LIMIT_CHARS, _ERROR_CHARS, _WHAT_CHARS, _PEOPLE = 300, 48, 200, 90, 10
# Where a compiler ran is nobody's business, and says nothing to those who read elsewhere: the last part is enough.
_ABSOLUTE_PATH = re.compile(
    r"(?<![\w.:/<>\\])(?:/[^\s/:\"'`<>()\[\],;=]+)+/(?=[^\s/])|(?<!\w)[A-Za-z]:\\(?:[^\s\\:\"']+\\)*"
)
_FIGURES = re.compile(r"\d+")
_UNIT = re.compile(r"(?<=\d)(?=[A-Za-z%])")
_NOWHERE = "<unknown>:0: error: "
_STAGES = {
    "compile": "does not compile",
    "read": "artifact cannot be read",
    "import": "cannot be imported",
    "fetch": "model not fetched",
    "option": "compiler does not know an option",
    "stack-limit": "over the stack limit",
    "timeout": "timed out",
    "target": "target does not work",
}


# Cells without a usable artifact.


class FailureGroup(NamedTuple):
    """Cells that fail with the same words: what happened, which they are, and what the compiler said of the first."""

    what: Phrase
    cells: Phrase
    cell_count: int
    diagnostics: str
    more_lines: int


def trimmed(message: str, lines: int) -> tuple[str, int]:
    """The first lines of a message without absolute paths, and how many more there are."""
    worth = [line for line in clean_block(message[: _LINES_WORTH_READING * _LINE_CHARS]).split("\n") if line.strip()]
    shown = [clip(_ABSOLUTE_PATH.sub("", line[: 5 * _LINE_CHARS]), _LINE_CHARS) for line in worth[:lines]]
    return "\n".join(shown), len(worth) - len(shown)


def _failed(delta: CellDelta) -> Cell | None:
    return delta.head if delta.head is not None and delta.head.failure is not None else delta.base


def grouped(facts: Facts, state: str, lines: int = 3) -> list[list[CellDelta]]:
    """The cells of a state in groups, the largest first.

    Those of a group ended alike, with messages that begin with the same lines but for figures and the model's name.
    """
    groups: dict[tuple[object, ...], list[CellDelta]] = {}
    for delta in facts.states[state]:
        cell, likeness = _failed(delta), tuple[object, ...]()
        if cell and (failure := cell.failure):
            text, _ = trimmed(failure.message.replace(delta.key.model, "*"), lines)
            likeness = failure.stage, failure.signal, failure.exit_code, _FIGURES.sub("#", text)
        groups.setdefault(likeness, []).append(delta)
    return sorted(groups.values(), key=lambda group: (-len(group), group[0].key))


def failures(facts: Facts, state: str, limits: Limits) -> Listing[FailureGroup]:
    """The same in words; models take turns."""
    ordered, groups = grouped(facts, state), list[FailureGroup]()
    for group in fair(ordered, lambda group: group[0].key.model, limits.failures):
        cell = _failed(group[0])
        text, more = trimmed(cell.failure.message, limits.lines) if cell and cell.failure else ("", 0)
        figures = [figure for delta in group if (figure := figure_bytes(delta.head)) is not None]
        what = failure_words(*map(_failed, group))
        if is_over(group[0].head) and figures:
            allowed = f"allowed are {amount(STACK_LIMIT_BYTES)}"
            what = phrase(f"over the compiler's stack limit: {_range(figures)}, {allowed}")
        cells = cells_phrase(facts, [delta.key for delta in group], min(limits.names, _NAMES))
        groups.append(FailureGroup(what, cells, len(group), text, more))
    return listing(groups, len(ordered), "group of failures")


def _range(figures: Sequence[int]) -> str:
    low, high = min(figures), max(figures)
    return amount(high) if low == high else f"{amount(low)} to {amount(high)}"


def failure_words(*cells: Cell | None) -> Phrase:
    """What happened to cells without an artifact, which failed alike: `does not compile (exit code 1)`."""
    failures = [cell.failure for cell in cells if cell and cell.failure]
    if not failures:
        return phrase("failed without a message")
    failure = failures[0]
    if RAN_OUT in failure.first_line and is_local(failure.message):
        return phrase("the compiler ran out of memory")
    if failure.signal:
        return phrase("compiler crashed (", code(clip(failure.signal, 32)), ")")
    figures = [one.figure_bytes for one in failures if one.figure_bytes is not None]
    if failure.stage == "stack-limit" and figures:
        return phrase(f"over the compiler's stack limit, a function needs {_range(figures)}")
    how = f" (exit code {failure.exit_code})" if failure.exit_code else ""
    return phrase(_STAGES.get(failure.stage, "failed") + how)


def over_table(facts: Facts, limits: Limits) -> Table:
    """The cells that the compiler's stack gate refuses on both sides, with what it says that a function needs."""
    both = [
        (delta.key, figure_bytes(delta.base), figure_bytes(delta.head))
        for delta in facts.report.deltas
        if is_over(delta.base) and is_over(delta.head)
    ]
    both.sort(key=lambda one: (-abs((one[2] or 0) - (one[1] or 0)), one[0]))
    rows = [
        (*_cell_names(facts, key), phrase(sides(base, head)), phrase(change(base, head)))
        for key, base, head in fair_in_order(both, lambda one: one[0].model, limits.findings)
    ]
    about = f"What the compiler says that a function needs; it allows {amount(STACK_LIMIT_BYTES)}."
    return Table(("model", "target", "base → head", "change"), listing(rows, len(both), "build"), 2, about=about)


def _cell_names(facts: Facts, key: CellKey) -> tuple[Phrase, Phrase]:
    return name_cell(clip(key.model, NAME_LIMIT)), name_cell(facts.short[key.target])


def unmeasured(facts: Facts, limits: Limits) -> Listing[Phrase]:
    """The cells without a measurement, by reason, those on purpose last; whole targets are named as such."""
    groups: dict[tuple[bool, str], list[CellKey]] = {}
    for delta in facts.states["unmeasured"]:
        groups.setdefault((delta.excused, delta.reason), []).append(delta.key)
    ordered = sorted(groups.items(), key=lambda entry: (entry[0][0], -len(entry[1]), entry[0]))
    lines = []
    for (_, reason), keys in ordered[: limits.findings]:
        cells, targets = cells_phrase(facts, keys, limits.names), {key.target for key in keys}
        if len(targets) == 1 and not targets & facts.measured_targets:
            cells = phrase(code(clip(keys[0].target, NAME_LIMIT)), f" ({plural(len(keys), 'build')})")
        lines.append(phrase(cells, f": {clip(reason or 'no reason given', _WHY_CHARS)}"))
    return listing(lines, len(groups), "reason")


# Alarms.


@dataclass(frozen=True, slots=True)
class Alarm:
    """One line: cells that broke a rule of one metric for one root cause, or that are newly broken alike."""

    mark: str  # the symbol of the worst of it
    level: str  # `fail`, `warn` or empty for an accepted one
    said: Phrase
    cells: tuple[CellKey, ...]
    title: str  # what it stands below, one of TITLES
    cause: int = 0  # the number of the root cause that holds most of the change of each cell; 0 where none is known


class AlarmGroup(NamedTuple):
    """The first alarms below one title, and how many cells all of them are about."""

    title: str
    lines: Listing[Alarm]
    cells: int


BROKEN, OVER, ACCEPTED, WARNED = TITLES = ("Newly broken", "Over the limit", "Accepted", "To look at")
_TITLE_OF = {"fail": OVER, "accepted": ACCEPTED, "warn": WARNED}


def alarms(facts: Facts, limits: Limits) -> tuple[AlarmGroup, ...]:
    """Newly broken cells, then what is over a limit, then what was accepted, then warnings: the worst of each first."""
    broken = [_newly_broken(facts, group) for group in grouped(facts, "newly-broken", 1) if _is_judged(facts, group)]
    broken += _dead(facts)
    lines, explained = broken, set[str]()
    for cause, findings in matters(facts):
        lines.append(_alarm(facts, findings, cause, limits, explained=findings[0].limit in explained))
        explained.add(findings[0].limit)
    if doubt := doubt_of(facts.report):
        lines = [replace(line, said=phrase(line.said, f" · {doubt}")) for line in lines]
    groups = {title: [line for line in lines if line.title == title] for title in TITLES}
    return tuple(
        AlarmGroup(title, first(group, limits.alarms, "line"), len({key for line in group for key in line.cells}))
        for title, group in groups.items()
        if group
    )


def matters(facts: Facts) -> list[tuple[int, list[Finding]]]:
    """Findings of one level, metric and root cause together, the worst first: the cause's number, or 0, and they.

    Of a part of an artifact the finding about all of it stands for both, where that is as bad. Newly broken cells have
    lines of their own, and how many were not measured is in the first sentence.
    """
    news = []
    for one in worst_first(facts.report.verdict.news):
        delta = facts.deltas[one.key]
        lost = delta.state == "unmeasured" and one.level == "warn"
        told = delta.state == "newly-broken" and _is_judged(facts, [delta])
        if not told and not (one.kind == "state" and (delta.state == "broken" or lost)):
            news.append(one)
    wholes = {(one.key, mark_of(one)) for one in news if one.metric == "artifact_bytes"}
    groups: dict[tuple[object, ...], tuple[int, list[Finding]]] = {}
    for one in news:
        if one.metric not in ARTIFACT_PARTS or (one.key, mark_of(one)) not in wholes:
            cause = cause_of(facts, one.key)[0] if one.metric == "artifact_bytes" else 0
            level = (mark_of(one), one.metric, one.kind, one.limit, one.is_open)
            groups.setdefault((*level, cause), (cause, []))[1].append(one)
    return list(groups.values())


def cause_of(facts: Facts, key: CellKey) -> tuple[int, int]:
    """The number of the root cause that holds most of what moved in the cell's artifact, and its share in percent.

    What moved counts growth and shrinking alike. 0 and 0 where no root cause has a part in the cell.
    """
    sizes = facts.causes.get(key, ())
    return (sizes[0][1], 100 * sizes[0][0] // sum(size for size, _ in sizes)) if sizes else (0, 0)


def doubt_of(report: Report) -> str:
    """What is to be said of every alarm where the baseline is an ancestor of the base, with another compiler."""
    gap, distance = report.baseline.between, report.baseline.distance
    if gap is None or not gap.sources:
        return ""
    return f"may come from the {plural(distance, 'commit')} before the base" if distance else "may be of other commits"


def _is_judged(facts: Facts, group: Sequence[CellDelta]) -> bool:
    return any(finding.metric is None for delta in group for finding in facts.findings.get(delta.key, ()))


def _newly_broken(facts: Facts, group: Sequence[CellDelta]) -> Alarm:
    """Which cells, what happened to them, and the first line of what the compiler said."""
    keys = [delta.key for delta in group]
    marks = {facts.mark(key) for key in keys}
    level = next((level for level in ("fail", "warn") if level in marks), "")
    at_first = facts.report.adoption and all(delta.base is None for delta in group)
    words, lead = failure_words(*(delta.head for delta in group)), ", from the start: " if at_first else ": "
    said = phrase(cells_phrase(facts, keys, _NAMES), lead, words, _error(group))
    mark, title = ("☑️", ACCEPTED) if marks == {"accepted"} else ("💥", BROKEN)
    return Alarm(mark, level, said, tuple(keys), title)


def _dead(facts: Facts) -> Iterator[Alarm]:
    """Cells that are broken on both sides, where the rules do not allow it."""
    news = {finding.key for finding in facts.report.verdict.news if finding.kind == "state"}
    models: dict[str, list[CellDelta]] = {}
    for delta in facts.states["broken"]:
        if delta.key in news:
            models.setdefault(delta.key.model, []).append(delta)
    for group in models.values():
        keys, mark = tuple(delta.key for delta in group), facts.mark(group[0].key)
        alike = len({outcome(delta.head) for delta in group}) == 1
        words = failure_words(*(delta.head for delta in group)) if alike else phrase("fails")
        said = phrase("broken on both sides: ", cells_phrase(facts, keys, _NAMES), ": ", words, _error(group))
        yield Alarm(MARKS[mark], "fail" if mark == "fail" else "warn", said, keys, _TITLE_OF[mark])


def _error(group: Sequence[CellDelta]) -> Phrase:
    """The first line of what the compiler said; one cell's, where it is not the same for all."""
    failures = [delta.head.failure for delta in group if delta.head and delta.head.failure]
    lines = [trimmed(failure.message, 1)[0] for failure in failures if failure.stage != "stack-limit"]
    if not lines or not lines[0]:
        return ()
    said = clip(lines[0].removeprefix(_NOWHERE), _ERROR_CHARS)
    return phrase(": " if len(set(lines)) == 1 else ", for example: ", code(said))


def _alarm(facts: Facts, findings: Sequence[Finding], cause: int, limits: Limits, *, explained: bool) -> Alarm:
    """``artifact, 4 builds on `x86_64`: `m` 1 → 2 B (+66.5 %), …; limit: … · mostly cause 1 (69 to 95 %)``."""
    one, keys = findings[0], tuple(finding.key for finding in findings)
    said = (
        finding_words(facts, one, explained=explained)
        if len(findings) == 1
        else _several(facts, findings, limits.alarms)
    )
    if cause:  # how much of what moved in the cells it holds; in words where it is not shown
        shares = sorted(cause_of(facts, key)[1] for key in keys)
        what = clean(facts.report.root_causes[cause - 1].what.partition(", with ")[0], _WHAT_CHARS)
        is_shown = cause <= shown_roots(facts, limits)
        named = Span(f"cause {cause}", to=cause_address(cause)) if is_shown else what
        share = f"{shares[0]} %" if shares[0] == shares[-1] else f"{shares[0]} to {shares[-1]} %"
        said = phrase(said, " · mostly " if shares[0] >= 50 else " · largest part: ", named, f" ({share})")
    heads = [facts.deltas[key].head for key in keys]
    once = sum(head is not None and head.compiles == 1 for head in heads)
    doubt = "" if not once else " · compiled once" if once == len(keys) else f" · {once} of them compiled once"
    return Alarm(MARKS[mark_of(one)], one.weight, phrase(said, doubt), keys, _TITLE_OF[mark_of(one)], cause)


def shown_roots(facts: Facts, limits: Limits) -> int:
    """How many root causes have a line: those that hold nine tenths of the bytes, or as many as there is room for."""
    return min(limits.causes, len(facts.report.root_causes) if limits.every else leading(facts))


def _several(facts: Facts, findings: Sequence[Finding], most: int) -> Phrase:
    """The values of the first cells, and what is allowed in all; a target or a model that all have is named once."""
    one, keys = findings[0], [finding.key for finding in findings]
    if one.metric is None:
        return phrase(cells_phrase(facts, keys, _NAMES), " ", state_words(facts.deltas[one.key]))
    metric = one.quantity
    label, changes = facts.label(metric, one.key), {difference(*finding.sides) for finding in findings}
    allowed = phrase("; ", limit_words(one, alone=False)) if one.head is not None else ()
    if len(changes) == 1 and one.kind == "change" and (change := changes.pop()) is not None:
        said = phrase(f"{label}, {signed(change, metric.unit)} each: ", cells_phrase(facts, keys, _NAMES))
        return phrase(said, allowed)
    targets, models = {key.target for key in keys}, {key.model for key in keys}
    where = phrase(" on ", code(facts.short[one.key.target])) if len(targets) == 1 else ()
    of = phrase(" of ", code(clip(one.key.model, NAME_LIMIT))) if len(models) == 1 else ()
    shown = fair_in_order(findings, lambda finding: finding.key.model if len(models) > 1 else "", most)
    cells = joined([_cell(facts, finding, len(targets) > 1, len(models) > 1) for finding in shown], ", ")
    more = f" and {len(findings) - len(shown)} more" if len(findings) > len(shown) else ""
    return phrase(f"{label}, {plural(len(keys), 'build')}", of, where, ": ", cells, more, allowed)


def _cell(facts: Facts, finding: Finding, targets: bool, models: bool) -> Phrase:
    """Its names, as far as they are not told for all, and its values."""
    unit, address = finding.quantity.unit, cell_address(finding.key)
    names = [phrase(code(clip(finding.key.model, NAME_LIMIT), address))] if models else []
    names += [phrase(code(facts.short[finding.key.target], "" if models else address))] if targets else []
    base, head = finding.sides
    if head is None:
        return phrase(joined(names, " on "), f" {amount(base, unit)} on base, not known any more")
    values = amount(head, unit) if base is None else sides(base, head, unit)
    grown = "" if base is None or base == head else f" ({relative(base, head)})"
    return phrase(joined(names, " on "), f" {values}{grown}{f', {OPEN}' if finding.is_open else ''}")


def finding_words(facts: Facts, finding: Finding, *, named: bool = True, explained: bool = False) -> Phrase:
    """A finding as a clause: what, where (unless not `named`), both values, and the limit, in words once."""
    model = code(clip(finding.key.model, NAME_LIMIT), cell_address(finding.key))
    cell = phrase(model, " on ", code(facts.short[finding.key.target]))
    if finding.metric is None:
        return phrase(*(cell, " ") if named else ("the build ",), state_words(facts.deltas[finding.key]))
    metric = finding.quantity
    about = phrase(facts.label(metric, finding.key), *(", ", cell) if named else (), ": ")
    if finding.head is None:
        return phrase(about, f"{amount(finding.base, metric.unit)} on base, not known any more")
    base, head = finding.sides
    values = sides(base, head, metric.unit) if base is not None else amount(head, metric.unit)
    grown = f", {relative(base, head)}" if finding.kind != "limit" else ""
    allowed = limit_words(finding, explained=explained)
    return phrase(about, f"{values}{grown}; ", allowed, f"; {OPEN}" if finding.is_open else "")


def limit_words(finding: Finding, *, alone: bool = True, explained: bool = False) -> str:
    """`limit 54,534 B (the larger of +4 KiB and +5 %)`; without the figure where it is not one, or not `alone`."""
    parts = [_UNIT.sub(" ", clean(part)) for part in clip(finding.limit, _LIMIT_CHARS).split(" and ")]
    if finding.kind == "limit":
        share = 100 * (finding.head or 0) / finding.allowed if finding.allowed and finding.seen is None and alone else 0
        over = f", {f'{share:,.1f}' if round(share, 1) > 100 else '>100.0'} % of it" if share else ""
        golden = f" ({clean(finding.rule)})" if " golden_" in finding.rule else ""  # a number that somebody wrote down
        return f"limit {parts[0]}{golden}{over}"
    words = "no growth" if parts == ["0"] else f"+{parts[0]}"
    words = f"the larger of {' and '.join(f'+{part}' for part in parts)}" if len(parts) > 1 else words
    if not alone or finding.base is None or finding.allowed is None or finding.seen is not None or not finding.metric:
        return f"limit: {words}"
    largest = amount(finding.base + finding.allowed, finding.quantity.unit)
    return f"limit {largest}{'' if explained else f' ({words})'}"


def finding_table(facts: Facts, findings: Sequence[Finding], limits: Limits) -> Table:
    """Each finding with its rule; one about the state of a cell has no metric."""
    rows = []
    for one in fair_in_order(findings, lambda finding: finding.key.model, limits.findings):
        model = code(clip(one.key.model, NAME_LIMIT), cell_address(one.key))
        label = facts.label(one.quantity, one.key) if one.metric else "state"
        amounts = [f"more than {part}" for part in one.limit.split(" and ")]
        limit = f"{' and '.join(amounts)}{', both' * (len(amounts) > 1)}" if one.kind == "change" else one.limit
        actual = Span(clip(one.actual, 160), kind_of(one.weight))
        target, rule = facts.short.get(one.key.target, one.key.target), clip(one.rule, 80)
        row = (model,), name_cell(target), phrase(label), (actual,), name_cell(clip(limit, 80))
        rows.append((*row, phrase(f"{MARKS[mark_of(one)]} {rule}")))
    headers = ("model", "target", "metric", "actual", "allowed", "rule")
    return Table(headers, listing(rows, len(findings), "finding"), numbers_from=len(headers))


def known_lines(facts: Facts, limits: Limits) -> Listing[Phrase]:
    """What base had and head is no worse in: ``stack allocations, limit 32 KiB: `m` on `cuda` ``."""
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for one in facts.report.verdict.findings:
        if one.known and one.metric is not None:
            groups.setdefault((one.metric, one.kind, one.limit), []).append(one)
    lines = []
    for group in groups.values():
        label = facts.label(group[0].quantity, group[0].key)
        cells = cells_phrase(facts, [one.key for one in group], min(_NAMES, limits.names))
        lines.append(phrase(f"◽ {label}, {limit_words(group[0], alone=False)}: ", cells))
    return first(lines, limits.findings, "known finding")


def state_words(delta: CellDelta) -> Phrase:
    """What a cell's state says: `is newly broken: …`, `was removed`."""
    words = {"newly-broken": "is newly broken", "removed": "was removed", "unmeasured": "was not measured"}
    said = words.get(delta.state, "is broken on both sides" if delta.state == "broken" else f"is {delta.state}")
    has_reason = delta.state in ("newly-broken", "broken") and delta.head is not None
    return phrase(said, ": ", failure_words(delta.head)) if has_reason else phrase(said)


def close(facts: Facts, limits: Limits, news: bool) -> Listing[Phrase]:
    """Values that keep a limit and use nine tenths of it: those that grew or are new, or else those that did not.

    ``stack frame of `bert` on `x86_64`: 8,184 of 8,192 B, 99.9 %``; never 100 % for less.
    """
    budgets = [one for one in facts.report.verdict.budgets if (one.base is None or one.head > one.base) == news]
    lines = []
    for one in budgets[: 2 if news else limits.names]:
        metric, share = one.quantity, 100 * one.head / one.limit
        shown = f"{share:.1f}" if one.head == one.limit or round(share, 1) < 100 else ">99.9"
        model, target = (code(clip(one.key.model, NAME_LIMIT)), code(facts.short[one.key.target]))
        said = f": {one.head:,} of {amount(one.limit, metric.unit)}, {shown} %"
        lines.append(phrase(f"{facts.label(metric, one.key)} of ", model, " on ", target, said))
    return listing(lines, len(budgets), "value")


def accepted(facts: Facts, limits: Limits) -> Listing[Phrase]:
    """What each person accepted for one reason, in that person's words, the worst first."""
    groups: dict[Accepted, list[Finding]] = {}
    for finding in facts.report.verdict.findings:
        if finding.accepted is not None:
            groups.setdefault(finding.accepted, []).append(finding)
    lines = []
    for by, findings in islice(groups.items(), _PEOPLE):
        cells = cells_phrase(facts, sorted({one.key for one in findings}), min(_NAMES, limits.names))
        why = clean(by.why, _WHY_CHARS)
        who = phrase("☑️ Accepted by ", code(clean(by.who, NAME_LIMIT)), *(": ", code(why)) if why else ())
        lines.append(phrase(who, f" ({plural(len(findings), 'finding')}: ", cells, ")"))
    return listing(lines, len(groups), "acceptance")
