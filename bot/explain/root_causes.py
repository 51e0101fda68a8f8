"""Cluster the deltas of all cells to root causes; each delta is in exactly one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any

from bot.core.backends import backends_of
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
from bot.core.json_text import without_zeros
from bot.core.ladder import Carried
from bot.core.proof import Proof, joint_proof
from bot.core.snapshot import CellKey, Snapshot
from bot.explain.carrying import carried_by, claim_of
from bot.explain.cause_words import described
from bot.explain.clusters import (
    Delta,
    Member,
    Passed,
    clustered,
)
from bot.explain.explanations import edited_models
from bot.explain.knobs import PIPELINE

_NO_DISPATCH = "it is no dispatch's code"


def root_causes_between(
    base: Snapshot,
    head: Snapshot,
    deltas: Sequence[CellDelta],
    explanations: Mapping[CellKey, Explanation],
) -> tuple[RootCause, ...]:
    """Return the root causes of the changes between two sides."""
    return root_causes(
        deltas,
        explanations=explanations,
        edited=edited_models(base, head),
        backends=backends_of(base.targets, head.targets),
    )


def root_causes(
    deltas: Sequence[CellDelta],
    explanations: Mapping[CellKey, Explanation],
    edited: Collection[str] = (),
    backends: Mapping[str, str] | None = None,
) -> tuple[RootCause, ...]:
    """Return the root causes of the changes of all cells, largest total change first.

    `edited`: models whose text differs between the sides; `backends`: target →
    its backend: a knob of one is not that of another.
    """
    backends = backends or {}
    groups = dict[tuple[str, Any], list[Member]]()
    # backend → changed knobs → the deltas that changed exactly these knobs
    by_knobs = dict[str, dict[Any, list[Member]]]()
    whole_bytes = 0
    for key in sorted(explanations):
        same_model = key.model not in edited
        for cause, delta, change_bytes in _moved(explanations[key]):
            subject, trait = clustered(key, cause, delta, same_model)
            if cause == "strategy" and not isinstance(delta, PartDelta):
                backend = backends.get(key.target, key.target)
                members = by_knobs.setdefault(backend, {}).setdefault(subject, [])
            else:
                members = groups.setdefault((cause, subject), [])
            members.append(Member(key, delta, change_bytes, trait))
            whole_bytes += abs(change_bytes)
    cells = {delta.key: delta for delta in deltas}
    roots = list[RootCause]()
    for (cause, subject), members in groups.items():
        roots.append(
            _root_cause(cause, subject, members, cells=cells, whole_bytes=whole_bytes)
        )
    for clusters in by_knobs.values():
        for change, members in _by_knob(clusters):
            roots.append(
                _root_cause(
                    "strategy", change, members, cells=cells, whole_bytes=whole_bytes
                )
            )
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
    clusters: dict[Any, list[Member]],
) -> Iterator[tuple[Hashable, list[Member]]]:
    """Divide deltas among changes of knobs, and yield each change with its members.

    A change of the pipeline comes first, then the change with the most bytes. Each change
    takes all clusters that are left and have it. Deltas without a changed knob come last,
    with None. `clusters` is empty afterwards.

    Args:
        clusters: changed knobs → the deltas that changed exactly these, on one backend.
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
        members = list[Member]()
        for changes in list(clusters):
            if change in changes:
                members += clusters.pop(changes)
        yield change, members
    for members in clusters.values():
        yield None, members


def _root_cause(
    cause: str,
    subject: Hashable,
    members: Sequence[Member],
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
        what=described(cause, subject=subject, traits=traits, parts=parts),
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
    """Return the command that makes the artifact, of base if head has none."""
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
    return without_zeros(sums)


def _proof(
    subject: Hashable, members: Sequence[Member], deltas: Sequence[DispatchDelta]
) -> Proof:
    """Return the joint result of the experiments on all members.

    `deltas`: those of the members that are dispatches.
    """
    if isinstance(subject, Passed) and subject.experiment:
        total_bytes = sum(abs(member.change_bytes) for member in members)
        return Proof(
            subject.experiment,
            restored_bytes=None,
            moved_bytes=total_bytes,
            members=len(members),
        )
    return joint_proof(
        map(claim_of, deltas), untried_why="" if deltas else _NO_DISPATCH
    )


def _tally(changes: Sequence[int]) -> Tally:
    return Tally(len(changes), sum(changes), sum(map(abs, changes)))


def _example(member: Member) -> Example:
    delta = member.delta
    if isinstance(delta, PartDelta):
        return Example(
            key=member.key,
            dispatch="",
            component="",
            base_bytes=None,
            head_bytes=None,
            change_bytes=member.change_bytes,
            note=delta.what,
        )
    return Example(
        key=member.key,
        dispatch=delta.name,
        component=delta.component,
        base_bytes=delta.base.code_bytes if delta.base else None,
        head_bytes=delta.head.code_bytes if delta.head else None,
        change_bytes=member.change_bytes,
        note=delta.note,
    )
