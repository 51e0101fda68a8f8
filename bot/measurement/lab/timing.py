"""Artifacts of variants run on this machine beside that of the reference: outputs, CPU time, instructions."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from bot.compiler.compiling import Kit, Source, artifact_of, module_of
from bot.compiler.folding import FOLD_WORKER, flow_of
from bot.compiler.tools.importing import Importer
from bot.config.configuration import Config
from bot.core.backends import backend_of
from bot.core.folds.fold_values import Price
from bot.core.lab.lab_values import SAME, LabCell
from bot.core.rules.lasting import here
from bot.core.rules.spec import Places, release_in
from bot.core.values.planned import LIFTED_LIMIT_FLAG, PlannedCell
from bot.core.values.snapshot import Failure
from bot.errors import CompilerUnavailable, MalformedBinary
from bot.measurement.lab.planning import VariantPlan
from bot.measurement.prepare import Request, Show
from bot.measurement.run import open_kit
from bot.measurement.running.runner import Runner
from bot.measurement.running.runtime import MISSING, Runtime, installed, machine, of_release
from bot.readers.interfaces import interface
from bot.system.files import temporary_directory
from bot.system.processes import Cancel, Meter

RUN_SECONDS = 120

Cells = list[LabCell]


def timed(
    plans: Sequence[VariantPlan],
    cells: Sequence[LabCell],
    against: Mapping[str, VariantPlan],
    request: Request,
    config: Config,
    show: Show,
    cancel: Cancel,
) -> tuple[Cells, str]:
    """The cells with what running them gave, and the machine in one line; that is empty where nothing was run.

    Nothing else runs beside it, as it takes times.

    `against`: target → the variant that the others are compared with there.
    """
    runtime = installed()
    if runtime is None:
        return [_without(cell, MISSING) if cell.measured else cell for cell in cells], ""
    result = {cell.key: cell for cell in cells}
    releases = {}
    for info in {plan.toolchain.info.digest: plan.toolchain.info for plan in plans}.values():
        releases[info.digest] = runtime
        if release := release_in(info.spec):
            try:
                places = Places(config.compiler.find_links)
                releases[info.digest] = of_release(release, request.cache, cancel, show.say, places)
            except CompilerUnavailable as error:
                show.say(f"artifacts of {release} are run by {runtime.name}: {error.line}")
    with _open(plans, releases, config.timeout_seconds, cancel) as bench:
        for model, target in sorted({(cell.model, cell.target) for cell in cells}):
            rows = [_Row(plan, result[key]) for plan in plans if (key := (model, target, plan.variant.name)) in result]
            if target not in against:
                continue
            show.say(f"{model} on {target} is run")
            for cell in bench.all(rows, against[target]):
                result[cell.key] = cell
    ran = any(cell.price or cell.equal is not None or cell.instructions is not None for cell in result.values())
    others = sorted({one.name for one in releases.values()} - {runtime.name})
    return list(result.values()), ", ".join((machine(runtime), *others)) if ran else ""


def _without(cell: LabCell, why: str) -> LabCell:
    """A cell that is not run; what folding found out of its own stays."""
    return replace(
        cell,
        equal_note=cell.equal_note or why,
        price_note="" if cell.price else cell.price_note or why,
        instructions_note=why,
    )


@dataclass(frozen=True, slots=True)
class _Row:
    plan: VariantPlan
    cell: LabCell

    @property
    def planned(self) -> PlannedCell:
        """What is compiled, with the stack limit lifted where that was needed."""
        [planned] = [one for one in self.plan.cells if (one.key.model, one.key.target) == self.cell.key[:2]]
        return planned

    @property
    def argv(self) -> tuple[str, ...]:
        lifted = (LIFTED_LIMIT_FLAG,) if self.cell.status == "over-stack-limit" else ()
        return (*self.planned.argv, *lifted)


@dataclass
class _Tools:
    kit: Kit
    importer: Importer
    runtime: Runtime

    def source(self, row: _Row) -> Path | str:
        path = self.importer.source(row.planned.model)
        return path.first_line if isinstance(path, Failure) else path


@dataclass
class _Bench:
    tools: dict[str, _Tools]
    scratch: Path
    cancel: Cancel
    runtimes: dict[Path, Runtime] = field(default_factory=dict)
    kits: dict[Path, Kit] = field(default_factory=dict)
    made: int = 0

    def all(self, rows: Sequence[_Row], reference: VariantPlan) -> Iterator[LabCell]:
        if len(rows) < 2:
            return
        measured = [row for row in rows if row.cell.measured]
        first = next((row for row in measured if row.plan is reference and not row.plan.variant.folded), None)
        data = self.scratch / "data"
        prepared = self._runner(first, data) if first else f"{reference.variant.name} has no unfolded artifact here"
        if first is None or isinstance(prepared, str):
            yield from (_without(row.cell, str(prepared)) for row in measured)
            return
        runner, before = prepared
        measured.remove(first)
        yield _counted(first.cell, runner.instructions(before, before))
        for row in measured:
            yield self._ran(first, row, runner, before)
        shutil.rmtree(data, ignore_errors=True)

    def _runner(self, first: _Row, data: Path) -> tuple[Runner, Path] | str:
        """What runs artifacts of the reference's program, and its own artifact; or why nothing does."""
        backend = first.planned.target.backend
        if backend_of(backend).runs_on == "its device":
            return here(f"{backend} code needs its device, and the processor is none")
        tools, flow = self.tools[first.plan.toolchain.info.digest], self._path("flow.mlir")
        source = tools.source(first)
        if isinstance(source, str):
            return source
        if failed := flow_of(tools.kit, first.argv, Source(first.cell.model, source), flow):
            return failed.first_line
        try:
            answer = tools.kit.bindings.ask("interface", flow=str(flow))
            signature = interface(answer) if answer is not None else None
        except MalformedBinary as error:
            return str(error)
        finally:
            flow.unlink(missing_ok=True)
        if signature is None:
            return tools.kit.bindings.reason or "this compiler has no MLIR bindings"
        runner = Runner(
            tools.runtime,
            signature,
            data,
            self.cancel,
            timeout_seconds=RUN_SECONDS,
            names=(f"{first.plan.variant.name}'s artifact", "its artifact"),
            runtimes=self.runtimes,
            compiled=lambda artifact, text: module_of(self.kits[artifact], artifact, text),
        )
        before = runner.reason or self._artifact(first)
        return before if isinstance(before, str) else (runner, before)

    def _artifact(self, row: _Row) -> Path | str:
        tools, out = self.tools[row.plan.toolchain.info.digest], self._path("vmfb")
        source = tools.source(row)
        if isinstance(source, str):
            return source
        self.runtimes[out], self.kits[out] = tools.runtime, tools.kit
        failed = artifact_of(tools.kit, row.argv, Source(row.cell.model, source), out)
        return failed.first_line if failed else out

    def _path(self, suffix: str) -> Path:
        self.made += 1
        return self.scratch / f"{self.made}.{suffix}"

    def _ran(self, first: _Row, row: _Row, runner: Runner, before: Path) -> LabCell:
        cell = row.cell
        if row.plan.variant.folded:
            return _without(cell, "instructions of a folded program are not counted")
        if row.planned.model.digest != first.planned.model.digest:
            name = first.plan.variant.name
            return _without(cell, f"another program than {name}'s: its inputs are its own")
        if cell.artifact_digest == first.cell.artifact_digest:
            return _without(replace(cell, equal=True, equal_note=SAME), SAME)
        after = self._artifact(row)
        if isinstance(after, str):
            return _without(cell, after)
        equal = runner.outputs_equal(before, after)
        price = runner.price(before, after)
        known = price if isinstance(price, Price) else None
        compared = replace(
            cell, equal=equal.equal, equal_note=equal.equal_note, price=known, price_note="" if known else str(price)
        )
        return _counted(compared, runner.instructions(before, after))


def _counted(cell: LabCell, count: int | str) -> LabCell:
    if isinstance(count, str):
        return replace(cell, instructions_note=count)
    return replace(cell, instructions=count)


@contextmanager
def _open(
    plans: Sequence[VariantPlan], runtimes: dict[str, Runtime], timeout_seconds: float, cancel: Cancel
) -> Iterator[_Bench]:
    with temporary_directory("lab-") as scratch, ExitStack() as stack:
        tools = {}
        for digest, toolchain in {plan.toolchain.info.digest: plan.toolchain for plan in plans}.items():
            opened = open_kit("lab", toolchain, FOLD_WORKER, scratch, timeout_seconds, cancel, Meter())
            tools[digest] = _Tools(*stack.enter_context(opened), runtimes[digest])
        yield _Bench(tools, scratch, cancel)
