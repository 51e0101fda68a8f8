"""The knobs of a configuration: what the compiler chose, name by name, and what of it differs between two."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

from bot.core.delta import CellDelta
from bot.core.explanation import (
    UNKNOWN,
    DispatchDelta,
    Example,
    Explanation,
    PartDelta,
    PassChange,
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


# What a root cause says: words that are true of every delta in it, with the numbers of all of them.


_NAMED_LIMIT = 3


def described(cause: str, what: Any, traits: Counter[Any]) -> str:
    """What changed in all of a cluster's deltas.

    `what`: they were clustered by, within their cause; `traits`: what else is told of them → how many of them have it.
    """
    return _passed(what, traits) if isinstance(what, _Passed) else _WORDS[cause](what, traits)


class _Passed(NamedTuple):
    """The pass, the operation that it changes most, and whether there are more of them on head."""

    name: str
    operation: str
    more: bool


def _passed(what: _Passed, traits: Counter[Any]) -> str:
    """`greedy: 448 VS4R_V more`, `cse: 64 to 1,440 arith.addi fewer`; traits: the operations that the pass changes."""
    amounts = sorted({abs(dict(changes).get(what.operation, 0)) for changes in traits})
    count = f"{amounts[0]:,}" if len(amounts) == 1 else f"{amounts[0]:,} to {amounts[-1]:,}"
    return f"{what.name}: {count} {what.operation} {'more' if what.more else 'fewer'}"


def _strategy(change: tuple[str, str] | None, traits: Counter[tuple[tuple[str, str], ...]]) -> str:
    """`vector_common_parallel 1 → 8`, and the other knobs that all of them turned; traits: what each turned."""
    if change is None:
        return "a different configuration, in which no value with a name differs"
    every = [{name for name, _ in changes} for changes in traits]
    also = sorted(set.intersection(*every) - {change[0]}, key=lambda name: (name != PIPELINE, name))
    name, values = change
    also_words = f", with {', '.join(also[:_NAMED_LIMIT])}" if also else ""
    return f"{name} {values}{also_words}"


def _fusion(what: tuple[bool, str], kinds: Counter[str]) -> str:
    """`regions formed differently: matmul (12), conv (3)`: the most frequent kinds first; others are only counted."""
    same_structure, why = what
    if same_structure:
        return _with_reason("the same regions with different constants, shapes or offsets", why)
    largest = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))[:_NAMED_LIMIT]
    rest = kinds.total() - sum(count for _, count in largest)
    named = [f"{name} ({count:,})" for name, count in largest] + ([f"{rest:,} of other kinds"] if rest else [])
    return _with_reason(f"regions formed differently: {', '.join(named)}", why)


def _input(what: tuple[str, str], same: Counter[bool]) -> str:
    model, why = what
    if same[True]:
        return _with_reason(f"the text of {model} is the same, and is read differently by the compiler", why)
    return f"{model} itself changed"


def _with_reason(words: str, why: str) -> str:
    return f"{words}; {why}" if why else words


def _says(words: str) -> Callable[[str, object], str]:
    return lambda what, _: what or words


_WORDS: Mapping[str, Callable[[Any, Counter[Any]], str]] = {
    "input": _input,
    "fusion": _fusion,
    "dedup-lost": _says("executables that were folded into others on base"),
    "dedup-won": _says("executables that are folded into others on head"),
    "strategy": _strategy,
    "codegen": lambda why, _: f"other code; {why or NOT_TRACED}",
    "container": _says("the same code under other names"),
    "host": _says("the program around the dispatches"),
    "packaging": _says("the same code, laid out differently"),
    UNKNOWN: _says("not known"),
}
"""Parts of artifacts, which are no dispatches, are clustered by what they are called."""


# The root causes: the deltas of all cells, clustered by what changed and not by where. Each is in exactly one.
#
# Deltas are added up as they come, and none is copied: a large report has hundreds of thousands.


Delta = DispatchDelta | PartDelta
Sorted = tuple[Hashable, Hashable]
"""What a delta is clustered by within its cause, and its trait: what else the words of its cluster are made of."""


class Cluster:
    """Deltas added up.

    Attributes:
        traits: trait → how many deltas have it.
        deltas, net_bytes, absolute_bytes: target → how many, and the sums of their changes and of the amounts of these.
        cells: cell that has one of the deltas → the sum of their amounts.
        rank, largest: of the delta with the largest change: its amount below zero, cell and name; and the delta itself.
        traced_rank, passed: the same of the largest one with a pass, and the pass.
    """

    def __init__(self) -> None:
        """Of no delta yet."""
        self.traits: Counter[Any] = Counter()
        self.deltas: Counter[str] = Counter()
        self.net_bytes: Counter[str] = Counter()
        self.absolute_bytes: Counter[str] = Counter()
        self.cells: Counter[CellKey] = Counter()
        self.dispatches = 0
        self.rank, self.largest = _AFTER_ALL
        self.traced_bytes = self.traced_dispatches = 0
        self.traced_rank = _AFTER_ALL[0]
        self.passed: PassChange | None = None

    def add(self, key: CellKey, delta: Delta, change_bytes: int, trait: Hashable) -> None:
        """One more delta, of this cell."""
        target, amount = key.target, abs(change_bytes)
        self.traits[trait] += 1
        self.deltas[target] += 1
        self.net_bytes[target] += change_bytes
        self.absolute_bytes[target] += amount
        self.cells[key] += amount
        self.dispatches += isinstance(delta, DispatchDelta)
        rank = -amount, key, delta.name if isinstance(delta, DispatchDelta) else delta.what
        if rank < self.rank:
            self.rank, self.largest = rank, delta
        if isinstance(delta, DispatchDelta) and delta.passed is not None:
            if not delta.passed.printed_for:
                self.traced_dispatches += 1
                self.traced_bytes += amount
            if rank < self.traced_rank:
                self.traced_rank, self.passed = rank, delta.passed

    def join(self, other: Cluster) -> None:
        """All that another one has."""
        self.traits.update(other.traits)
        self.deltas.update(other.deltas)
        self.net_bytes.update(other.net_bytes)
        self.absolute_bytes.update(other.absolute_bytes)
        self.cells.update(other.cells)
        self.dispatches += other.dispatches
        if other.rank < self.rank:
            self.rank, self.largest = other.rank, other.largest
        self.traced_dispatches += other.traced_dispatches
        self.traced_bytes += other.traced_bytes
        if other.traced_rank < self.traced_rank:
            self.traced_rank, self.passed = other.traced_rank, other.passed

    def tally(self, target: str) -> Tally:
        """Of one target."""
        return Tally(self.deltas[target], self.net_bytes[target], self.absolute_bytes[target])

    @property
    def total(self) -> Tally:
        """Of all targets."""
        return Tally(self.deltas.total(), self.net_bytes.total(), self.absolute_bytes.total())


_AFTER_ALL: tuple[tuple[int, CellKey, str], Delta] = (1, CellKey("", ""), ""), PartDelta(UNKNOWN, "", 0)
"""What every delta ranks before."""


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
    cells = {delta.key: delta for delta in deltas}
    clusters = list(_clusters(explanations, changed_models, backends or {}))
    whole_bytes = sum(cluster.total.absolute_bytes for *_, cluster in clusters)
    found = [_root_cause(*cluster, cells, whole_bytes) for cluster in clusters]
    return tuple(sorted(found, key=lambda root: (-root.total.absolute_bytes, root.cause or "", root.what)))


def _clusters(
    explanations: Mapping[CellKey, Explanation], changed_models: Collection[str], backends: Mapping[str, str]
) -> Iterator[tuple[str, Hashable, Cluster]]:
    """Cause, what the cluster's deltas have in common, and the cluster."""
    groups: dict[tuple[str, Hashable], Cluster] = {}
    for key in sorted(explanations):
        same_model = key.model not in changed_models
        for cause, delta, change_bytes in _moved(explanations[key]):
            by = _BY.get(cause)
            what, trait = (delta.what, None) if isinstance(delta, PartDelta) else by(delta) if by else ("", None)
            if isinstance(delta, DispatchDelta) and delta.passed and cause != "strategy":
                what, trait = _of_pass(delta.passed)
            elif cause == "input":
                what, trait = (key.model, "" if isinstance(delta, PartDelta) else _reason(delta)), same_model
            elif cause == "strategy":
                what = backends.get(key.target, key.target), what
            if (cluster := groups.get((cause, what))) is None:
                cluster = groups[cause, what] = Cluster()
            cluster.add(key, delta, change_bytes, trait)
    by_knobs: dict[Any, dict[Any, Cluster]] = {}
    for cause, what in [place for place in groups if place[0] == "strategy"]:
        backend, changes = cast("tuple[str, Hashable]", what)
        by_knobs.setdefault(backend, {})[changes] = groups.pop((cause, what))
    yield from ((cause, what, cluster) for (cause, what), cluster in groups.items())
    for clusters in by_knobs.values():
        yield from (("strategy", change, cluster) for change, cluster in _by_knob(clusters))


