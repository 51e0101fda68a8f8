"""Models with constrained dimensions: made by the compiler that is to compile them, and kept beside `lab.json`."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import structs

from bot.compiler.bindings import Importer
from bot.compiler.compiler import Session
from bot.compiler.compiling import Kit, Source, artifact_of, module_of
from bot.compiler.iree import open_kit, toolchain_of, unknown_option
from bot.compiler.probe import in_its_words
from bot.compiler.repository import Repository
from bot.compiler.rewriting import FOLD_WORKER, constrained, flow_of, shaping
from bot.compiler.toolchain import Toolchain
from bot.config.configuration import Config
from bot.config.targets import merged
from bot.core.backends import backend_of
from bot.core.constraint import Constraint
from bot.core.delta import seen_values
from bot.core.fold import FAILED, FoldAudit, FoldCell, FoldOptions, Price
from bot.core.lab import BEFORE_FUSION, LAB_SCHEMA, SAME, Experiment, Lab, LabCell, LabVariant, Variant, references
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
from bot.core.planned import (
    plan as plan_cells,
)
from bot.core.policy import here
from bot.core.snapshot import Cell, Failure, Snapshot
from bot.core.spec import Places, release_in
from bot.errors import CompilerUnavailable, MalformedBinary, NoVerdict, UsageError
from bot.readers.ir_facts import interface
from bot.running.runner import MISSING, Runner, Runtime, installed, machine, of_release
from bot.study.fold_audit import audited
from bot.study.prepare import Request, Show, fetched, load_models, repository_at, workshop
from bot.study.recheck import recheck, repeat_unsteady
from bot.study.run import SidePlan, Workshop, measure_sides
from bot.system.files import make_directory, temporary_directory
from bot.system.processes import Cancel, Meter

FOLDER = "shaped"
"""Of the constrained models, beside `lab.json`: the printed commands read them there."""


def shaped(
    models: Sequence[Model], constraint: Constraint, variant: str, toolchain: Toolchain, out: Path, cancel: Cancel
) -> tuple[Model, ...]:
    """The models, each under its name; one that cannot be constrained says why in `missing`."""
    make_directory(out / FOLDER / variant)
    bindings = shaping(toolchain, cancel)
    try:
        result = []
        for model in models:
            shown = f"{FOLDER}/{variant}/{model.name}.mlir"
            path = (out / shown).absolute()
            if model.path.endswith(".onnx"):
                result.append(replace(model, missing="only models of MLIR are constrained: import it first"))
                continue
            failure = constrained(bindings, Path(model.path), constraint, path)
            result.append(
                replace(model, missing=failure.first_line) if isinstance(failure, Failure) else _at(model, path, shown)
            )
        return tuple(result)
    finally:
        bindings.close()


def _at(model: Model, path: Path, shown: str) -> Model:
    data = path.read_bytes()
    return Model(model.name, str(path), shown, hashlib.sha256(data).hexdigest(), len(data))


# From an experiment to a planned side for each of its variants, or the reason why a variant has none.


@dataclass(frozen=True, slots=True)
class Scope:
    """What an experiment is about.

    Attributes:
        models: of the configuration; none of them where variants bring their own.
        targets: without the flags of variants.
    """

    experiment: Experiment
    request: Request
    config: Config
    repository: Repository
    models: tuple[Model, ...]
    targets: tuple[Target, ...]


@dataclass(frozen=True, slots=True)
class VariantPlan:
    """One variant, ready to be measured.

    Attributes:
        cells: what it is about; without one it has no target here.
        reason: why none of them is measured; empty where they are.
        flags: of all its cells, beside the targets'.
    """

    variant: Variant
    toolchain: Toolchain
    cells: tuple[PlannedCell, ...]
    side: SidePlan
    reason: str = ""
    flags: tuple[str, ...] = ()


def scope_of(experiment: Experiment, request: Request, config: Config, repository: Repository) -> Scope:
    """The models and targets that experiment, configuration and request agree on; raises UsageError for none."""
    targets = experiment.own_targets or _named(config.targets, experiment.targets)
    rows = {row for variant in experiment.variants for row in variant.files}
    if rows:
        names = sorted(rows)
        models = tuple(Model(name, "", name, "", 0) for name in names)
    else:
        names = [path.stem for path in config.models]
        wanted = kept(names, experiment.models)
        models = load_models([path for path in config.models if path.stem in wanted], repository.top)
    if not models or not targets:
        what = "models" if not models else "targets"
        hint = f"the configuration has none of its {what}: define one of your own in a file of experiments"
        raise UsageError(f"{experiment.name} has nothing to measure", where="lab", hint=hint)
    models, targets = select(models, targets, model_globs=request.models, target_globs=request.targets)
    return Scope(experiment, request, config, repository, models, targets)


def _named(targets: Sequence[Target], globs: Sequence[str]) -> tuple[Target, ...]:
    names = [target.name for target in targets]
    wanted = kept(names, globs, short_names(names, {target.name: target.backend for target in targets}))
    return tuple(target for target in targets if target.name in wanted)


def planned_variant(about: Scope, variant: Variant, spec: str, show: Show, cancel: Cancel) -> VariantPlan:
    """One variant with its compiler; raises CompilerUnavailable."""
    compiler = fetched(spec, about.request, about.config, show, cancel)
    toolchain = toolchain_of(compiler)
    flags = (*about.config.flags, *about.request.flags, *variant.flags)
    targets = variant_targets(about.targets, variant.targets)
    models = variant_models(about, variant)
    if variant.shapes is not None and targets:
        models = shaped(models, variant.shapes, variant.name, toolchain, about.request.out, cancel)
    cells = in_its_words(toolchain, plan_cells(models, targets, flags), cancel)
    unknown = unknown_option(toolchain, cells, cancel) if cells else None
    reason = f"IREE {toolchain.info.version} does not know the option {unknown}" if unknown else ""
    side = SidePlan(variant.name, compiler, cells, about.repository.source)
    return VariantPlan(variant, toolchain, cells, side, reason, flags)


def variant_models(about: Scope, variant: Variant) -> tuple[Model, ...]:
    """The models of a variant, each under the name of its row."""
    if not variant.files:
        return about.models
    rows = [model.name for model in about.models if model.name in variant.files]
    loaded = load_models([Path(variant.files[row]) for row in rows], about.repository.top)
    return tuple(replace(model, name=row) for row, model in zip(rows, loaded, strict=True))


def variant_targets(targets: Sequence[Target], wanted: Mapping[str, tuple[str, ...]] | None) -> tuple[Target, ...]:
    """The targets that have a variant, with the flags that only they have."""
    if wanted is None:
        return tuple(targets)
    result = []
    for target in targets:
        own = [flags for glob, flags in wanted.items() if fnmatchcase(target.name, glob)]
        if own:
            flags = merged(target.flags, [flag for some in own for flag in some])
            result.append(replace(target, flags=flags))
    return tuple(result)


# Measured cells and folded ones as the cells of an experiment.


_FAILURE_CHARACTERS = 500


def variant_told(plan: VariantPlan) -> LabVariant:
    """What is said of a variant."""
    return LabVariant(
        name=plan.variant.name,
        compiler=plan.toolchain.info,
        flags=plan.variant.flags,
        targets=dict(plan.variant.targets or {}),
        files={cell.key.model: cell.model.shown for cell in plan.cells} if plan.variant.files else {},
        shapes=plan.variant.shapes,
        folded=plan.variant.folded,
        at=plan.variant.at,
        reason=plan.reason,
    )


def unsupported(plan: VariantPlan) -> list[LabCell]:
    """The cells of a variant that this compiler does not know."""
    return [
        LabCell(cell.key.model, cell.key.target, plan.variant.name, "unsupported", failure=plan.reason)
        for cell in plan.cells
    ]


def cell_told(variant: str, cell: Cell, module: str = "") -> LabCell:
    """A measured cell, or a failed one.

    `module`: the model that was made for it, relative to the directory of `lab.json`.
    """
    before = cell.program.linalg_ops_before if cell.program else None
    added = {BEFORE_FUSION.id: before} if cell.measured else {}
    unknown = {BEFORE_FUSION.id: "global optimization could not be read"} if added and before is None else {}
    return LabCell(
        model=cell.key.model,
        target=cell.key.target,
        variant=variant,
        status=cell.status,
        metrics={**cell.metrics, **added},
        reasons={**cell.reasons, **unknown},
        failure=cell.failure.first_line[:_FAILURE_CHARACTERS] if cell.failure else "",
        command=cell.command,
        artifact_digest=cell.artifact_digest,
        varies=bool(cell.others),
        module=module if cell.command else "",
        seen=seen_values(cell),
    )


def folded_told(variant: str, audit: FoldAudit, others: Mapping[tuple[str, str], str]) -> list[LabCell]:
    """The cells of a folded variant.

    `others`: model and target of cells whose outputs and time were held against another program than the reference's,
    which is none of the experiment's questions → what is said of that.
    """
    regions = {model.model: model.regions for model in audit.models}
    return [_folded(variant, cell, regions, others.get((cell.model, cell.target), "")) for cell in audit.cells]


def _folded(variant: str, cell: FoldCell, regions: Mapping[str, int | None], why: str) -> LabCell:
    status = {"unsupported": "unsupported", FAILED: "failed"}.get(cell.state, "ok")
    after = {
        "executables": cell.executables.after,
        "artifact_bytes": cell.artifact_bytes.after,
        "executable_bytes": cell.executable_bytes.after,
        "dispatch_regions": regions.get(cell.model),
    }
    lab_cell = LabCell(cell.model, cell.target, variant, status, failure=cell.note[:_FAILURE_CHARACTERS])
    if status != "ok":
        return lab_cell
    return LabCell(
        model=cell.model,
        target=cell.target,
        variant=variant,
        status=status,
        metrics=after,
        reasons={name: "is not measured of a folded program" for name, value in after.items() if value is None},
        failure="" if cell.state == "folded" else "nothing to fold",
        command=cell.command,
        equal=None if why else cell.equal,
        equal_note=why or cell.equal_note,
        price=None if why else cell.price,
        price_note=why or cell.price_note,
        module=cell.module,
    )


# Artifacts of variants run on this machine beside that of the reference: outputs, CPU time, instructions.


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
    with _open(plans, releases, config.timeout_seconds, cancel) as session:
        for model, target in sorted({(cell.model, cell.target) for cell in cells}):
            rows = [_Row(plan, result[key]) for plan in plans if (key := (model, target, plan.variant.name)) in result]
            if target not in against:
                continue
            show.say(f"{model} on {target} is run")
            for cell in session.all(rows, against[target]):
                result[cell.key] = cell
    ran = any(cell.price or cell.equal is not None or cell.instructions is not None for cell in result.values())
    others = sorted({one.name for one in releases.values()} - {runtime.name})
    return list(result.values()), ", ".join((machine(runtime), *others)) if ran else ""


def _without(cell: LabCell, why: str) -> LabCell:
    """A cell that is not run; what folding found out of its own stays."""
    return structs.replace(
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
            return _without(structs.replace(cell, equal=True, equal_note=SAME), SAME)
        after = self._artifact(row)
        if isinstance(after, str):
            return _without(cell, after)
        equal = runner.outputs_equal(before, after)
        price = runner.price(before, after)
        known = price if isinstance(price, Price) else None
        compared = structs.replace(
            cell, equal=equal.equal, equal_note=equal.equal_note, price=known, price_note="" if known else str(price)
        )
        return _counted(compared, runner.instructions(before, after))


def _counted(cell: LabCell, count: int | str) -> LabCell:
    if isinstance(count, str):
        return structs.replace(cell, instructions_note=count)
    return structs.replace(cell, instructions=count)


@contextmanager
def _open(
    plans: Sequence[VariantPlan], runtimes: dict[str, Runtime], timeout_seconds: float, cancel: Cancel
) -> Iterator[_Bench]:
    with temporary_directory("lab-") as scratch, ExitStack() as stack:
        tools = {}
        for digest, toolchain in {plan.toolchain.info.digest: plan.toolchain for plan in plans}.items():
            opened = open_kit(toolchain, FOLD_WORKER, Session("lab", scratch, timeout_seconds, cancel, Meter()))
            tools[digest] = _Tools(*stack.enter_context(opened), runtimes[digest])
        yield _Bench(tools, scratch, cancel)


# An experiment measured: its variants planned, their cells measured, folded, run and told.


def experimented(experiment: Experiment, request: Request, config: Config, show: Show, cancel: Cancel) -> Lab:
    """Measure all variants; `request.specs["head"]` names the compiler of those that name none.

    Raises UsageError where nothing is left to measure; CompilerUnavailable where a compiler could not be had.
    """
    about = scope_of(experiment, request, config, repository_at(request.config, cancel))
    plans = [
        planned_variant(about, each, each.compiler or request.specs["head"], show, cancel)
        for each in experiment.variants
    ]
    ready = [plan for plan in plans if plan.cells and not plan.reason]
    cells = [cell for plan in plans if plan.reason for cell in unsupported(plan)]
    snapshots = _measured([plan for plan in ready if not plan.variant.folded], about, show, cancel)
    for plan in ready:
        if plan.variant.name in snapshots:
            cells += _told(plan, snapshots[plan.variant.name])
    for plan in ready:
        if plan.variant.folded:
            cells += _folded_variant(plan, _references(ready, cells), about, show, cancel)
    machine = ""
    if experiment.run:
        cells, machine = timed(ready, cells, _references(ready, cells), request, config, show, cancel)
    idle = {f"{plan.variant.name}: none of its targets is measured here" for plan in plans if not plan.cells}
    notes = idle | {f"{name}: {note}" for name, side in snapshots.items() for note in side.notes}
    experiment = about.experiment
    return Lab(
        schema=LAB_SCHEMA,
        experiment=experiment.name,
        question=experiment.question,
        columns=experiment.columns,
        axis=experiment.axis,
        run=experiment.run,
        machine=machine,
        flags=(*COMMON_FLAGS, *about.config.flags, *about.request.flags),
        targets={target.name: target.backend for target in about.targets},
        variants=tuple(variant_told(plan) for plan in plans),
        cells=tuple(sorted(cells, key=lambda cell: cell.key)),
        notes=tuple(sorted(notes)),
    )


def _told(plan: VariantPlan, side: Snapshot) -> list[LabCell]:
    models = {cell.key: cell.model.shown for cell in plan.cells} if plan.variant.shapes is not None else {}
    return [cell_told(plan.variant.name, cell, models.get(cell.key, "")) for cell in side.cells]


def require_measured(lab: Lab, out: Path) -> None:
    """Raise NoVerdict where there is not a single artifact: then the experiment says nothing."""
    if any(cell.measured for cell in lab.cells):
        return
    reason = next((cell.failure for cell in lab.cells if cell.failure), "")
    what = f"none of {len(lab.cells)} cells was measured"
    raise NoVerdict(what, where=str(out / "lab.json"), hint=reason[:200])


def _measured(plans: Sequence[VariantPlan], about: Scope, show: Show, cancel: Cancel) -> dict[str, Snapshot]:
    """Each variant's cells; one variant after the other, so that no more than one reads IR at a time."""
    snapshots: dict[str, Snapshot] = {}
    if not plans:
        return snapshots
    with workshop(about.request, about.config, show, cancel) as shop:
        for plan in plans:
            show.say(f"variant {plan.variant.name}")
            snapshots |= measure_sides([plan.side], shop)
        against = _references(plans, [cell for plan in plans for cell in _told(plan, snapshots[plan.variant.name])])
        beside = [(against.get(cell.key.target, plan), plan) for plan in plans for cell in plan.cells]
        pairs = {frozenset((first.variant.name, plan.variant.name)): (first, plan) for first, plan in beside}
        for first, plan in pairs.values():
            if first is not plan:
                _doubt(first, plan, snapshots, about.config, shop)
        sides = [replace(plan.side, label=plan.variant.name) for plan in plans]
        return repeat_unsteady(sides, snapshots, about.config, shop)


