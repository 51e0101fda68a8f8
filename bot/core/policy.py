"""What a judgement is: findings and the verdict they add up to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Literal

from msgspec.structs import replace

from bot.core.delta import STATES, CellDelta, MetricDelta, outcome
from bot.core.metrics import METRIC_BY_ID, METRIC_IDS, METRICS, Metric, Unit
from bot.core.planned import covers
from bot.core.record import Small, Spread, Value, difference, spread
from bot.core.snapshot import Cell, CellKey, Failure

Level = Literal["warn", "fail"]
Status = Literal["pass", "warn", "fail"]  # what a rule makes of a cell
VerdictStatus = Literal[
    "pass", "warn", "fail", "unknown"
]  # unknown: nothing could be compared


class Finding(Small, frozen=True):
    """One rule broken by one cell."""

    key: CellKey
    level: Level
    metric: (
        str | None
    )  # the metric's id; None where the state of the cell is the finding
    rule: str
    # `change` (absolute and/or relative), `limit`, `state`, or `unknown` (a known value
    # is not any more)
    kind: str
    # the level that was exceeded, as the configuration wrote it (`4KiB and 1.5%`,
    # `32KiB`, `newly-broken`)
    limit: str
    # the value judged, as text with its unit and sign (`+33.5 KiB (+66.5 %)`), never
    # empty
    actual: str
    base: int | None = None
    head: int | None = None
    line: int | None = (
        None  # line of the configuration at which the rule stands; None for built-in rules
    )
    accepted: str | None = (
        None  # by whom, where a person with write access did; then it does not fail any more
    )
    # for states, how the cell ended on base and on head: `ok`, `failed: compile,
    # SIGSEGV`, `absent`, …; then `base` and `head` are the figures of the compiler's
    # memory gates, where they refused
    outcomes: tuple[str, str] | None = None
    # the largest growth, or for a limit the largest value, that the level allows, in
    # the metric's unit
    allowed: int | None = None
    # True where base had it, too, and head is not worse: this change did not do it
    known: bool = False
    # True where it exceeds the level with some of the values that were seen, and not
    # with others: the compiler does not repeat itself. Then `base` and `head` are those
    # that alarm most, else that alarm least.
    is_open: bool = False
    # every value that was seen of base and of head, where these are several
    seen: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    failure: Failure | None = (
        None  # for states, why the cell has no ordinary artifact on head
    )
    own: Metric | None = None  # the metric, where a configuration declares it
    reason: str = ""  # of the acceptance; empty where none was given
    grown_since: int | None = (
        None  # growth since a smaller value was accepted; None where none was
    )

    @property
    def sides(self) -> tuple[Value, Value]:
        """Base and head as they are told."""
        return (
            (self.base, self.head)
            if self.seen is None
            else (spread(self.seen[0]), spread(self.seen[1]))
        )

    @property
    def quantity(self) -> Metric:
        """The metric itself, of a finding that is about one."""
        return self.own or METRIC_BY_ID[self.metric or ""]

    @property
    def weight(self) -> Status:
        """What it does to the verdict: one that base had does nothing, an accepted one warns."""
        if self.known:
            return "pass"
        return "warn" if self.accepted is not None else self.level


class Verdict(Small, frozen=True):
    """The outcome of all rules over all cells; findings are sorted, worst first."""

    status: VerdictStatus
    findings: tuple[Finding, ...] = ()

    @property
    def news(self) -> tuple[Finding, ...]:
        """The findings of this change: those that base had are left out."""
        return tuple(finding for finding in self.findings if not finding.known)

    @property
    def failing(self) -> tuple[Finding, ...]:
        """The findings that fail the check: accepted ones and those that base had are left out."""
        return tuple(finding for finding in self.findings if finding.weight == "fail")


def status_of(findings: Iterable[Finding]) -> Status:
    """The worst that any of them does to the verdict."""
    weights = {finding.weight for finding in findings}
    return "fail" if "fail" in weights else "warn" if "warn" in weights else "pass"


# The rules of the verdict, in prose:
#
# * Thresholds are ordered rules. For each cell and metric the first rule decides whose metric, model and target globs
#   (case counts) all match; the rules below it are not looked at, whatever it says.
# * A rule has up to two levels, `warn` and `fail`. A level is exceeded where its change or its limit is exceeded. The
#   change is exceeded when head − base is greater than `absolute` and greater than `relative` times the base; where
#   only one of the two is given, that one decides. The limit is exceeded when the head value is greater than `limit`.
#   Greater means strictly greater: growth of exactly 4 KiB does not exceed `4KiB`.
# * Growth from zero exceeds every relative level: there is no base that would make it small. Where the base is not
#   known there is no change to judge, only the limit: so a new cell is held to limits alone.
# * Where the compiler does not repeat itself, a metric is the range of all that its command gave. It exceeds a level
#   where it does so whatever value of the range is taken: with the largest base and the smallest head. Where it does
#   with some of them alone, that is a warning which says so, whatever the level; none where both sides have the same
#   values.
# * Values are judged wherever head was measured, also in cells that the stack gate broke. Shrinking is never a finding.
# * A finding that base had, too, is `known`, and does nothing to the verdict: a limit that base exceeded by as much or
#   more, and a cell that is broken on both sides alike.
# * `fail` wins over `warn`, and within a level the limit over the change: one finding per metric of a cell at most.
# * A metric that repeated compiles do not repeat (time, memory) is never judged, whatever the rule says.
# * A value that was known on base and is not on a measured head is a `warn` of its own kind, `unknown`.
# * A rule without levels only informs: nothing it decides is ever a finding.
# * The state of a cell can be a finding too: by default a newly broken cell fails; a removed one warns, and so does one
#   that was planned and not measured: lost, or timed out. One that is not measured on purpose, as its target cannot be
#   compiled stand-alone, is no finding.
# * A model of which no build could be measured on either side is not measured, too: its broken cells get the level of
#   `unmeasured`, where that is worse than that of `broken`. What base could not compile either, and fails of the same
#   kind with no larger figure, is `known`: other words in its message are no news.
# * The verdict is the worst level among the findings that are not known. They are sorted worst first: those that are
#   not known, fail before warn, states before metrics, register spills before the rest, bytes before counts, then by
#   how much more there is than the level allows, in bytes or as a count, then by cell and metric.
# * Where nothing was compared there is no verdict: it is `unknown`, whatever the findings. Compared is a cell that was
#   measured on both sides, that is fixed, or newly broken where that is a finding.


Dimension = Literal["own", "bytes", "ms"]
"""`own`: a number without a unit is in the unit of the metric it is compared with."""

DEFAULT_STATES: Mapping[str, Status] = {
    **dict.fromkeys(STATES, "pass"),
    "newly-broken": "fail",
    "removed": "warn",
    "unmeasured": "warn",
}
_COMPARED = frozenset({"same", "changed", "fixed"})
_SEVERITY: tuple[Status, ...] = ("pass", "warn", "fail")

OPEN = (  # of a level that some of the values that were seen exceed
    "open: the build is non-deterministic"
)

_STEPS: dict[tuple[Dimension, Unit], int] = {
    ("bytes", "bytes"): 1,
    ("bytes", "KiB"): 1024,
    ("ms", "ms"): 1,
}
_SUFFIX: dict[Unit, str] = {"count": "", "bytes": " B", "ms": " ms", "KiB": " KiB"}


class Amount(Small, frozen=True):
    """A whole number of steps of its dimension, and how the configuration wrote it."""

    value: int
    dimension: Dimension
    text: str

    def steps(self, unit: Unit) -> int:
        """The amount in a metric's unit.

        Raises ValueError (one line for the user) if it does not fit.
        """
        if self.dimension == "own":
            return self.value
        scale = _STEPS.get((self.dimension, unit))
        if scale is None:
            raise ValueError(
                f"{self.text!r} is not a"
                f" {'count' if unit == 'count' else f'number of {unit}'}"
            )
        if self.value % scale:
            raise ValueError(f"{self.text!r} is not a whole number of {unit}")
        return self.value // scale


class Ratio(Small, frozen=True):
    """A share of the base (1/2 is 50 %), and how the configuration wrote it."""

    value: Fraction
    text: str


class LevelSpec(Small, frozen=True):
    """One level of a rule; what is None is not asked for."""

    absolute: Amount | None = None
    relative: Ratio | None = None
    limit: Amount | None = None

    @property
    def change_text(self) -> str:
        """The change that is allowed, as the configuration wrote it: `4KiB and 1.5%`."""
        return " and ".join(
            part.text for part in (self.absolute, self.relative) if part is not None
        )


class Rule(Small, frozen=True):
    """One rule: which cells and metrics it decides, and its levels."""

    name: str
    # metrics, models, targets: globs; the rule matches where one of each does
    metrics: tuple[str, ...]
    models: tuple[str, ...] = ("*",)
    targets: tuple[str, ...] = ("*",)
    warn: LevelSpec | None = None
    fail: LevelSpec | None = None
    line: int | None = None  # line of the configuration at which it stands

    def levels(self) -> tuple[tuple[Level, LevelSpec], ...]:
        """The levels given, worst first."""
        levels: tuple[tuple[Level, LevelSpec | None], ...] = (
            ("fail", self.fail),
            ("warn", self.warn),
        )
        return tuple((level, spec) for level, spec in levels if spec is not None)

    def matches_cell(self, key: CellKey) -> bool:
        """True where the rule is about this cell."""
        return any_match(self.models, key.model) and any_match(self.targets, key.target)


def any_match(globs: Collection[str], name: str) -> bool:
    """True where one of the globs matches the whole name."""
    return "*" in globs or any(fnmatchcase(name, glob) for glob in globs)


def judge(
    deltas: Sequence[CellDelta],
    rules: Sequence[Rule],
    states: Mapping[str, Status] = DEFAULT_STATES,
) -> Verdict:
    """Hold every cell against the rules (see the prose above) and add up the verdict.

    `states`: cell state → what it does; one that is not in it passes.
    """
    by_metric = {
        metric.id: [rule for rule in rules if any_match(rule.metrics, metric.id)]
        for metric in METRICS
        if metric.exact
    }
    own = {
        metric.id: metric.own
        for delta in deltas
        for metric in delta.metrics.values()
        if metric.own
    }
    by_metric |= {id_: own_rules(rules, metric) for id_, metric in own.items()}
    judged, first = list[Finding](), dict[tuple[bool, ...], dict[str, Rule]]()
    for delta in deltas:
        matching = tuple([rule.matches_cell(delta.key) for rule in rules])
        if (
            matching not in first
        ):  # most cells have the same rules: metric → the first that is about it
            of_cell = {
                id(rule)
                for rule, matches in zip(rules, matching, strict=True)
                if matches
            }
            ours = {
                id_: [rule for rule in each if id(rule) in of_cell]
                for id_, each in by_metric.items()
            }
            first[matching] = {id_: each[0] for id_, each in ours.items() if each}
        for id_, rule in (
            first[matching].items() if delta.head and delta.head.measured else ()
        ):
            if metric := delta.metrics.get(id_):
                judged += _judge_metric(delta, metric, rule)
    findings = tuple(sorted([*judged, *_judge_states(deltas, states)], key=_order))
    compared = any(delta.state in _COMPARED for delta in deltas)
    is_known = compared or any(finding.limit == "newly-broken" for finding in findings)
    return Verdict(status_of(findings) if is_known else "unknown", findings)


def own_rules(rules: Sequence[Rule], metric: Metric) -> list[Rule]:
    """The rules for a declared metric, the one that it names first.

    Not those whose amounts are of other units.
    """
    meant = [
        rule
        for rule in rules
        if rule.name == metric.rule or any_match(rule.metrics, metric.id)
    ]
    return sorted(
        (rule for rule in meant if not misfit(rule, metric)),
        key=lambda rule: rule.name != metric.rule,
    )


def misfit(rule: Rule, metric: Metric) -> str:
    """Why a rule cannot judge the metric: an amount of another unit; empty where it can."""
    try:
        for _, spec in rule.levels():
            for amount in filter(None, (spec.absolute, spec.limit)):
                amount.steps(metric.unit)
    except ValueError as error:
        return str(error)
    return ""


_SPILLS = frozenset(metric.id for metric in METRICS if metric.rule == "register spills")


def _order(finding: Finding) -> tuple[bool, bool, bool, bool, bool, int, CellKey, int]:
    """Worst first (see the module's text)."""
    place = METRIC_IDS.index(finding.metric) if finding.metric in METRIC_IDS else -1
    unit = finding.quantity.unit if finding.metric else "count"
    size = excess(finding) * _STEPS.get(("bytes", unit), 1)
    states_last = finding.metric is not None
    spills_last = (
        finding.metric not in _SPILLS
    )  # a kernel that spills is slower, however small it has become
    is_count = unit == "count"
    return (
        finding.known,
        finding.level == "warn",
        states_last,
        spills_last,
        is_count,
        -size,
        finding.key,
        place,
    )


def excess(finding: Finding) -> int:
    """By how much the value, or its growth, is more than the level allows, in the metric's unit.

    0 where unknown.
    """
    if finding.allowed is None or finding.head is None:
        return 0
    value = (
        finding.head if finding.kind == "limit" else finding.head - (finding.base or 0)
    )
    return value - finding.allowed


def _judge_states(
    deltas: Sequence[CellDelta], states: Mapping[str, Status]
) -> Iterator[Finding]:
    measured = {
        delta.key.model
        for delta in deltas
        for cell in (delta.base, delta.head)
        if cell and cell.measured
    }
    levels: dict[str, Status] = {state: states.get(state, "pass") for state in STATES}
    dead = max(levels["broken"], levels["unmeasured"], key=_SEVERITY.index)
    for delta in deltas:
        compiles_nowhere = delta.state == "broken" and delta.key.model not in measured
        level = dead if compiles_nowhere else levels[delta.state]
        if level == "pass" or delta.excused:
            continue
        sides = (delta.base, delta.head)
        base, head = (
            cell.failure.figure_bytes if cell and cell.failure else None
            for cell in sides
        )
        outcomes = (outcome(delta.base), outcome(delta.head))
        actual = delta.reason or " → ".join(
            cell.status if cell else "absent" for cell in sides
        )
        is_known = (
            delta.state == "broken"
            and len(set(outcomes)) == 1
            and (head or 0) <= (base or head or 0)
        )
        fields = (
            delta.key,
            level,
            None,
            "states",
            "state",
            delta.state,
            actual,
            base,
            head,
        )
        failure = delta.head.failure if delta.head else None
        yield Finding(*fields, outcomes=outcomes, known=is_known, failure=failure)


def _judge_metric(
    delta: CellDelta, metric: MetricDelta, rule: Rule
) -> Iterator[Finding]:
    if metric.head is None:
        if metric.base is not None and rule.levels():
            reasons = delta.head.reasons if delta.head else {}
            reason = reasons.get(metric.id) or reasons.get("*")
            actual = (
                f"{_amount(metric.base, metric.quantity.unit)} → not"
                f" known{f': {reason}' if reason else ''}"
            )
            fields = (
                metric.id,
                rule.name,
                "unknown",
                "known on base",
                actual,
                metric.base,
            )
            yield Finding(delta.key, "warn", *fields, line=rule.line, own=metric.own)
        return
    finding = next(_exceeded(delta, metric.least_alarming, rule), None)
    if finding is None and metric.seen is not None and metric.change != 0:
        finding = next(
            (
                one
                for one in _exceeded(delta, metric.most_alarming, rule)
                if not one.known
            ),
            None,
        )
        finding = replace(finding, level="warn", is_open=True) if finding else None
    if finding is not None and metric.seen is not None:
        actual = (
            change_text(metric)
            if finding.kind == "change"
            else _amount(metric.sides[1], metric.quantity.unit)
        )
        finding = replace(
            finding,
            actual=f"{actual}, {OPEN}" if finding.is_open else actual,
            seen=metric.seen,
        )
    if finding is not None:
        yield finding


def _exceeded(delta: CellDelta, metric: MetricDelta, rule: Rule) -> Iterator[Finding]:
    """A finding for every level that is exceeded, worst first.

    Of a level the limit before the change.
    """
    head, base, unit = metric.head or 0, metric.base, metric.quantity.unit
    values, own = (base, head, rule.line), metric.own
    for level, spec in rule.levels():
        fields = (delta.key, level, metric.id, rule.name)
        if spec.limit is not None and head > (limit := spec.limit.steps(unit)):
            is_known = base is not None and head <= base
            actual = _amount(head, unit)
            yield Finding(
                *fields,
                "limit",
                spec.limit.text,
                actual,
                *values,
                allowed=limit,
                known=is_known,
                own=own,
            )
        if base is None or head <= base or not spec.change_text:
            continue
        share = int(spec.relative.value * base) if spec.relative else 0
        allowed = max(spec.absolute.steps(unit) if spec.absolute else 0, share)
        if head - base > allowed:
            yield Finding(
                *fields,
                "change",
                spec.change_text,
                change_text(metric),
                *values,
                allowed=allowed,
                own=own,
            )


def _amount(value: Value, unit: Unit, sign: str = "") -> str:
    if isinstance(value, Spread):
        return f"{value.low:{sign},}..{value.high:{sign},}{_SUFFIX[unit]}"
    return f"{value:{sign},}{_SUFFIX[unit]}"


def change_text(metric: MetricDelta) -> str:
    """A change in words: `+33,552 B (+66.5 %)`, `+2 (from 0)`, `-304..+1,968 B`.

    Empty where it is not known.
    """
    change = difference(*metric.sides)
    if change is None or isinstance(change, Spread):
        return _amount(change, metric.quantity.unit, "+") if change else ""
    tenths = round(Fraction(1000 * change, metric.base or 1))
    share = f"{'-' if tenths < 0 else '+'}{abs(tenths) // 10:,}.{abs(tenths) % 10} %"
    share = (
        "from 0"
        if not metric.base
        else "under 0.1 %"
        if change and not tenths
        else share
    )
    return f"{_amount(change, metric.quantity.unit, '+')} ({share})"


def metrics_of(rule: Rule, ids: Iterable[str] = METRIC_IDS) -> tuple[str, ...]:
    """The metric ids that the rule's globs match; `ids`: all that there are."""
    return tuple(id_ for id_ in ids if any_match(rule.metrics, id_))


def is_catch_all(rule: Rule) -> bool:
    """True where the rule matches every metric of every cell, whatever they are called."""
    return all(
        _cover(globs, ("*",)) for globs in (rule.metrics, rule.models, rule.targets)
    )


def hiding(
    above: Iterable[Rule], rule: Rule, ids: Iterable[str] = METRIC_IDS
) -> Rule | None:
    """The first of the rules above one that leaves nothing to it, as far as `covers` proves it.

    None without one.
    """
    metrics = metrics_of(rule, ids)
    for earlier in above:
        matches_all = all(any_match(earlier.metrics, metric) for metric in metrics)
        if (
            matches_all
            and _cover(earlier.models, rule.models)
            and _cover(earlier.targets, rule.targets)
        ):
            return earlier
    return None


def _cover(wide: Iterable[str], narrow: Iterable[str]) -> bool:
    return all(any(covers(cover, glob) for cover in wide) for glob in narrow)


# What a measurement says of the machine it was made on: such a reason begins with HERE,
# wherever it is shown. A cell that has one, that a timeout or a signal ended is never
# kept: elsewhere it may end otherwise.

HERE = "on this machine: "
RAN_OUT = (  # in the first line of the reason where a compile needed more memory than there was
    "memory ran out"
)


def here(reason: str) -> str:
    """A reason that holds on this machine only."""
    return reason if is_local(reason) else HERE + reason


def is_local(reason: str) -> bool:
    """True where the reason, or one that it quotes, holds on this machine only."""
    return HERE in reason


def lasts(cell: Cell) -> bool:
    """True where the cell says nothing but what its compiler, its model and its flags decide."""
    failure = cell.failure
    if failure and (
        failure.stage == "timeout"
        or failure.signal is not None
        or is_local(failure.message)
    ):
        return False
    return not any(map(is_local, cell.reasons.values()))
