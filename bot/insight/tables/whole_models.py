"""The tables about whole models, put together from both snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bot.core.values.model_counts import Folding, Fusion, Overview
from bot.core.values.snapshot import Snapshot
from bot.insight.tables import pairs as pairing
from bot.insight.tables.folding import fold_counts
from bot.insight.tables.fusion import fusion_counts


def overview(base: Snapshot, head: Snapshot, pairs: Sequence[tuple[str, str]]) -> Overview:
    """What there is to say of whole models; sorted. What neither side knows is left out.

    Args:
        pairs: models as (static, dynamic).
    """
    return Overview(
        fusion=tuple(_fusion(base, head)),
        folding=tuple(_folding(base, head)),
        pairs=pairing.pairs(base, head, pairs),
    )


def _fusion(base: Snapshot, head: Snapshot) -> Iterator[Fusion]:
    left, right = fusion_counts(base), fusion_counts(head)
    for model in sorted(left.keys() | right.keys()):
        yield Fusion(model, left.get(model), right.get(model))


def _folding(base: Snapshot, head: Snapshot) -> Iterator[Folding]:
    left, right = ({cell.key: fold_counts(cell) for cell in side.cells} for side in (base, head))
    for key in sorted(left.keys() | right.keys()):
        found = Folding(key, left.get(key), right.get(key))
        if found.base or found.head:
            yield found
