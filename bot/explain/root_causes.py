"""Cluster the deltas of all cells to root causes, and find the knobs that differ."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from bot.core.delta import CellDelta
from bot.core.explanation import (
    EARLY_CAUSES,
    OTHER_TYPES,
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
from bot.core.ladder import PHASE_NAMES, SEVERAL_PHASES, Carried, parts_words
from bot.core.parting import NOT_TRACED
from bot.core.program_proof import EXPERIMENT_WORDS, FORMS_REGIONS
from bot.core.proof import PARTLY, PROVED, REFUTED, Proof, joint_proof
from bot.core.snapshot import CellKey
from bot.core.words import noun_of
from bot.explain.carrying import carried_by, claim_of
from bot.explain.strategies import without_operations

PIPELINE = "pipeline"
_KNOB = re.compile(
    r"([A-Za-z_]\w*) = ((?:\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\])|[\w.+-]+)"
)
_WORD = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"-?\d+")
_MOST_PAIRS = 2
_LONGEST = 16_000  # Of a configuration, in characters: real ones have hundreds
SET, UNSET = "set", "not set"
SOURCE_CHANGED = (
    "the model is the same, but another file changed that the command reads"
)
ON_OTHER_OPERATIONS = "with the same values on other operations"
UNNAMED = "a different configuration, but all named values are equal"
NOT_BY_VALUES = (
    "a different configuration, but none of its named values makes the change"
)
_NO_DISPATCH = "it is no dispatch's code"


@lru_cache(maxsize=4096)
def knobs(parts: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    """Return name → its values, one for each configuration that has it, in order.

    A word alone is `set`.

    Args:
        parts: the pipeline and the configurations, without the names of their
            operations.
    """
    configuration = " | ".join(parts)[:_LONGEST]
    values = dict[str, tuple[str, ...]]()
    for name, value in _KNOB.findall(configuration):
        values[name] = (*values.get(name, ()), value)
    pipeline, *bare_words = _WORD.findall(_KNOB.sub(" ", configuration)) or [""]
    return {PIPELINE: (pipeline,), **dict.fromkeys(bare_words, (SET,)), **values}


@lru_cache(maxsize=4096)
def turned(base: str, head: str) -> Mapping[str, str]:
    """Return knob that differs → its change.

    `1 → 8` for elements that differ, else both values.
    """
    base_parts, head_parts = without_operations(base, head)
    base_knobs = knobs(base_parts)
    head_knobs = knobs(head_parts)
    changes = dict[str, str]()
    for name in {**base_knobs, **head_knobs}:
        base_values = base_knobs.get(name, ())
        head_values = head_knobs.get(name, ())
        if base_values != head_values:
            changes[name] = _change(base_values, head_values)
    return changes or _on_other_operations(base_parts, head_parts)


def _on_other_operations(
    base: tuple[str, ...], head: tuple[str, ...]
) -> dict[str, str]:
    """Return the knobs whose values are the same, and on other operations.

    None is known where the sides have not as many operations.
    """
    if len(base) != len(head):
        return {}
    changes = dict[str, str]()
    for base_part, head_part in zip(base, head, strict=True):
        base_values = dict(_KNOB.findall(base_part[:_LONGEST]))
        head_values = dict(_KNOB.findall(head_part[:_LONGEST]))
        for name in {**base_values, **head_values}:
            if base_values.get(name) != head_values.get(name):
                changes[name] = ON_OTHER_OPERATIONS
    return changes


@lru_cache(maxsize=4096)
def _turns(base: str, head: str) -> tuple[tuple[str, str], ...]:
    return tuple(turned(base, head).items())


def _change(base: tuple[str, ...], head: tuple[str, ...]) -> str:
    """Return how the values of a knob changed.

    Two changes have the same words only where their values are the same.
    """
    moved = _moved_numbers(base, head)
    if moved is not None and len(moved) <= _MOST_PAIRS:
        return " and ".join(f"{before} → {after}" for before, after in moved)
    gone = Counter(base) - Counter(head)
    come = Counter(head) - Counter(base)
    # other configurations have it, too, or no longer
    if base and head and not (gone and come):
        differing = gone or come
        count = differing.total()
        direction = "fewer" if gone else "more"
        return (
            f"{'; '.join(differing)} in {count} {noun_of(count, 'configuration')}"
            f" {direction}"
        )
    distinct_base = tuple(dict.fromkeys(base))
    distinct_head = tuple(dict.fromkeys(head))
    if distinct_base != distinct_head:
        base, head = distinct_base, distinct_head
    return f"{'; '.join(base) or UNSET} → {'; '.join(head) or UNSET}"


def _moved_numbers(
    base: tuple[str, ...], head: tuple[str, ...]
) -> list[tuple[str, str]] | None:
    """Return the pairs of numbers that differ; None where not only numbers do."""
    base_text = "; ".join(base)
    head_text = "; ".join(head)
    is_same = _NUMBER.sub("0", base_text) == _NUMBER.sub("0", head_text)
    if not is_same or len(base) != len(head):
        return None
    numbers = zip(_NUMBER.findall(base_text), _NUMBER.findall(head_text), strict=True)
    return sorted(pair for pair in set(numbers) if pair[0] != pair[1])


_NAMED_LIMIT = 3
Delta = DispatchDelta | PartDelta


class _Member(NamedTuple):
    """One delta of a cluster.

    `trait`: what else than its cluster's key the words of the cluster are made of.
    """

    key: CellKey
    delta: Delta
    change_bytes: int
    trait: Hashable

    @property
    def rank(self) -> tuple[int, CellKey, str]:
        """Return a key of the order: the largest first, then by cell and name."""
        if isinstance(self.delta, PartDelta):
            name = self.delta.what
        else:
            name = self.delta.name
        return -abs(self.change_bytes), self.key, name


class _Phases(NamedTuple):
    """The phases that carry a change: one, or several together."""

    names: tuple[str, ...]


class _Passed(NamedTuple):
    """The pass, the operation that it changes most, and whether head has more of it."""

    name: str
    operation: str
    more: bool
    experiment: str = ""  # what an experiment says of a pass that forms other regions


def _clustered(
    key: CellKey, cause: str, delta: Delta, same_model: bool
) -> tuple[Hashable, Hashable]:
    """Return what a delta is clustered by within its cause, and its trait.

    The trait is what else the words of its cluster are made of.
    """
    if isinstance(delta, PartDelta):
        if cause == "input":
            return (key.model, ""), same_model
        return delta.what, None
    if delta.passed is not None:
        return _clustered_by_pass(delta.passed)
    reason = delta.untraced.removeprefix("base: ").removeprefix("head: ")
    if cause == "input":
        is_source = delta.note == SOURCE_CHANGED
        return (key.model, reason), SOURCE_CHANGED if is_source else same_model
    if cause == "fusion":
        # regions of one structure have other constants, shapes or offsets
        row = delta.head or delta.base
        trait = (row.kind if row else None, keeps_region(delta))
        return ("structure" in delta.matched, reason), trait
    if cause == "strategy":
        changes = _needed_knobs(delta)
        return changes, changes
    if cause == "codegen":
        by_phase = carried_by(delta)
        if by_phase is None:
            return reason, None
        if by_phase.phase:
            return _Phases((by_phase.phase,)), None
        return _Phases(tuple(by_phase.parts)), None
    return delta.note if cause == UNKNOWN else "", None


def _clustered_by_pass(passed: PassChange) -> tuple[Hashable, Hashable]:
    if passed.experiment:
        subject = _Passed(passed.name, "", more=False, experiment=passed.experiment)
        return subject, None
    operation, count = next(iter(passed.operations.items()), ("", 0))
    trait = tuple(passed.operations.items())
    return _Passed(passed.name, operation, count > 0), trait


def keeps_region(delta: DispatchDelta) -> bool:
    """Return True for a dispatch that both sides have at as many sites.

    Only its IR is known to differ.
    """
    return (
        delta.base is not None
        and delta.head is not None
        and delta.base.sites == delta.head.sites
    )


def changed_knobs(delta: DispatchDelta) -> tuple[tuple[str, str], ...] | None:
    """Return the knobs that differ with their change.

    None where a configuration was not read.
    """
    if (
        delta.base is None
        or delta.head is None
        or delta.base.strategy is None
        or delta.head.strategy is None
    ):
        return None
    return _turns(delta.base.strategy, delta.head.strategy)


def _needed_knobs(delta: DispatchDelta) -> tuple[tuple[str, str], ...]:
    """Return the knobs that differ.

    Where an experiment says which knobs are needed, only those are returned.
    """
    changes = changed_knobs(delta)
    proof = delta.proof
    if changes is None:
        return ()
    if proof is None:
        return changes
    if proof.status == REFUTED:
        return ((NOT_BY_VALUES, ""),)
    if proof.status not in (PROVED, PARTLY):
        return changes
    needed = tuple((name, change) for name, change in changes if name in proof.knobs)
    return needed or changes


def _described(
    cause: str, subject: Any, traits: Counter[Any], parts: Mapping[str, int]
) -> str:
    """Say what changed in all of a cluster's deltas.

    Args:
        subject: what the cluster's deltas have in common.
        traits: trait → how many of the deltas have it.
        parts: phase → the bytes that it carries in all of them together.
    """
    if isinstance(subject, _Passed):
        return _passed_words(subject, traits)
    if isinstance(subject, _Phases):
        if len(subject.names) == 1:
            return f"{PHASE_NAMES[subject.names[0]]} changed"
        return f"{SEVERAL_PHASES}: {parts_words(parts)}"
    if cause == "strategy":
        return _turned_words(subject, traits)
    if cause == "codegen":
        return f"other code; {subject or NOT_TRACED}"
    if cause not in EARLY_CAUSES:
        return subject or _WORDS.get(cause, "")
    first, reason = subject
    if cause == "input":
        if traits[SOURCE_CHANGED]:
            return f"the source of {first} changed"
        if not traits[True]:
            return f"{first} itself changed"
        text = f"the compiler reads the same text of {first} differently"
    elif first:
        text = "the same regions with different constants, shapes or offsets"
    else:
        text = _formed_words(traits)
    if reason:
        return f"{text}; {reason}"
    return text


def _passed_words(passed: _Passed, traits: Counter[Any]) -> str:
    """Return `greedy: 448 VS4R_V more`, or `cse: 64 to 1,440 arith.addi fewer`."""
    if passed.experiment:
        experiment = EXPERIMENT_WORDS.get(passed.experiment, passed.experiment)
        return f"{passed.name} {FORMS_REGIONS}: {experiment}"
    if not passed.operation:
        return f"{passed.name}: {OTHER_TYPES}"
    amounts = {abs(dict(changes).get(passed.operation, 0)) for changes in traits}
    count = f"{min(amounts):,}"
    if len(amounts) > 1:
        count = f"{count} to {max(amounts):,}"
    direction = "more" if passed.more else "fewer"
    return f"{passed.name}: {count} {passed.operation} {direction}"


def _formed_words(traits: Counter[Any]) -> str:
    """Return `regions formed differently: matmul (12), conv (3), 2 of other kinds`.

    The most frequent kinds come first; others are only counted.
    """
    kinds = Counter[str]()
    for (kind, _), number in traits.items():
        kinds[kind] += number
    ranked = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
    named = [f"{name} ({count:,})" for name, count in ranked[:_NAMED_LIMIT]]
    remaining = sum(count for _, count in ranked[_NAMED_LIMIT:])
    if remaining:
        named.append(f"{remaining:,} of other kinds")
    # Where each has a partner of its kind and its place, only its IR is known to
    # differ: an encoding, for example.
    difference = "regions formed differently"
    if all(is_pair for _, is_pair in traits):
        difference = "other IR in regions of the same kinds"
    return f"{difference}: {', '.join(named)}"


def _turned_words(
    change: tuple[str, str] | None, traits: Counter[tuple[tuple[str, str], ...]]
) -> str:
    """Return `vector_common_parallel 1 → 8`, and the other knobs that all of them turned.

    `traits`: the knobs that each of them turned.
    """
    if change is None:
        return UNNAMED
    name, values = change
    if name == NOT_BY_VALUES:
        return name
    common = set.intersection(*(set(dict(changes)) for changes in traits)) - {name}
    also = sorted(common, key=lambda knob: (knob != PIPELINE, knob))
    if not also:
        return f"{name} {values}"
    return f"{name} {values}, with {', '.join(also[:_NAMED_LIMIT])}"


_WORDS = {
    "dedup-lost": "executables that only base folds into others",
    "dedup-won": "executables that only head folds into others",
    "packaging": "the same code, laid out differently",
    UNKNOWN: "not known",
}
"""Cause of a dispatch → its words in a root cause.

