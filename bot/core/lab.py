"""The lab: an experiment, and what its variants gave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from msgspec import structs

from bot.core.delta import seen_values
from bot.core.growth import DepthGrowth, growths
from bot.core.json_text import filled, lines
from bot.core.record import Small
from bot.core.runs import Run
from bot.core.snapshot import Cell, CellKey
from bot.core.study import Study, Variant
from bot.core.times import CompileTimes

LAB_SCHEMA = "code-size-lab/1"
SAME = (  # why a cell is not run: its artifact is the reference's, byte by byte
    "the same artifact"
)


class Experiment(Small, frozen=True):
    """A question to the compiler: variants to measure, and what is shown of them."""

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
    """The results of an experiment."""

    experiment: Experiment
    study: Study  # the experiment's variants, measured
    # variant and cell → what running it gave; of those that were to be run
    runs: Mapping[tuple[str, CellKey], Run]
    machine: str  # what ran them, in one line; empty if none was run
    flags: tuple[str, ...]  # flags of every cell, beside those of targets and variants
    notes: tuple[str, ...]
    # variant and cell → where its compile spent its time
    times: Mapping[tuple[str, CellKey], CompileTimes] = {}

    @cached_property
    def cells(self) -> tuple[tuple[str, Cell], ...]:
        """Return variant and cell, by model, target and the variant's name."""
        cells = [(name, cell) for (name, _), cell in self.study.cells.items()]
        return tuple(sorted(cells, key=lambda pair: (pair[1].key, pair[0])))

    def run(self, variant: str, cell: Cell) -> Run:
        """Return the result of running a cell's artifact."""
        return self.runs.get((variant, cell.key), NOT_RUN)


_FAILURE_CHARACTERS = 500
_DIGITS = 4  # after the point of an exponent


def lab_lines(lab: Lab) -> Iterator[bytes]:
    """Yield the text of `lab.json`.

    It is canonical. Each cell has its own line, sorted by model, target and variant.
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
    """Return names and times as a list, as an object of JSON would lose their order."""
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