def _moved(told: Explanation) -> Iterator[tuple[str, Delta, int]]:
    """Cause, delta and its change in bytes."""
    for delta in told.dispatches:
        yield delta.cause or UNKNOWN, delta, moved_bytes(delta) or 0
    for part in told.parts:
        yield part.cause, part, part.change_bytes


def _turned(delta: DispatchDelta) -> Sorted:
    base, head = delta.base, delta.head
    if base is None or head is None or base.strategy is None or head.strategy is None:
        return (), ()
    knobs = tuple(turned(base.strategy, head.strategy).items())
    return knobs, knobs


def _of_pass(passed: PassChange) -> Sorted:
    """What it changes most, and all that it changes."""
    name, count = next(iter(passed.operations.items()), ("", 0))
    return _Passed(passed.name, name, count > 0), tuple(passed.operations.items())


def _reason(delta: DispatchDelta) -> str:
    return delta.untraced.removeprefix("base: ").removeprefix("head: ")


_BY: Mapping[str, Callable[[DispatchDelta], Sorted]] = {
    # Regions of one structure have other constants, shapes or offsets; the others are formed differently.
    "fusion": lambda delta: (
        ("structure" in delta.matched, _reason(delta)),
        (row := delta.head or delta.base) and row.kind,
    ),
    "strategy": _turned,
    "codegen": lambda delta: (_reason(delta), None),
    UNKNOWN: lambda delta: (delta.note, None),
}


