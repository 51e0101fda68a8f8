"""Hold a fold audit: the executables that were merged, the saving and the price."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec.structs import replace

from bot.core.json_text import lines
from bot.core.record import Count, Name, Record, always
from bot.core.runs import Price
from bot.core.snapshot import CompilerInfo

FOLD_SCHEMA = "code-size-fold/1"

FOLD_KINDS = ("identical", "constants", "offsets", "static-shapes")
"""The kinds of executables that can be folded, in the order in which they are tried.

The members of each kind have less in common than those of the kind before.
"""

FoldKind = Annotated[str, msgspec.Meta(pattern=rf"\A({'|'.join(FOLD_KINDS)})\Z")]
FOLDED = "folded"
FAILED = "failed"
"""The state of a cell whose artifact or program could not be read.

`note` has the reason.
"""
FoldState = Annotated[
    str, msgspec.Meta(pattern=rf"\A({FOLDED}|nothing-to-fold|unsupported|{FAILED})\Z")
]


class BeforeAfter(Record, frozen=True):
    """A figure before and after folding; None if it is not known."""

    before: Count | None
    after: Count | None

    @property
    def change(self) -> int | None:
        """Return after − before; None if either is not known."""
        if self.before is None or self.after is None:
            return None
        return self.after - self.before


class FoldedFamily(Record, frozen=True, omit_defaults=True):
    """Executables that were folded into one."""

    kind: FoldKind
    # names, in the program's order; the first is the one that is left
    members: tuple[Name, ...]
    # the types of the values that the sites pass to it now (`i32`, `i64`, `index`), in
    # order
    operands: tuple[Name, ...] = always(())


class LeftFamily(Record, frozen=True):
    """Executables that are alike and were not folded."""

    kind: Name  # as that of a `bot.core.program.Family`, or one of FOLD_KINDS
    members: tuple[Name, ...]
    why: Name  # one line: what stands against it, or what was tried and went wrong


class FoldCell(Record, frozen=True, omit_defaults=True):
    """One model on one target."""

    model: Name
    target: Name
    state: FoldState
    executables: BeforeAfter
    # before: of the artifact that the printed command gives; after: of the folded
    # module's
    artifact_bytes: BeforeAfter
    # whether both artifacts gave the same outputs on this machine; None where that is
    # not known
    equal: bool | None
    folded: tuple[FoldedFamily, ...]
    left: tuple[LeftFamily, ...]
    # size of the artifact if the program is written after the flow phase and resumed
    # with nothing folded; a difference from `artifact_bytes.before` comes from resuming,
    # not from folding
    resumed_bytes: Count | None = None
    # on what inputs and within what tolerance, or why it is not known
    equal_note: str = ""
    price: Price | None = None  # None where nothing was timed; `price_note` says why
    price_note: str = ""
    command: str = ""  # makes the folded artifact of `module`; empty without one
    # the folded program, relative to the directory of `fold.json`; empty without one
    module: str = ""
    note: str = ""


class FoldModel(Record, frozen=True):
    """How far folding takes one model.

    It counts the executables that are left of the dispatch regions. None means that
    a count is not known.
    """

    model: Name
    regions: Count | None  # dispatch regions, before deduplication
    today: Count | None  # executables as the compiler leaves them
    # executables of the module that was folded and compiled; the fewest over the
    # targets
    folded: Count | None


class FoldAudit(Record, frozen=True):
    """All models and cells of an audit, sorted by name."""

    schema: Name
    compiler: CompilerInfo
    flags: tuple[str, ...]  # those of every cell beside the target's
    machine: str  # the processor that ran the artifacts, in one line; empty where none was run
    # the price that was allowed (0.01 is 1 %); None where any was
    max_slowdown: float | None
    models: tuple[FoldModel, ...]
    cells: tuple[FoldCell, ...]


def fold_lines(audit: FoldAudit) -> Iterator[bytes]:
    """Yield the text of `fold.json`.

    It is canonical and sorted by name, and each cell has a line of its own.
    """
    cells = sorted(audit.cells, key=lambda cell: (cell.model, cell.target))
    return lines(
        replace(
            audit,
            cells=tuple(cells),
            models=tuple(sorted(audit.models, key=lambda model: model.model)),
        )
    )
