"""Fold some groups of a cell's executables, compile the program and measure it.

The program is taken at the end of the flow phase. Compiles from there are kept in the
cache like cells.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from bot.compiler.bindings import Bindings
from bot.compiler.cell_cache import CellCache, cell_key
from bot.compiler.compiling import (
    CompileInput,
    CompileSetup,
    artifact_of,
    compile_directly,
)
from bot.compiler.importing import Importer
from bot.compiler.ptxas import Assembler
from bot.core.planned import Model, PlannedCell
from bot.core.snapshot import Cell, Failure
from bot.errors import MalformedBinary
from bot.fold.rewriting import RESUME, FoldedGroup, Group, Groups, LeftGroup, rewritten
from bot.study.cell import cell_of


class FoldTools(NamedTuple):
    """What an audit works with, for all cells of a side."""

    setup: CompileSetup
    folding: Bindings
    importer: Importer
    cache: CellCache
    assembler: Assembler
    scratch: Path


@dataclass(frozen=True, slots=True)
class Attempt:
    """A program with some groups folded."""

    groups: tuple[Group, ...]
    cell: Cell  # as it was measured; a failed one where the program could not be rewritten
    program: Path  # where its text is, while it is needed
    planned: PlannedCell  # the cell that compiles it
    folded: tuple[FoldedGroup, ...] = ()
    left: tuple[LeftGroup, ...] = ()

    @property
    def artifact_bytes(self) -> int | None:
        """Return the size of the attempt's artifact; None without one."""
        if self.cell.measured:
            return self.cell.value("artifact_bytes")
        return None


@dataclass
class Attempts:
    """Attempts at one cell: each set of groups is compiled and measured once."""

    tools: FoldTools
    planned: PlannedCell
    source: Path  # its model's file
    flow: Path  # its program at the end of the flow phase
    groups: Groups  # the executables of this program that can be merged
    _known: dict[tuple[Group, ...], Attempt] = field(default_factory=dict)

    def of(self, groups: Sequence[Group]) -> Attempt:
        """Return the attempt with these groups, in any order."""
        key = tuple(sorted(groups))
        if key not in self._known:
            self._known[key] = self._attempt(key)
        return self._known[key]

    def _attempt(self, groups: tuple[Group, ...]) -> Attempt:
        tools = self.tools
        program = self.flow.with_name(f"{self.flow.stem}.{len(self._known)}.mlir")
        try:
            result = rewritten(
                tools.folding, flow=self.flow, groups=groups, out=program
            )
        except MalformedBinary as error:
            planned = self._resumed(self.flow)
            return Attempt(
                groups=groups,
                cell=Cell(
                    planned.model.name,
                    planned.target.name,
                    "failed",
                    failure=Failure("read", str(error)),
                ),
                program=self.flow,
                planned=planned,
            )
        planned = self._resumed(program)
        key = cell_key(tools.setup.toolchain.info.digest, planned)
        if (cell := tools.cache.load(key)) is None:
            compiled = compile_directly(
                tools.setup, planned.argv, CompileInput(planned.model.name, program)
            )
            cell = cell_of(
                planned, result=compiled, texts=None, assembler=tools.assembler
            )
            tools.cache.store(key, cell)
        if cell.status == "over-stack-limit":
            # The model itself is within the stack limit, so a fold that exceeds it
            # counts as a failed compile.
            cell = Cell(cell.model, cell.target, "failed", failure=cell.failure)
        program.unlink()  # there are many of them, and few are needed again
        return Attempt(
            groups=groups,
            cell=cell,
            program=program,
            planned=planned,
            folded=result.folded,
            left=result.left,
        )

    def _resumed(self, program: Path) -> PlannedCell:
        data = program.read_bytes()
        model = self.planned.model
        shown_name = f"{model.name}.{self.planned.target.name}.mlir"
        resumed = Model(
            name=model.name,
            path=str(program),
            shown=shown_name,
            digest=hashlib.sha256(data).hexdigest(),
            size_bytes=len(data),
        )
        return structs.replace(
            self.planned, model=resumed, user_flags=(*self.planned.user_flags, RESUME)
        )

    def program(self, attempt: Attempt) -> Path:
        """Return the text of an attempt.

        Raises MalformedBinary if it cannot be made again.
        """
        if not attempt.program.is_file():
            rewritten(
                self.tools.folding,
                flow=self.flow,
                groups=attempt.groups,
                out=attempt.program,
            )
        return attempt.program

    def artifact(self, planned: PlannedCell, text: Path, out: Path) -> Path | str:
        """Write the artifact of a text to `out`; return `out`, or why there is none."""
        failed = artifact_of(
            self.tools.setup,
            argv=planned.argv,
            source=CompileInput(planned.model.name, text),
            out=out,
        )
        if failed:
            return failed.first_line
        return out
