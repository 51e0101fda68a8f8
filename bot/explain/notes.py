"""Write one line about what differs in a changed dispatch, or why it is not known."""

from __future__ import annotations

from bot.core.explanation import (
    OTHER_TYPES,
    DispatchDelta,
    code_differs,
)
from bot.core.snapshot import Dispatch
from bot.core.trace import operation_words
from bot.explain.carrying import (
    carried_words,
)
from bot.explain.cell_facts import CellFacts, Traced, source_digest
from bot.explain.clusters import SOURCE_CHANGED
from bot.explain.compared import REBOUND, Compared, rebound
from bot.explain.differences import strategy_note
from bot.explain.matching import Match, is_opaque
from bot.explain.phases import (
    SAME_CODE,
    opaque_source,
)
from bot.explain.sameness import (
    strategy_differs,
    unconfigured,
)

_NAMED = 3
_FORMED = {
    "same-structure": "the same region with different constants, shapes or offsets",
    "same-kind-and-component": "different IR of the same kind in the same place",
    "same-description": "different IR with the same description by the compiler",
}


def note_of(
    match: Match, delta: DispatchDelta, facts: CellFacts, traced: Traced
) -> str:
    """Return what differs, or why that is not known.

    A dispatch that only one side has needs no note beside its cause.
    """
    base = match.base
    head = match.head
    compared = facts.compared
    if delta.cause == "packaging":
        return SAME_CODE
    if delta.cause == "input" and (
        is_opaque(compared.head) or not compared.same_inputs
    ):
        if compared.same_model:
            return SOURCE_CHANGED
        return ""
    if base is None or head is None:
        if delta.cause:
            return ""
        return _note_without_source(match, facts)
    if delta.cause == "strategy":
        if base.strategy is None or head.strategy is None:
            return ""
        return strategy_note(base.strategy, head.strategy)
    if delta.cause == "codegen":
        return _coded(delta, compared, traced)
    return _note_of_source(match, delta, facts, traced)


def _note_of_source(
    match: Match, delta: DispatchDelta, facts: CellFacts, traced: Traced
) -> str:
    """Return what differs in the source of a dispatch that both sides have.

    If the sources are equal, return what differs after them.
    """
    base = match.base
    head = match.head
    if base is None or head is None:
        return ""
    base_source, head_source = facts.sources(match)
    has_other_source = source_digest(base_source) != source_digest(head_source)
    if base_source is None or has_other_source:
        if delta.cause:
            return _FORMED.get(match.passed, "")
        return _note_without_source(match, facts)
    sites = _sites_words(base, head)
    if delta.cause:
        return sites or _coded(delta, facts.compared, traced)
    return _note_without_cause(base, head, sites)


def _note_without_cause(base: Dispatch, head: Dispatch, sites: str) -> str:
    """Return a note about a dispatch whose IR is the same on both sides."""
    differs = code_differs(base, head)
    if differs is None:
        return "its code could not be compared"
    if differs:
        return unconfigured(base, head)
    return sites


def _note_without_source(match: Match, facts: CellFacts) -> str:
    """Return why a dispatch with other IR has no cause."""
    if facts.cause.cause is None:
        return facts.cause.why
    late = _made_late(match, facts.compared)
    return late or "its IR was not read on both sides"


def _sites_words(base: Dispatch, head: Dispatch) -> str:
    """Return `2 → 3 dispatch sites`; empty if both have as many."""
    if base.sites == head.sites:
        return ""
    before = "?" if base.sites is None else base.sites
    after = "?" if head.sites is None else head.sites
    return f"{before} → {after} dispatch sites"


def _made_late(match: Match, compared: Compared) -> str:
    """Return that the compiler made a dispatch after it formed all others.

    It is empty if the compiler did not. Data tiling makes such dispatches, which encode
    tensors. The phase that has the formed dispatches does not have them.
    """
    kinds = set[str]()
    is_late = False
    for side, row in ((compared.base, match.base), (compared.head, match.head)):
        if row is not None:
            kinds.add(row.kind)
            is_late = is_late or side.is_late(row)
    if not is_late:
        return ""
    description = "the compiler makes it after it forms dispatches"
    if kinds == {"encode"}:
        description = "it changes the encoding of a tensor"
    if match.base is None:
        return f"{description}, and only head has it"
    if match.head is None:
        return f"{description}, and only base has it"
    return f"{description}, and its IR is not compared"


def _coded(delta: DispatchDelta, compared: Compared, traced: Traced) -> str:
    base = delta.base
    head = delta.head
    if base is None or head is None:
        return ""
    if strategy_differs(base, head):
        note = "different code, and a different configuration that does not make it"
    else:
        note = f"the same {_same_part(compared)}, different code"
    if rebound(compared, base, head):
        return f"{note}, {REBOUND}"
    carried = carried_words(delta)
    if carried:
        note = f"{note}; {carried}"
    passed, untraced = traced
    if passed is None:
        if untraced:
            return f"{note}; {untraced}"
        return note
    joint = ";" if carried else ":"
    operations = operation_words(passed.operations, _NAMED, passed.others)
    return f"{note}{joint} {passed.name}: {operations or OTHER_TYPES}"


def _same_part(compared: Compared) -> str:
    if is_opaque(compared.head):
        return opaque_source(compared)
    return "configuration"
