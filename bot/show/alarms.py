"""What alarms: a line for the findings of one metric and root cause; acceptances; values close to a limit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from bot.core.delta import CellDelta, outcome
from bot.core.metrics import ARTIFACT_PARTS
from bot.core.policy import OPEN, RAN_OUT, Accepted, Budget, Finding, is_local
from bot.core.record import difference
from bot.core.report import Report
from bot.core.snapshot import Cell, CellKey
from bot.show.blocks import Limits, Listing, Phrase, Span, code, fair, fair_in_order, first, joined, listing, phrase
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
from bot.show.filters import amount, plural, relative, sides, signed

_LINE_CHARS = 200
_CELLS_NAMED = 12
_LINES_WORTH_READING = 400
# Where a compiler ran is nobody's business, and says nothing to those who read elsewhere: the last part is enough.
_ABSOLUTE_PATH = re.compile(
    r"(?<![\w.:/<>\\])(?:/[^\s/:\"'`<>()\[\],;=]+)+/(?=[^\s/])|(?<!\w)[A-Za-z]:\\(?:[^\s\\:\"']+\\)*"
)
_FIGURES = re.compile(r"\d+")
Likeness = tuple[str, "str | None", "int | None", str]
"""Stage, signal, exit code and the first lines, without figures and the model's name."""

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


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Cells that fail with the same words.

    Attributes:
        what: what happened, short: `does not compile (exit code 1)`.
        cells: which cells, in words.
        count: how many.
        diagnostics: the first lines of what the compiler said about the first cell; may be empty.
        more_lines: how many lines were left out.
    """

    what: Phrase
    cells: Phrase
    count: int
    diagnostics: str
    more_lines: int


def trimmed(message: str, lines: int) -> tuple[str, int]:
    """The first lines of a message without absolute paths, and how many more there are."""
    kept = [line for line in clean_block(message[: _LINES_WORTH_READING * _LINE_CHARS]).split("\n") if line.strip()]
    shown = [clip(_ABSOLUTE_PATH.sub("", line[: 5 * _LINE_CHARS]), _LINE_CHARS) for line in kept[:lines]]
    return "\n".join(shown), len(kept) - len(shown)


def grouped(facts: Facts, state: str, lines: int = 3) -> list[list[CellDelta]]:
    """The cells of a state in groups whose messages begin with the same lines, the largest group first."""
    groups: dict[Likeness, list[CellDelta]] = {}
    for delta in facts.states[state]:
        groups.setdefault(_likeness(delta, lines), []).append(delta)
    return sorted(groups.values(), key=lambda group: (-len(group), group[0].key))


def failures(facts: Facts, state: str, limits: Limits) -> Listing[FailureGroup]:
    """The same in words; models take turns."""
    ordered = grouped(facts, state)
    shown = fair(ordered, lambda group: group[0].key.model, limits.failures)
    return listing((_group(facts, group, limits) for group in shown), len(ordered), "group of failures")


def _failed(delta: CellDelta) -> Cell | None:
    return delta.head if delta.head is not None and delta.head.failure is not None else delta.base


def _likeness(delta: CellDelta, lines: int) -> Likeness:
    cell = _failed(delta)
    if cell is None or cell.failure is None:
        return "", None, None, ""
    failure = cell.failure
    text, _ = trimmed(failure.message.replace(delta.key.model, "*"), lines)
    return failure.stage, failure.signal, failure.exit_code, _FIGURES.sub("#", text)


def _group(facts: Facts, group: Sequence[CellDelta], limits: Limits) -> FailureGroup:
    cell = _failed(group[0])
    text, more = trimmed(cell.failure.message, limits.lines) if cell and cell.failure else ("", 0)
    cells = cells_phrase(facts, [delta.key for delta in group], min(limits.names, _CELLS_NAMED))
    return FailureGroup(_what(group), cells, len(group), text, more)


def _what(group: Sequence[CellDelta]) -> Phrase:
    figures = [figure for delta in group if (figure := figure_bytes(delta.head)) is not None]
    if is_over(group[0].head) and figures:
        said = _range(figures)
        return phrase(f"over the compiler's stack limit: {said}, allowed are {amount(STACK_LIMIT_BYTES)}")
    return failure_words(*(_failed(delta) for delta in group))


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


@dataclass(frozen=True, slots=True)
class OverRow:
    """A cell that the compiler's stack gate refuses, with what the compiler says that a function needs."""

    model: str
    target: str
    base: int | None
    head: int | None


