"""Cluster deltas into root causes: by what changed, not by where."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import NamedTuple

from bot.core.explanation import (
    OTHER_CONFIGURATION,
    UNKNOWN,
    DispatchDelta,
    PartDelta,
    PassChange,
)
from bot.core.proof import PARTLY, PROVED, REFUTED
from bot.core.record import Small
from bot.core.snapshot import CellKey
from bot.explain.carrying import carried_by
from bot.explain.knobs import turned

SOURCE_CHANGED = "the model is the same, but another file that the build reads changed"
NOT_BY_VALUES = f"{OTHER_CONFIGURATION}, but none of its named values makes the change"


Delta = DispatchDelta | PartDelta


class Member(Small, frozen=True):
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


class Phases(NamedTuple):
    """The phases that carry a change: one, or several together."""

    names: tuple[str, ...]


class Passed(NamedTuple):
    """The pass, the operation that it changes most, and whether head has more of it."""

    name: str
    operation: str
    more: bool
    # the result of an experiment on a pass that forms other regions
    experiment: str = ""


def clustered(
    key: CellKey, cause: str, delta: Delta, same_model: bool
) -> tuple[Hashable, Hashable]:
    """Return the key that clusters a delta within its cause, and its trait.

    The words of the cluster are made of the traits, too.
    """
    if isinstance(delta, PartDelta):
        if cause == "input":
            return (key.model, ""), SOURCE_CHANGED if same_model else False
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
            return Phases((by_phase.phase,)), None
        return Phases(tuple(by_phase.parts)), None
    return delta.note if cause == UNKNOWN else "", None


def _clustered_by_pass(passed: PassChange) -> tuple[Hashable, Hashable]:
    if passed.experiment:
        subject = Passed(passed.name, "", more=False, experiment=passed.experiment)
        return subject, None
    operation, count = next(iter(passed.operations.items()), ("", 0))
    trait = tuple(passed.operations.items())
    return Passed(passed.name, operation, count > 0), trait


def keeps_region(delta: DispatchDelta) -> bool:
    """Return whether both sides have a dispatch at as many sites: its IR differs."""
    return (
        delta.base is not None
        and delta.head is not None
        and delta.base.sites == delta.head.sites
    )


def changed_knobs(delta: DispatchDelta) -> tuple[tuple[str, str], ...] | None:
    """Return the knobs that differ with their change.

    Return None if a configuration was not read.
    """
    if (
        delta.base is None
        or delta.head is None
        or delta.base.strategy is None
        or delta.head.strategy is None
    ):
        return None
    return _turns(delta.base.strategy, delta.head.strategy)


@lru_cache(maxsize=4096)
def _turns(base: str, head: str) -> tuple[tuple[str, str], ...]:
    return tuple(turned(base, head).items())


def _needed_knobs(delta: DispatchDelta) -> tuple[tuple[str, str], ...]:
    """Return the knobs that differ; after an experiment only those that it needs."""
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
    needed = []
    for name, change in changes:
        if name in proof.knobs:
            needed.append((name, change))
    return tuple(needed) or changes