def _references(plans: Sequence[VariantPlan], cells: Sequence[LabCell]) -> dict[str, VariantPlan]:
    names = references([variant_told(plan) for plan in plans], cells)
    by_name = {plan.variant.name: plan for plan in plans}
    return {target: by_name[name] for target, name in sorted(names.items())}


def _doubt(
    first: VariantPlan, other: VariantPlan, snapshots: dict[str, Snapshot], rules: Config, shop: Workshop
) -> None:
    """Compile again what differs from the reference, as a comparison does: some of it may be the compiler's chance."""
    if other.variant.files:
        return
    names = {"base": first.variant.name, "head": other.variant.name}
    plans = [replace(plan.side, label=side) for side, plan in zip(names, (first, other), strict=True)]
    again = recheck(plans, {side: snapshots[name] for side, name in names.items()}, rules, shop)
    snapshots.update({name: again[side] for side, name in names.items()})


def _folded_variant(
    plan: VariantPlan, against: Mapping[str, VariantPlan], about: Scope, show: Show, cancel: Cancel
) -> list[LabCell]:
    """Fold the cells of a variant; they are folded on all of their targets together, and measured from the cache.

    An audit holds what was folded against its own unfolded program: that says something here where that is the
    reference's.
    """
    paths = {cell.key.model: Path(cell.model.path) for cell in plan.cells}
    targets = {cell.key.target: cell.target for cell in plan.cells}
    config = replace(
        about.config, models=tuple(paths.values()), targets=tuple(targets.values()), suites=(), flags=plan.flags
    )
    spec = plan.variant.compiler or about.request.specs["head"]
    request = replace(about.request, models=(), targets=(), flags=(), specs={"head": spec})
    audit = audited(request, config, FoldOptions(run=about.experiment.run), show, cancel)
    rows = {path.stem: row for row, path in paths.items()}
    audit = structs.replace(
        audit,
        cells=tuple(structs.replace(cell, model=rows[cell.model]) for cell in audit.cells),
        models=tuple(structs.replace(model, model=rows[model.model]) for model in audit.models),
    )
    others = {}
    for cell in plan.cells:
        first = against.get(cell.key.target)
        theirs = next((one for one in first.cells if one.key == cell.key), None) if first else None
        is_same = theirs is not None and (theirs.argv, theirs.model.digest) == (cell.argv, cell.model.digest)
        if first is None or not is_same or first.toolchain.info != plan.toolchain.info:
            name = f"{first.variant.name}'s" if first else "that of a variant that others are compared with"
            others[cell.key.model, cell.key.target] = f"the program that was folded is not {name}"
    return folded_told(plan.variant.name, audit, others)
