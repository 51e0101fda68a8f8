"""The rules of the verdict: what change is allowed, and what a cell's state does.

In prose:

* Thresholds are ordered rules. For each cell and metric the first rule decides whose metric, model and target
  globs (case counts) all match; the rules below it are not looked at, whatever it says.
* A rule has up to two levels, `warn` and `fail`. A level is exceeded where its change or its limit is
  exceeded. The change is exceeded when head − base is greater than `absolute` and greater than `relative`
  times the base; where only one of the two is given, that one decides. The limit is exceeded when the head
  value is greater than `limit`. Greater means strictly greater: growth of exactly 4 KiB does not exceed
  `4KiB`.
* Growth from zero exceeds every relative level: there is no base that would make it small. Where the base is
  not known there is no change to judge, only the limit: so a new cell is held to limits alone.
* Where the compiler does not repeat itself, a cell is judged by the pair that differs least of all that the two
  commands gave: the largest base and the smallest head. What exceeds a level even so is a finding.
* Values are judged wherever head was measured, also in cells that are newly broken or broken by the stack
  gate. Shrinking is never a finding.
* `fail` wins over `warn`, and within a level the limit over the change: a cell has one finding per metric at
  most.
* A metric that repeated compiles do not repeat (time, memory) is judged only where the configuration gives its noise
  band, a share of the base: then its growth must be greater than the band as well as than the level. A limit is
  held as it is written. Without a band such a metric is never judged, whatever the rule says.
* A value that was known on base and is not known on a measured head is a `warn` of its own kind, `unknown`.
* A rule without levels only informs: nothing it decides is ever a finding.
* The state of a cell can be a finding too: by default a newly broken cell fails; a removed one warns, and so does one
  that was planned and not measured: lost, or timed out. One that is not measured on purpose, as its target cannot be
  compiled stand-alone, is no finding.
* A model of which no cell could be measured on either side is not measured, too: its broken cells get the level of
  `unmeasured`, where that is worse than that of `broken`.
* The verdict is the worst level among the findings. They are sorted worst first: fail before warn, states
  before metrics, then by how far the base (for a limit: the limit) is exceeded, then by cell and metric.
* Where nothing was compared there is no verdict: it is `unknown`, whatever the findings. Compared is a cell that was
  measured on both sides, that is fixed, or newly broken where that is a finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Literal

from bot.core.metrics import METRIC_BY_ID, METRIC_IDS, METRICS, Unit
from bot.core.rules.delta import STATES, CellDelta, MetricDelta, outcome
from bot.core.values.snapshot import CellKey
from bot.core.values.verdict import Finding, Level, Status, Verdict, VerdictStatus

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

NO_NOISE: Mapping[str, Ratio] = {}

_STEPS: dict[tuple[Dimension, Unit], int] = {("bytes", "bytes"): 1, ("bytes", "KiB"): 1024, ("ms", "ms"): 1}
_SUFFIX: dict[Unit, str] = {"count": "", "bytes": " B", "ms": " ms", "KiB": " KiB"}


@dataclass(frozen=True, slots=True)
class Amount:
    """A whole number of steps of its dimension, and how the configuration wrote it."""

    value: int
    dimension: Dimension
    text: str

    def steps(self, unit: Unit) -> int:
        """The amount in a metric's unit; raises ValueError (one line for the user) if it does not fit."""
        if self.dimension == "own":
            return self.value
        scale = _STEPS.get((self.dimension, unit))
        if scale is None:
            raise ValueError(f"{self.text!r} is no {'count' if unit == 'count' else f'number of {unit}'}")
        if self.value % scale:
            raise ValueError(f"{self.text!r} is no whole number of {unit}")
        return self.value // scale


@dataclass(frozen=True, slots=True)
class Ratio:
    """A share of the base (1/2 is 50 %), and how the configuration wrote it."""

    value: Fraction
    text: str


