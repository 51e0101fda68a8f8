"""Builds of one small model, measured by a real release, and what compiles one of their executables alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.cli.showing import TerminalShow
from bot.compiler.bindings import working
from bot.compiler.compiler import Session
from bot.compiler.compiling import CompileInput, CompileSetup
from bot.compiler.toolchain import resolve
from bot.config.configuration import load_config
from bot.core.planned import LIFTED_LIMIT_FLAG
from bot.core.snapshot import Cell, Snapshot
from bot.study.compiling_alone import SOURCES
from bot.study.executable_sources import executables_at
from bot.study.ladder import LadderSide
from bot.study.prepare import Work
from bot.study.request import Request
from bot.study.side_plan import SidePlan
from bot.system.cancel import Cancel
from bot.system.defaults import default_cache
from bot.system.files import temporary_directory
from bot.system.meter import Meter


@contextmanager
def compile_setup(release: str) -> Iterator[CompileSetup]:
    """Yield how a release compiles."""
    cancel = Cancel()
    toolchain = resolve(release, default_cache(), cancel, print)
    with (
        temporary_directory("alone-") as scratch,
        closing(working(toolchain, cancel)) as bindings,
    ):
        yield CompileSetup(toolchain, Session(scratch, 300, cancel, Meter()), bindings)


@dataclass(frozen=True)
class AloneStage:
    """One side of one model, in a directory with its configuration."""

    home: Path
    release: str
    plan: SidePlan
    side: Snapshot

    @property
    def source(self) -> CompileInput:
        """The model."""
        return CompileInput("m", self.home / "m.mlir")

    def argv(self, cell: Cell) -> tuple[str, ...]:
        """Return the flags of a build."""
        planned = next(
            planned for planned in self.plan.cells if planned.key == cell.key
        )
        is_lifted = cell.status == "over-stack-limit"
        return (*planned.argv, LIFTED_LIMIT_FLAG) if is_lifted else planned.argv

    def texts(self, setup: CompileSetup, cell: Cell, phase: str) -> dict[str, str]:
        """Return executable → its IR at a phase."""
        with temporary_directory("texts-", setup.session.scratch) as out:
            paths = executables_at(
                setup, argv=self.argv(cell), source=self.source, phase=phase, out=out
            )
            assert isinstance(paths, dict), paths
            return {
                name: path.read_text(encoding="utf-8") for name, path in paths.items()
            }

    def ladder_side(
        self, setup: CompileSetup, target: str, word: str = ""
    ) -> LadderSide:
        """Return the only dispatch on a target whose name has a word."""
        cell = next(cell for cell in self.side.cells if cell.key.target == target)
        (row,) = (row for row in cell.dispatches if word in row.name)
        source = self.texts(setup, cell, SOURCES)[row.executable]
        return LadderSide(setup, self.argv(cell), row, source)


def measured(
    home: Path, release: str, model: str, targets: str, flags: str = ""
) -> AloneStage:
    """Measure a model for some targets of the default configuration, with flags that commas divide."""
    home.mkdir(parents=True, exist_ok=True)
    config = home / "c.yml"
    (home / "m.mlir").write_text(model, encoding="utf-8")
    text = (
        f"schema: code-size-config/1\nmodels: [m.mlir]\ntargets: [{targets}]\nflags:"
        f" [{flags}]\n"
    )
    config.write_text(text, encoding="utf-8")
    request = Request(
        {"head": release}, config, cache=default_cache(), out=home / "out"
    )
    work = Work(request, load_config(config), TerminalShow(quiet=True), Cancel())
    plan = work.prepare("head", release)
    return AloneStage(home, release, plan, work.measured([plan])["head"])
