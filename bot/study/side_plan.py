"""A side that is ready to be measured: its compiler and its planned cells."""

from __future__ import annotations

from dataclasses import dataclass

from bot.compiler.cell_cache import cell_key, digest_of
from bot.compiler.compiler import Compiler
from bot.compiler.iree import toolchain_of
from bot.compiler.toolchain import Toolchain
from bot.core.planned import Model, PlannedCell, Target
from bot.core.snapshot import CellKey, SourceInfo


@dataclass(frozen=True, slots=True)
class SidePlan:
    """One side, ready to be measured."""

    label: str  # `base`, `head`, or the name of a variant, such as a SPEC
    compiler: Compiler
    # what this run measures: all cells of the models on the targets, or the shard's
    # part of them
    cells: tuple[PlannedCell, ...]
    source: SourceInfo
    models: tuple[Model, ...] = ()
    targets: tuple[Target, ...] = ()
    # True if the files are a checkout that is removed after the run
    is_temporary: bool = False

    @property
    def toolchain(self) -> Toolchain:
        """Return the IREE toolchain of the side.

        Raises UsageError if the compiler is another one.
        """
        return toolchain_of(self.compiler)

    def planned(self, key: CellKey) -> PlannedCell:
        """Return the planned cell of a key, which must exist."""
        return next(cell for cell in self.cells if cell.key == key)


def plan_digest(side: SidePlan) -> str:
    """Return the SHA-256 (hex) of all that a side's measurements depend on.

    These are its compiler, models, targets and flags, by name.
    """
    keys = []
    for cell in side.cells:
        key = (
            cell_key(side.compiler.info.digest, cell)
            or f"some of its files are unknown: {cell.printed}"
        )
        keys.append(f"{cell.key}\n{key}")
    return digest_of(sorted(keys))


def is_reproducible(side: SidePlan) -> bool:
    """Return whether all files that the builds read are known.

    Only then a stored side can stand for this one.
    """
    return not any(cell.unlisted for cell in side.cells)