def over_limit(facts: Facts, limits: Limits) -> Listing[OverRow]:
    """The cells that the gate refuses on both sides."""
    both = [d for d in facts.report.deltas if is_over(d.base) and is_over(d.head)]
    both.sort(key=lambda d: (-abs((figure_bytes(d.head) or 0) - (figure_bytes(d.base) or 0)), d.key))
    shown = fair_in_order(both, lambda delta: delta.key.model, limits.findings)
    rows = (
        OverRow(clip(d.key.model, NAME_LIMIT), facts.short[d.key.target], figure_bytes(d.base), figure_bytes(d.head))
        for d in shown
    )
    return listing(rows, len(both), "build")


@dataclass(frozen=True, slots=True)
class ReasonGroup:
    """Cells that were not measured for the same reason."""

    reason: str
    cells: Phrase
    count: int


def unmeasured(facts: Facts, limits: Limits) -> Listing[ReasonGroup]:
    """The cells without a measurement, by reason, those on purpose last; whole targets are named as such."""
    groups: dict[tuple[bool, str], list[CellKey]] = {}
    for delta in facts.states["unmeasured"]:
        groups.setdefault((delta.excused, delta.reason), []).append(delta.key)
    ordered = sorted(groups.items(), key=lambda entry: (entry[0][0], -len(entry[1]), entry[0]))
    made = [_reason_group(facts, reason, keys, limits) for (_, reason), keys in ordered[: limits.findings]]
    return listing(made, len(groups), "reason")


def _reason_group(facts: Facts, reason: str, keys: Sequence[CellKey], limits: Limits) -> ReasonGroup:
    targets = {key.target for key in keys}
    words = clip(reason or "no reason given", 300)
    if len(targets) == 1 and not targets & facts.measured_targets:
        said = phrase(code(clip(keys[0].target, NAME_LIMIT)), f" ({plural(len(keys), 'build')})")
    else:
        said = cells_phrase(facts, keys, limits.names)
    return ReasonGroup(words, said, len(keys))


_WHY_CHARS, _LIMIT_CHARS, _ERROR_CHARS, _WHAT_CHARS = 300, 48, 200, 90
_GROUPS, _NAMES = 10, 12
_NOWHERE = "<unknown>:0: error: "
_UNIT = re.compile(r"(?<=\d)(?=[A-Za-z%])")


@dataclass(frozen=True, slots=True)
class Alarm:
    """One line: cells that broke a rule of one metric for one root cause, or that are newly broken alike.

    Attributes:
        mark: the symbol of the worst of it.
        level: `fail`, `warn` or empty for an accepted one.
        cells: which it is about.
        title: what it stands below, one of TITLES.
        cause: the number of the root cause that holds most of the change of each cell; 0 where none is known.
    """

    mark: str
    level: str
    said: Phrase
    cells: tuple[CellKey, ...]
    title: str
    cause: int = 0


@dataclass(frozen=True, slots=True)
class AlarmGroup:
    """Alarms below one title.

    Attributes:
        title: one of TITLES.
        lines: the first of them.
        cells: how many cells all of them are about.
    """

    title: str
    lines: Listing[Alarm]
    cells: int


BROKEN, OVER, ACCEPTED, WARNED = TITLES = ("Newly broken", "Over the limit", "Accepted", "To look at")
_TITLE_OF = {"fail": OVER, "accepted": ACCEPTED, "warn": WARNED}


def alarms(facts: Facts, limits: Limits) -> tuple[AlarmGroup, ...]:
    """Newly broken cells, then what is over a limit, then what was accepted, then warnings: the worst of each first."""
    broken = [_newly_broken(facts, group) for group in grouped(facts, "newly-broken", 1) if _is_told(facts, group)]
    broken += _dead(facts)
    lines, explained = broken, set[str]()
    for cause, findings in matters(facts):
        lines.append(_alarm(facts, findings, cause, limits, explained=findings[0].limit in explained))
        explained.add(findings[0].limit)
    if doubt := doubt_of(facts.report):
        lines = [replace(line, said=phrase(line.said, f" · {doubt}")) for line in lines]
    groups = {title: [line for line in lines if line.title == title] for title in TITLES}
    return tuple(
        AlarmGroup(title, first(found, limits.alarms, "line"), len({key for line in found for key in line.cells}))
        for title, found in groups.items()
        if found
    )


