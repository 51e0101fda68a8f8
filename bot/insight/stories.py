"""Every changed cell's whole story: its cause and its dispatches, beside the components that moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bot.core.delta import CellDelta
from bot.core.explanation import Explanation
from bot.core.snapshot import CellKey, Snapshot
from bot.insight.breaking import broken
from bot.insight.components import Sections, component_of, components, naming, tree
from bot.insight.explaining import ComponentOf, explain
from bot.insight.precision import Texts, no_texts

_UNCHANGED = frozenset({"same", "unmeasured"})


def explanations(
    base: Snapshot, head: Snapshot, deltas: Sequence[CellDelta], sections: Sections = (), texts: Texts = no_texts
) -> dict[CellKey, Explanation]:
    """Why the cells changed that both sides measured, and why those broke that head fails.

    `texts`: as `bot.insight.precision` has it.
    """
    return {delta.key: _story(base, head, delta, sections, texts) for delta in _changed(deltas)}


def _changed(deltas: Sequence[CellDelta]) -> Iterator[CellDelta]:
    for delta in deltas:
        told = _measured(delta) or broken(delta.base, delta.head) is not None
        if told and delta.state not in _UNCHANGED and not delta.unstable:  # no cause changed what chance may have
            yield delta


def _measured(delta: CellDelta) -> bool:
    return delta.base is not None and delta.head is not None and delta.base.measured and delta.head.measured


def _story(base: Snapshot, head: Snapshot, delta: CellDelta, sections: Sections, texts: Texts) -> Explanation:
    model = delta.key.model
    known = base.models.get(model)
    told = explain(delta, known is not None and known == head.models.get(model), texts, _places(delta, sections))
    if not _measured(delta):
        return told
    return replace(told, components=components(delta, sections), tree=tree(delta, sections))


def _places(delta: CellDelta, sections: Sections) -> ComponentOf:
    names = naming(delta, sections).components
    return lambda dispatch, cell: component_of(dispatch, cell, names)
