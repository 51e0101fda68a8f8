"""What alarms: a line for each cell that broke a rule, who accepted it, and values that are close to a limit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from bot.core.delta import CellDelta, outcome
from bot.core.metrics import ARTIFACT_PARTS, METRIC_BY_ID
from bot.core.policy import OPEN, Accepted, Budget, Finding
from bot.core.report import Report
from bot.core.snapshot import CellKey
from bot.core.spread import difference
from bot.render.text.escape import clean, clip
from bot.render.text.filters import amount, plural, relative, sides, signed
from bot.render.text.page_addresses import cell_address
from bot.render.text.phrase import Phrase, code, phrase
from bot.render.text.selection import Limits, Listing, fair_in_order, listing
from bot.render.view.facts import MARKS, NAME_LIMIT, Facts, cells_phrase, mark_of, whole_of, worst_first
from bot.render.view.failures import failure_words, grouped, trimmed

_WHY_CHARS, _LIMIT_CHARS, _ERROR_CHARS = 300, 48, 200
_GROUPS, _NAMES, _ALSO = 10, 12, 2
_NOWHERE = "<unknown>:0: error: "
_UNIT = re.compile(r"(?<=\d)(?=[A-Za-z%])")
Cause = Callable[[CellKey], str]
"""Which of the root causes that are shown holds most of a cell: `cause 1`; empty for none."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """One line: a cell that broke a rule, or cells that are newly broken alike.

    Attributes:
        mark: the symbol of the worst of it.
        level: `fail`, `warn` or empty for an accepted one.
        cells: how many cells it is about.
    """

    mark: str
    level: str
    said: Phrase
    cells: int = 1


@dataclass(frozen=True, slots=True)
class Alarms:
    """What alarms most.

    Attributes:
        lines: the first of them.
        cells: how many cells have such an alarm.
        warned: how many other cells are at a warning level only.
    """

    lines: tuple[Alarm, ...]
    cells: int
    warned: int

    @property
    def more(self) -> int:
        """Cells with such an alarm that have no line."""
        return self.cells - sum(line.cells for line in self.lines)


def alarms(facts: Facts, limits: Limits, cause: Cause) -> Alarms:
    """Newly broken cells, then the cells over their limit, the worst first; models take turns where they are many.

    Cells that only reached a warning level have lines where nothing is worse.
    """
    broken = [_newly_broken(facts, group) for group in grouped(facts, "newly-broken", 1) if _is_told(facts, group)]
    broken += _dead(facts)
    found = _by_cell(facts)
    over = [key for key, findings in found.items() if findings[0].level == "fail"]
    told = over or ([] if broken else list(found))
    shown = fair_in_order(told, lambda key: key.model, max(0, limits.alarms - len(broken)))
    lines = (*broken[: limits.alarms], *(_alarm(facts, found[key], cause(key)) for key in shown))
    if doubt := doubt_of(facts.report):
        lines = tuple(replace(line, said=phrase(line.said, f" · {doubt}")) for line in lines)
    cells = sum(line.cells for line in broken) + len(told)
    return Alarms(lines, cells, len(found) - len(told))


def doubt_of(report: Report) -> str:
    """What is to be said of every alarm where the baseline is an ancestor of the base, with another compiler."""
    gap, distance = report.baseline.between, report.baseline.distance
    if gap is None or not gap.sources:
        return ""
    return f"may come from the {plural(distance, 'commit')} before the base" if distance else "may be of other commits"


def _by_cell(facts: Facts) -> dict[CellKey, list[Finding]]:
    """Cell → its findings, worst first; failing cells come first, then accepted ones."""
    found: dict[CellKey, list[Finding]] = {}
    for finding in worst_first(facts.report.verdict.news):
        if not _is_told_elsewhere(facts, finding):
            found.setdefault(finding.key, []).append(finding)
    return found


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
    """What happened, to which cells, and the first line of what the compiler said."""
    marks = {facts.mark(delta.key) for delta in group}
    words, cells = failure_words(*(delta.head for delta in group)), cells_phrase(facts, [d.key for d in group], _NAMES)
    level = next((level for level in ("fail", "warn") if level in marks), "")
    mark = "☑️" if marks == {"accepted"} else "💥"
    at_first = facts.report.adoption and all(delta.base is None for delta in group)
    said = "broken from the start: " if at_first else "newly broken: "
    return Alarm(mark, level, phrase(said, cells, ": ", words, _error(group)), len(group))


def _dead(facts: Facts) -> Iterator[Alarm]:
    """Models that compile nowhere on either side, and other broken cells that the rules do not allow."""
    news = {finding.key for finding in facts.report.verdict.news if finding.kind == "state"}
    models: dict[str, list[CellDelta]] = {}
    for delta in facts.states["broken"]:
        if delta.key in news:
            models.setdefault(delta.key.model, []).append(delta)
    for group in models.values():
        cells, mark = cells_phrase(facts, [delta.key for delta in group], _NAMES), facts.mark(group[0].key)
        alike = len({outcome(delta.head) for delta in group}) == 1
        words = failure_words(*(delta.head for delta in group)) if alike else phrase("fails")
        said = phrase("broken on both sides: ", cells, ": ", words, _error(group))
        yield Alarm(MARKS[mark], "fail" if mark == "fail" else "warn", said, len(group))


def _error(group: Sequence[CellDelta]) -> Phrase:
    """The first line of what the compiler said; one cell's, where it is not the same for all."""
    failures = [delta.head.failure for delta in group if delta.head and delta.head.failure]
    lines = [trimmed(failure.message, 1)[0] for failure in failures if failure.stage != "stack-limit"]
    if not lines or not lines[0]:
        return ()
    said = clip(lines[0].removeprefix(_NOWHERE), _ERROR_CHARS)
    return phrase(": " if len(set(lines)) == 1 else ", for example: ", code(said))


