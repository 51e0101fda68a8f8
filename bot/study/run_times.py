"""Runs the artifacts of failing builds, base's and head's in pairs, on this machine.

Artifacts are the code of a compiler under review, and of models of a pull request. So
they are run only where compilers run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from bot.compiler.iree import Iree
from bot.compiler.static_library import library_path
from bot.compiler.wheels import release_home
from bot.core.backends import backend_of
from bot.core.delta import CellDelta
from bot.core.lab import SAME
from bot.core.planned import SIDES
from bot.core.report import Report
from bot.core.run_times import (
    MOST_BUILDS,
    MOST_ROWS,
    BuildRun,
    RunTimes,
    build_run,
    not_run,
)
from bot.core.runs import Run, unknown_run
from bot.core.snapshot import Cell, CellKey, Snapshot
from bot.core.spec import release_in
from bot.errors import CompilerUnavailable, UsageError
from bot.readers.ir_facts import Interface
from bot.running.runner import (
    MISSING,
    Runner,
    Runtime,
    device_refusal,
    installed,
    machine,
    refusal,
)
from bot.study.prepare import Work
from bot.study.program_side import ProgramSide
from bot.study.runnable import program_interface, runtime_of, write_artifact
from bot.study.side_plan import SidePlan
from bot.study.tracing import SideTracer, side_tracers
from bot.system.files import temporary_directory

NO_ARTIFACTS = "snapshots have no artifacts to run: use `compare --run` with compilers"
OVER_BUDGET = f"not run: only the {MOST_BUILDS} worst failing builds are run"
OTHER_PROGRAM = "base and head have other inputs, outputs or parameters"
NOT_DETERMINISTIC = "non-deterministic build: one artifact does not stand for the rest"
STATIC_LIBRARY = "the artifact needs a static library, which the runtime does not load"
OTHER_COMPILER = "the bot can run only artifacts of IREE"
_OTHER_ARTIFACT = "compiled again, {side} gives another artifact than the one measured"
_NO_ARTIFACT = "{side} has no artifact"
_NO_COMPILER = "{side} is a stored snapshot, and its compiler is not here"
_NAMES = ("base's artifact", "head's artifact")


class BuildFiles(NamedTuple):
    """The artifacts of one build, and how its program is called."""

    interface: Interface
    base: Path
    head: Path


def run_times(
    plans: Sequence[SidePlan],
    sides: Mapping[str, Snapshot],
    report: Report,
    work: Work,
) -> RunTimes:
    """Run the artifacts of the builds that fail the check, the worst first.

    A build that cannot be run has its reason. `plans`: of the sides that this run
    measured.
    """
    keys = failing_builds(report)[:MOST_ROWS]
    if not keys:
        return RunTimes("", ())
    planned = _side_plans(plans, sides, work)
    deltas = {delta.key: delta for delta in report.deltas}
    refused = {key: _refusal(deltas[key], sides, planned) for key in keys}
    runnable = [key for key in keys if not refused[key]]
    runtime = installed()
    if runtime is None or not runnable:
        rows = [not_run(key.model, key.target, refused[key] or MISSING) for key in keys]
        return RunTimes("", tuple(rows))
    with _bench(planned, runtime, work) as bench:
        runs = _run_builds(bench, [deltas[key] for key in runnable])
        ran_on = bench.machine
    rows = [_row(key, runs, refused[key]) for key in keys]
    is_run = any(row.time or row.equal is not None for row in rows)
    return RunTimes(ran_on if is_run else "", tuple(rows))


def _row(key: CellKey, runs: Mapping[CellKey, BuildRun], refused: str) -> BuildRun:
    """Return the run of a build, or why it was not run."""
    run = runs.get(key)
    if run:
        return run
    return not_run(key.model, key.target, refused or OVER_BUDGET)


def _side_plans(
    plans: Sequence[SidePlan], sides: Mapping[str, Snapshot], work: Work
) -> dict[str, SidePlan]:
    """Return the plan of each side whose compiler is here, by its label."""
    planned = {plan.label: plan for plan in plans}
    for side in SIDES:
        if side not in planned:
            stored = _stored_plan(side, sides[side], work)
            if stored is not None:
                planned[side] = stored
    return planned


def _run_builds(bench: Bench, deltas: Sequence[CellDelta]) -> dict[CellKey, BuildRun]:
    """Run builds in their order, at most MOST_BUILDS that this machine can run."""
    runs = dict[CellKey, BuildRun]()
    started = 0
    for delta in deltas:
        if started == MOST_BUILDS:
            break
        key = delta.key
        if key.target not in bench.refused:
            bench.work.show.say(f"{key}: running base's and head's artifacts")
        runs[key] = build_run(key.model, key.target, bench.run(delta))
        if key.target not in bench.refused:
            started += 1
    return runs


def without_artifacts(report: Report) -> RunTimes:
    """Return the failing builds of a report that is made only from snapshots."""
    keys = failing_builds(report)[:MOST_ROWS]
    rows = [not_run(key.model, key.target, NO_ARTIFACTS) for key in keys]
    return RunTimes("", tuple(rows))


def failing_builds(report: Report) -> list[CellKey]:
    """Return the builds with a finding that fails the check, the worst first."""
    return list(dict.fromkeys(finding.key for finding in report.verdict.failing))


def _refusal(
    delta: CellDelta, sides: Mapping[str, Snapshot], plans: Mapping[str, SidePlan]
) -> str:
    """Return why a build is not run, as far as that is known before a compile.

    It is empty if the build may run.
    """
    for side, cell in (("base", delta.base), ("head", delta.head)):
        if cell is None or not cell.measured or cell.artifact_digest is None:
            return _NO_ARTIFACT.format(side=side)
    backends = {**sides["base"].targets, **sides["head"].targets}
    backend = backends.get(delta.key.target, "")
    for side in SIDES:
        plan = plans.get(side)
        if plan is not None and not isinstance(plan.compiler, Iree):
            return OTHER_COMPILER
    if not backend:
        return OTHER_COMPILER
    if backend_of(backend).runs_on == "its device":
        return device_refusal(backend)
    if delta.unstable:
        return NOT_DETERMINISTIC
    for side in SIDES:
        if not _is_planned(plans.get(side), delta.key):
            return _NO_COMPILER.format(side=side)
    return ""


def _is_planned(plan: SidePlan | None, key: CellKey) -> bool:
    return plan is not None and any(cell.key == key for cell in plan.cells)


def _stored_plan(side: str, snapshot: Snapshot, work: Work) -> SidePlan | None:
    """Return the plan of a stored side whose compiler is a release in the cache.

    Models and flags may be others now: each artifact is compared with the one that was
    measured.
    """
    release = release_in(snapshot.compiler.spec)
    if release is None or work.config.command is not None:
        return None
    if not release_home(release, work.request.cache.absolute(), work.places).is_dir():
        return None
    try:
        plan = work.prepare(side, release)
    except (CompilerUnavailable, UsageError):
        return None
    if plan.compiler.info.digest != snapshot.compiler.digest:
        return None
    return plan


@contextmanager
def _bench(
    plans: Mapping[str, SidePlan], runtime: Runtime, work: Work
) -> Iterator[Bench]:
    """Yield the bench that compiles and runs artifacts; it runs alone."""
    runtimes = {}
    for side in SIDES:
        runtimes[side] = runtime_of(plans[side].compiler.info, runtime, work)
    with (
        work.resources() as resources,
        side_tracers(list(plans.values()), resources) as tracers,
        temporary_directory("runs-") as scratch,
    ):
        yield Bench(tracers=tracers, runtimes=runtimes, scratch=scratch, work=work)


@dataclass
class Bench:
    """Compiles and runs the artifacts of builds, one build after the other.

    Attributes:
        tracers: side → what compiles its programs.
        runtimes: side → the runtime that runs its artifacts.
        scratch: a folder for artifacts and random inputs.
        refused: target → why this machine does not run its code.
    """

    tracers: Mapping[str, SideTracer]
    runtimes: Mapping[str, Runtime]
    scratch: Path
    work: Work
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def machine(self) -> str:
        """Return the processor and the runtimes, in one line."""
        base, head = (self.runtimes[side] for side in SIDES)
        if base.version == head.version:
            return machine(head)
        return f"{machine(head)}, {base.name}"

    def run(self, delta: CellDelta) -> Run:
        """Run both artifacts of a build."""
        if delta.base is None or delta.head is None:
            return unknown_run(_NO_ARTIFACT.format(side="one side"))
        if delta.base.artifact_digest == delta.head.artifact_digest:
            return Run(equal=True, equal_note=SAME, price_note=SAME)
        if delta.key.target in self.refused:
            return unknown_run(self.refused[delta.key.target])
        with temporary_directory("build-", self.scratch) as folder:
            files = self._files(delta.base, delta.head, folder)
            if isinstance(files, str):
                return unknown_run(files)
            runner = Runner(
                runtime=self.runtimes["base"],
                interface=files.interface,
                directory=folder / "data",
                cancel=self.work.cancel,
                names=_NAMES,
                runtimes={
                    files.base: self.runtimes["base"],
                    files.head: self.runtimes["head"],
                },
            )
            if runner.reason is not None:
                return unknown_run(runner.reason)
            return runner.run(files.base, files.head)

    def _files(self, base: Cell, head: Cell, folder: Path) -> BuildFiles | str:
        """Compile both artifacts, or return why they cannot be run.

        The interfaces come first: they cost less than the artifacts.
        """
        programs = dict[str, ProgramSide]()
        interfaces = dict[str, Interface]()
        for side, cell in (("base", base), ("head", head)):
            program = self.tracers[side].program_side(cell)
            if isinstance(program, str):
                return f"{side}: {program}"
            if library_path(program.argv, folder) is not None:
                return STATIC_LIBRARY
            interface = program_interface(program, folder)
            if isinstance(interface, str):
                return f"{side}: {interface}"
            reason = refusal(interface.targets, self.runtimes[side], self.work.cancel)
            if reason:
                self.refused[cell.key.target] = reason
                return reason
            programs[side] = program
            interfaces[side] = interface
        interface = common_interface(interfaces["base"], interfaces["head"])
        if isinstance(interface, str):
            return interface
        artifacts = dict[str, Path]()
        for side, cell in (("base", base), ("head", head)):
            artifact = _artifact(side, program=programs[side], cell=cell, folder=folder)
            if isinstance(artifact, str):
                return artifact
            artifacts[side] = artifact
        return BuildFiles(interface, artifacts["base"], artifacts["head"])


def common_interface(base: Interface, head: Interface) -> Interface | str:
    """Return the interface of both programs, or why they cannot get equal inputs.

    Its targets are base's: the targets of each side are checked before.
    """
    if base.functions != head.functions:
        return OTHER_PROGRAM
    if set(base.parameters) != set(head.parameters):
        return OTHER_PROGRAM
    return replace(
        base,
        remembers=base.remembers or head.remembers,
        picks=base.picks or head.picks,
    )


def _artifact(side: str, program: ProgramSide, cell: Cell, folder: Path) -> Path | str:
    """Compile the measured artifact by its own command; return it or the reason."""
    path = folder / f"{side}.vmfb"
    reason = write_artifact(program, path)
    if reason:
        return f"{side}: {reason}"
    if hashlib.sha256(path.read_bytes()).hexdigest() != cell.artifact_digest:
        return _OTHER_ARTIFACT.format(side=side)
    return path
