"""A side that is ready to be measured: its compiler, and the cells that are planned for it."""

from __future__ import annotations

from dataclasses import dataclass

from bot.compiler.compiler import Compiler
from bot.compiler.iree import toolchain_of
from bot.compiler.toolchain import Toolchain
from bot.core.planned import Model, PlannedCell, Target
from bot.core.snapshot import SourceInfo


@dataclass(frozen=True, slots=True)
class SidePlan:
    """One side, ready to be measured."""

    label: str  # `base` or `head`
    compiler: Compiler
    # what this run measures: all cells of the models on the targets, or the shard's
    # part of them
    cells: tuple[PlannedCell, ...]
    source: SourceInfo
    models: tuple[Model, ...] = ()
    targets: tuple[Target, ...] = ()
    # True where the files are of a commit, and are removed after the run
    is_temporary: bool = False

    @property
    def toolchain(self) -> Toolchain:
        """What only `iree-compile` can be asked for.

        Raises UsageError where the compiler is another.
        """
        return toolchain_of(self.compiler)
