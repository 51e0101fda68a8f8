"""An experiment that somebody asks by hand on GitHub: of the head's models and compiler, in the job summary."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bot.core.lab.experiment import Experiment
from bot.errors import UsageError
from bot.github.opening import Opened, dispatched_head, named_from_top, opened
from bot.github.services import Services
from bot.inputs.config import Config
from bot.inputs.experiments import chosen_experiment
from bot.measurement.folds.asking import asked
from bot.measurement.lab.measuring import experimented, require_measured
from bot.measurement.prepare import Request, require_writable
from bot.publish.actions import write_summary
from bot.show.lab import write_lab

_WHERE = "input lab"


def told_lab(services: Services) -> int:
    """Do the experiment; files and job summary have what it gave."""
    require_writable(services.out)
    with opened(services, dispatched_head(services)) as (_, head):
        _experimented(services, head)
    return 0


def _experimented(services: Services, head: Opened) -> None:
    if head.wanted.snapshot:
        raise UsageError("an experiment needs a compiler, and this is a snapshot", where="input head")
    with named_from_top(head.tree):
        experiment = _chosen(services.inputs.lab, head.tree)
        request = replace(services.request, config=head.tree / head.config_name if head.config_name else None)
        request, config = _with_compiler(services, head, experiment, request)
        lab = experimented(experiment, request, config, services.show, services.cancel)
        written = write_lab(lab, config.templates, services.out)
    if services.summary:
        write_summary(services.summary, f"\n{(services.out / 'lab.md').read_text(encoding='utf-8')}")
    services.show.say(f"wrote {', '.join(path.name for path in written)}")
    require_measured(lab, services.out)


def _chosen(text: str, tree: Path) -> Experiment:
    """`NAME` of the packaged experiments, or `FILE:NAME` of the repository's own."""
    file, _, name = text.rpartition(":")
    if not file:
        return chosen_experiment(name, where=_WHERE)
    path = tree / file
    if not path.resolve().is_relative_to(tree.resolve()):
        raise UsageError(f"{file} is outside of the repository", where=_WHERE)
    return chosen_experiment(name, path, where=_WHERE)


def _with_compiler(
    services: Services, head: Opened, experiment: Experiment, request: Request
) -> tuple[Request, Config]:
    """The head side's compiler, where a variant needs it."""
    if all(variant.compiler for variant in experiment.variants):
        return request, head.config
    return asked(request, head.config, head.sought, services.show.say)
