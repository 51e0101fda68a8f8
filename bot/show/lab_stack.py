"""Say which builds of an experiment need the compiler's stack limit raised."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from bot.core.lab import Lab
from bot.core.lab_sums import Sums
from bot.core.snapshot import CellKey
from bot.show.blocks import Phrase, phrase
from bot.show.filters import plural
from bot.show.lab_words import build_names, some_names


def beyond_stack(lab: Lab, lab_sums: Sequence[Sums], names: int) -> Iterator[Phrase]:
    """Yield which models need the compiler's stack limit raised.

    Variants with which the same builds need it share a line.
    """
    measured = set[str]()
    over = defaultdict[str, set[CellKey]](set)
    for total in lab_sums:
        for (_, variant_name), cell in total.cells.items():
            if cell.measured:
                measured.add(variant_name)
            if cell.measured and cell.status == "over-stack-limit":
                over[variant_name].add(cell.key)
    if not over:
        return
    groups: dict[frozenset[CellKey], list[str]] = {}
    for variant in lab.study.variants:
        if variant.name in measured:
            keys = frozenset(over.get(variant.name, ()))
            groups.setdefault(keys, []).append(variant.name)
    for keys, variants in groups.items():
        need = phrase(" no build needs the stack limit raised")
        if keys:
            verb = "needs" if len(keys) == 1 else "need"
            builds = plural(len(keys), "build")
            need = phrase(
                f" {builds} {verb} the stack limit raised: ", build_names(keys, names)
            )
        yield phrase("With ", some_names(variants), need, ".")
