"""From an experiment to a planned side for each of its variants, or the reason why a variant has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from bot.compiler.repository import Repository
from bot.compiler.tools.probe import in_its_words
from bot.compiler.tools.toolchain import Toolchain
from bot.config.configuration import Config
from bot.config.targets import merged
from bot.core.lab.experiment import Experiment, Variant
from bot.core.selecting import kept, short_names
from bot.core.values.planned import Model, PlannedCell, Target, plan, select
from bot.errors import UsageError
from bot.measurement.lab.shaped import shaped
from bot.measurement.prepare import Request, Show, fetched, load_models
from bot.measurement.run import SidePlan, unknown_option
from bot.system.processes import Cancel


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
    toolchain = fetched(spec, about.request, about.config, show, cancel)
    flags = (*about.config.flags, *about.request.flags, *variant.flags)
    targets = variant_targets(about.targets, variant.targets)
    models = variant_models(about, variant)
    if variant.shapes is not None and targets:
        models = shaped(models, variant.shapes, variant.name, toolchain, about.request.out, cancel)
    cells = in_its_words(toolchain, plan(models, targets, flags), cancel)
    unknown = unknown_option(toolchain, cells, cancel) if cells else None
    reason = f"IREE {toolchain.info.version} does not know the option {unknown}" if unknown else ""
    side = SidePlan(variant.name, toolchain, cells, about.repository.source)
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
