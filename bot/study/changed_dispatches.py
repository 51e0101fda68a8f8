"""A changed dispatch of a build, and what is known of it before it is traced."""

from __future__ import annotations

from bot.core.explanation import EARLY_CAUSES, DispatchDelta
from bot.core.mappings import known_values
from bot.core.snapshot import CellKey, Dispatch

Moved = tuple[CellKey, DispatchDelta]
"""A build, and one of its dispatches that changed."""


def is_formed(delta: DispatchDelta) -> bool:
    """Return whether passes before those of its target formed the dispatch otherwise.

    That holds for a dispatch that the other side lacks, too.
    """
    return delta.cause in EARLY_CAUSES and (
        is_lone(delta) or delta.matched != "same-source"
    )


def is_lone(delta: DispatchDelta) -> bool:
    """Return whether only one side has the dispatch."""
    return delta.base is None or delta.head is None


def dispatches_of(delta: DispatchDelta) -> dict[str, Dispatch]:
    """Return side → its dispatch, for the sides that have one."""
    return known_values({"base": delta.base, "head": delta.head})
