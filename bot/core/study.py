"""A study: variants in their order, each measured over the same cells.

What a gap, a neighbour and the reference are.

An experiment has as many as its question needs, a history one a release or stored
commit. A comparison has two sides by name, `base` and `head`, and a bisection asks for
one after the other: these need no more than their snapshots.

A gap is no measurement: a variant that could not be had, and a cell without an
artifact. It is nobody's reference. The neighbours of such a variant are held against
each other; of such a cell nothing is held against anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from msgspec.structs import replace

from bot.core.record import Small
from bot.core.snapshot import Cell, CellKey, CompilerInfo, Failure, Snapshot
from bot.core.spec import release_in

UNMEASURED = (  # the status of a cell in a gap: its failure says why nothing is known of it
    "unmeasured"
)
SHORT = 10  # digits of a commit that names a variant
_ABSENT = "not in this snapshot"


class Assumption(Small, frozen=True):
    """What a variant's models state of each dynamic dimension of their arguments."""

    smallest: int = 0
    largest: int | None = None  # None for no upper bound
    divisor: int = 1

    @property
    def words(self) -> str:
        """The assumption in running text, such as `16 to 512, multiples of 16`."""
        bounds = f"at least {self.smallest:,}"
        if self.largest is not None:
            bounds = f"{self.smallest:,} to {self.largest:,}"
        if self.divisor > 1:
            return f"{bounds}, multiples of {self.divisor:,}"
        return bounds


class Variant(Small, frozen=True):
    """What makes one side of a study another one than the others, and what was measured with it."""

    name: str
    # SPEC of its compiler, without directories once that is fetched; empty for the
    # study's own
    spec: str = ""
    # None before it is measured, and where there is a gap in its place
    snapshot: Snapshot | None = None
    reason: str = ""  # why there is a gap, or why none of its cells could be tried
    flags: tuple[str, ...] = ()  # of its cells, behind all others
    # glob of the only targets that have it → flags that it adds there; None for all,
    # without such flags
    targets: Mapping[str, tuple[str, ...]] | None = None
    # name of a model → the file that stands for it in this variant
    models: Mapping[str, str] = {}
    # how often its models have their layer; None for models as they are
    layers: int | None = None
    assume: Assumption | None = None

    @property
    def rewrites(self) -> bool:
        """Return whether the texts of its models are not those of their files."""
        return self.layers is not None or self.assume is not None

    @property
    def compiler(self) -> CompilerInfo | None:
        """What measured it; None of a gap."""
        if self.snapshot:
            return self.snapshot.compiler
        return None


class Study(Small, frozen=True, dict=True, gc=True):
    """Variants with names of their own, in their order."""

    variants: tuple[Variant, ...]

    @cached_property
    def keys(self) -> tuple[CellKey, ...]:
        """The cells that any variant plans or has, sorted."""
        sides = [variant.snapshot for variant in self.variants if variant.snapshot]
        return tuple(
            sorted(
                {
                    key
                    for side in sides
                    for key in (*side.planned, *(cell.key for cell in side.cells))
                }
            )
        )

    @cached_property
    def rows(self) -> Mapping[CellKey, tuple[Cell, ...]]:
        """Each cell in all variants, in their order.

        In a gap it is `unmeasured`, with the reason as its failure.
        """
        columns = []
        for variant in self.variants:
            if variant.snapshot:
                cells = {cell.key: cell for cell in variant.snapshot.cells}
            else:
                cells = {}
            gap = Failure("gap", _ABSENT if variant.snapshot else variant.reason)
            columns.append(
                [
                    cells.get(key)
                    or Cell(key.model, key.target, UNMEASURED, failure=gap)
                    for key in self.keys
                ]
            )
        return dict(zip(self.keys, zip(*columns, strict=True), strict=True))

    @cached_property
    def targets(self) -> Mapping[str, str]:
        """Target → its backend, of all variants."""
        return {
            name: backend
            for side in self.variants
            if side.snapshot
            for name, backend in side.snapshot.targets.items()
        }

    @cached_property
    def measured(self) -> tuple[Variant, ...]:
        """The variants of which at least one cell has an artifact."""
        return tuple(
            variant
            for variant in self.variants
            if variant.snapshot
            and any(cell.measured for cell in variant.snapshot.cells)
        )

    @cached_property
    def references(self) -> Mapping[str, Variant]:
        """Target → what the other variants are compared with there.

        The first that has an artifact there.
        """
        first: dict[str, Variant] = {}
        for variant in self.measured:
            for cell in variant.snapshot.cells if variant.snapshot else ():
                if cell.measured:
                    first.setdefault(cell.key.target, variant)
        return dict(sorted(first.items()))


class Neighbours(NamedTuple):
    """Two variants between which nothing could be had."""

    # base, head: name of the variant, and what was measured
    base: tuple[str, Snapshot]
    head: tuple[str, Snapshot]
    gaps: tuple[str, ...]  # names of what lies between


def neighbours(variants: Iterable[Variant]) -> Iterator[Neighbours]:
    """Yield each variant that could be had with the one before, in their order."""
    base, gaps = None, list[str]()
    for variant in variants:
        if variant.snapshot is None:
            gaps.append(variant.name)
            continue
        head = (variant.name, variant.snapshot)
        if base:
            yield Neighbours(base, head, tuple(gaps))
        base, gaps = head, []


def of_commit(sha: str, snapshot: Snapshot) -> Variant:
    """Return a stored baseline.

    Its name is the commit, and its SPEC the release that measured it.
    """
    compiler = snapshot.compiler
    return Variant(
        sha[:SHORT],
        release_in(compiler.spec) or compiler.spec or compiler.version,
        snapshot,
    )


def named_apart(variants: Sequence[Variant]) -> Study:
    """Return all with names of their own: `3.13.0` and `3.13.0 (2)`."""
    named: dict[str, Variant] = {}
    for variant in variants:
        number, name = 1, variant.name
        while name in named:
            number += 1
            name = f"{variant.name} ({number})"
        named[name] = replace(variant, name=name)
    return Study(tuple(named.values()))