def _by_knob(clusters: Mapping[Any, Cluster]) -> Iterator[tuple[Hashable, Cluster]]:
    """The change of a knob with most bytes takes all that has just this change, then the next one of what is left.

    `clusters`: knobs that differ, with the change of each → what turned just these, on one backend.
    """
    left = dict(clusters)
    while weights := _weights(left):
        change = min(weights, key=lambda one: (one[0] != PIPELINE, -weights[one], one))
        joined = Cluster()
        for changes in [changes for changes in left if change in changes]:
            joined.join(left.pop(changes))
        yield change, joined
    yield from ((None, cluster) for cluster in left.values())


def _weights(clusters: Mapping[Any, Cluster]) -> Counter[tuple[str, str]]:
    weights: Counter[tuple[str, str]] = Counter()
    for changes, cluster in clusters.items():
        total = cluster.total
        for change in changes:
            weights[change] += total.absolute_bytes + total.deltas
    return weights


def _root_cause(
    cause: str, what: Hashable, cluster: Cluster, cells: Mapping[CellKey, CellDelta], whole_bytes: int
) -> RootCause:
    total, key = cluster.total, cluster.rank[1]
    delta = cells[key]
    compiled = delta.head if delta.head is not None and delta.head.measured else delta.base
    targets = sorted(cluster.deltas)
    return RootCause(
        cause=None if cause == UNKNOWN else cause,
        what=described(cause, what, cluster.traits),
        targets=tuple(targets),
        models=tuple(sorted({key.model for key in cluster.cells})),
        cells=tuple(sorted(cluster.cells)),
        dispatches=cluster.dispatches,
        total=total,
        share=total.absolute_bytes / whole_bytes if whole_bytes else None,
        example=_example(key, cluster.largest),
        by_cell=dict(cluster.cells),
        by_target={target: cluster.tally(target) for target in targets},
        command=compiled.command if compiled else "",
        passed=cluster.passed,
        traced=(cluster.traced_dispatches, cluster.traced_bytes),
    )


def _example(key: CellKey, delta: Delta) -> Example:
    if isinstance(delta, PartDelta):
        return Example(key, "", "", None, None, delta.change_bytes, delta.what)
    base, head = (row.code_bytes if row else None for row in (delta.base, delta.head))
    return Example(key, delta.name, delta.component, base, head, moved_bytes(delta) or 0, delta.note)
