"""Compare the deduplication of each build on both sides."""

from __future__ import annotations

from dataclasses import dataclass

from bot.core.deduplication import EXECUTABLES, REGIONS, Deduplication, deduplication_of
from bot.core.delta import CellDelta
from bot.show.facts import Facts


@dataclass(frozen=True, slots=True)
class DeduplicatedBuild:
    """One build on both sides."""

    delta: CellDelta
    base: Deduplication
    head: Deduplication

    @property
    def is_known(self) -> bool:
        """Return whether a side knows how many regions it folds."""
        return self.base.folded is not None or self.head.folded is not None

    @property
    def counts(self) -> tuple[int, int, int, int] | None:
        """Return regions and folded regions of base, then of head.

        Return None if one of them has no exact value.
        """
        base = _exact(self.base)
        head = _exact(self.head)
        if base is None or head is None:
            return None
        return (*base, *head)

    @property
    def is_changed(self) -> bool:
        """Return whether both sides are known and their numbers differ."""
        counts = self.counts
        return counts is not None and counts[:2] != counts[2:]


def deduplicated_builds(facts: Facts) -> list[DeduplicatedBuild]:
    """Return the builds of which a side knows how many regions it folds."""
    builds = map(_build, facts.report.deltas)
    return [build for build in builds if build.is_known]


def _build(delta: CellDelta) -> DeduplicatedBuild:
    base_regions, head_regions = delta.metrics[REGIONS].sides
    base_executables, head_executables = delta.metrics[EXECUTABLES].sides
    return DeduplicatedBuild(
        delta,
        base=deduplication_of(delta.base, base_regions, base_executables),
        head=deduplication_of(delta.head, head_regions, head_executables),
    )


def _exact(side: Deduplication) -> tuple[int, int] | None:
    if isinstance(side.regions, int) and isinstance(side.folded, int):
        return side.regions, side.folded
    return None
