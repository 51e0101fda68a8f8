"""Plan, measure and run the variants of an experiment, beside a reference variant."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from bot.compiler.compiling import CompileInput, CompileSetup, artifact_of
from bot.compiler.importing import Importer
from bot.compiler.iree import in_its_words, open_setup, toolchain_of, unknown_to_all
from bot.config.targets import merged
from bot.core.backends import backend_of
from bot.core.lab import SAME, Experiment, Lab
from bot.core.planned import (
    COMMON_FLAGS,
    LIFTED_LIMIT_FLAG,
    Model,
    PlannedCell,
    Target,
    kept,
    select,
    short_names,
)
from bot.core.planned import plan as plan_cells
from bot.core.runs import Run
from bot.core.snapshot import Cell, CellKey, Failure, Snapshot
from bot.core.spec import release_in
from bot.core.study import Pair, Study, Variant
from bot.core.times import CompileTimes, longest
from bot.errors import CompilerUnavailable, UsageError
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
from bot.study.lab_models import models_in_scope, models_of
from bot.study.lab_times import compile_times
from bot.study.prepare import Work
from bot.study.side_plan import SidePlan
from bot.system.files import temporary_directory
from bot.system.processes import Cancel

Runs = dict[tuple[str, CellKey], Run]
_MOST_PASSES = 8  # of each variant
Times = dict[tuple[str, CellKey], CompileTimes]


class VariantPlan(NamedTuple):
    """One variant, ready to be measured; its `reason` says why none of its cells is."""

    variant: Variant
    side: SidePlan  # its cells are what it is about; without one it has no target here
    refused: tuple[Cell, ...] = ()  # the builds whose models could not be made

    @property
    def name(self) -> str:
        """Return the variant's name."""
        return self.variant.name

    def planned(self, key: CellKey) -> PlannedCell:
        """Return the planned cell of that key; there is one."""
        return next(cell for cell in self.side.cells if cell.key == key)


def experimented(experiment: Experiment, work: Work) -> Lab:
    """Measure all variants.

    `specs["head"]` of the request names the compiler of those that name none.

    Raises:
        UsageError: nothing is left to measure.
        CompilerUnavailable: a compiler could not be had.
    """
    models, targets = _scope(experiment, work)
    plans = [
        _planned(variant, models=models, targets=targets, work=work)
        for variant in experiment.variants
    ]
    ready = [plan for plan in plans if plan.side.cells and not plan.variant.reason]
    sides = _measured(ready, work)
    times = Times()
    if experiment.timing:
        times = _compile_times(ready, sides, work)
    ran_on = ""
    runs = Runs()
    if experiment.run:
        ran_on, runs = _timed(ready, _study(ready, sides), work)
    notes = set[str]()
    for plan in plans:
        if not plan.side.cells and not plan.refused:
            notes.add(f"{plan.name}: this run measures none of its targets")
    for name, side in sides.items():
        notes.update(f"{name}: {note}" for note in side.notes)
    return Lab(
        experiment=experiment,
        machine=ran_on,
        study=_study(plans, sides),
        runs=runs,
        flags=(*COMMON_FLAGS, *work.config.flags, *work.request.flags),
        times=times,
        notes=tuple(sorted(notes)),
    )


def _scope(
    experiment: Experiment, work: Work
) -> tuple[tuple[Model, ...], tuple[Target, ...]]:
    """Return the models that the request keeps, and the targets that both keep.

    Raises UsageError for none.

    Targets are without the flags of variants.
    """
    config = work.config
    backends = {target.name: target.backend for target in config.targets}
    names = kept(
        list(backends), experiment.targets, short_names(list(backends), backends)
    )
    targets = tuple(target for target in config.targets if target.name in names)
    models = models_in_scope(experiment, work)
    if not targets:
        hint = (
            "the configuration has none of its targets: define an experiment of your"
            " own in a file"
        )
        raise UsageError(
            f"{experiment.name} has nothing to measure", where="lab", hint=hint
        )
    return select(
        models,
        targets,
        model_globs=work.request.models,
        target_globs=work.request.targets,
    )


