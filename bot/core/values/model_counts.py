"""What a report says of whole models: fusion, what deduplication left, pairs, growth with depth, edits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.core.metrics import METRICS
from bot.core.record import Amount, Count, Record
from bot.core.values.snapshot import CellKey


class FusionCounts(Record, frozen=True):
    """One model on one side; the same on every target.

    Attributes:
        linalg_ops_before, linalg_ops_after: before fusion, and inside the regions that it formed; None: not known.
        compute_bound_sites, memory_bound_sites: dispatch sites of the steady state: those with a contraction,
            convolution or attention, and the others.
    """

    linalg_ops_before: Count | None
    linalg_ops_after: Count | None
    compute_bound_sites: Count
    memory_bound_sites: Count
    initializer_sites: Count
    executables: Count | None = None
    fills: Count | None = None
    copies: Count | None = None


class Fusion(Record, frozen=True):
    """One model on both sides; None where that side does not know it."""

    model: str
    base: FusionCounts | None
    head: FusionCounts | None


@dataclass(frozen=True, slots=True)
class FoldCounts:
    """What deduplication did to one cell, and what it left behind.

    Attributes:
        families: groups of executables that are identical, or equal but for what their kind says.
        surplus_executables: executables of those families beyond one representative each: an upper bound.
        surplus_bytes: bytes of them, the largest member of each family being the representative: whole executables
            where each entry point has one of its own in the artifact (vulkan, metal), else device code; None where not
            known.
    """

    regions: int | None
    executables: int | None
    families: int
    surplus_executables: int
    surplus_bytes: int | None

    @property
    def folded(self) -> float | None:
        """Share of the regions that the compiler folded away (0.75 is 75 %); None where it is not known."""
        if not self.regions or self.executables is None:
            return None
        return (self.regions - self.executables) / self.regions


@dataclass(frozen=True, slots=True)
class Folding:
    """One cell on both sides; None where that side has not measured it."""

    key: CellKey
    base: FoldCounts | None
    head: FoldCounts | None


PAIR_METRICS = tuple(metric.id for metric in METRICS if metric.paired)
"""What a table of a static and a dynamic model shows, in this order."""


class Pair(Record, frozen=True):
    """A static and a dynamic version of one model on one target.

    Attributes:
        base, head: `static` or `dynamic` → metric id → value; a side that has not measured one of both lacks it.
    """

    static: str
    dynamic: str
    target: str
    base: Mapping[str, Mapping[str, Count | None]]
    head: Mapping[str, Mapping[str, Count | None]]


class ModelEdit(Record, frozen=True):
    """One model whose text is another one on head.

    Attributes:
        base, head: SHA-256 (hex) of its text; None where the side does not have the model: none of its operations.
        operations: operation → head − base, those that are not as many on both sides, as a `Program` counts them; None
            where that is not known: a side does not say it, measured nothing, or was read by another compiler.
        components: component → head − base of its whole operations, constants not counted; `unattributed` has those
            without a place. None where `operations` is.
    """

    model: str
    base: str | None
    head: str | None
    operations: Mapping[str, Amount] | None = None
    components: Mapping[str, Amount] | None = None


@dataclass(frozen=True, slots=True)
class Overview:
    """Fusion, folding and pairs of a report's models, each sorted."""

    fusion: tuple[Fusion, ...] = ()
    folding: tuple[Folding, ...] = ()
    pairs: tuple[Pair, ...] = ()