def _alarm(facts: Facts, findings: Sequence[Finding], cause: str) -> Alarm:
    """``artifact, `m` on `x86_64`: 50,438 → 83,990 B, +66.5 %; allowed: growth up to 4 KiB or 5 % · cause 1``."""
    first = whole_of(findings[0], findings)
    said = finding_words(facts, first)
    others = [one for one in findings if one is not first and not _is_part(one, first)]
    also = phrase(" · also ", ", ".join(_short(facts, one) for one in others[:_ALSO]), _more(others)) if others else ()
    head = facts.deltas[first.key].head
    once = " · compiled once" if head is not None and head.compiles == 1 else ""
    return Alarm(MARKS[mark_of(first)], first.weight, phrase(said, also, f" · {cause}" if cause else "", once))


def _is_part(finding: Finding, whole: Finding) -> bool:
    return whole.metric == "artifact_bytes" and finding.metric in ARTIFACT_PARTS


def _more(others: Sequence[Finding]) -> str:
    return f" and {len(others) - _ALSO} more" if len(others) > _ALSO else ""


def _short(facts: Facts, finding: Finding) -> str:
    """`executables +2`."""
    if finding.metric is None:
        return clean(finding.limit).replace("-", " ")
    metric = METRIC_BY_ID[finding.metric]
    label = facts.label(metric, finding.key)
    base, head = finding.sides
    if finding.kind == "limit":
        return f"{label} {amount(head, metric.unit)}, {'open' if finding.is_open else 'over its limit'}"
    return f"{label} {amount(head, metric.unit) if base is None else signed(difference(base, head), metric.unit)}"


def finding_words(facts: Facts, finding: Finding, *, named: bool = True) -> Phrase:
    """A finding as a clause: what, where (unless not `named`), both values, and what is allowed."""
    model = code(clip(finding.key.model, NAME_LIMIT), cell_address(finding.key))
    cell = phrase(model, " on ", code(facts.short[finding.key.target]))
    if finding.metric is None:
        return phrase(*(cell, " ") if named else ("the cell ",), state_words(facts.deltas[finding.key]))
    metric = METRIC_BY_ID[finding.metric]
    about = phrase(facts.label(metric, finding.key), *(", ", cell) if named else (), ": ")
    if finding.head is None:
        return phrase(about, f"{amount(finding.base, metric.unit)} on base, not known any more")
    base, head = finding.sides
    values, doubt = sides(base, head, metric.unit) if base is not None else amount(head, metric.unit), ""
    if finding.is_open:
        doubt = f"; {OPEN}"
    if finding.kind == "limit":
        return phrase(about, f"{values}; ", *_of_limit(finding), doubt)
    return phrase(about, f"{values}, {relative(base, head)}; ", allowed_words(finding.limit), doubt)


def _of_limit(finding: Finding) -> Iterator[Phrase]:
    yield phrase("allowed: up to ", clip(_spaced(finding.limit), _LIMIT_CHARS))
    if finding.allowed and finding.seen is None:
        share = 100 * (finding.head or 0) / finding.allowed
        yield phrase(f", {f'{share:,.1f}' if round(share, 1) > 100 else '>100.0'} % of it")


def allowed_words(limit: str) -> Phrase:
    """A level that growth exceeded: of two amounts both must be, so that growth up to either is allowed."""
    return phrase("allowed: growth up to ", clip(_spaced(limit.replace(" and ", " or ")), _LIMIT_CHARS))


def _spaced(text: str) -> str:
    """`4KiB` as `4 KiB`."""
    return _UNIT.sub(" ", clean(text))


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
    metric, share = METRIC_BY_ID[one.metric], 100 * one.head / one.limit
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
