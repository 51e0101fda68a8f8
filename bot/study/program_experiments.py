"""Make the experiments on programs whose dispatch regions differ.

Each is made once for all dispatches of a program.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from typing import Protocol

from bot.core.program_proof import ProgramProof, untried
from bot.core.snapshot import Cell, CellKey, Snapshot
from bot.study.program_side import ProgramSide
from bot.study.proving_program import ProgramExperiment, prove_program

NO_BUDGET = "compile budget used up"


class ProgramCompiler(Protocol):
    """Compiles the programs of one side."""

    def program_side(self, cell: Cell) -> ProgramSide | str:
        """Return a program and its compiler, or why there is none."""


class ProgramExperiments:
    """The experiments of one comparison; may be used from several threads."""

    def __init__(
        self,
        sides: Mapping[str, Snapshot],
        compilers: Mapping[str, ProgramCompiler],
        allowed: Collection[CellKey],
        *,
        with_bytes: bool,
    ) -> None:
        self._cells = {side: snapshot.by_key for side, snapshot in sides.items()}
        self._compilers = compilers
        self._allowed = allowed
        self._with_bytes = with_bytes
        self._found = dict[CellKey, ProgramExperiment]()
        self._lock = threading.Lock()

    def proof(self, key: CellKey, executables: Mapping[str, str]) -> ProgramProof:
        """Return the proof for one dispatch of a program.

        Args:
            executables: side → the executable of the dispatch.
        """
        with self._lock:
            if key not in self._found:
                self._found[key] = self._made(key)
            return self._found[key].proof_of(executables)

    def _program_side(self, side: str, key: CellKey) -> ProgramSide | str:
        return self._compilers[side].program_side(self._cells[side][key])

    def _made(self, key: CellKey) -> ProgramExperiment:
        if key not in self._allowed:
            return ProgramExperiment(untried(NO_BUDGET))
        base = self._program_side("base", key)
        head = self._program_side("head", key)
        if isinstance(base, str):
            return ProgramExperiment(untried(f"base: {base}"))
        if isinstance(head, str):
            return ProgramExperiment(untried(f"head: {head}"))
        return prove_program(base, head, with_bytes=self._with_bytes)
