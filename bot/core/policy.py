"""Judge the differences between two sides: the rules of the verdict.

* Thresholds are ordered rules. For each cell and metric, the first rule whose metric,
  model and target globs all match decides. Case counts. The rules below it are ignored.
  For a declared metric, the rule that it names comes first.
* A rule has up to two levels, `warn` and `fail`. A level is exceeded if its change or
  its limit is exceeded.
* The change is exceeded if head − base is greater than `absolute` and greater than
  `relative` times the base. If only one of the two is given, that one decides.
* The limit is exceeded if the head value is greater than `limit`. Greater means
  strictly greater: growth of exactly 4 KiB does not exceed `4KiB`.
* Growth from zero exceeds every relative level: there is no base that would make it
  small. If the base is not known, only the limit is judged. So a new cell is held to
  limits alone.
* In a non-deterministic build, a metric is the range of all values that its command
  gave. A level is exceeded if even the largest base and the smallest head exceed it.
  If only some of the values exceed it, the finding is a warning that says so, whatever
  the level. There is no such warning if both sides have the same values.
* Values are judged wherever head was measured, also in cells that the stack gate
  broke. Shrinking is never a finding.
* A finding that base had, too, is `known`, and does not change the verdict. It is a
  limit that base exceeded by as much or more, or a cell that already fails on base in
  the same way.
* `fail` wins over `warn`, and within a level the limit over the change: there is at
  most one finding per metric of a cell.
* A metric that differs from compile to compile (time, memory) is never judged.
* A value that was known on base, and is not on a measured head, is a `warn` of its own
  kind, `unknown`.
* A rule without levels only informs: it never makes a finding.
* The state of a cell can be a finding, too. By default a newly failing cell fails the
  check. A removed one warns, and so does one that was planned and not measured: lost,
  or timed out. A cell that is not measured on purpose is no finding: its target cannot
  be compiled stand-alone.
* A model without a measured build on either side counts as not measured, too: its
  broken cells get the level of `unmeasured`, if that is worse than that of `broken`.
* A cell that base could not compile either is `known` if it fails in the same way with
  no larger figure. Other words in its message are no news.
* The verdict is the worst level among the findings that are not known.
* Findings are sorted worst first: those that are not known, fail before warn, states
  before metrics, register spills before the rest, bytes before counts. Then they are
  sorted by how far they exceed the level, and by cell and metric.
* If nothing was compared, the verdict is `unknown`, whatever the findings. A cell is
  compared if it was measured on both sides, or if it is fixed. A newly failing cell is
  compared if it is a finding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from msgspec.structs import replace

from bot.core.delta import STATES, CellDelta, MetricDelta, outcome
from bot.core.findings import Finding, Level, Status, Verdict, status_of
from bot.core.metrics import METRIC_IDS, METRICS, Metric, Unit
from bot.core.record import Spread, Value, difference
from bot.core.rules import (
    DEFAULT_STATES,
    UNIT_STEPS,
    UNIT_SUFFIXES,
    LevelSpec,
    Rule,
    any_match,
    own_rules,
)
from bot.core.snapshot import Cell, CellKey

_COMPARED = frozenset({"same", "changed", "fixed"})
_SEVERITY: tuple[Status, ...] = ("pass", "warn", "fail")

# the words for a level that only some of the seen values exceed
OPEN = "open: the build is non-deterministic"


def judge(
    deltas: Sequence[CellDelta],
    rules: Sequence[Rule],
    states: Mapping[str, Status] = DEFAULT_STATES,
) -> Verdict:
    """Judge every cell by the rules of the module's docstring, and return the verdict.

    `states`: cell state → its level; a state that is missing passes.
    """
    by_metric = _rules_by_metric(deltas, rules)
    judged = list[Finding]()
    # most cells have the same rules: metric → the first that is about it
    first = dict[tuple[bool, ...], dict[str, Rule]]()
    for delta in deltas:
        matching = tuple([rule.matches_cell(delta.key) for rule in rules])
        if matching not in first:
            first[matching] = _first_rules(by_metric, rules, matching)
        if delta.head is None or not delta.head.measured:
            continue
        for id_, rule in first[matching].items():
            if metric := delta.metrics.get(id_):
                judged += _judge_metric(delta, metric, rule)
    findings = tuple(sorted([*judged, *_judge_states(deltas, states)], key=_order))
    compared = any(delta.state in _COMPARED for delta in deltas)
    is_known = compared or any(finding.limit == "newly-broken" for finding in findings)
    return Verdict(status_of(findings) if is_known else "unknown", findings)


def _rules_by_metric(
    deltas: Sequence[CellDelta], rules: Sequence[Rule]
) -> dict[str, list[Rule]]:
    """Return metric → its rules; built-in metrics come first, then declared ones."""
    by_metric = dict[str, list[Rule]]()
    for built_in in METRICS:
        if built_in.exact:
            id_ = built_in.id
            by_metric[id_] = [rule for rule in rules if any_match(rule.metrics, id_)]
    declared = dict[str, Metric]()
    for delta in deltas:
        for metric in delta.metrics.values():
            if metric.own:
                declared[metric.id] = metric.own
    for id_, own_metric in declared.items():
        by_metric[id_] = own_rules(rules, own_metric)
    return by_metric


def _first_rules(
    by_metric: Mapping[str, Sequence[Rule]],
    rules: Sequence[Rule],
    matching: Sequence[bool],
) -> dict[str, Rule]:
    """Return metric → the first rule that decides it, for the cells that match so.

    Args:
        matching: for each rule, whether it is about the cell.
    """
    of_cell = set()
    for rule, matches in zip(rules, matching, strict=True):
        if matches:
            of_cell.add(id(rule))
    first = dict[str, Rule]()
    for id_, candidates in by_metric.items():
        for rule in candidates:
            if id(rule) in of_cell:
                first[id_] = rule
                break
    return first


_SPILLS = frozenset(metric.id for metric in METRICS if metric.rule == "register spills")


def _order(finding: Finding) -> tuple[bool, bool, bool, bool, bool, int, CellKey, int]:
    """Return a key that puts the worst finding first (see the text of the module)."""
    if finding.metric in METRIC_IDS:
        place = METRIC_IDS.index(finding.metric)
    else:
        place = -1
    if finding.metric:
        unit = finding.quantity.unit
    else:
        unit = "count"
    size = excess(finding) * UNIT_STEPS.get(("bytes", unit), 1)
    is_metric = finding.metric is not None
    # spills come first: a kernel that spills is slower, however small it has become
    is_no_spill = finding.metric not in _SPILLS
    is_count = unit == "count"
    return (
        finding.known,
        finding.level == "warn",
        is_metric,
        is_no_spill,
        is_count,
        -size,
        finding.key,
        place,
    )


def excess(finding: Finding) -> int:
    """Return by how much the value, or its growth, is above the level.

    It is in the metric's unit, and 0 if it is unknown.
    """
    if finding.allowed is None or finding.head is None:
        return 0
    if finding.kind == "limit":
        return finding.head - finding.allowed
    return finding.head - (finding.base or 0) - finding.allowed


def _judge_states(
    deltas: Sequence[CellDelta], states: Mapping[str, Status]
) -> Iterator[Finding]:
    """Yield a finding for every cell whose state is one."""
    measured = _measured_models(deltas)
    levels: dict[str, Status] = {state: states.get(state, "pass") for state in STATES}
    worst = max(levels["broken"], levels["unmeasured"], key=_SEVERITY.index)
    for delta in deltas:
        level = levels[delta.state]
        if delta.state == "broken" and delta.key.model not in measured:
            level = worst
        if level != "pass" and not delta.excused:
            yield _state_finding(delta, level)


def _measured_models(deltas: Sequence[CellDelta]) -> set[str]:
    """Return the models that have a measured build on either side."""
    models = set[str]()
    for delta in deltas:
        for cell in (delta.base, delta.head):
            if cell and cell.measured:
                models.add(delta.key.model)
    return models


def _state_finding(delta: CellDelta, level: Level) -> Finding:
    base = _figure_bytes(delta.base)
    head = _figure_bytes(delta.head)
    outcomes = (outcome(delta.base), outcome(delta.head))
    statuses = [cell.status if cell else "absent" for cell in (delta.base, delta.head)]
    is_known = (
        delta.state == "broken"
        and len(set(outcomes)) == 1
        and (head or 0) <= (base or head or 0)
    )
    return Finding(
        key=delta.key,
        level=level,
        metric=None,
        rule="states",
        kind="state",
        limit=delta.state,
        actual=delta.reason or " → ".join(statuses),
        base=base,
        head=head,
        outcomes=outcomes,
        known=is_known,
        failure=delta.head.failure if delta.head else None,
    )


def _figure_bytes(cell: Cell | None) -> int | None:
    """Return the figure of the compiler's memory gate that refused the cell."""
    if cell is None or cell.failure is None:
        return None
    return cell.failure.figure_bytes


