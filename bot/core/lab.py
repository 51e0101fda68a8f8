"""An experiment as it is defined: one question, variants of flags, compiler or models, and what is looked at."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from bot.core.constraint import Constraint
from bot.core.fold import Price
from bot.core.metrics import METRIC_BY_ID, Metric
from bot.core.planned import Target
from bot.core.record import Amount, Count, Name, Record, always
from bot.core.snapshot import MEASURED, CompilerInfo, Metrics, Status
from bot.core.spread import Value, ends, largest, spread, total

FOLDED_AWAY = "folded_away"
"""A column that is no number of a cell: the share of the dispatch regions that no executable is left of."""

BEFORE_FUSION = Metric(
    "linalg_ops_before",
    "linalg operations before fusion",
    "count",
    "linalg operations after global optimization",
)
"""A number that no rule judges: the model has it, not what the compiler made of it."""
COLUMN_BY_ID = {**METRIC_BY_ID, BEFORE_FUSION.id: BEFORE_FUSION}


@dataclass(frozen=True, slots=True)
class Variant:
    """One side of an experiment.

    Attributes:
        flags: of its cells, behind all others.
        compiler: its SPEC; None for the experiment's own.
        files: row → the path of the model that stands there; empty where the models are the experiment's.
        shapes: what is said of the dynamic dimensions of its models; None where nothing is.
        folded: True where its executables are folded as `fold` does it.
        targets: glob of targets → flags of theirs; None for all targets, without flags of their own.
        at: where it stands on the experiment's axis; None without one.
    """

    name: str
    flags: tuple[str, ...] = ()
    compiler: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    shapes: Constraint | None = None
    folded: bool = False
    targets: Mapping[str, tuple[str, ...]] | None = None
    at: int | None = None


@dataclass(frozen=True, slots=True)
class Experiment:
    """What is asked.

    Attributes:
        columns: of COLUMN_BY_ID, or FOLDED_AWAY, in the order in which they are shown.
        variants: the first one that has an artifact on a target is what the others are compared with there.
        models, targets: globs of those of the configuration; empty: all.
        own_targets: in place of the configuration's; empty where these are meant.
        axis: what the variants' `at` counts; empty without.
    """

    name: str
    question: str
    columns: tuple[str, ...]
    variants: tuple[Variant, ...]
    models: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    own_targets: tuple[Target, ...] = ()
    run: bool = False
    axis: str = ""


# What an experiment gave: its variants, and every cell of each.


LAB_SCHEMA = "code-size-lab/1"
SAME = "the same artifact"
"""Why a cell is not run: its artifact is the reference's, byte by byte."""


class LabVariant(Record, frozen=True, omit_defaults=True):
    """One side of the experiment.

    Attributes:
        compiler: what measured it; None where it could not be had.
        flags: those that it adds to all cells.
        targets: glob of the only targets that have it → flags that it adds there.
        files: row → its model's file, as commands name it; empty where the rows are models of their own.
        shapes: what is said of the dynamic dimensions of its models; None where nothing is.
        reason: why none of its cells is measured; empty where they were tried.
    """

    name: Name
    compiler: CompilerInfo | None = always(None)
    flags: tuple[str, ...] = always(())
    targets: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    files: Mapping[str, str] = msgspec.field(default_factory=dict)
    shapes: Constraint | None = None
    folded: bool = False
    at: Amount | None = None
    reason: str = ""


class LabCell(Record, frozen=True, omit_defaults=True):
    """One model on one target, as one variant compiles it.

    Attributes:
        model: the row that it stands in; `command` names the file.
        metrics: id → value; None is "not known", with its reason in `reasons`. Empty where it was not measured.
        failure: why it was not measured, or that the compiler's stack limit was lifted for it; one line.
        command: gives its very artifact; of a folded variant, of `module`.
        seen: metric → every value, the lowest first, where the same command gave several; `metrics` has the smallest
            artifact's.
        varies: True where the same command gave more than one artifact: a change may be chance.
        equal: whether its artifact gave the outputs of the reference's; None where they were not compared.
        equal_note: on what inputs, or why they were not.
        price: CPU time of the reference's artifact (before) and of its own (after); None with `price_note`.
        instructions: user-mode instructions of one run; None with `instructions_note`.
        module: the folded program, or the constrained model, relative to the directory of `lab.json`; else empty.
    """

    model: Name
    target: Name
    variant: Name
    status: Status
    metrics: Metrics = always({})
    reasons: Mapping[str, str] = msgspec.field(default_factory=dict)
    failure: str = ""
    command: str = ""
    artifact_digest: str | None = None
    varies: bool = False
    equal: bool | None = None
    equal_note: str = ""
    price: Price | None = None
    price_note: str = ""
    instructions: Count | None = None
    instructions_note: str = ""
    module: str = ""
    seen: Mapping[str, tuple[Count, ...]] = msgspec.field(default_factory=dict)

    def value(self, column: str) -> Value:
        """A metric as it is told: all that was seen of it."""
        return spread(self.seen[column]) if column in self.seen else self.metrics.get(column)

    @property
    def key(self) -> tuple[str, str, str]:
        """Model, target and variant."""
        return self.model, self.target, self.variant

    @property
    def measured(self) -> bool:
        """True where there is an artifact."""
        return self.status in MEASURED


def references(variants: Sequence[LabVariant], cells: Iterable[LabCell]) -> dict[str, str]:
    """Target → the variant that the others are compared with there: the first that has an artifact there.

    A folded one only where no other has: it was made of its own unfolded program, and is compared with that.
    """
    places = {variant.name: (variant.folded, at) for at, variant in enumerate(variants)}
    measured: dict[str, set[str]] = {}
    for cell in cells:
        if cell.measured:
            measured.setdefault(cell.target, set()).add(cell.variant)
    return {target: min(names, key=places.__getitem__) for target, names in measured.items()}


class Lab(Record, frozen=True):
    """What an experiment gave: cells sorted by model, target and variant's name, variants in the experiment's order.

    Attributes:
        columns: what is looked at: metric ids, `linalg_ops_before`, or `folded_away`.
        axis: what the variants' places count; empty without an axis.
        machine: what ran them, in one line; empty where none was run.
        flags: of every cell, beside the targets' and the variants'.
    """

    schema: Name
    experiment: Name
    question: Name
    columns: tuple[Name, ...]
    axis: str
    run: bool
    machine: str
    flags: tuple[str, ...]
    targets: Mapping[str, str]
    variants: tuple[LabVariant, ...]
    cells: tuple[LabCell, ...]
    notes: tuple[str, ...]


# What the cells of an experiment say together: sums over models, mean ratios of time, and fitted lines.


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