def _planned(
    variant: Variant, models: tuple[Model, ...], targets: tuple[Target, ...], work: Work
) -> VariantPlan:
    """Return one variant with its compiler; raises CompilerUnavailable."""
    compiler = work.compiler(variant.spec or work.request.specs["head"])
    toolchain = toolchain_of(compiler)
    if variant.targets is not None:
        targets = _targets_of(variant.targets, targets)
    own_flags = (*work.config.flags, *work.request.flags, *variant.flags)
    chosen = models_of(variant, models=models, toolchain=toolchain, work=work)
    variant = structs.replace(variant, models=chosen.files)
    cells = in_its_words(
        toolchain, plan_cells(chosen.models, targets, own_flags), work.cancel
    )
    cells = work.with_inputs(cells)
    if cells and (unknown := unknown_to_all(toolchain, cells, work.cancel)):
        reason = f"IREE {toolchain.info.version} does not know the option {unknown}"
        variant = structs.replace(variant, reason=reason)
    side = SidePlan(
        label=variant.name,
        compiler=compiler,
        cells=cells,
        source=work.repository.source,
    )
    return VariantPlan(variant, side, tuple(chosen.refused_cells(targets)))


def _targets_of(
    flags_of_globs: Mapping[str, Sequence[str]], targets: Sequence[Target]
) -> tuple[Target, ...]:
    """Return the targets of a variant, with the flags that only they have there.

    `flags_of_globs`: glob of targets → their flags.
    """
    chosen = []
    for target in targets:
        more_flags: list[str] = []
        is_chosen = False
        for glob, flags in flags_of_globs.items():
            if fnmatchcase(target.name, glob):
                is_chosen = True
                more_flags += flags
        if is_chosen:
            chosen.append(
                structs.replace(target, flags=merged(target.flags, more_flags))
            )
    return tuple(chosen)


def _study(plans: Sequence[VariantPlan], sides: Mapping[str, Snapshot]) -> Study:
    """Return the variants with what was measured of them.

    The cells of one that its compiler refuses are unsupported.
    """
    variants = []
    for plan in plans:
        refused = Failure("option", plan.variant.reason)
        cells = tuple(
            Cell(cell.key, "unsupported", failure=refused)
            for cell in plan.side.cells
            if plan.variant.reason
        )
        side = sides.get(plan.name) or Snapshot(
            plan.side.compiler.info, plan.side.source, cells
        )
        all_cells = sorted((*side.cells, *plan.refused), key=lambda cell: cell.key)
        side = structs.replace(side, cells=tuple(all_cells))
        variants.append(structs.replace(plan.variant, snapshot=side))
    return Study(tuple(variants))


def _measured(plans: Sequence[VariantPlan], work: Work) -> dict[str, Snapshot]:
    """Measure each variant's cells, and compare them with those of the reference."""

    def pairs(sides: Mapping[str, Snapshot]) -> Iterable[Pair]:
        return _study(plans, sides).beside_references()

    sides_of_plans = [plan.side for plan in plans]
    return work.measured_variants(sides_of_plans, {}, pairs, together=False)


def _compile_times(
    plans: Sequence[VariantPlan], sides: Mapping[str, Snapshot], work: Work
) -> Times:
    """Where each measured build's compile spends its time.

    One compile after the other, as these are wall times.
    """
    times = Times()
    with temporary_directory("lab-") as scratch:
        for plan in plans:
            work.show.say(f"times of the passes with variant {plan.name}")
            session = work.session(scratch)
            with open_setup(plan.side.toolchain, session) as (setup, importer):
                for cell in sides[plan.name].cells:
                    if cell.measured:
                        measured_times = compile_times(
                            setup,
                            importer=importer,
                            planned=plan.planned(cell.key),
                            cell=cell,
                        )
                        times[plan.name, cell.key] = measured_times
    for key in {key for _, key in times}:
        pairs = [pair for pair in times if pair[1] == key]
        shortened = longest([times[pair] for pair in pairs], _MOST_PASSES)
        times |= zip(pairs, shortened, strict=True)
    return times


# Artifacts of variants run on this machine beside that of the reference: outputs and
# CPU time.


def _timed(plans: Sequence[VariantPlan], study: Study, work: Work) -> tuple[str, Runs]:
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
