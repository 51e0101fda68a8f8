"""Run the artifacts of variants beside that of the reference: outputs and CPU time."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bot.compiler.compiling import CompileInput, CompileSetup, artifact_of
from bot.compiler.importing import Importer
from bot.compiler.iree import open_setup
from bot.core.backends import backend_of
from bot.core.lab import SAME
from bot.core.planned import LIFTED_LIMIT_FLAG
from bot.core.runs import Run
from bot.core.snapshot import Cell, CellKey, Failure
from bot.core.spec import release_in
from bot.core.study import Study, Variant
from bot.errors import CompilerUnavailable
from bot.running.runner import (
    MISSING,
    Runner,
    Runtime,
    device_refusal,
    installed,
    machine,
    of_release,
)
from bot.study.flow_program import flow_of, interface_of
from bot.study.lab_plans import VariantPlan
from bot.study.prepare import Work
from bot.system.files import temporary_directory
from bot.system.processes import Cancel

Runs = dict[tuple[str, CellKey], Run]


def timed_runs(
    plans: Sequence[VariantPlan], study: Study, work: Work
) -> tuple[str, Runs]:
    """Run the cells; nothing else runs beside it, as it takes times.

    Returns the machine in one line, empty where nothing was run, and the runs.
    """
    cells = study.cells
    runtime = installed()
    if runtime is None:
        return "", {
            key: _not_run(MISSING) for key, cell in cells.items() if cell.measured
        }
    runs = Runs()
    with temporary_directory("lab-") as scratch, ExitStack() as stack:
        tools: dict[str, _Tools] = {}
        for plan in plans:
            digest = plan.side.compiler.info.digest
            if digest not in tools:
                tools[digest] = _tools_of(
                    plan, runtime=runtime, scratch=scratch, stack=stack, work=work
                )
        bench = _Bench(tools, scratch, work.cancel)
        for key in study.keys:
            reference = study.references.get(key.target)
            if reference is None:
                continue
            work.show.say(f"running {key}")
            rows = [
                (plan, cells[plan.name, key])
                for plan in plans
                if (plan.name, key) in cells
            ]
            for plan, run in bench.all(rows, reference):
                runs[plan.name, key] = run
    if not any(run.price or run.equal is not None for run in runs.values()):
        return "", runs
    names = {its_runtime.name for _, _, its_runtime in tools.values()}
    other_runtimes = sorted(names - {runtime.name})
    return ", ".join((machine(runtime), *other_runtimes)), runs


def _tools_of(
    plan: VariantPlan, runtime: Runtime, scratch: Path, stack: ExitStack, work: Work
) -> _Tools:
    """Open what compiles and runs a variant's artifacts, until the stack is closed.

    The compiler's own release runs them where it can be had, else the installed one.
    """
    session = work.session(scratch)
    release = release_in(plan.side.compiler.info.spec)
    its_runtime = runtime
    if release:
        try:
            its_runtime = of_release(
                release,
                cache=work.request.cache,
                cancel=work.cancel,
                say=work.show.say,
                places=work.places,
            )
        except CompilerUnavailable as error:
            work.show.say(
                f"running artifacts of {release} with {runtime.name}: {error.line}"
            )
    setup, importer = stack.enter_context(open_setup(plan.side.toolchain, session))
    return setup, importer, its_runtime


def _not_run(reason: str) -> Run:
    return Run(equal_note=reason, price_note=reason)


_Tools = tuple[CompileSetup, Importer, Runtime]  # What only one compiler has
_Row = tuple[VariantPlan, Cell]


@dataclass
class _Bench:
    """What compiles and runs artifacts; `tools`: digest of a compiler → its own."""

    tools: dict[str, _Tools]
    scratch: Path
    cancel: Cancel
    runtimes: dict[Path, Runtime] = field(default_factory=dict)
    files: int = 0

    def all(
        self, rows: Sequence[_Row], reference: Variant
    ) -> Iterator[tuple[VariantPlan, Run]]:
        if len(rows) < 2:
            return
        measured = [row for row in rows if row[1].measured]
        first = next((row for row in measured if row[0].name == reference.name), None)
        data = self.scratch / "data"
        if first:
            prepared = self._runner(first, data)
        else:
            prepared = f"{reference.name} has no artifact here"
        if first is None or isinstance(prepared, str):
            yield from ((plan, _not_run(str(prepared))) for plan, _ in measured)
            return
        runner, before = prepared
        for row in measured:
            if row is not first:
                yield row[0], self._ran(first, row=row, runner=runner, before=before)
        shutil.rmtree(data, ignore_errors=True)

    def _runner(self, first: _Row, data: Path) -> tuple[Runner, Path] | str:
        """Return what runs artifacts of the reference's program, and its own artifact.

        Or why nothing does.
        """
        plan, cell = first
        backend = plan.planned(cell.key).target.backend
        if backend_of(backend).runs_on == "its device":
            return device_refusal(backend)
        setup, _, runtime = self.tools[plan.side.compiler.info.digest]
        flow = self.scratch / "flow.mlir"
        if (failed := self._compiled(first, flow, flow_of)) is not None:
            return failed
        signature = interface_of(setup.bindings, flow)
        flow.unlink(missing_ok=True)
        if isinstance(signature, str):
            return signature
        runner = Runner(
            runtime=runtime,
            interface=signature,
            directory=data,
            cancel=self.cancel,
            names=(f"{plan.name}'s artifact", "its artifact"),
            runtimes=self.runtimes,
        )
        before = runner.reason or self._artifact(first)
        if isinstance(before, str):
            return before
        return runner, before

    def _artifact(self, row: _Row) -> Path | str:
        self.files += 1
        out = self.scratch / f"{self.files}.vmfb"
        *_, self.runtimes[out] = self.tools[row[0].side.compiler.info.digest]
        failed = self._compiled(row, out, artifact_of)
        if failed is None:
            return out
        return failed

    def _compiled(
        self, row: _Row, out: Path, by: Callable[..., Failure | None]
    ) -> str | None:
        """Compile a row's model to a file, the stack limit lifted where needed.

        Returns why that fails, else None.
        """
        plan, cell = row
        setup, importer, _ = self.tools[plan.side.compiler.info.digest]
        planned = plan.planned(cell.key)
        source = importer.source(planned.model)
        if isinstance(source, Failure):
            return source.first_line
        argv = planned.argv
        if cell.status == "over-stack-limit":
            argv = (*argv, LIFTED_LIMIT_FLAG)
        failed = by(setup, argv, CompileInput(planned.model.name, source), out)
        if failed:
            return failed.first_line
        return None

    def _ran(self, first: _Row, row: _Row, runner: Runner, before: Path) -> Run:
        if row[1].artifact_digest == first[1].artifact_digest:
            return Run(equal=True, equal_note=SAME, price_note=SAME)
        after = self._artifact(row)
        if isinstance(after, str):
            return _not_run(after)
        return runner.run(before, after)
