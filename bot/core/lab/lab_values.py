"""What an experiment gave: its variants, and every cell of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from bot.core.constraint import Constraint
from bot.core.folds.fold_values import Price
from bot.core.record import Amount, Count, Name, Record, always
from bot.core.spread import Value, spread
from bot.core.values.snapshot import MEASURED, CompilerInfo, Metrics, Status

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
