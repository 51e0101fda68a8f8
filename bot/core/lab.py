"""The lab asks one question of a study.

Its answers are sums over models, and ratios of time.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from msgspec import structs

from bot.core.delta import seen_values, value_of
from bot.core.growth import DepthGrowth, growths
from bot.core.metrics import METRIC_BY_ID
from bot.core.record import Small, Value, largest, total
from bot.core.runs import Run
from bot.core.snapshot import Cell, CellKey, filled, lines
from bot.core.study import Study, Variant
from bot.core.times import CompileTimes

LAB_SCHEMA = "code-size-lab/1"
SAME = (  # why a cell is not run: its artifact is the reference's, byte by byte
    "the same artifact"
)


class Experiment(Small, frozen=True):
    """A question to the compiler: the variants that are measured, and what is shown of them."""

    name: str
    question: str
    columns: tuple[str, ...]  # ids of metrics, in the order in which they are shown
    # the first one that has an artifact on a target is what the others are compared
    # with there
    variants: tuple[Variant, ...]
    targets: tuple[str, ...] = ()  # globs of those of the configuration; empty: all
    run: bool = False
    # name → file; empty for the models of the configuration
    models: Mapping[str, str] = {}
    timing: bool = False  # whether the compiler is asked for the times of its passes


NOT_RUN = Run()


class Lab(Small, frozen=True, dict=True, gc=True):
    """What an experiment gave."""

    experiment: Experiment
    study: Study  # the experiment's variants, measured
    # variant and cell → what running it gave; of those that were to be run
    runs: Mapping[tuple[str, CellKey], Run]
    machine: str  # what ran them, in one line; empty where none was run
    flags: tuple[str, ...]  # of every cell, beside the targets' and the variants'
    notes: tuple[str, ...]
    # variant and cell → where its compile spent its time
    times: Mapping[tuple[str, CellKey], CompileTimes] = {}

    @cached_property
    def cells(self) -> tuple[tuple[str, Cell], ...]:
        """Return variants with their cells, by model, target and the variant's name."""
        cells = list[tuple[str, Cell]]()
        for variant in self.study.variants:
            if variant.snapshot:
                cells += [(variant.name, cell) for cell in variant.snapshot.cells]
        return tuple(sorted(cells, key=lambda pair: (pair[1].key, pair[0])))

    def run(self, variant: str, cell: Cell) -> Run:
        """Return what running a cell gave."""
        return self.runs.get((variant, cell.key), NOT_RUN)


class Mean(NamedTuple):
    """The geometric mean of ratios over `models` models."""

    ratio: float
    models: int


@dataclass(frozen=True, slots=True)
class Sums:
    """One target's cells, side by side."""

    target: str
    # those that have cells there, in the experiment's order
    variants: tuple[Variant, ...]
    # that which the others are compared with; empty where nothing is measured
    reference: str
    # those that every variant measured which measured any: sums are over these
    models: tuple[str, ...]
    more: int  # how many models have cells there beside these
    cells: dict[tuple[str, str], Cell] = field(repr=False)
    lab: Lab = field(repr=False)

    def value(self, variant: str, column: str) -> Value:
        """Return the sum of a metric over the models, or its largest value.

        None where one of them is not known.
        """
        values = []
        for model in self.models:
            cell = self.cells.get((model, variant))
            value = value_of(cell, column) if cell else None
            if value is None:
                return None
            values.append(value)
        if not values:
            return None
        if METRIC_BY_ID[column].over == "largest":
            return largest(values)
        return total(values)

    def run(self, model: str, variant: str) -> Run:
        """Return what running one of the cells gave."""
        return self.lab.run(variant, self.cells[model, variant])

    def time(self, variant: str) -> Mean | None:
        """Return the mean ratio of CPU time; None where nothing was timed."""
        ratios = list[float]()
        for model, name in self.cells:
            if name == variant and (ratio := self.time_ratio(model, variant)):
                ratios.append(ratio)
        if ratios:
            return Mean(statistics.geometric_mean(ratios), len(ratios))
        return None

    def time_ratio(self, model: str, variant: str) -> float | None:
        """Return the CPU time against the reference's: 1 for the very same artifact.

        None where it is not known.
        """
        cell = self.cells[model, variant]
        first = self.cells.get((model, self.reference))
        run = self.run(model, variant)
        if run.price is not None:
            return run.price.ratio
        same = (
            first is not None
            and first is not cell
            and cell.artifact_digest == first.artifact_digest is not None
        )
        if same and run.equal:
            return 1.0
        return None


