"""Run the artifacts of variants beside that of the reference: outputs and CPU time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bot.core.backends import backend_of
from bot.core.lab import SAME
from bot.core.runs import Run, unknown_run
from bot.core.snapshot import Cell, CellKey
from bot.core.study import Study
from bot.running.runner import (
    MISSING,
    Runner,
    Runtime,
    device_refusal,
    installed,
    machine,
)
from bot.study.lab_plans import VariantPlan
from bot.study.prepare import Work
from bot.study.runnable import program_interface, runtime_of, write_artifact
from bot.study.tracing import SideTracer, side_tracers
from bot.system.cancel import Cancel
from bot.system.files import temporary_directory

Runs = dict[tuple[str, CellKey], Run]


def timed_runs(
    plans: Sequence[VariantPlan], study: Study, work: Work
) -> tuple[str, Runs]:
    """Run the cells; nothing else runs beside it, as it takes times.

    Returns the machine in one line, empty if nothing was run, and the runs.
    """
    runs = Runs()
    runtime = installed()
    if runtime is None:
        for place, cell in study.cells.items():
            if cell.measured:
                runs[place] = unknown_run(MISSING)
        return "", runs
    runtimes = _runtimes(plans, runtime, work)
    with (
        work.resources() as resources,
        side_tracers([plan.side for plan in plans], resources) as tracers,
        temporary_directory("lab-") as scratch,
    ):
        bench = _Bench(tracers, runtimes, scratch, work.cancel)
        for key in study.keys:
            reference = study.references.get(key.target)
            if reference is None:
                continue
            work.show.say(f"running {key}")
            cells = {}
            for plan in plans:
                if (plan.name, key) in study.cells:
                    cells[plan.name] = study.cells[plan.name, key]
            for name, run in bench.run_build(cells, reference.name).items():
                runs[name, key] = run
    if not any(run.price or run.equal is not None for run in runs.values()):
        return "", runs
    names = {its_runtime.name for its_runtime in runtimes.values()}
    other_names = sorted(names - {runtime.name})
    return ", ".join((machine(runtime), *other_names)), runs


def _runtimes(
    plans: Sequence[VariantPlan], runtime: Runtime, work: Work
) -> dict[str, Runtime]:
    """Return variant → the runtime of its compiler, each found once."""
    of_digest: dict[str, Runtime] = {}
    runtimes = {}
    for plan in plans:
        compiler = plan.side.compiler.info
        if compiler.digest not in of_digest:
            of_digest[compiler.digest] = runtime_of(compiler, runtime, work)
        runtimes[plan.name] = of_digest[compiler.digest]
    return runtimes


@dataclass
class _Bench:
    """Compiles and runs the artifacts of variants."""

    tracers: Mapping[str, SideTracer]  # variant → what compiles its programs
    runtimes: Mapping[str, Runtime]  # variant → what runs its artifacts
    scratch: Path
    cancel: Cancel

    def run_build(self, cells: Mapping[str, Cell], reference: str) -> dict[str, Run]:
        """Return variant → the result of its run beside the reference.

        `cells`: variant → the cell of one build.
        """
        if len(cells) < 2:
            return {}
        measured = {name: cell for name, cell in cells.items() if cell.measured}
        with temporary_directory("build-", self.scratch) as folder:
            before = self._reference(measured, reference, folder)
            if isinstance(before, str):
                return dict.fromkeys(measured, unknown_run(before))
            runs = {}
            for name, cell in measured.items():
                if name == reference:
                    continue
                if cell.artifact_digest == measured[reference].artifact_digest:
                    runs[name] = Run(equal=True, equal_note=SAME, price_note=SAME)
                else:
                    runs[name] = self._beside(before, name, cell)
            return runs

    def _reference(
        self, cells: Mapping[str, Cell], reference: str, folder: Path
    ) -> _Reference | str:
        """Return the reference of a build, ready to run; or why nothing is run."""
        cell = cells.get(reference)
        if cell is None:
            return f"{reference} has no artifact here"
        tracer = self.tracers[reference]
        backend = tracer.plan.planned(cell.key).target.backend
        if backend_of(backend).runs_on == "its device":
            return device_refusal(backend)
        program = tracer.program_side(cell)
        if isinstance(program, str):
            return program
        interface = program_interface(program, folder)
        if isinstance(interface, str):
            return interface
        runtimes: dict[Path, Runtime] = {}
        runner = Runner(
            runtime=self.runtimes[reference],
            interface=interface,
            directory=folder / "data",
            cancel=self.cancel,
            names=(f"{reference}'s artifact", "its artifact"),
            runtimes=runtimes,
        )
        artifact = folder / "reference.vmfb"
        reason = runner.reason or write_artifact(program, artifact)
        return reason or _Reference(runner, runtimes, artifact)

    def _beside(self, before: _Reference, name: str, cell: Cell) -> Run:
        """Run the artifact of a variant beside that of the reference."""
        program = self.tracers[name].program_side(cell)
        if isinstance(program, str):
            return unknown_run(program)
        artifact = before.artifact.with_name(f"{len(before.runtimes)}.vmfb")
        reason = write_artifact(program, artifact)
        if reason:
            return unknown_run(reason)
        before.runtimes[artifact] = self.runtimes[name]
        return before.runner.run(before.artifact, artifact)


class _Reference(NamedTuple):
    """The artifact that the others are run beside, and what runs them."""

    runner: Runner
    runtimes: dict[Path, Runtime]  # artifact of a variant → what runs it
    artifact: Path
