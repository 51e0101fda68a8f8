"""What changed, over all cells: the knobs of configurations that differ, and the deltas clustered to root causes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

from bot.core.delta import CellDelta
from bot.core.explanation import (
    EARLY_CAUSES,
    UNKNOWN,
    DispatchDelta,
    Example,
    Explanation,
    PartDelta,
    RootCause,
    Tally,
    moved_bytes,
)
from bot.core.parting import NOT_TRACED
from bot.core.snapshot import CellKey

PIPELINE = "pipeline"
_KNOB = re.compile(r"([A-Za-z_]\w*) = ((?:\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\])|[\w.+-]+)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"-?\d+")
_MOST_PAIRS = 2
_LONGEST = 4_000  # Of a configuration, in characters: real ones have hundreds
SET, UNSET = "set", "not set"
UNNAMED = "a different configuration, in which no value with a name differs"


@lru_cache(maxsize=4096)
def knobs(configuration: str) -> Mapping[str, tuple[str, ...]]:
    """Name → its values, one for each configuration that has it, in order; a word alone is `set`."""
    configuration, values = configuration[:_LONGEST], dict[str, tuple[str, ...]]()
    for name, value in _KNOB.findall(configuration):
        values[name] = (*values.get(name, ()), value)
    pipeline, *words = _WORD.findall(_KNOB.sub(" ", configuration)) or [""]
    return {PIPELINE: (pipeline,), **dict.fromkeys(words, (SET,)), **values}


@lru_cache(maxsize=4096)
def turned(base: str, head: str) -> Mapping[str, str]:
    """Knob that differs → its change: `1 → 8` for elements that differ, else both values."""
    left, right = knobs(base), knobs(head)
    names = [name for name in {**left, **right} if left.get(name) != right.get(name)]
    return {name: _change(left.get(name, ()), right.get(name, ())) for name in names}


def _change(base: tuple[str, ...], head: tuple[str, ...]) -> str:
    """The very values: two changes are told alike only where they are."""
    if len(base) == len(head) and [_NUMBER.sub("", one) for one in base] == [_NUMBER.sub("", one) for one in head]:
        pairs = zip(_NUMBER.findall("; ".join(base)), _NUMBER.findall("; ".join(head)), strict=True)
        moved = sorted({pair for pair in pairs if pair[0] != pair[1]})
        if len(moved) <= _MOST_PAIRS:
            return " and ".join(f"{one} → {other}" for one, other in moved)
    gone, come = Counter(base) - Counter(head), Counter(head) - Counter(base)
    if base and head and not (gone and come):  # other configurations have it, too, or no longer
        count, of = (gone or come).total(), "; ".join(gone or come)
        return f"{of} in {count} {'configuration' if count == 1 else 'configurations'} {'fewer' if gone else 'more'}"
    return f"{'; '.join(base) or UNSET} → {'; '.join(head) or UNSET}"


# The root causes: the deltas of all cells, clustered by what changed and not by where. Each is in exactly one.
#
# Deltas are added up as they come, and none is copied: a large report has hundreds of thousands. A cluster's words are
# true of every delta in it, with the numbers of all of them.

_NAMED_LIMIT = 3
Delta = DispatchDelta | PartDelta


class _Passed(NamedTuple):
    """The pass, the operation that it changes most, and whether there are more of them on head."""

    name: str
    operation: str
    more: bool


def _clustered(key: CellKey, cause: str, delta: Delta, same_model: bool) -> tuple[Hashable, Hashable]:
    """What a delta is clustered by within its cause, and its trait: what else the words of its cluster are made of."""
    if isinstance(delta, PartDelta):
        return ((key.model, ""), same_model) if cause == "input" else (delta.what, None)
    why, row = delta.untraced.removeprefix("base: ").removeprefix("head: "), delta.head or delta.base
    if delta.passed:
        operation, count = next(iter(delta.passed.operations.items()), ("", 0))
        return _Passed(delta.passed.name, operation, count > 0), tuple(delta.passed.operations.items())
    if cause == "input":
        return (key.model, why), same_model
    if cause == "fusion":  # regions of one structure have other constants, shapes or offsets
        return ("structure" in delta.matched, why), row and row.kind
    if cause == "strategy":
        both = [row.strategy if row else None for row in (delta.base, delta.head)]
        knobs = () if both[0] is None or both[1] is None else tuple(turned(both[0], both[1]).items())
        return knobs, knobs
    return {"codegen": why, UNKNOWN: delta.note}.get(cause, ""), None


def _described(cause: str, what: Any, traits: Counter[Any]) -> str:
    """What changed in all of a cluster's deltas; `traits`: trait → how many of them have it."""
    if isinstance(what, _Passed):  # `greedy: 448 VS4R_V more`, `cse: 64 to 1,440 arith.addi fewer`
        amounts = sorted({abs(dict(changes).get(what.operation, 0)) for changes in traits})
        count = f"{amounts[0]:,}" if len(amounts) == 1 else f"{amounts[0]:,} to {amounts[-1]:,}"
        return f"{what.name}: {count} {what.operation} {'more' if what.more else 'fewer'}"
    if cause == "strategy":
        return _turned_words(what, traits)
    if cause == "codegen":
        return f"other code; {what or NOT_TRACED}"
    if cause not in EARLY_CAUSES:
        return what or _WORDS.get(cause, "")
    first, why = what
    if cause == "input" and not traits[True]:
        return f"{first} itself changed"
    if cause == "input":
        words = f"the text of {first} is the same, and is read differently by the compiler"
    elif first:
        words = "the same regions with different constants, shapes or offsets"
    else:  # `regions formed differently: matmul (12), conv (3)`: the most frequent kinds first; others are only counted
        largest = sorted(traits.items(), key=lambda item: (-item[1], item[0]))[:_NAMED_LIMIT]
        rest = traits.total() - sum(count for _, count in largest)
        named = [f"{name} ({count:,})" for name, count in largest] + ([f"{rest:,} of other kinds"] if rest else [])
        words = f"regions formed differently: {', '.join(named)}"
    return f"{words}; {why}" if why else words