@dataclass(frozen=True, slots=True)
class LevelSpec:
    """One level of a rule; what is None is not asked for."""

    absolute: Amount | None = None
    relative: Ratio | None = None
    limit: Amount | None = None

    @property
    def change_text(self) -> str:
        """The change that is allowed, as the configuration wrote it: `4KiB and 1.5%`."""
        return " and ".join(part.text for part in (self.absolute, self.relative) if part is not None)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: which cells and metrics it decides, and its levels.

    Attributes:
        metrics, models, targets: globs; the rule matches where one of each does.
        line: line of the configuration at which it stands.
    """

    name: str
    metrics: tuple[str, ...]
    models: tuple[str, ...] = ("*",)
    targets: tuple[str, ...] = ("*",)
    warn: LevelSpec | None = None
    fail: LevelSpec | None = None
    line: int | None = None

    def levels(self) -> tuple[tuple[Level, LevelSpec], ...]:
        """The levels given, worst first."""
        both: tuple[tuple[Level, LevelSpec | None], ...] = (("fail", self.fail), ("warn", self.warn))
        return tuple((level, spec) for level, spec in both if spec is not None)

    def matches_cell(self, key: CellKey) -> bool:
        """True where the rule is about this cell."""
        return any_match(self.models, key.model) and any_match(self.targets, key.target)


_Order = tuple[bool, bool, "Fraction | float", CellKey, int]
_Ranked = tuple[_Order, Finding]
_Said = tuple[str, str, str]
"""Kind, limit and actual value of a finding."""


def any_match(globs: Iterable[str], name: str) -> bool:
    """True where one of the globs matches the whole name."""
    return any(glob == "*" or fnmatchcase(name, glob) for glob in globs)


def judge(
    deltas: Sequence[CellDelta],
    rules: Sequence[Rule],
    states: Mapping[str, Status] = DEFAULT_STATES,
    noise: Mapping[str, Ratio] = NO_NOISE,
) -> Verdict:
    """Hold every cell against the rules (see the module's text) and add up the verdict.

    Args:
        states: cell state → what it does to the verdict; a state that is not in it passes.
        noise: inexact metric → its noise band; one that is not in it is never judged.
    """
    bands = {metric.id: Fraction(0) for metric in METRICS if metric.exact}
    bands |= {id_: band.value for id_, band in noise.items() if id_ not in bands}
    by_metric = {id_: [rule for rule in rules if any_match(rule.metrics, id_)] for id_ in METRIC_IDS if id_ in bands}
    ranked = [found for delta in deltas for found in _judge_cell(delta, by_metric, bands)]
    ranked += _judge_states(deltas, states)
    findings = tuple(finding for _, finding in sorted(ranked, key=lambda found: found[0]))
    return Verdict(_status(deltas, findings), findings)


def _status(deltas: Sequence[CellDelta], findings: Sequence[Finding]) -> VerdictStatus:
    compared = any(delta.state in _COMPARED for delta in deltas)
    if not compared and not any(finding.limit == "newly-broken" for finding in findings):
        return "unknown"
    return max((finding.level for finding in findings), key=_SEVERITY.index, default="pass")


def _judge_cell(
    delta: CellDelta, by_metric: Mapping[str, Sequence[Rule]], bands: Mapping[str, Fraction]
) -> Iterator[_Ranked]:
    if delta.head is None or not delta.head.measured:
        return
    for id_, metric in delta.judged.items():
        rule = next((rule for rule in by_metric.get(id_, ()) if rule.matches_cell(delta.key)), None)
        if rule is not None:
            yield from _judge_metric(delta, metric, rule, bands[id_])


def _judge_states(deltas: Sequence[CellDelta], states: Mapping[str, Status]) -> Iterator[_Ranked]:
    measured = {delta.key.model for delta in deltas for cell in (delta.base, delta.head) if cell and cell.measured}
    levels: dict[str, Status] = {state: states.get(state, "pass") for state in STATES}
    dead = max(levels["broken"], levels["unmeasured"], key=_SEVERITY.index)
    for delta in deltas:
        level = dead if delta.state == "broken" and delta.key.model not in measured else levels[delta.state]
        if level != "pass" and not delta.excused:
            yield _ranked(_state_finding(delta, level), Fraction(0))


def _state_finding(delta: CellDelta, level: Level) -> Finding:
    sides = (delta.base, delta.head)
    base, head = (cell.status if cell else "absent" for cell in sides)
    actual = delta.reason or f"{base} → {head}"
    left, right = (cell.failure.figure_bytes if cell and cell.failure else None for cell in sides)
    outcomes = (outcome(delta.base), outcome(delta.head))
    return Finding(delta.key, level, None, "states", "state", delta.state, actual, left, right, outcomes=outcomes)


def _judge_metric(delta: CellDelta, metric: MetricDelta, rule: Rule, band: Fraction) -> Iterator[_Ranked]:
    if metric.head is None:
        if metric.base is not None and rule.levels():
            actual = f"{_amount(metric.base, _unit(metric))} → not known{_reason(delta, metric)}"
            said = ("unknown", "known on base", actual)
            yield _ranked(_finding(delta, metric, rule, "warn", said), Fraction(0))
        return
    for level, spec in rule.levels():
        broken = _broken(metric, metric.head, spec, band)
        if broken is not None:
            kind, limit, excess = broken
            actual = change_text(metric) if kind == "change" else _amount(metric.head, _unit(metric))
            yield _ranked(_finding(delta, metric, rule, level, (kind, limit, actual)), excess)
            return


def _broken(
    metric: MetricDelta, head: int, spec: LevelSpec, band: Fraction
) -> tuple[str, str, Fraction | float] | None:
    """Kind, the level as written, and by how much it is exceeded; None where it is kept."""
    if spec.limit is not None:
        limit = spec.limit.steps(_unit(metric))
        if head > limit:
            return "limit", spec.limit.text, _share(head - limit, limit)
    change = metric.change
    if change is None or change <= 0 or not spec.change_text:
        return None
    growth = _share(change, metric.base or 0)
    if growth <= band:
        return None
    if spec.absolute is not None and change <= spec.absolute.steps(_unit(metric)):
        return None
    if spec.relative is not None and growth <= spec.relative.value:
        return None
    return "change", spec.change_text, growth


def _share(part: int, whole: int) -> Fraction | float:
    return Fraction(part, whole) if whole else float("inf")


def _finding(delta: CellDelta, metric: MetricDelta, rule: Rule, level: Level, said: _Said) -> Finding:
    kind, limit, actual = said
    values = (metric.base, metric.head)
    return Finding(delta.key, level, metric.id, rule.name, kind, limit, actual, *values, rule.line)


def _ranked(finding: Finding, size: Fraction | float) -> _Ranked:
    place = METRIC_IDS.index(finding.metric) if finding.metric in METRIC_IDS else -1
    return (finding.level == "warn", finding.metric is not None, -size, finding.key, place), finding


def _unit(metric: MetricDelta) -> Unit:
    return METRIC_BY_ID[metric.id].unit


def _reason(delta: CellDelta, metric: MetricDelta) -> str:
    reasons = delta.head.reasons if delta.head else {}
    reason = reasons.get(metric.id) or reasons.get("*")
    return f": {reason}" if reason else ""


def _amount(value: int, unit: Unit, sign: str = "") -> str:
    return f"{value:{sign},}{_SUFFIX[unit]}"


def change_text(metric: MetricDelta) -> str:
    """A change in words: `+33,552 B (+66.5 %)`, `+2 (from 0)`; empty where it is not known."""
    change = metric.change
    if change is None:
        return ""
    share = "from 0" if not metric.base else _percent(Fraction(100 * change, metric.base))
    return f"{_amount(change, _unit(metric), '+')} ({share})"


def _percent(share: Fraction) -> str:
    tenths = round(share * 10)
    if not tenths and share:
        return "under 0.1 %"
    return f"{'-' if tenths < 0 else '+'}{abs(tenths) // 10:,}.{abs(tenths) % 10} %"