Parts of artifacts are clustered by what they are called.
"""


def root_causes(
    deltas: Sequence[CellDelta],
    explanations: Mapping[CellKey, Explanation],
    changed_models: Collection[str] = (),
    backends: Mapping[str, str] | None = None,
) -> tuple[RootCause, ...]:
    """Return the root causes of the changes of all cells, largest absolute change first.

    `changed_models`: models whose text differs between the sides; `backends`: target →
    its backend: a knob of one is not that of another.
    """
    backends = backends or {}
    groups = dict[tuple[str, Any], list[_Member]]()
    # backend → knobs that differ → what turned just these
    by_knobs = dict[str, dict[Any, list[_Member]]]()
    whole_bytes = 0
    for key in sorted(explanations):
        same_model = key.model not in changed_models
        for cause, delta, change_bytes in _moved(explanations[key]):
            subject, trait = _clustered(key, cause, delta, same_model)
            if cause == "strategy" and not isinstance(delta, PartDelta):
                backend = backends.get(key.target, key.target)
                members = by_knobs.setdefault(backend, {}).setdefault(subject, [])
            else:
                members = groups.setdefault((cause, subject), [])
            members.append(_Member(key, delta, change_bytes, trait))
            whole_bytes += abs(change_bytes)
    cells = {delta.key: delta for delta in deltas}
    roots = list[RootCause]()
    for (cause, subject), members in groups.items():
        roots.append(_root_cause(cause, subject, members, cells, whole_bytes))
    for turned_by in by_knobs.values():
        for change, members in _by_knob(turned_by):
            roots.append(_root_cause("strategy", change, members, cells, whole_bytes))
    roots.sort(
        key=lambda root: (-root.total.absolute_bytes, root.cause or "", root.what)
    )
    return tuple(roots)


def _moved(explanation: Explanation) -> Iterator[tuple[str, Delta, int]]:
    """Yield the cause of each delta, the delta, and its change in bytes."""
    for delta in explanation.dispatches:
        yield delta.cause or UNKNOWN, delta, moved_bytes(delta) or 0
    for part in explanation.parts:
        yield part.cause, part, part.change_bytes


def _by_knob(
    clusters: dict[Any, list[_Member]],
) -> Iterator[tuple[Hashable, list[_Member]]]:
    """Yield the change of a knob with what has it, most bytes first.

    A change takes all that has just this change; the next one is of what is left.

    `clusters`: knobs that differ, with the change of each → what turned just these, on
    one backend.
    """
    sizes = Counter[Any]()
    for changes, members in clusters.items():
        sizes[changes] = sum(abs(member.change_bytes) + 1 for member in members)
    while True:
        weights: Counter[tuple[str, str]] = Counter()
        for changes in clusters:
            weights.update(dict.fromkeys(changes, sizes[changes]))
        if not weights:
            break
        change = min(
            weights,
            key=lambda change: (change[0] != PIPELINE, -weights[change], change),
        )
        members = list[_Member]()
        for changes in [changes for changes in clusters if change in changes]:
            members += clusters.pop(changes)
        yield change, members
    for members in clusters.values():
        yield None, members


def _root_cause(
    cause: str,
    subject: Hashable,
    members: Sequence[_Member],
    cells: Mapping[CellKey, CellDelta],
    whole_bytes: int,
) -> RootCause:
    example = min(members, key=lambda member: member.rank)
    by_target = dict[str, list[int]]()
    by_cell = Counter[CellKey]()
    deltas = list[DispatchDelta]()
    passes = dict[tuple[int, CellKey, str], PassChange]()
    traced = list[int]()
    for member in members:
        delta = member.delta
        by_target.setdefault(member.key.target, []).append(member.change_bytes)
        by_cell[member.key] += abs(member.change_bytes)
        if isinstance(delta, PartDelta):
            continue
        deltas.append(delta)
        if delta.passed:
            passes.setdefault(member.rank, delta.passed)
            if not delta.passed.printed_for:
                traced.append(abs(member.change_bytes))
    total = _tally([member.change_bytes for member in members])
    divided = _divided(deltas) if cause == "codegen" else []
    parts = _parts(divided)
    traits = Counter(member.trait for member in members)
    return RootCause(
        cause=None if cause == UNKNOWN else cause,
        what=_described(cause, subject=subject, traits=traits, parts=parts),
        targets=tuple(sorted(by_target)),
        models=tuple(sorted({key.model for key in by_cell})),
        cells=tuple(sorted(by_cell)),
        dispatches=len(deltas),
        total=total,
        share=total.absolute_bytes / whole_bytes if whole_bytes else None,
        example=_example(example),
        by_cell=dict(by_cell),
        by_target={target: _tally(by_target[target]) for target in sorted(by_target)},
        command=_command(cells[example.key]),
        passed=passes[min(passes)] if passes else None,
        traced=(len(traced), sum(traced)),
        proof=_proof(subject, members, deltas),
        parts=parts,
        divided=len(divided),
    )


def _command(delta: CellDelta) -> str:
    """Return the command that makes the artifact, of base where head has none."""
    if delta.head is not None and delta.head.measured:
        return delta.head.command
    if delta.base:
        return delta.base.command
    return ""


def _divided(deltas: Sequence[DispatchDelta]) -> list[Carried]:
    """Return the phases that carry the change of each dispatch with a whole ladder."""
    return [carried for carried in map(carried_by, deltas) if carried is not None]


def _parts(divided: Sequence[Carried]) -> dict[str, int]:
    """Return phase → the bytes that it carries in all of them together."""
    sums = Counter[str]()
    for carried in divided:
        sums.update(carried.parts)
    return {phase: size for phase, size in sums.items() if size}


def _proof(
    subject: Hashable, members: Sequence[_Member], deltas: Sequence[DispatchDelta]
) -> Proof:
    """Return what the experiments on all members say together.

    `deltas`: those of the members that are dispatches.
    """
    if isinstance(subject, _Passed) and subject.experiment:
        moved_bytes = sum(abs(member.change_bytes) for member in members)
        return Proof(
            subject.experiment,
            restored_bytes=None,
            moved_bytes=moved_bytes,
            members=len(members),
        )
    claims = list(map(claim_of, deltas))
    return joint_proof(claims, untried_why="" if claims else _NO_DISPATCH)


def _tally(changes: Sequence[int]) -> Tally:
    return Tally(len(changes), sum(changes), sum(map(abs, changes)))


def _example(member: _Member) -> Example:
    key, delta, change_bytes, _ = member
    if isinstance(delta, PartDelta):
        return Example(
            key=key,
            dispatch="",
            component="",
            base_bytes=None,
            head_bytes=None,
            change_bytes=change_bytes,
            note=delta.what,
        )
    return Example(
        key=key,
        dispatch=delta.name,
        component=delta.component,
        base_bytes=delta.base.code_bytes if delta.base else None,
        head_bytes=delta.head.code_bytes if delta.head else None,
        change_bytes=change_bytes,
        note=delta.note,
    )
