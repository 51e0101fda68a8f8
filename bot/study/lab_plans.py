"""Plan the variants of an experiment: models, targets, flags and compiler of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import structs

from bot.compiler.iree import in_its_words, toolchain_of, unknown_to_all
from bot.config.targets import merged
from bot.core.lab import Experiment
from bot.core.planned import Model, Target, kept, select, short_names
from bot.core.planned import plan as plan_cells
from bot.core.snapshot import Cell
from bot.core.study import Variant
from bot.errors import UsageError
from bot.study.lab_models import models_in_scope, models_of
from bot.study.prepare import Work
from bot.study.side_plan import SidePlan


class VariantPlan(NamedTuple):
    """One variant, ready to be measured."""

    variant: Variant
    side: SidePlan  # its cells are what it is about; without one it has no target here
    refused: tuple[Cell, ...] = ()  # the builds whose models could not be made

    @property
    def name(self) -> str:
        """Return the variant's name."""
        return self.variant.name


def scope_of(
    experiment: Experiment, work: Work
) -> tuple[tuple[Model, ...], tuple[Target, ...]]:
    """Return the models that the request keeps, and the targets that both keep.

    Targets are without the flags of variants. Raises UsageError if nothing is left.
    """
    config = work.config
    short = _short_names(config.targets)
    names = kept([target.name for target in config.targets], experiment.targets, short)
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


def _short_names(targets: Sequence[Target]) -> Mapping[str, str]:
    """Return name → short name of each target of a configuration."""
    backends = {target.name: target.backend for target in targets}
    return short_names(list(backends), backends)


def planned_variant(
    variant: Variant, models: tuple[Model, ...], targets: tuple[Target, ...], work: Work
) -> VariantPlan:
    """Return one variant with its compiler; raises CompilerUnavailable."""
    compiler = work.compiler(variant.spec or work.request.specs["head"])
    toolchain = toolchain_of(compiler)
    if variant.targets is not None:
        short = _short_names(work.config.targets)
        targets = _targets_of(variant.targets, targets, short)
    own_flags = (*work.config.flags, *work.request.flags, *variant.flags)
    chosen = models_of(variant, models=models, toolchain=toolchain, work=work)
    variant = structs.replace(variant, models=chosen.files)
    planned = plan_cells(chosen.models, targets, own_flags)
    cells = in_its_words(toolchain, planned, work.cancel)
    cells = work.with_inputs(cells, compiler)
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
    flags_of_globs: Mapping[str, Sequence[str]],
    targets: Sequence[Target],
    short: Mapping[str, str],
) -> tuple[Target, ...]:
    """Return the targets of a variant, with the extra flags that it has there.

    `flags_of_globs`: glob of targets → their flags; `short`: name → short name, which a
    glob may match, too.
    """
    chosen = []
    for target in targets:
        more_flags: list[str] = []
        is_chosen = False
        for glob, flags in flags_of_globs.items():
            if kept([target.name], [glob], short):
                is_chosen = True
                more_flags += flags
        if is_chosen:
            releases = [
                (release, merged(flags, more_flags))
                for release, flags in target.releases
            ]
            flags = merged(target.flags, more_flags)
            chosen.append(
                structs.replace(target, flags=flags, releases=tuple(releases))
            )
    return tuple(chosen)
