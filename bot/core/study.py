"""A study: variants in their order, measured over the same cells and compared in pairs.

An experiment has as many variants as its question needs. A history has one for each
release or stored commit. A comparison has base and head, and a bisection measures one
candidate after the other: for these two the snapshots by name are enough.

A gap is a variant without a snapshot, or a cell that a variant does not have. It is
never a reference. The neighbours of a variant in a gap are compared with each other. A
cell in a gap is compared with nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from msgspec.structs import replace

from bot.core.record import Small
from bot.core.snapshot import Cell, CellKey, CompilerInfo, Failure, Snapshot
from bot.core.spec import release_in
from bot.errors import CompilerUnavailable, ConfigError, InputError, UsageError

GAPS = (CompilerUnavailable, ConfigError, InputError, UsageError)
"""The errors that make a variant a gap if the study goes on without it."""
UNMEASURED = "unmeasured"  # the status of a cell in a gap, whose failure has the reason
SHORT = 10  # digits of a commit that names a variant
_ABSENT = "not in this snapshot"


class Assumption(Small, frozen=True):
    """The bounds that a variant's models state for each dynamic dimension."""

    smallest: int = 0
    largest: int | None = None  # None for no upper bound
    divisor: int = 1

    @property
    def words(self) -> str:
        """Return the assumption in running text: `16 to 512, multiples of 16`."""
        bounds = f"at least {self.smallest:,}"
        if self.largest is not None:
            bounds = f"{self.smallest:,} to {self.largest:,}"
        if self.divisor > 1:
            return f"{bounds}, multiples of {self.divisor:,}"
        return bounds


class Variant(Small, frozen=True):
    """One variant of a study: its differences from the others, and its snapshot."""

    name: str
    # SPEC of its compiler, without directories once it is fetched; empty for the
    # study's compiler
    spec: str = ""
    snapshot: Snapshot | None = None  # None before it is measured, and for a gap
    reason: str = ""  # why it is a gap, or why none of its cells could be tried
    flags: tuple[str, ...] = ()  # flags of its cells, after all others
    # glob of targets → extra flags there; None: all targets, no extra flags
    targets: Mapping[str, tuple[str, ...]] | None = None
    # name of a model → the file that stands for it in this variant
    models: Mapping[str, str] = {}
    # number of layers in its models; None: the models as they are
    layers: int | None = None
    assume: Assumption | None = None

    @property
    def rewrites(self) -> bool:
        """Return whether the texts of its models are not those of their files."""
        return self.layers is not None or self.assume is not None

    @property
    def compiler(self) -> CompilerInfo | None:
        """Return the compiler that measured the variant; None for a gap."""
        if self.snapshot:
            return self.snapshot.compiler
        return None

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Return the cells of the variant; a gap has none."""
        if self.snapshot:
            return self.snapshot.cells
        return ()

    def gap(self, key: CellKey) -> Cell:
        """Return the gap in place of a cell that the variant lacks, with the reason."""
        reason = _ABSENT if self.snapshot else self.reason
        return Cell(key.model, key.target, UNMEASURED, failure=Failure("gap", reason))


class Pair(NamedTuple):
    """The names of two variants that a study compares."""

    base: str
    head: str


Sides = Mapping[str, Snapshot]
"""Name of a variant, such as `base` → what was measured of it."""


class Study(Small, frozen=True, dict=True, gc=True):
    """Variants with unique names, in their order."""

    variants: tuple[Variant, ...]

    @cached_property
    def cells(self) -> Mapping[tuple[str, CellKey], Cell]:
        """Return variant and key → the cell that the variant has."""
        cells: dict[tuple[str, CellKey], Cell] = {}
        for variant in self.variants:
            for cell in variant.cells:
                cells[variant.name, cell.key] = cell
        return cells

    @cached_property
    def keys(self) -> tuple[CellKey, ...]:
        """Return the cells that any variant plans or has, sorted."""
        keys = {key for _, key in self.cells}
        for variant in self.variants:
            if variant.snapshot:
                keys |= variant.snapshot.planned
        return tuple(sorted(keys))

    @cached_property
    def rows(self) -> Mapping[CellKey, tuple[Cell, ...]]:
        """Return each cell in all variants, in their order.

        In a gap it is `unmeasured`, with the reason as its failure.
        """
        rows: dict[CellKey, tuple[Cell, ...]] = {}
        for key in self.keys:
            row = []
            for variant in self.variants:
                cell = self.cells.get((variant.name, key))
                row.append(cell or variant.gap(key))
            rows[key] = tuple(row)
        return rows

    @cached_property
    def targets(self) -> Mapping[str, str]:
        """Return the targets of all variants: name → backend."""
        targets: dict[str, str] = {}
        for variant in self.variants:
            if variant.snapshot:
                targets |= variant.snapshot.targets
        return targets

    @cached_property
    def measured(self) -> tuple[Variant, ...]:
        """Return the variants that have an artifact of at least one cell."""
        measured = []
        for variant in self.variants:
            if any(cell.measured for cell in variant.cells):
                measured.append(variant)
        return tuple(measured)

    @cached_property
    def references(self) -> Mapping[str, Variant]:
        """Return target → the variant that the others are compared with there.

        It is the first variant that has an artifact there.
        """
        first: dict[str, Variant] = {}
        for variant in self.variants:
            for cell in variant.cells:
                if cell.measured:
                    first.setdefault(cell.key.target, variant)
        return dict(sorted(first.items()))

    def beside_references(self) -> Iterable[Pair]:
        """Return each pair of a reference and another variant once."""
        pairs: dict[frozenset[str], Pair] = {}
        for variant_name, key in self.cells:
            reference = self.references.get(key.target)
            if reference and reference.name != variant_name:
                pair = Pair(reference.name, variant_name)
                pairs[frozenset(pair)] = pair
        return pairs.values()


class Neighbours(NamedTuple):
    """Two variants between which nothing could be had."""

    # base, head: name of the variant, and what was measured
    base: tuple[str, Snapshot]
    head: tuple[str, Snapshot]
    gaps: tuple[str, ...]  # names of what lies between


def neighbours(variants: Iterable[Variant]) -> Iterator[Neighbours]:
    """Yield each variant that could be had with the one before, in their order."""
    base: tuple[str, Snapshot] | None = None
    gaps = list[str]()
    for variant in variants:
        if variant.snapshot is None:
            gaps.append(variant.name)
            continue
        head = (variant.name, variant.snapshot)
        if base:
            yield Neighbours(base, head, tuple(gaps))
        base = head
        gaps = []


def compiler_name(compiler: CompilerInfo) -> str:
    """Return the release of a compiler, else its SPEC, else what it calls itself."""
    return release_in(compiler.spec) or compiler.spec or compiler.version


def of_commit(sha: str, snapshot: Snapshot) -> Variant:
    """Return a stored baseline, which has the name of its commit."""
    return Variant(sha[:SHORT], compiler_name(snapshot.compiler), snapshot)


def named_apart(variants: Sequence[Variant]) -> Study:
    """Return the variants with unique names: `3.13.0` and `3.13.0 (2)`."""
    named: dict[str, Variant] = {}
    for variant in variants:
        number = 1
        name = variant.name
        while name in named:
            number += 1
            name = f"{variant.name} ({number})"
        named[name] = replace(variant, name=name)
    return Study(tuple(named.values()))
