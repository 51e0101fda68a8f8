"""One cell's program with groups of executables made one: rewritten, compiled and measured, each set of groups once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bot.compiler.caches.cell_cache import CellCache, cell_key
from bot.compiler.compiling import Kit, Source, compile_directly
from bot.compiler.folding import RESUME, FoldedGroup, Group, LeftGroup, rewritten
from bot.compiler.tools.bindings import Bindings
from bot.compiler.tools.ptxas import Assembler
from bot.core.values.planned import Model, PlannedCell
from bot.core.values.snapshot import Cell, Failure
from bot.errors import MalformedBinary
from bot.measurement.cell import cell_of

NOTHING: tuple[Group, ...] = ()


@dataclass(frozen=True, slots=True)
class Attempt:
    """The program with these groups made one.

    Attributes:
        cell: as it was measured; a failed one where the program could not be rewritten.
        program: where its text is, while it is needed.
        planned: the cell that compiles it.
    """

    groups: tuple[Group, ...]
    cell: Cell
    program: Path
    planned: PlannedCell
    folded: tuple[FoldedGroup, ...] = ()
    left: tuple[LeftGroup, ...] = ()

    @property
    def artifact_bytes(self) -> int | None:
        """Of its artifact; None without one."""
        return self.cell.value("artifact_bytes") if self.cell.measured else None


@dataclass
class Attempts:
    """Attempts at one cell.

    Attributes:
        planned: the cell whose program it is.
        flow: its program at the end of the flow phase.
    """

    planned: PlannedCell
    flow: Path
    kit: Kit
    folding: Bindings
    cache: CellCache
    assembler: Assembler | None
    _known: dict[tuple[Group, ...], Attempt] = field(default_factory=dict)

    def at(self, groups: Sequence[Group]) -> Attempt:
        """The attempt with these groups, in any order."""
        key = tuple(sorted(groups))
        if key not in self._known:
            self._known[key] = self._made(key)
        return self._known[key]

    def _made(self, groups: tuple[Group, ...]) -> Attempt:
        program = self.flow.with_name(f"{self.flow.stem}.{len(self._known)}.mlir")
        try:
            result = rewritten(self.folding, self.flow, groups, program)
        except MalformedBinary as error:
            planned = self._planned(self.flow)
            return Attempt(groups, Cell(planned.key, "failed", failure=Failure("read", str(error))), self.flow, planned)
        planned = self._planned(program)
        cell = self._measured(planned)
        # One that the stack limit refuses, where the model itself is within it, is none that compiles.
        measured = cell if cell.status != "over-stack-limit" else Cell(cell.key, "failed", failure=cell.failure)
        program.unlink()  # there are many of them, and few are needed again
        return Attempt(groups, measured, program, planned, result.folded, result.left)

    def program(self, attempt: Attempt) -> Path:
        """The text of an attempt; raises MalformedBinary where it cannot be had again."""
        if not attempt.program.is_file():
            rewritten(self.folding, self.flow, attempt.groups, attempt.program)
        return attempt.program

    def _planned(self, program: Path) -> PlannedCell:
        data = program.read_bytes()
        model = self.planned.model
        shown = f"{model.name}.{self.planned.target.name}.mlir"
        resumed = Model(model.name, str(program), shown, hashlib.sha256(data).hexdigest(), len(data))
        return replace(self.planned, model=resumed, user_flags=(*self.planned.user_flags, RESUME))

    def _measured(self, planned: PlannedCell) -> Cell:
        key = cell_key(self.kit.toolchain.info.digest, planned)
        known = self.cache.load(key)
        if known is not None:
            return known
        result = compile_directly(self.kit, planned.argv, Source(planned.model.name, Path(planned.model.path)))
        cell = cell_of(planned, result, None, self.assembler)
        self.cache.store(key, cell)
        return cell
