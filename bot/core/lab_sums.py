"""Sum the cells of an experiment over models, for each target and variant."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from bot.core.delta import value_of
from bot.core.lab import Lab
from bot.core.metrics import METRIC_BY_ID
from bot.core.record import Value, largest, total
from bot.core.runs import Run
from bot.core.snapshot import Cell
from bot.core.study import Variant


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
    # that which the others are compared with; empty if nothing is measured
    reference: str
    # those that every variant measured which measured any: sums are over these
    models: tuple[str, ...]
    more: int  # how many models have cells there beside these
    cells: dict[tuple[str, str], Cell] = field(repr=False)
    lab: Lab = field(repr=False)

    def value(self, variant: str, column: str) -> Value:
        """Return the sum of a metric over the models, or its largest value.

        Return None if one of them is not known.
        """
        values = []
        for model in self.models:
            cell = self.cells.get((model, variant))
            if cell is None:
                return None
            value = value_of(cell, column)
            if value is None:
                return None
            values.append(value)
        if not values:
            return None
        if METRIC_BY_ID[column].over == "largest":
            return largest(values)
        return total(values)

    def run(self, model: str, variant: str) -> Run:
        """Return the result of running one of the cells."""
        return self.lab.run(variant, self.cells[model, variant])

    def time(self, variant: str) -> Mean | None:
        """Return the mean ratio of CPU time; None if nothing was timed."""
        ratios = []
        for model, name in self.cells:
            if name == variant:
                ratio = self.time_ratio(model, variant)
                if ratio:
                    ratios.append(ratio)
        if ratios:
            return Mean(statistics.geometric_mean(ratios), len(ratios))
        return None

    def time_ratio(self, model: str, variant: str) -> float | None:
        """Return CPU time divided by the reference's; None if it is not known.

        It is 1 if both have the same artifact.
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
        cells = {}
        models = set()
        named = set()
        for name, cell in lab.cells:
            if cell.target == target:
                cells[cell.model, name] = cell
                models.add(cell.model)
                named.add(name)
        variants = []
        for variant in lab.study.variants:
            if variant.name in named:
                variants.append(variant)
        shared = _models_of_all(cells)
        reference = lab.study.references.get(target)
        first = reference.name if reference else ""
        result.append(
            Sums(
                target=target,
                variants=tuple(variants),
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
