"""Hand the result of an experiment from the job that measures to the one that reports.

The snapshots of the variants are files of their own. Everything else is checked here, as a
compiler ran beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

from msgspec import Meta, structs

from bot.core.lab import Experiment, Lab
from bot.core.record import Count, Name, Record
from bot.core.runs import Price, Run
from bot.core.snapshot import CellKey, Snapshot
from bot.core.study import Study
from bot.core.times import CompileTimes
from bot.errors import InputError

_WHERE = "artifact measured.json"
_HINT = "run it again"
_MOST_VARIANTS = 24
_MOST_TARGETS = 64
_MOST_ROWS = 20_000
_MOST_TIMES = 100
_MOST_RATIO = 1e9


class HandedVariant(Record, frozen=True, omit_defaults=True):
    """What goes along with the snapshot of a variant."""

    name: Name
    reason: str = ""  # why none of its builds could be tried; empty where they could
    models: Mapping[str, str] = {}  # name → file that only this variant has


class HandedRun(Record, frozen=True, omit_defaults=True):
    """The result of running one build."""

    variant: Name
    model: Name
    target: Name
    equal: bool | None = None
    equal_note: str = ""
    price: Price | None = None
    price_note: str = ""


class HandedTimes(Record, frozen=True, omit_defaults=True):
    """The wall times of one compile: pairs of name and microseconds, in order."""

    variant: Name
    model: Name
    target: Name
    phases: tuple[tuple[str, Count], ...] = ()
    passes: tuple[tuple[str, Count], ...] = ()
    reason: str = ""


class HandedLab(Record, frozen=True, omit_defaults=True):
    """The result of an experiment, without the snapshots of its variants."""

    experiment: Name
    variants: Annotated[
        tuple[HandedVariant, ...], Meta(min_length=1, max_length=_MOST_VARIANTS)
    ]
    machine: str = ""
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    runs: Annotated[tuple[HandedRun, ...], Meta(max_length=_MOST_ROWS)] = ()
    times: Annotated[tuple[HandedTimes, ...], Meta(max_length=_MOST_ROWS)] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the files with the snapshots, in the order of the variants.

        The names are numbers, as the name of a variant may not be a file's.
        """
        count = len(self.variants)
        return tuple(f"variant-{number}" for number in range(1, count + 1))


def handed_lab(lab: Lab) -> HandedLab:
    """Return what goes along with the snapshots of the variants."""
    variants = []
    for variant in lab.study.variants:
        variants.append(HandedVariant(variant.name, variant.reason, variant.models))
    runs = []
    for (variant_name, key), run in lab.runs.items():
        figures = structs.asdict(run)
        runs.append(HandedRun(variant_name, key.model, key.target, **figures))
    return HandedLab(
        experiment=lab.experiment.name,
        variants=tuple(variants),
        machine=lab.machine,
        flags=lab.flags,
        notes=lab.notes,
        runs=tuple(runs),
        times=tuple(_handed_times(lab)),
    )


def _handed_times(lab: Lab) -> Iterator[HandedTimes]:
    for (variant, key), times in lab.times.items():
        yield HandedTimes(
            variant=variant,
            model=key.model,
            target=key.target,
            phases=tuple(times.phases.items()),
            passes=tuple(times.passes.items()),
            reason=times.reason,
        )


def lab_of(
    handed: HandedLab, sides: Mapping[str, Snapshot], experiment: Experiment
) -> Lab:
    """Return the result of an experiment; its question and variants are our own.

    `sides`: name of a snapshot → the snapshot.

    Raises InputError for the result of another experiment, and for values that no
    measurement gives.
    """
    names = tuple(variant.name for variant in experiment.variants)
    if (handed.experiment, *(variant.name for variant in handed.variants)) != (
        experiment.name,
        *names,
    ):
        raise _refused(f"is not a result of the experiment {experiment.name}")
    variants = []
    for variant, measured, file_name in zip(
        experiment.variants, handed.variants, handed.names, strict=True
    ):
        models = {}
        for name, path in measured.models.items():
            if name in variant.models:
                models[name] = path
        variants.append(
            structs.replace(
                variant,
                snapshot=sides[file_name],
                reason=measured.reason,
                models=models,
            )
        )
    study = Study(tuple(variants))
    builds = _builds(study)
    return Lab(
        experiment=experiment,
        study=study,
        runs=dict(_runs(handed, builds)),
        machine=handed.machine,
        flags=handed.flags,
        notes=handed.notes,
        times=dict(_times(handed, builds)),
    )


def _builds(study: Study) -> set[tuple[str, CellKey]]:
    """Return variant and build of all cells of the snapshots."""
    builds = set(study.cells)
    targets = {key.target for _, key in builds}
    if len(targets) > _MOST_TARGETS:
        raise _refused(f"has {len(targets):,} targets, more than {_MOST_TARGETS}")
    return builds


def _runs(
    handed: HandedLab, builds: set[tuple[str, CellKey]]
) -> Iterator[tuple[tuple[str, CellKey], Run]]:
    for row in handed.runs:
        place = _place(row, builds)
        if row.price is not None:
            _require_ratios(row.price)
        yield (
            place,
            Run(
                equal=row.equal,
                equal_note=row.equal_note,
                price=row.price,
                price_note=row.price_note,
            ),
        )


def _times(
    handed: HandedLab, builds: set[tuple[str, CellKey]]
) -> Iterator[tuple[tuple[str, CellKey], CompileTimes]]:
    for row in handed.times:
        place = _place(row, builds)
        if max(len(row.phases), len(row.passes)) > _MOST_TIMES:
            raise _refused(f"has more than {_MOST_TIMES} times of one build")
        yield place, CompileTimes(dict(row.phases), dict(row.passes), row.reason)


def _place(
    row: HandedRun | HandedTimes, builds: set[tuple[str, CellKey]]
) -> tuple[str, CellKey]:
    """Return the variant and the build of a row; raises InputError for an unknown one."""
    place = (row.variant, CellKey(row.model, row.target))
    if place not in builds:
        raise _refused("has a run or a time of a build that was not measured")
    return place


def _require_ratios(price: Price) -> None:
    for ratio in (price.ratio, price.low, price.high):
        if not 0 <= ratio <= _MOST_RATIO:
            raise _refused("has a ratio of times that no measurement gives")


def _refused(problem: str) -> InputError:
    return InputError(problem, where=_WHERE, hint=_HINT)