def _judge_metric(
    delta: CellDelta, metric: MetricDelta, rule: Rule
) -> Iterator[Finding]:
    """Yield the finding of a metric that is not known any more, or exceeds a level."""
    if metric.head is None:
        if metric.base is not None and rule.levels():
            yield _lost_value(delta, metric, metric.base, rule)
        return
    finding = next(_exceeded(delta, metric.least_alarming, rule), None)
    if metric.seen is None:
        if finding is not None:
            yield finding
        return
    if finding is None and metric.change != 0:
        finding = _open_finding(delta, metric, rule)
    if finding is None:
        return
    actual = _amount(metric.sides[1], metric.quantity.unit)
    if finding.kind == "change":
        actual = change_text(metric)
    if finding.is_open:
        actual = f"{actual}, {OPEN}"
    yield replace(finding, actual=actual, seen=metric.seen)


def _lost_value(
    delta: CellDelta, metric: MetricDelta, base: int, rule: Rule
) -> Finding:
    """Return the warning that a value was known on base and is not on head."""
    reasons = delta.head.reasons if delta.head else {}
    reason = reasons.get(metric.id) or reasons.get("*")
    actual = f"{_amount(base, metric.quantity.unit)} → not known"
    if reason:
        actual = f"{actual}: {reason}"
    return Finding(
        key=delta.key,
        level="warn",
        metric=metric.id,
        rule=rule.name,
        kind="unknown",
        limit="known on base",
        actual=actual,
        base=base,
        line=rule.line,
        own=metric.own,
    )


