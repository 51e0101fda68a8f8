"""What thresholds say of what was measured: of many changes, one after the other, and how tight a limit can be.

A replay, in prose:

* Of sides in their order each is held against the one before, by the rules of the verdict. An alarm is a finding that
  the older side did not have already.
* What was not measured is a gap (see `bot.core.study`): no alarm by itself, and what follows is held against what was
  measured before it. A cell that nothing is known of before has nothing to be held against.
* The smallest level with at most N alarms is, for the changes of a rule, the absolute growth that so many steps and no
  more exceed, beside whatever else the level asks; for its limits, the value that so many steps exceed. Alarms that
  fail count for the level that warns as well.
* A history has, of each cell, its status, its metrics and all that was seen of them. So a replay of it does not see
  artifacts with other bytes and the same numbers, nor that a model was edited.

Ratcheting, in prose:

* A rule is held against the cells and metrics that it decides, as the verdict does: the first rule that matches. Of
  these every cell has to be measured as the configuration is now, with one outcome: a rule with a cell that is not, or
  with a metric that varies, is left as it is, and why is told.
* A metric that no cell of a target has is none of that target's. One that some cells of it have has to be known in all.
* The new limit is the largest value, and the headroom on top. Only a limit that gets smaller is changed.
* Of a rule with two limits the one is changed that comes first: that of `warn`, unless values are above it already.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import ceil
from typing import Annotated

import msgspec

from bot.core.delta import CellDelta, diff, diff_cell
from bot.core.history import HISTORY_SCHEMA
from bot.core.json_text import decoded, require_schema
from bot.core.metrics import METRIC_BY_ID, METRIC_IDS, METRICS, OwnMetrics, Unit
from bot.core.policy import Amount, Finding, Level, Ratio, Rule, VerdictStatus, any_match, judge
from bot.core.policy import Status as Weight
from bot.core.record import Count, Name, Small
from bot.core.snapshot import STATUSES, Cell, CellKey, CompilerInfo, Metrics, Outcome, Snapshot, SourceInfo
from bot.core.study import UNMEASURED, Variant, is_gap, is_outcome, neighbours
from bot.errors import InputError

LEVELS: tuple[Level, ...] = ("fail", "warn")
_HINT = "give the history.json of: code-size-bot history --out DIR"


class _Point(msgspec.Struct, frozen=True):
    """One cell of a history; what it has beside these fields is for others."""

    compiler: Name
    model: Name
    target: Name
    status: Annotated[str, msgspec.Meta(pattern=rf"\A({'|'.join(STATUSES)}|{UNMEASURED})\Z")]
    metrics: Metrics
    seen: Mapping[str, tuple[Count, ...]] = {}


class _Release(msgspec.Struct, frozen=True):
    name: str
    metrics: OwnMetrics = ()


class _History(msgspec.Struct, frozen=True):
    points: tuple[_Point, ...]
    releases: tuple[_Release, ...] = ()


class ReplayStep(Small, frozen=True):
    """From one side to the next: the verdict, and its alarms, worst first."""

    base: str
    head: str
    status: VerdictStatus
    alarms: tuple[Finding, ...]
    gaps: tuple[str, ...]  # sides between the two that could not be had
    since: Mapping[CellKey, str]  # cell → the earlier side that it is held against
    unmeasured: tuple[CellKey, ...]  # cells of which nothing is known any more: their gap begins here


class RuleCount(Small, frozen=True):
    """What one rule (`states` for the states of cells) would have said at one level."""

    rule: str
    level: Level
    steps: int  # in how many it would have alarmed
    cells: int  # how many alarms that are


class SmallestLevel(Small, frozen=True):
    """The smallest level at which a rule alarms in no more steps than are wanted."""

    rule: str
    level: Level
    kind: str  # `change`, for an absolute growth, or `limit`
    now: int  # in how many steps it alarms
    least: int  # the level, in `unit`
    unit: Unit


def variants_of(text: bytes, where: str) -> list[Variant]:
    """The releases of a `history.json`, in the order of its points; without a snapshot where nothing could be had.

    Raises InputError, UnicodeDecodeError.
    """
    require_schema(text, HISTORY_SCHEMA, "history", where, _HINT)
    history = decoded(text, _History, where, _HINT, "history")
    points, declared = history.points, {one.name: one.metrics for one in history.releases}
    cells: dict[str, dict[CellKey, Cell]] = {}
    for place, point in enumerate(points):
        key, at = CellKey(point.model, point.target), f"{where}: points[{place}]"
        if unknown := point.metrics.keys() - METRIC_BY_ID.keys() - {one.id for one in declared.get(point.compiler, ())}:
            raise InputError(f"unknown metric {min(unknown)[:60]!r}", where=at, hint=_HINT)
        if key in cells.setdefault(point.compiler, {}):
            raise InputError(f"{key} stands there twice for {point.compiler}", where=at, hint=_HINT)
        if point.status != UNMEASURED:
            # Which values were seen together is not known: the largest of each stand for them, as ranges have ends.
            largest = {**point.metrics, **{id_: max(values) for id_, values in point.seen.items() if values}}
            others = (Outcome(point.status, largest, "the largest"),) if point.seen else ()
            cells[point.compiler][key] = Cell(key, point.status, point.metrics, others=others)
    # What a compiler has no point of was planned and lost.
    models = dict.fromkeys(sorted({point.model for point in points}), "")
    targets = dict.fromkeys(sorted({point.target for point in points}), "")
    variants = []
    for name, own in cells.items():
        measured = tuple(own[key] for key in sorted(own))
        info = CompilerInfo(name, "", "", name, declared.get(name, ()))
        side = Snapshot(info, SourceInfo(), measured, models=models, targets=targets)
        variants.append(Variant(name, name, side if own else None))
    return variants


def replayed(
    variants: Iterable[Variant], rules: Sequence[Rule], states: Mapping[str, Weight], noise: Mapping[str, Ratio]
) -> Iterator[ReplayStep]:
    """What the rules say of each variant against the one before."""
    for (old, base), (new, head), gaps, across in neighbours(variants, is_outcome):
        since = {key: side for side, keys in across for key in keys}
        deltas, unmeasured = list[CellDelta](), list[CellKey]()
        for delta in diff(base, head):
            if is_gap(base, delta.key, delta.base) or delta.key in since:
                continue
            if is_gap(head, delta.key, delta.head):
                unmeasured.append(delta.key)
            else:
                deltas.append(delta)
        for (_, earlier), keys in across:
            known = {cell.key: cell for cell in head.cells if cell.key in keys}
            cells = ((cell, known[cell.key]) for cell in earlier.cells if cell.key in keys)
            deltas += [diff_cell(earlier, head, pair[0].key, pair) for pair in cells]
        verdict = judge(deltas, rules, states, noise)
        names = {key: name for key, (name, _) in since.items()}
        yield ReplayStep(old, new, verdict.status, verdict.news, gaps, names, tuple(unmeasured))


def counts(steps: Sequence[ReplayStep]) -> list[RuleCount]:
    """What each rule would have said, by its name, fail before warn."""
    result = []
    for rule in sorted({alarm.rule for step in steps for alarm in step.alarms}):
        for level in LEVELS:
            each = [sum((one.rule, one.level) == (rule, level) for one in step.alarms) for step in steps]
            if any(each):
                result.append(RuleCount(rule, level, sum(map(bool, each)), sum(each)))
    return result


def least_levels(steps: Sequence[ReplayStep], most: int) -> list[SmallestLevel]:
    """For each rule, level and kind that alarms in more than `most` steps, the smallest level that does not."""
    result = []
    alarms = [alarm for step in steps for alarm in step.alarms if alarm.kind in ("change", "limit")]
    for rule, kind in sorted({(alarm.rule, alarm.kind) for alarm in alarms}):
        mine = [alarm for alarm in alarms if (alarm.rule, alarm.kind) == (rule, kind)]
        units = {alarm.quantity.unit for alarm in mine}
        for level in LEVELS:
            # Of each step in which the rule alarms at that level or a worse one, the largest growth or value.
            each = (
                [
                    (one.head or 0) - (one.base or 0 if kind == "change" else 0)
                    for one in step.alarms
                    if (one.rule, one.kind) == (rule, kind) and level in ("warn", one.level)
                ]
                for step in steps
            )
            worst = sorted((max(values) for values in each if values), reverse=True)
            if len(worst) > most and len(units) == 1 and any(alarm.level == level for alarm in mine):
                result.append(SmallestLevel(rule, level, kind, len(worst), worst[most], min(units)))
    return result


class Tighter(Small, frozen=True):
    """A limit that can be smaller."""

    place: int  # of its rule, from 0
    rule: Rule
    level: Level
    old: Amount
    limit: int  # what it can be, in the steps of its dimension
    # key, metric, value: what has the largest value
    key: CellKey
    metric: str
    value: int


class Kept(Small, frozen=True):
    """A rule whose limit is left as it is, and why."""

    rule: Rule
    why: str


class Evidence(Small, frozen=True):
    """What is known of the cells that the configuration has."""

    snapshot: Snapshot
    planned: Collection[CellKey]  # all of them that can be compiled
    doubts: Mapping[CellKey, str]  # cell → why its measurement says nothing of the configuration as it is now
    noise: Collection[str]  # metrics with a noise band: these are judged although they vary


def ratcheted(rules: Sequence[Rule], evidence: Evidence, headroom: Fraction) -> Iterator[Tighter | Kept]:
    """What there is to say of each rule with a limit; nothing of one that is as tight as it can be.

    `rules`: in their order, without the goldens of suites.
    """
    held = _decided(rules, evidence)
    cells = {cell.key: cell for cell in evidence.snapshot.cells}
    known = {(key.target, id_) for key, cell in cells.items() for id_, v in cell.metrics.items() if v is not None}
    for place, rule in enumerate(rules):
        limits = [(level, spec.limit) for level, spec in reversed(rule.levels()) if spec.limit is not None]
        if not limits:
            continue
        if why := _doubt(held[place], cells, known, evidence):
            yield Kept(rule, why)
            continue
        pairs = [(value, key, id_) for key, id_ in held[place] if (value := cells[key].value(id_)) is not None]
        if not pairs:
            yield Kept(rule, "it decides nothing that has a value")
            continue
        value, key, id_ = max(pairs, key=lambda one: (one[0], one[1], -METRIC_IDS.index(one[2])))
        needed = ceil(value * (1 + headroom))
        level, old = next(((level, old) for level, old in limits if value <= old.value), (None, None))
        if level and old and needed < old.value:
            yield Tighter(place, rule, level, old, needed, key, id_, value)


def _decided(rules: Sequence[Rule], evidence: Evidence) -> list[list[tuple[CellKey, str]]]:
    """Rule → the cells and metrics for which it is the first that matches."""
    held: list[list[tuple[CellKey, str]]] = [[] for _ in rules]
    judged = [metric.id for metric in METRICS if metric.exact or metric.id in evidence.noise]
    for id_ in judged:
        places = [place for place, rule in enumerate(rules) if any_match(rule.metrics, id_)]
        for key in sorted(evidence.planned):
            first = next((place for place in places if rules[place].matches_cell(key)), None)
            if first is not None:
                held[first].append((key, id_))
    return held


def _doubt(
    pairs: Sequence[tuple[CellKey, str]],
    cells: Mapping[CellKey, Cell],
    known: Collection[tuple[str, str]],
    evidence: Evidence,
) -> str:
    """Why the values of a rule prove nothing; empty where they do."""
    for key, id_ in pairs:
        cell = cells.get(key)
        if cell is None:
            return f"{key} is not in the snapshot"
        if not cell.measured:
            return f"{key} was not measured: {cell.failure.first_line if cell.failure else cell.status}"
        if key in evidence.doubts:
            return f"{key} {evidence.doubts[key]}"
        if cell.others:
            return f"{key} is not deterministic: the same command gives other artifacts"
        if not METRIC_BY_ID[id_].exact:
            return f"{id_} varies from run to run"
        if cell.value(id_) is None and (key.target, id_) in known:
            return f"{id_} of {key} is not known: {cell.reasons.get(id_, 'no reason is given')}"
    return ""