def _turned_words(change: tuple[str, str] | None, traits: Counter[tuple[tuple[str, str], ...]]) -> str:
    """`vector_common_parallel 1 → 8`, and the other knobs that all of them turned; traits: what each turned."""
    if change is None:
        return UNNAMED
    name, values = change
    every = [{name for name, _ in changes} for changes in traits]
    also = sorted(set.intersection(*every) - {name}, key=lambda name: (name != PIPELINE, name))
    return f"{name} {values}" + (f", with {', '.join(also[:_NAMED_LIMIT])}" if also else "")


_WORDS = {
    "dedup-lost": "executables that were folded into others on base",
    "dedup-won": "executables that are folded into others on head",
    "container": "the same code under other names",
    "host": "the program around the dispatches",
    "packaging": "the same code, laid out differently",
    UNKNOWN: "not known",
}
"""Of dispatches; parts of artifacts are clustered by what they are called."""


_AFTER_ALL: tuple[tuple[int, CellKey, str], Any] = (1, CellKey("", ""), ""), None
"""What every delta ranks before."""


class Cluster:
    """Deltas added up.

    Attributes:
        traits: trait → how many deltas have it.
        deltas, net_bytes, absolute_bytes: target → how many, and the sums of their changes and of the amounts of these.
        cells: cell that has one of the deltas → the sum of their amounts.
        largest: the delta with the largest change, behind its rank: its amount below zero, cell and name.
        passed: the pass of the largest one that has one, behind the same.
        traced: how many dispatches have a pass, and the amounts of their changes.
    """

    def __init__(self) -> None:
        """Of no delta yet."""
        self.traits: Counter[Any] = Counter()
        self.deltas: Counter[str] = Counter()
        self.net_bytes: Counter[str] = Counter()
        self.absolute_bytes: Counter[str] = Counter()
        self.cells: Counter[CellKey] = Counter()
        self.dispatches, self.traced = 0, (0, 0)
        self.largest = self.passed = _AFTER_ALL

    def add(self, key: CellKey, delta: Delta, change_bytes: int, trait: Hashable) -> None:
        """One more delta, of this cell."""
        target, amount = key.target, abs(change_bytes)
        self.traits[trait] += 1
        self.deltas[target] += 1
        self.net_bytes[target] += change_bytes
        self.absolute_bytes[target] += amount
        self.cells[key] += amount
        rank = -amount, key, delta.what if isinstance(delta, PartDelta) else delta.name
        if rank < self.largest[0]:
            self.largest = rank, delta
        if isinstance(delta, PartDelta):
            return
        self.dispatches += 1
        if delta.passed is not None:
            if not delta.passed.printed_for:
                self.traced = self.traced[0] + 1, self.traced[1] + amount
            self.passed = min(self.passed, (rank, delta.passed), key=itemgetter(0))

    def join(self, other: Cluster) -> None:
        """All that another one has."""
        for name in ("traits", "deltas", "net_bytes", "absolute_bytes", "cells"):
            getattr(self, name).update(getattr(other, name))
        self.dispatches += other.dispatches
        self.traced = self.traced[0] + other.traced[0], self.traced[1] + other.traced[1]
        self.largest = min(self.largest, other.largest, key=itemgetter(0))
        self.passed = min(self.passed, other.passed, key=itemgetter(0))

    @property
    def total(self) -> Tally:
        """Of all targets."""
        return Tally(self.deltas.total(), self.net_bytes.total(), self.absolute_bytes.total())