def _open_finding(delta: CellDelta, metric: MetricDelta, rule: Rule) -> Finding | None:
    """Return the warning of a level that some of the values that were seen exceed."""
    for finding in _exceeded(delta, metric.most_alarming, rule):
        if not finding.known:
            return replace(finding, level="warn", is_open=True)
    return None


def _exceeded(delta: CellDelta, metric: MetricDelta, rule: Rule) -> Iterator[Finding]:
    """Yield a finding for every level that is exceeded, worst first.

    Of a level the limit comes before the change.
    """
    head = metric.head or 0
    base = metric.base
    unit = metric.quantity.unit
    for level, spec in rule.levels():
        if spec.limit is not None and head > (limit := spec.limit.steps(unit)):
            yield Finding(
                key=delta.key,
                level=level,
                metric=metric.id,
                rule=rule.name,
                kind="limit",
                limit=spec.limit.text,
                actual=_amount(head, unit),
                base=base,
                head=head,
                line=rule.line,
                allowed=limit,
                known=base is not None and head <= base,
                own=metric.own,
            )
        if base is None or head <= base or not spec.change_text:
            continue
        allowed = _allowed_growth(spec, base, unit)
        if head - base > allowed:
            yield Finding(
                key=delta.key,
                level=level,
                metric=metric.id,
                rule=rule.name,
                kind="change",
                limit=spec.change_text,
                actual=change_text(metric),
                base=base,
                head=head,
                line=rule.line,
                allowed=allowed,
                own=metric.own,
            )


def _allowed_growth(spec: LevelSpec, base: int, unit: Unit) -> int:
    """Return the largest growth that a level allows, in the metric's unit."""
    if spec.relative:
        share = int(spec.relative.value * base)
    else:
        share = 0
    absolute = spec.absolute.steps(unit) if spec.absolute else 0
    return max(absolute, share)


def _amount(value: Value, unit: Unit, sign: str = "") -> str:
    if isinstance(value, Spread):
        return f"{value.low:{sign},}..{value.high:{sign},}{UNIT_SUFFIXES[unit]}"
    return f"{value:{sign},}{UNIT_SUFFIXES[unit]}"


def change_text(metric: MetricDelta) -> str:
    """Return a change in words: `+33,552 B (+66.5 %)`, `+2 (from 0)`, `-304..+1,968 B`.

    The text is empty if the change is not known.
    """
    change = difference(*metric.sides)
    if change is None:
        return ""
    amount = _amount(change, metric.quantity.unit, "+")
    if isinstance(change, Spread):
        return amount
    return f"{amount} ({_share_text(change, metric.base)})"


def _share_text(change: int, base: int | None) -> str:
    """Return a change as a share of the base: `+66.5 %`, `from 0`, `under 0.1 %`."""
    if not base:
        return "from 0"
    tenths = round(Fraction(1000 * change, base))
    if change and not tenths:
        return "under 0.1 %"
    sign = "-" if tenths < 0 else "+"
    return f"{sign}{abs(tenths) // 10:,}.{abs(tenths) % 10} %"
