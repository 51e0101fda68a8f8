"""Every changed cell's whole story: its cause and its dispatches, beside the components that moved."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from bot.core.rules.delta import CellDelta
from bot.core.values.explanation import Explanation
from bot.core.values.snapshot import CellKey, Snapshot
from bot.insight.causes.breaking import broken
from bot.insight.causes.explaining import ComponentOf, explain
from bot.insight.components import Sections, component_of, components, naming, tree
from bot.insight.facts.precision import Texts, no_texts
from bot.insight.roots.headlines import headlined

_UNCHANGED = frozenset({"same", "unmeasured"})


def explanations(
    base: Snapshot, head: Snapshot, deltas: Sequence[CellDelta], sections: Sections = (), texts: Texts = no_texts
) -> dict[CellKey, Explanation]:
    """Why the cells changed that both sides measured, and why those broke that head fails.

    `texts`: as `bot.insight.facts.precision` has it.
    """
    same = base.models.keys() - changed_models(base, head)
    one_compiler = base.compiler.digest == head.compiler.digest
    found = {}
    for delta in _changed(deltas):
        told = _story(delta, delta.key.model in same, sections, texts)
        found[delta.key] = headlined(told, delta, one_compiler and _only_model(delta, same))
    return found


def _only_model(delta: CellDelta, same_models: Collection[str]) -> bool:
    """True where the same command compiled another text."""
    base, head = delta.base, delta.head
    return delta.key.model not in same_models and bool(base and head and base.command == head.command)


def changed_models(base: Snapshot, head: Snapshot) -> frozenset[str]:
    """Models whose text is not known to be the same on both sides."""
    return frozenset(m for m in {*base.models, *head.models} if base.models.get(m) != head.models.get(m))


def _changed(deltas: Sequence[CellDelta]) -> Iterator[CellDelta]:
    for delta in deltas:
        told = _measured(delta) or broken(delta.base, delta.head) is not None
        if told and delta.state not in _UNCHANGED and not delta.unstable:  # no cause changed what chance may have
            yield delta


def _measured(delta: CellDelta) -> bool:
    return delta.base is not None and delta.head is not None and delta.base.measured and delta.head.measured


def _story(delta: CellDelta, same_model: bool, sections: Sections, texts: Texts) -> Explanation:
    told = explain(delta, same_model, texts, _places(delta, sections))
    if not _measured(delta):
        return told
    return replace(told, components=components(delta, sections), tree=tree(delta, sections))


def _places(delta: CellDelta, sections: Sections) -> ComponentOf:
    names = naming(delta, sections).components
    return lambda dispatch, cell: component_of(dispatch, cell, names)
