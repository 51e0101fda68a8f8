"""Choose the changed dispatches that are worth tracing: most bytes for their work first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from bot.core.explanation import DispatchDelta, Explanation, moved_bytes
from bot.core.snapshot import CellKey
from bot.core.work import trace_work
from bot.study.changed_dispatches import Moved, dispatches_of, is_formed, is_lone

_PROGRAM_WORK = 2_000
"""Work of the passes over a program on both sides, for all its dispatches.

It is 1,000 for 400 lines, and 3,500 for 4,000.
"""
_MOVED_TENTHS = 9
"""Tenths of a target's changed bytes of dispatches that need a knob or a trace."""
_MOST = 600
"""So many dispatches are traced at most."""


class _Change(NamedTuple):
    """A changed dispatch of a build.

    Attributes:
        size: its changed bytes, without a sign.
    """

    key: CellKey
    delta: DispatchDelta
    size: int


def worth_tracing(
    explanations: Mapping[CellKey, Explanation], edited: Collection[str] = ()
) -> list[Moved]:
    """Return the dispatches to be traced, by the bytes that a unit of work explains.

    The most bytes come first: ten dispatches of 4 KB before one of 10 KB.

    A dispatch is a candidate if its only known cause is other code. It is also one if
    earlier passes formed it otherwise, and nobody `edited` its model. The largest
    candidates of each target are taken, until 90 % of the target's bytes have a knob or
    these passes.
    """
    changes = list[_Change]()
    for key, explanation in explanations.items():
        for delta in explanation.dispatches:
            changes.append(_Change(key, delta, abs(moved_bytes(delta) or 0)))
    chosen = _unexplained(changes, edited)[:_MOST]
    # the bytes that the passes over a model's program may explain
    formed = Counter[str]()
    for change in chosen:
        if is_formed(change.delta):
            formed[change.key.model] += change.size

    def rank(change: _Change) -> tuple[int, CellKey, str]:
        return -_rate(change, formed), change.key, change.delta.name

    return [(change.key, change.delta) for change in sorted(chosen, key=rank)]


def _unexplained(changes: Sequence[_Change], edited: Collection[str]) -> list[_Change]:
    """Return the largest changes of each target that a trace can explain.

    There are as many as it takes until 0.9 of the target's bytes have a cause.
    """
    open_tenths = Counter[str]()  # tenths of bytes that still have neither
    for change in changes:
        explained_tenths = 10 if change.delta.cause == "strategy" else 0
        tenths = _MOVED_TENTHS - explained_tenths
        open_tenths[change.key.target] += change.size * tenths
    chosen = list[_Change]()
    read = set[CellKey]()
    for change in sorted(changes, key=_largest_first):
        key, delta, size = change
        is_early = is_formed(delta) and key.model not in edited
        is_traced = is_early or (delta.cause == "codegen" and not is_lone(delta))
        # after the first early one of a cell the others cost nothing
        is_free = is_early and key in read
        if size and is_traced and (open_tenths[key.target] > 0 or is_free):
            open_tenths[key.target] -= 10 * size
            chosen.append(change)
            if is_early:
                read.add(key)
    return chosen


def _largest_first(change: _Change) -> tuple[int, CellKey, str]:
    return -change.size, change.key, change.delta.name


def _rate(change: _Change, formed: Mapping[str, int]) -> int:
    """Return the bytes that 1,000 units of work on a change explain.

    `formed`: model → the bytes that the passes over its program may explain.
    """
    if is_formed(change.delta):
        return formed[change.key.model] * 1000 // _PROGRAM_WORK
    work = sum(map(trace_work, dispatches_of(change.delta).values()))
    return change.size * 1000 // work
