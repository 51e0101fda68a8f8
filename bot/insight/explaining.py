"""Owns the story of one changed cell: its matched dispatches that are not the same, each with cause, note and diff."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bot.core.delta import CellDelta
from bot.core.explanation import UNATTRIBUTED, DispatchDelta, Explanation
from bot.core.snapshot import Cell, Dispatch
from bot.insight.causes import (
    OTHER_OFFSETS,
    Cause,
    cause_of,
    dispatch_cause,
    keeps_apart,
    numbers,
    strategy_differs,
    unconfigured,
)
from bot.insight.differences import Texts, dispatch_diff, strategy_note
from bot.insight.matching import Match, Side, index_both, match_sides
from bot.insight.regions import Compared, compare, rebound

MOST_NOTES = 200
MOST_DIFFS = 5
ComponentOf = Callable[[Dispatch, Cell], str]


def no_texts(_: str) -> str | None:
    """The IR is not at hand: comparisons of stored snapshots."""
    return None


def unattributed(_: Dispatch, __: Cell) -> str:
    """The component where nobody asks for one."""
    return UNATTRIBUTED


def explain(
    delta: CellDelta, same_model: bool, texts: Texts = no_texts, component_of: ComponentOf = unattributed
) -> Explanation:
    """Say why a cell changed. Its components are the caller's to add.

    `same_model`: the model's text is the same on both sides; `texts`: digest of a source → its IR as people read it.
    """
    base, head = delta.base, delta.head
    if base is None or head is None or not base.measured or not head.measured:
        return Explanation(None, None, _one_sided(base, head))
    sides = index_both(base, head)
    matches = match_sides(*sides)
    compared = compare(*sides, matches, same_model)
    cause = cause_of(compared)
    differing = [found for found in matches if not _same(found, compared)]
    changed = [found for found in differing if not _rebased(found, compared)]
    changed.sort(key=lambda found: -abs(_code_change(found)))
    story = _Story(compared, cause, texts, component_of, _siblings(compared))
    dispatches = tuple(_delta(rank, found, story) for rank, found in enumerate(changed))
    unchanged, rebased = len(matches) - len(differing), len(differing) - len(changed)
    return Explanation(cause.cause, cause.phase, cause.why, dispatches, unchanged, rebased)


def _one_sided(base: Cell | None, head: Cell | None) -> str:
    missing = [name for name, cell in (("base", base), ("head", head)) if cell is None or not cell.measured]
    return f"nothing was measured on {' and '.join(missing)} to compare with"


def _same(found: Match, compared: Compared) -> bool:
    """Nothing that was read of the entry point differs: of known code its numbers decide, else its source too."""
    base, head = found.base, found.head
    if base is None or head is None or base.sites != head.sites or numbers(base) != numbers(head):
        return False
    if base.code is not None and head.code is not None:
        return base.code == head.code
    left, right = compared.base.source(base), compared.head.source(head)
    return (left and left.source) == (right and right.source) and not strategy_differs(base, head)


def _rebased(found: Match, compared: Compared) -> bool:
    """Another place in memory is all that differs: a shift, not a change."""
    base, head = found.base, found.head
    if base is None or head is None or base.sites != head.sites or numbers(base) != numbers(head):
        return False
    return rebound(compared, base, head) and not strategy_differs(base, head)


def _code_change(found: Match) -> int:
    base = found.base.code_bytes if found.base else None
    head = found.head.code_bytes if found.head else None
    return (head or 0) - (base or 0)


class _Story(NamedTuple):
    """What all dispatches of a cell share; `siblings`: structure → sources of its pairs on base and on head."""

    compared: Compared
    cause: Cause
    texts: Texts
    component_of: ComponentOf
    siblings: dict[str, tuple[str, str]]


def _siblings(compared: Compared) -> dict[str, tuple[str, str]]:
    if compared.left is None:
        return {}
    found: dict[str, tuple[str, str]] = {}
    for row, other in compared.pairs:
        left, right = compared.base.source(row), compared.head.source(other)
        if left and right and left.structure == right.structure:
            found.setdefault(left.structure, (left.source, right.source))
    return found


def _delta(rank: int, found: Match, story: _Story) -> DispatchDelta:
    row, side = _shown(found, story.compared)
    cause = dispatch_cause(found, story.compared, story.cause)
    return DispatchDelta(
        found.base,
        found.head,
        found.passed,
        cause,
        story.component_of(row, side.cell),
        _note(found, cause, story) if rank < MOST_NOTES else "",
        _difference(found, cause, story) if rank < MOST_DIFFS else (),
    )


def _shown(found: Match, compared: Compared) -> tuple[Dispatch, Side]:
    """The head's entry point, the base's where it is gone."""
    if found.head is not None:
        return found.head, compared.head
    if found.base is None:
        raise ValueError("a match has at least one side")
    return found.base, compared.base


def _difference(found: Match, cause: str | None, story: _Story) -> tuple[str, ...]:
    compared = story.compared
    left = compared.base.source(found.base) if found.base else None
    right = compared.head.source(found.head) if found.head else None
    pair = (left.source if left else None, right.source if right else None)
    known = left or right
    sibling = story.siblings.get(known.structure) if known else None
    if sibling and cause == "dedup-lost" and right:
        pair = (sibling[1], right.source)  # two of head that were one on base
    elif sibling and cause == "dedup-won" and left:
        pair = (left.source, sibling[0])
    return dispatch_diff(found, pair, story.texts)


Note = Callable[[Match, _Story], str]


def _note(found: Match, cause: str | None, story: _Story) -> str:
    if found.base is None or found.head is None:
        return _LONE_NOTES.get(cause or "", _unknown)(found, story)
    return _PAIR_NOTES.get(cause or "", _unknown)(found, story)


def _unknown(found: Match, story: _Story) -> str:
    """Why there is no cause."""
    base, head = found.base, found.head
    if base is None or head is None or not _same_source(found, story.compared):
        return story.cause.why if story.cause.cause is None else "its IR was not read on both sides"
    if base.code is None or head.code is None:
        return "its code could not be compared"
    return _sites(found, story) if base.code == head.code else unconfigured(base, head)


def _same_source(found: Match, compared: Compared) -> bool:
    left = compared.base.source(found.base) if found.base else None
    right = compared.head.source(found.head) if found.head else None
    return left is not None and right is not None and left.source == right.source


def _strategies(found: Match, _: _Story) -> str:
    base, head = found.base, found.head
    if base is None or head is None or base.strategy is None or head.strategy is None:
        return ""
    return strategy_note(base.strategy, head.strategy)


def _sites(found: Match, _: _Story) -> str:
    base, head = (row.sites if row else None for row in (found.base, found.head))
    shown = ["?" if sites is None else str(sites) for sites in (base, head)]
    return "" if base == head else f"{shown[0]} → {shown[1]} dispatch sites"


def _folding(found: Match, story: _Story) -> str:
    row, side = _shown(found, story.compared)
    source, lost = side.source(row), found.head is not None
    census = story.compared.right if lost else story.compared.left
    members = census.executables.get(source.structure, ()) if census and source else ()
    apart = keeps_apart(side.cell, members)
    words = f"one of {len(members)} executables of the same region"
    return f"{words}, kept apart by {apart}" if apart else words


_FORMED = {
    "same-structure": "the same region with other constants, shapes or offsets",
    "same-structure-and-place": "the same region with other constants, shapes or offsets",
    "same-kind-and-component": "another region of the same kind in the same place",
    "same-description": "another region that the compiler describes in the same words",
}


def _formed(found: Match, story: _Story) -> str:
    if not _same_source(found, story.compared):
        return _FORMED.get(found.passed, "")
    return _sites(found, story) or _coded(found, story)


def _coded(found: Match, story: _Story) -> str:
    base, head = found.base, found.head
    other = base is not None and head is not None and rebound(story.compared, base, head)
    return f"the same configuration, other code{f' for {OTHER_OFFSETS}' if other else ''}"


def _says(words: str) -> Note:
    return lambda found, story: words


_PAIR_NOTES: dict[str, Note] = {
    "input": _formed,
    "fusion": _formed,
    "dedup-lost": _formed,
    "dedup-won": _formed,
    "strategy": _strategies,
    "codegen": _coded,
    "packaging": _says("the same code"),
}
_LONE_NOTES: dict[str, Note] = {
    "input": _says("the model itself changed"),
    "fusion": _says("a region that the other side does not have"),
    "dedup-lost": _folding,
    "dedup-won": _folding,
}
