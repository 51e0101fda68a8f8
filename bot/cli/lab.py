"""`lab`: one experiment, its variants measured side by side, and what that answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from bot.cli.fold import with_compiler
from bot.config.configuration import load_config
from bot.config.experiments import chosen_experiment, load_experiments
from bot.core.lab import Lab
from bot.render.text.escape import clean
from bot.show.lab import write_lab
from bot.study.lab import experimented, require_measured
from bot.study.prepare import Request, Show, require_writable
from bot.system.processes import Cancel


class LabShow(Show, Protocol):
    """What the story tells, its outcome included."""

    def experimented(self, lab: Lab, files: Sequence[Path]) -> None:
        """What an experiment gave, and where it was written."""


def lab(name: str, experiments: Path | None, request: Request, *, run: bool, show: LabShow, cancel: Cancel) -> Lab:
    """Measure what the request selects of an experiment; write `lab.json`, `lab.md` and `lab.html` to `request.out`.

    Args:
        experiments: the file that defines it; None for the packaged one.
        run: False where no artifact is to be run, whatever the experiment says.

    Raises:
        UsageError: there is no such experiment, nobody names a compiler, or nothing is left to measure.
        NoVerdict: no cell could be measured; the files are written all the same.
    """
    experiment = chosen_experiment(name, experiments)
    config = load_config(request.config)
    require_writable(request.out)
    if not all(variant.compiler for variant in experiment.variants):
        request, config = with_compiler(request, config, show)
    result = experimented(replace(experiment, run=experiment.run and run), request, config, show, cancel)
    show.experimented(result, write_lab(result, config.templates, request.out))
    require_measured(result, request.out)
    return result


def told_experiments(path: Path | None) -> list[str]:
    """A line for each experiment of a file, the packaged one where there is none: its name and its question."""
    known = load_experiments(path)
    width = max(map(len, known))
    return [f"{name:{width}}  {clean(each.question)}" for name, each in known.items()]
