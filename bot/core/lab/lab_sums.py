"""What the cells of an experiment say together: sums over models, mean ratios of time, and fitted lines."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bot.core.lab.experiment import COLUMN_BY_ID
from bot.core.lab.lab_values import Lab, LabCell, LabVariant, references
from bot.core.spread import Value, ends, largest, total


def is_largest(column: str) -> bool:
    """True for a column that has no sum: what is told of several models is the largest of theirs."""
    return COLUMN_BY_ID[column].over == "largest"


def share_away(cell: LabCell) -> float | None:
    """The share of the dispatch regions that deduplication folded away (0.58 is 58 %); None where it is not known."""
    return _away(cell.value("dispatch_regions"), cell.value("executables"))


def _away(regions: Value, left: Value) -> float | None:
    """None, too, where the compiler does not repeat either."""
    return (regions - left) / regions if isinstance(regions, int) and isinstance(left, int) and regions else None


class Mean(NamedTuple):
    """The geometric mean of ratios over `models` models."""

    ratio: float
    models: int


@dataclass(frozen=True, slots=True)
class Sums:
    """One target's cells, side by side.

    Attributes:
        variants: those that have cells there, in the experiment's order.
        reference: that which the others are compared with; empty where nothing is measured.
        models: those that every variant measured which measured any: sums are over these.
        more: how many models have cells there beside these.
    """

    target: str
    variants: tuple[LabVariant, ...]
    reference: str
    models: tuple[str, ...]
    more: int
    cells: dict[tuple[str, str], LabCell] = field(repr=False)

    def value(self, variant: str, column: str) -> Value:
        """The sum of a metric over the models, or its largest value; None where one of them is not known."""
        values = [self.cells[model, variant].value(column) for model in self.models if (model, variant) in self.cells]
        known = [value for value in values if value is not None]
        if not known or len(known) != len(self.models):
            return None
        return largest(known) if is_largest(column) else total(known)

    def away(self, variant: str) -> float | None:
        """The share of all regions that no executable is left of."""
        return _away(self.value(variant, "dispatch_regions"), self.value(variant, "executables"))

    def time(self, variant: str) -> Mean | None:
        """Ratios of CPU time; None where nothing was timed."""
        mine = (cell for (_, name), cell in self.cells.items() if name == variant)
        return _mean([ratio for cell in mine if (ratio := self.time_ratio(cell)) is not None])

    def time_ratio(self, cell: LabCell) -> float | None:
        """CPU time against the reference's: 1 for the very same artifact; None where it is not known."""
        first = self.cells.get((cell.model, self.reference))
        if cell.price is not None:
            return cell.price.ratio
        same = first is not None and first is not cell and cell.artifact_digest == first.artifact_digest is not None
        return 1.0 if same and cell.equal else None

    def instructions(self, variant: str) -> Mean | None:
        """Ratios of instructions; None where none were counted."""
        pairs = (
            (self.cells[model, self.reference].instructions, cell.instructions)
            for (model, name), cell in self.cells.items()
            if name == variant and (model, self.reference) in self.cells
        )
        return _mean([after / before for before, after in pairs if before and after])


def _mean(ratios: Sequence[float]) -> Mean | None:
    positive = [ratio for ratio in ratios if ratio > 0]
    return Mean(math.exp(statistics.fmean(map(math.log, positive))), len(positive)) if positive else None


def sums(lab: Lab) -> list[Sums]:
    """Each target's, sorted by name."""
    reference, result = references(lab.variants, lab.cells), []
    for target in sorted({cell.target for cell in lab.cells}):
        cells = {(cell.model, cell.variant): cell for cell in lab.cells if cell.target == target}
        named = {variant for _, variant in cells}
        variants = tuple(variant for variant in lab.variants if variant.name in named)
        measured = {key for key, cell in cells.items() if cell.measured}
        counted, models = {variant for _, variant in measured}, sorted({model for model, _ in cells})
        shared = tuple(model for model in models if counted and all((model, name) in measured for name in counted))
        result.append(Sums(target, variants, reference.get(target, ""), shared, len(models) - len(shared), cells))
    return result


class Fit(NamedTuple):
    """A line through a column's values along the axis: least squares.

    Attributes:
        slope: of the value for each step of the axis.
        off: the largest distance of a point from it; 0 where it is exact.
    """

    model: str
    target: str
    column: str
    slope: float
    start: float
    is_exact: bool
    off: float
    points: tuple[tuple[int, int], ...]


def fits(lab: Lab) -> Iterator[Fit]:
    """A line for each model, target and column that has two places or more."""
    places = {variant.name: variant.at for variant in lab.variants}
    rows: dict[tuple[str, str], list[tuple[int, LabCell]]] = {}
    for cell in lab.cells:
        if (at := places.get(cell.variant)) is not None and cell.measured:
            rows.setdefault((cell.model, cell.target), []).append((at, cell))
    for (model, target), row in sorted(rows.items()):
        for column in lab.columns:
            known = ((at, value) for at, cell in row if (value := cell.value(column)) is not None)
            points = sorted((at, one) for at, value in known for one in dict.fromkeys(ends(value)))
            if len({at for at, _ in points}) > 1:
                (x0, y0), (x1, y1) = points[0], points[-1]
                is_exact = all((y - y0) * (x1 - x0) == (y1 - y0) * (x - x0) for x, y in points)
                slope = (y1 - y0) / (x1 - x0)
                start, off = y0 - slope * x0, 0.0
                if not is_exact:
                    slope, start = statistics.linear_regression([x for x, _ in points], [y for _, y in points])
                    off = max(abs(y - start - slope * x) for x, y in points)
                yield Fit(model, target, column, slope, start, is_exact, off, tuple(points))
