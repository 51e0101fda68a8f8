"""Find the cause of a dispatch that is not the same on both sides."""

from __future__ import annotations

from bot.core.explanation import code_differs
from bot.core.snapshot import Dispatch
from bot.explain.compared import (
    Compared,
    rebound,
)
from bot.explain.matching import Match, is_opaque
from bot.explain.phases import Cause, source_changed
from bot.explain.sameness import same_numbers, strategy_differs

_REGIONAL = frozenset({"input", "fusion", "dedup-lost", "dedup-won"})


def dispatch_cause(match: Match, compared: Compared, cell: Cause) -> str | None:
    """Return the cause of one match that is not the same on both sides.

    Return None if it cannot be known.
    """
    base = match.base
    head = match.head
    if compared.base.cell.program is None or compared.head.cell.program is None:
        return None
    if is_opaque(compared.base) and is_opaque(compared.head):
        return _opaque_cause(match, compared)
    if base is None or head is None:
        return _lone_cause(match, compared, cell)
    base_source = compared.base.source(base)
    head_source = compared.head.source(head)
    if base_source is None or head_source is None:
        return None
    if base_source.source != head_source.source:
        moved = None
        if base_source.structure == head_source.structure:
            moved = compared.structure_moved(base_source.structure)
        return _regional(moved, cell)
    strategy = strategy_differs(base, head)
    if (
        cell.cause in _REGIONAL
        and not strategy
        and compared.same_command
        and rebound(compared, base, head)
    ):
        # Same command and configuration: only the program can have changed the
        # bindings.
        return cell.cause
    return _late_cause(base, head, cell, strategy)


def _opaque_cause(match: Match, compared: Compared) -> str:
    """Return the cause if only the source is known of what precedes the code."""
    if source_changed(compared):
        return "input"
    base = match.base
    head = match.head
    if base is None or head is None:
        return "codegen"
    is_same = code_differs(base, head) is False and same_numbers(base, head)
    if is_same:
        return "packaging"
    return "codegen"


def _lone_cause(match: Match, compared: Compared, cell: Cause) -> str | None:
    """Return the cause of a dispatch that only one side has."""
    source = None
    if match.base is not None:
        source = compared.base.source(match.base)
    elif match.head is not None:
        source = compared.head.source(match.head)
    if source is None:
        return None
    return _regional(compared.structure_moved(source.structure), cell)


def _late_cause(
    base: Dispatch, head: Dispatch, cell: Cause, strategy: bool | None
) -> str | None:
    """Return the cause of a difference between dispatches of the same IR."""
    differs = code_differs(base, head)
    if differs is False and same_numbers(base, head):
        if cell.cause in _REGIONAL:
            return cell.cause
        return None
    if strategy:
        return "strategy"
    if differs:
        if strategy is None:
            return None
        return "codegen"
    if differs is False:
        return "packaging"
    return None


def _regional(moved: int | None, cell: Cause) -> str | None:
    """Return the cause of a difference before the back end.

    `moved`: how many more executables of this structure head has, if both sides launch
    it equally often. None or 0: not a change of deduplication alone.
    """
    if cell.cause not in _REGIONAL:
        return None
    if cell.cause == "input":
        return "input"
    if not moved:
        return "fusion"
    if moved > 0:
        return "dedup-lost"
    return "dedup-won"