def root_causes(
    deltas: Sequence[CellDelta],
    explanations: Mapping[CellKey, Explanation],
    changed_models: Collection[str] = (),
    backends: Mapping[str, str] | None = None,
) -> tuple[RootCause, ...]:
    """All of them, the largest absolute change first.

    `changed_models`: models whose text differs between the sides; `backends`: target → its backend: a knob of one is
    not that of another.
    """
    cells, groups, by_knobs = (
        {delta.key: delta for delta in deltas},
        dict[Any, Cluster](),
        dict[Any, dict[Any, Cluster]](),
    )
    for key in sorted(explanations):
        for cause, delta, change_bytes in _moved(explanations[key]):
            what, trait = _clustered(key, cause, delta, key.model not in changed_models)
            place = groups
            if cause == "strategy" and not isinstance(delta, PartDelta):
                place = by_knobs.setdefault((backends or {}).get(key.target, key.target), {})
            if (cluster := place.get((cause, what))) is None:
                cluster = place[cause, what] = Cluster()
            cluster.add(key, delta, change_bytes, trait)
    clusters = [(cause, what, cluster) for (cause, what), cluster in groups.items()]
    for turned_by in by_knobs.values():
        clusters += [("strategy", *one) for one in _by_knob({what: one for (_, what), one in turned_by.items()})]
    whole_bytes = sum(cluster.total.absolute_bytes for *_, cluster in clusters)
    roots = (_root_cause(cause, what, cluster, cells, whole_bytes) for cause, what, cluster in clusters)
    return tuple(sorted(roots, key=lambda root: (-root.total.absolute_bytes, root.cause or "", root.what)))


def _moved(one: Explanation) -> Iterator[tuple[str, Delta, int]]:
    """Cause, delta and its change in bytes."""
    for delta in one.dispatches:
        yield delta.cause or UNKNOWN, delta, moved_bytes(delta) or 0
    for part in one.parts:
        yield part.cause, part, part.change_bytes


def _by_knob(clusters: dict[Any, Cluster]) -> Iterator[tuple[Hashable, Cluster]]:
    """The change of a knob with most bytes takes all that has just this change, then the next one of what is left.

    `clusters`: knobs that differ, with the change of each → what turned just these, on one backend.
    """
    while True:
        weights: Counter[tuple[str, str]] = Counter()
        for changes, cluster in clusters.items():
            weights.update(dict.fromkeys(changes, cluster.absolute_bytes.total() + cluster.deltas.total()))
        if not weights:
            break
        change = min(weights, key=lambda one: (one[0] != PIPELINE, -weights[one], one))
        joined = Cluster()
        for changes in [changes for changes in clusters if change in changes]:
            joined.join(clusters.pop(changes))
        yield change, joined
    yield from ((None, cluster) for cluster in clusters.values())


def _root_cause(
    cause: str, what: Hashable, cluster: Cluster, cells: Mapping[CellKey, CellDelta], whole_bytes: int
) -> RootCause:
    total, ((_, key, _), largest) = cluster.total, cluster.largest
    delta = cells[key]
    compiled = delta.head if delta.head is not None and delta.head.measured else delta.base
    if isinstance(largest, PartDelta):
        example = Example(key, "", "", None, None, largest.change_bytes, largest.what)
    else:
        base, head = (row.code_bytes if row else None for row in (largest.base, largest.head))
        change_bytes = moved_bytes(largest) or 0
        example = Example(key, largest.name, largest.component, base, head, change_bytes, largest.note)
    counters = cluster.deltas, cluster.net_bytes, cluster.absolute_bytes
    targets = tuple(sorted(cluster.deltas))
    return RootCause(
        cause=None if cause == UNKNOWN else cause,
        what=_described(cause, what, cluster.traits),
        targets=targets,
        models=tuple(sorted({key.model for key in cluster.cells})),
        cells=tuple(sorted(cluster.cells)),
        dispatches=cluster.dispatches,
        total=total,
        share=total.absolute_bytes / whole_bytes if whole_bytes else None,
        example=example,
        by_cell=dict(cluster.cells),
        by_target={target: Tally(*(counter[target] for counter in counters)) for target in targets},
        command=compiled.command if compiled else "",
        passed=cluster.passed[1],
        traced=cluster.traced,
    )
