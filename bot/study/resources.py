"""Compile cells on all threads, with a run's resources: cache, progress and limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from bot.compiler.cell_cache import CellCache, TextStore
from bot.compiler.compiler import Compile, Result, Session
from bot.compiler.program_cache import ProgramCache
from bot.compiler.ptxas import Assembler, installed
from bot.compiler.schedule import Task, Watcher, run_all
from bot.core.planned import PlannedCell
from bot.core.snapshot import Cell, Failure
from bot.study.side_plan import SidePlan
from bot.system.cancel import Cancel
from bot.system.files import temporary_directory
from bot.system.meter import Meter


class Progress(Watcher, Protocol):
    """The display that long work reports to."""

    def plan(self, cells: int, cached: int, cost: float, about: str = "", /) -> None:
        """Announce how much there is to do, and what it is about."""

    def stage(self, about: str, tasks: int, noun: str, /) -> None:
        """Begin work of another kind, after all cells are measured.

        Args:
            about: what the work is.
            tasks: how many tasks there are.
            noun: what one task is called.
        """

    def measured(self, side: str, cell: Cell, cost: float) -> None:
        """Report that a cell is measured."""

    def spent(self, cpu_ms: Mapping[str, int], jobs: int) -> None:
        """Report the end of measuring, with CPU time by model and number of threads."""


@dataclass(frozen=True, slots=True)
class Resources:
    """The cache, display and limits that compiling needs beside the plans."""

    cache: CellCache
    jobs: int
    timeout_seconds: float
    cancel: Cancel
    progress: Progress
    texts: TextStore | None = None

    @property
    def programs(self) -> ProgramCache:
        """Return the cached programs, as they are before their targets' passes."""
        return ProgramCache(self.cache.root, self.cache.keeps)

    @property
    def assembler(self) -> Assembler:
        """Return the assembler that makes machine code of PTX text."""
        return Assembler(self.cancel, self.timeout_seconds, installed())

    def session(self, scratch: Path, meter: Meter) -> Session:
        """Return the session of a compiler that works with its files in a folder."""
        return Session(
            scratch=scratch,
            timeout_seconds=self.timeout_seconds,
            cancel=self.cancel,
            meter=meter,
        )

    def compile(
        self,
        plans: Iterable[tuple[SidePlan, Sequence[tuple[PlannedCell, int]]]],
        finish: Callable[[str, PlannedCell, int, Result], None],
    ) -> Meter:
        """Compile cells of sides by their printed commands, and return what that cost.

        `plans`: each cell with the memory layout at which it is compiled.

        `finish`: gets the side's label, the cell, the layout and how the compile ended,
        in the thread that compiled it.
        """
        meter = Meter()

        def compile_cell(
            label: str, compiled: Compile, cell: PlannedCell, layout: int
        ) -> None:
            finish(label, cell, layout, _result_of(compiled, cell, layout))

        with temporary_directory("run-") as scratch, ExitStack() as stack:
            tasks = []
            for plan, cells in plans:
                if cells:
                    session = self.session(scratch, meter)
                    start = partial(
                        compile_cell,
                        plan.label,
                        stack.enter_context(plan.compiler.at_work(session)),
                    )
                    for cell, layout in cells:
                        name = f"{plan.label} {cell.key}"
                        tasks.append(
                            Task(cell.cost, name, partial(start, cell, layout))
                        )
            run_all(
                tasks, jobs=self.jobs, interrupt=self.cancel.set, watcher=self.progress
            )
        return meter


def _result_of(compiled: Compile, cell: PlannedCell, layout: int) -> Result:
    """Compile one cell.

    If its files cannot be read as the compiler left them, only this cell fails.
    """
    try:
        return compiled(cell, layout)
    except (
        FileNotFoundError,
        NotADirectoryError,
        IsADirectoryError,
        PermissionError,
    ) as error:
        return Failure(
            "read", f"the compiler's output cannot be read: {error.strerror}"
        )
    except (RecursionError, UnicodeError) as error:
        return Failure(
            "read", f"the compiler's output cannot be read: {type(error).__name__}"
        )