def matters(facts: Facts) -> list[tuple[int, list[Finding]]]:
    """Findings of one level, metric and root cause together, the worst first: the cause's number, or 0, and they.

    Of a part of an artifact the finding about all of it stands for both, where that is as bad.
    """
    news = [one for one in worst_first(facts.report.verdict.news) if not _is_told_elsewhere(facts, one)]
    wholes = {(one.key, mark_of(one)) for one in news if one.metric == "artifact_bytes"}
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for one in news:
        if one.metric not in ARTIFACT_PARTS or (one.key, mark_of(one)) not in wholes:
            cause = cause_of(facts, one.key)[0] if one.metric == "artifact_bytes" else 0
            level = (mark_of(one), one.metric, one.kind, one.limit, one.is_open)
            groups.setdefault((*level, cause), []).append(one)
    return [(key[-1], found) for key, found in groups.items() if isinstance(key[-1], int)]


def cause_of(facts: Facts, key: CellKey) -> tuple[int, int]:
    """The number of the root cause that holds most of what moved in the cell's artifact, and its share in percent.

    What moved counts growth and shrinking alike. 0 and 0 where no root cause has a part in the cell.
    """
    sizes = [(root.by_cell.get(key, 0), -number) for number, root in enumerate(facts.report.root_causes, 1)]
    size, number = max(sizes, default=(0, 0))
    return (-number, 100 * size // sum(size for size, _ in sizes)) if size else (0, 0)


def doubt_of(report: Report) -> str:
    """What is to be said of every alarm where the baseline is an ancestor of the base, with another compiler."""
    gap, distance = report.baseline.between, report.baseline.distance
    if gap is None or not gap.sources:
        return ""
    return f"may come from the {plural(distance, 'commit')} before the base" if distance else "may be of other commits"


def _is_told_elsewhere(facts: Facts, finding: Finding) -> bool:
    """Newly broken cells have lines of their own; how many were not measured is in the first sentence."""
    delta = facts.deltas[finding.key]
    state = delta.state
    if state == "newly-broken" and _is_told(facts, [delta]):
        return True
    return finding.kind == "state" and (state == "broken" or (state == "unmeasured" and finding.level == "warn"))


def _is_told(facts: Facts, group: Sequence[CellDelta]) -> bool:
    return any(finding.metric is None for delta in group for finding in facts.findings.get(delta.key, ()))


def _newly_broken(facts: Facts, group: Sequence[CellDelta]) -> Alarm:
    """Which cells, what happened to them, and the first line of what the compiler said."""
    keys = [delta.key for delta in group]
    marks = {facts.mark(key) for key in keys}
    words, cells = failure_words(*(delta.head for delta in group)), cells_phrase(facts, keys, _NAMES)
    level = next((level for level in ("fail", "warn") if level in marks), "")
    at_first = facts.report.adoption and all(delta.base is None for delta in group)
    said = phrase(cells, ", from the start: " if at_first else ": ", words, _error(group))
    taken = marks == {"accepted"}
    return Alarm("☑️" if taken else "💥", level, said, tuple(keys), ACCEPTED if taken else BROKEN)


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
    heads = [facts.deltas[key].head for key in keys]
    once = sum(head is not None and head.compiles == 1 for head in heads)
    doubt = "" if not once else " · compiled once" if once == len(keys) else f" · {once} of them compiled once"
    mark, about = mark_of(one), phrase(said, *_mostly(facts, keys, cause, limits), doubt)
    return Alarm(MARKS[mark], one.weight, about, keys, _TITLE_OF[mark], cause)


def _mostly(facts: Facts, keys: Sequence[CellKey], cause: int, limits: Limits) -> Iterator[Phrase]:
    """`` · mostly cause 2 (77 %)``: how much of what moved in the cells it holds; in words where it is not shown."""
    if not cause:
        return
    shares = sorted(cause_of(facts, key)[1] for key in keys)
    what = clean(facts.report.root_causes[cause - 1].what.partition(", with ")[0], _WHAT_CHARS)
    is_shown = cause <= shown_roots(facts, limits)
    named = phrase(Span(f"cause {cause}", to=cause_address(cause)) if is_shown else what)
    share = f"{shares[0]} %" if shares[0] == shares[-1] else f"{shares[0]} to {shares[-1]} %"
    yield phrase(" · mostly " if shares[0] >= 50 else " · largest part: ", named, f" ({share})")


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
    unit = finding.quantity.unit
    address = cell_address(finding.key)
    names = [phrase(code(clip(finding.key.model, NAME_LIMIT), address))] if models else []
    names += [phrase(code(facts.short[finding.key.target], "" if models else address))] if targets else []
    base, head = finding.sides
    if head is None:
        return phrase(joined(names, " on "), f" {amount(base, unit)} on base, not known any more")
    values = amount(head, unit) if base is None else f"{sides(base, head, unit)}"
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
    return phrase(
        about, f"{values}{grown}; ", limit_words(finding, explained=explained), f"; {OPEN}" if finding.is_open else ""
    )


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


def known_lines(facts: Facts, limits: Limits) -> Listing[Phrase]:
    """What base had and head is no worse in: ``stack allocations, limit 32 KiB: `m` on `cuda` ``."""
    groups: dict[tuple[str | None, str, str], list[Finding]] = {}
    for one in facts.report.verdict.findings:
        if one.known and one.metric is not None:
            groups.setdefault((one.metric, one.kind, one.limit), []).append(one)
    lines = []
    for found in groups.values():
        label = facts.label(found[0].quantity, found[0].key)
        cells = cells_phrase(facts, [one.key for one in found], min(_NAMES, limits.names))
        lines.append(phrase(f"◽ {label}, {limit_words(found[0], alone=False)}: ", cells))
    return first(lines, limits.findings, "known finding")


def state_words(delta: CellDelta) -> Phrase:
    """What a cell's state says: `is newly broken: …`, `was removed`."""
    if delta.state == "newly-broken" and delta.head is not None:
        return phrase("is newly broken: ", failure_words(delta.head))
    if delta.state == "broken" and delta.head is not None:
        return phrase("is broken on both sides: ", failure_words(delta.head))
    words = {"removed": "was removed", "broken": "is broken on both sides", "unmeasured": "was not measured"}
    return phrase(words.get(delta.state, f"is {delta.state}"))


def close(facts: Facts, limits: Limits, news: bool) -> Listing[Phrase]:
    """Values that keep a limit and use nine tenths of it: those that grew or are new, or else those that did not."""
    found = [one for one in facts.report.verdict.budgets if (one.base is None or one.head > one.base) == news]
    shown = found[: 2 if news else limits.names]
    return listing((_budget(facts, one) for one in shown), len(found), "value")


def _budget(facts: Facts, one: Budget) -> Phrase:
    """``stack frame of `bert` on `x86_64`: 8,184 of 8,192 B, 99.9 %``; never 100 % for less."""
    metric, share = one.quantity, 100 * one.head / one.limit
    shown = f"{share:.1f}" if one.head == one.limit or round(share, 1) < 100 else ">99.9"
    said = f": {one.head:,} of {amount(one.limit, metric.unit)}, {shown} %"
    return phrase(
        f"{facts.label(metric, one.key)} of ",
        code(clip(one.key.model, NAME_LIMIT)),
        " on ",
        code(facts.short[one.key.target]),
        said,
    )


@dataclass(frozen=True, slots=True)
class AcceptedGroup:
    """What one person accepted for one reason.

    Attributes:
        who: the login.
        why: in that person's words; may be empty.
        findings: how many.
        cells: which cells they are about, in words.
    """

    who: str
    why: str
    findings: int
    cells: Phrase


def accepted(facts: Facts, limits: Limits) -> Listing[AcceptedGroup]:
    """Accepted findings by person and reason, the worst first."""
    groups: dict[Accepted, list[Finding]] = {}
    for finding in facts.report.verdict.findings:
        if finding.accepted is not None:
            groups.setdefault(finding.accepted, []).append(finding)
    rows = []
    for by, found in islice(groups.items(), _GROUPS):
        cells = cells_phrase(facts, sorted({finding.key for finding in found}), min(_NAMES, limits.names))
        rows.append(AcceptedGroup(clean(by.who, NAME_LIMIT), clean(by.why, _WHY_CHARS), len(found), cells))
    return listing(rows, len(groups), "acceptance")
