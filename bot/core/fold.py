"""What a fold audit is asked for beside models, targets and flags."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec.structs import replace

from bot.core.record import Count, Name, Record, Small, always
from bot.core.snapshot import CompilerInfo, lines


class FoldOptions(Small, frozen=True):
    """How folds are judged.

    Attributes:
        max_slowdown: the price that is allowed (0.01 is 1 %); None where every fold with gain is kept.
        run: False where nothing is executed: outputs and price are then not known.
    """

    max_slowdown: float | None = None
    run: bool = True


# What the fold audit says: which executables were made one, what that made of the artifacts, and at what price.


FOLD_SCHEMA = "code-size-fold/1"

FOLD_KINDS = ("identical", "constants", "offsets", "static-shapes")
"""What may be made one, in the order in which it is tried: each says less of its members than the one before."""

FoldKind = Annotated[str, msgspec.Meta(pattern=rf"\A({'|'.join(FOLD_KINDS)})\Z")]
FAILED = "failed"
"""The state of a cell whose own artifact could not be measured, or whose program could not be read: `note` says why."""
FoldState = Annotated[str, msgspec.Meta(pattern=rf"\A(folded|nothing-to-fold|unsupported|{FAILED})\Z")]


class BeforeAfter(Record, frozen=True):
    """A figure before and after; None where it is not known."""

    before: Count | None
    after: Count | None

    @property
    def change(self) -> int | None:
        """After − before; None where either is not known."""
        return None if self.before is None or self.after is None else self.after - self.before


class FoldedFamily(Record, frozen=True, omit_defaults=True):
    """Executables that were made one.

    Attributes:
        members: names, in the program's order; the first is the one that is left.
        operands: the types of the values that the sites pass to it now (`i32`, `i64`, `index`), in order.
    """

    kind: FoldKind
    members: tuple[Name, ...]
    operands: tuple[Name, ...] = always(())


class LeftFamily(Record, frozen=True):
    """Executables that are alike and were not made one.

    Attributes:
        kind: as that of a `bot.core.program.Family`, or one of FOLD_KINDS.
        why: one line: what stands against it, or what was tried and went wrong.
    """

    kind: Name
    members: tuple[Name, ...]
    why: Name


class Price(Record, frozen=True):
    """CPU time of both artifacts on this machine, in pairs that were run one after the other.

    Attributes:
        before_us, after_us: medians of the CPU times of one run on one thread, in microseconds.
        ratio: median of after / before over the pairs (1.02: 2 % slower).
        low, high: an interval that holds the true median ratio with 95 % probability, from the order of the pairs.
    """

    before_us: Count
    after_us: Count
    pairs: Count
    ratio: float
    low: float
    high: float


class Run(Small, frozen=True):
    """What running a cell's artifact beside the reference's gave; of a folded one beside that of the unfolded program.

    Attributes:
        equal: whether it gave the outputs of the reference's; None where they were not compared.
        equal_note: on what inputs, or why they were not.
        price: CPU time of the reference's artifact (before) and of its own (after); None with `price_note`.
        instructions: user-mode instructions of one run; None with `instructions_note`.
    """

    equal: bool | None = None
    equal_note: str = ""
    price: Price | None = None
    price_note: str = ""
    instructions: int | None = None
    instructions_note: str = ""


class Bound(Record, frozen=True):
    """The most that folding could save, as the report tells it of families: all of each but its largest member.

    Attributes:
        size_bytes: of them; None where the bytes of one are not known.
    """

    executables: Count
    size_bytes: Count | None


class FoldCell(Record, frozen=True, omit_defaults=True):
    """One model on one target.

    Attributes:
        artifact_bytes: before: of the artifact that the printed command gives; after: of the folded module's.
        executable_bytes: the device code in them.
        resumed_bytes: the artifact of the program that was written at the end of the flow phase and resumed, nothing
            folded: where it is not that of the printed command, the difference is none of folding.
        equal: whether both artifacts gave the same outputs on this machine; None where that is not known.
        equal_note: on what inputs and within what tolerance, or why it is not known.
        price: None where nothing was timed; `price_note` says why.
        command: makes the folded artifact of `module`; empty without one.
        module: the folded program, relative to the directory of `fold.json`; empty without one.
    """

    model: Name
    target: Name
    state: FoldState
    executables: BeforeAfter
    artifact_bytes: BeforeAfter
    executable_bytes: BeforeAfter
    equal: bool | None
    folded: tuple[FoldedFamily, ...]
    left: tuple[LeftFamily, ...]
    resumed_bytes: Count | None = None
    bound: Bound | None = None
    equal_note: str = ""
    price: Price | None = None
    price_note: str = ""
    command: str = ""
    module: str = ""
    note: str = ""


class FoldModel(Record, frozen=True):
    """How far each step takes one model: executables that are left of its dispatch regions; None: not known.

    Attributes:
        regions: dispatch regions, before deduplication.
        today: executables as the compiler leaves them.
        not_inlined: the same where the compiler inlines no constant into a dispatch.
        shapes_erased: kinds of those of `not_inlined` that differ in more than static shapes: counted, not compiled.
        constants_erased: kinds of those of today that differ in more than values of constants: counted, not compiled.
        both_erased: kinds of those of today that differ in more than either: counted, not compiled.
        folded: executables of the module that was folded and compiled; the fewest over the targets.
    """

    model: Name
    regions: Count | None
    today: Count | None
    not_inlined: Count | None
    shapes_erased: Count | None
    constants_erased: Count | None
    both_erased: Count | None
    folded: Count | None


class FoldAudit(Record, frozen=True):
    """All models and cells of an audit, sorted by name.

    Attributes:
        flags: those of every cell beside the target's.
        machine: the processor that ran the artifacts, in one line; empty where none was run.
        max_slowdown: the price that was allowed (0.01 is 1 %); None where any was.
    """

    schema: Name
    compiler: CompilerInfo
    flags: tuple[str, ...]
    machine: str
    max_slowdown: float | None
    models: tuple[FoldModel, ...]
    cells: tuple[FoldCell, ...]


def fold_lines(audit: FoldAudit) -> Iterator[bytes]:
    """The text of `fold.json`: canonical, sorted by name, each cell on a line of its own."""
    cells = sorted(audit.cells, key=lambda cell: (cell.model, cell.target))
    return lines(replace(audit, cells=tuple(cells), models=tuple(sorted(audit.models, key=lambda model: model.model))))