def sums(lab: Lab) -> list[Sums]:
    """Return each target's, sorted by name."""
    result = []
    for target in sorted({cell.key.target for _, cell in lab.cells}):
        cells = dict[tuple[str, str], Cell]()
        for name, cell in lab.cells:
            if cell.key.target == target:
                cells[cell.key.model, name] = cell
        names = {variant for _, variant in cells}
        listed = [variant for variant in lab.study.variants if variant.name in names]
        variants = tuple(listed)
        models = sorted({model for model, _ in cells})
        shared = _models_of_all(cells)
        reference = lab.study.references.get(target)
        first = reference.name if reference else ""
        result.append(
            Sums(
                target=target,
                variants=variants,
                reference=first,
                models=shared,
                more=len(models) - len(shared),
                cells=cells,
                lab=lab,
            )
        )
    return result


def _models_of_all(cells: Mapping[tuple[str, str], Cell]) -> tuple[str, ...]:
    """Return the models that every variant measured which measured any, sorted.

    Args:
        cells: model and variant → the cell of one target.
    """
    models_of: dict[str, set[str]] = {}
    for (model, variant), cell in cells.items():
        if cell.measured:
            models_of.setdefault(variant, set()).add(model)
    if not models_of:
        return ()
    return tuple(sorted(set.intersection(*models_of.values())))


_FAILURE_CHARACTERS = 500
_DIGITS = 4  # after the point of an exponent


def lab_lines(lab: Lab) -> Iterator[bytes]:
    """Yield the text of `lab.json`.

    Canonical, cells by model, target and variant, each on a line of its own.
    """
    experiment = lab.experiment
    growth_rows = tuple(map(_growth_row, growths(lab.study, experiment.columns)))
    record = {
        "schema": LAB_SCHEMA,
        "experiment": experiment.name,
        "question": experiment.question,
        "columns": experiment.columns,
        "run": experiment.run,
        "machine": lab.machine,
        "flags": lab.flags,
        "notes": lab.notes,
        "variants": tuple(map(_variant_row, lab.study.variants)),
        **filled(growth=growth_rows),
        "cells": (),
    }
    return lines(record, (_lab_cell(lab, *pair) for pair in lab.cells))


def _variant_row(variant: Variant) -> dict[str, object]:
    row = {"name": variant.name, "compiler": variant.compiler, "flags": variant.flags}
    return row | filled(
        targets=variant.targets,
        reason=variant.reason,
        models=variant.models,
        layers=variant.layers,
        assume=_assumption(variant),
    )


def _assumption(variant: Variant) -> dict[str, object]:
    """Return the keys of a file of experiments."""
    assume = variant.assume
    if assume is None:
        return {}
    return (
        {"min": assume.smallest}
        | filled(max=assume.largest)
        | {"divisor": assume.divisor}
    )


def _times_row(times: CompileTimes | None) -> dict[str, object]:
    if times is None:
        return {}
    phases = _timed_rows(times.phases)
    passes = _timed_rows(times.passes)
    return filled(phases=phases, passes=passes, times_note=times.reason)


def _timed_rows(times_us: Mapping[str, int]) -> list[dict[str, object]]:
    """Return the names and times in their order, which an object of JSON would lose."""
    return [{"name": name, "wall_us": time_us} for name, time_us in times_us.items()]


def _growth_row(grown: DepthGrowth) -> dict[str, object]:
    row: dict[str, object] = {
        "model": grown.key.model,
        "target": grown.key.target,
        "metric": grown.column,
    }
    row |= {
        "variants": grown.variants,
        "layers": grown.depths,
        "exponent": None,
        "interval": None,
        "last_step": None,
        "warning": False,
    }
    if grown.growth is None:
        return row | {"reason": grown.reason}
    growth = grown.growth
    interval = None
    if growth.interval is not None:
        interval = [round(end, _DIGITS) for end in growth.interval]
    fit = {"exponent": round(growth.exponent, _DIGITS), "interval": interval}
    return (
        row
        | fit
        | {
            "last_step": round(growth.last_step, _DIGITS),
            "warning": growth.is_warning,
        }
    )


def _lab_cell(lab: Lab, variant: str, cell: Cell) -> dict[str, object]:
    row = {"model": cell.key.model, "target": cell.key.target, "variant": variant}
    run = lab.run(variant, cell)
    return (
        row
        | {"status": cell.status, "metrics": cell.metrics}
        | filled(
            reasons=cell.reasons,
            failure=cell.reason[:_FAILURE_CHARACTERS],
            command=cell.command,
        )
        | filled(
            artifact_digest=cell.artifact_digest,
            varies=bool(cell.others) or None,
            seen=seen_values(cell),
        )
        | filled(**structs.asdict(run))
        | _times_row(lab.times.get((variant, cell.key)))
    )
