"""How tight a limit can be.

* A rule is held against the cells and metrics that it decides, as the verdict does: the first rule that matches. Of
  these every cell has to be measured as the configuration is now, with one outcome: a rule with a cell that is not is
  left as it is, and why is told.
* A metric that no cell of a target has is none of that target's. One that some cells of it have has to be known in all.
* The new limit is the largest value, and the headroom on top. Only a limit that gets smaller is changed.
* Of a rule with two limits the one is changed that comes first: that of `warn`, unless values are above it already.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from math import ceil

from bot.core.metrics import METRIC_IDS, METRICS
from bot.core.policy import Amount, Level, Rule, any_match
from bot.core.record import Small
from bot.core.snapshot import Cell, CellKey, Snapshot


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
    for id_ in (metric.id for metric in METRICS if metric.exact):
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
        if cell.value(id_) is None and (key.target, id_) in known:
            return f"{id_} of {key} is not known: {cell.reasons.get(id_, 'no reason is given')}"
    return ""
