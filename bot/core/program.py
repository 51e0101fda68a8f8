"""The facts in a model's target-independent IR about its dispatches.

They are small enough to live in a baseline. Digests stand for texts: two executables
with an equal `source` have the same IR, except names and SSA numbering.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from bot.core.record import Count, Digest, Record, always

FAMILY_KINDS = (
    "constants",
    "static-shapes",
    "offsets",
    "operand-order",
    "extra-operation",
    "different-fusion",
)
"""The differences that may keep otherwise equal executables apart, strict ones first.

The kind of a family is the loosest of its differences. Its `varying` has all of them.
"""

FamilyKind = Annotated[str, msgspec.Meta(pattern=rf"\A({'|'.join(FAMILY_KINDS)})\Z")]

IDENTICAL = ("nothing: their functions are identical",)
"""The `varying` of a family of kind `constants` whose members are identical.

It is not empty, as a stored baseline has an empty `varying` for every family.
"""

SOURCES = "sources"
"""Beside the phases of a program.

The digest of all files that a compiler that is a command could read.
"""
# phases whose whole program is compared by one digest
HASHED_PHASES = (
    "input",
    "global-optimization",
)


class Source(Record, frozen=True, omit_defaults=True):
    """One executable's IR after dispatch creation, as digests."""

    executable: str
    source: Digest  # digest of the IR without names and SSA numbering
    # digest of the same without the values of constants, static shapes and offsets
    structure: Digest
    # digest of the IR with the buffers bound to it, whose offsets depend on the rest of
    # the program; None: not known
    bound: Digest | None = None


class Site(Record, frozen=True, omit_defaults=True):
    """One dispatch site of the program."""

    entry_point: str
    # the model's own name of the place (`encoder.layer.0.attention`), from the MLIR
    # location; None without one
    component: str | None = None
    initializer: bool = False  # True if it runs once, when the module is loaded


class Family(Record, frozen=True, omit_defaults=True):
    """Executables of one cell that are identical, or differ only as their kind says."""

    kind: FamilyKind
    members: tuple[str, ...]  # executable names, in the program's order; at least two
    # the differences between members, one line each with the values (`arith.constant
    # i32 → arith.muli: 3, 5, 7`); IDENTICAL without any; empty if they are not known
    varying: tuple[str, ...] = always(())

    @property
    def identical(self) -> bool:
        """Return whether all members are equal, including constants and shapes."""
        return self.varying == IDENTICAL


class Program(Record, frozen=True, omit_defaults=True):
    """The facts from the target-independent half of a compile.

    Cells of one model share it.
    """

    # one of HASHED_PHASES → digest of the whole program's IR at its end, up to names of
    # values and places
    phases: Mapping[str, Digest] = always({})
    sources: tuple[Source, ...] = always(())
    sites: tuple[Site, ...] = always(())
    # what the model's own program consists of before any optimization, as
    # `bot.core.json_text` writes it: operations with those of their bodies, and
    # constants; None if that is not known
    operations: str | None = None
    # component, as a Site has it → how many whole operations it has, constants not
    # counted; "" has those without one
    places: Mapping[str, Count] = {}
