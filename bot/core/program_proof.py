"""The experiment on a program whose dispatch regions differ.

It finds which phase and which pass of the compiler forms them.

The IR of base goes up to a phase, and head's compiler goes on from there. The phase
whose IR takes base's regions along forms them. Within this phase, base's passes go
first and head's passes go on, until one pass is left.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from bot.core.proof import MOST_WORDS, PARTLY, PROVED, Status, Words
from bot.core.record import Amount, Count, Record

PROGRAM_PHASES = (
    "input",
    "abi",
    "preprocessing",
    "global-optimization",
    "dispatch-creation",
    "flow",
)
"""Phases before a program's executables are outlined, in the compilers' order."""
RunsOn = Literal["base", "head", "both"]
BASE_ONLY: RunsOn = "base"
HEAD_ONLY: RunsOn = "head"
BOTH: RunsOn = "both"
FORMS_REGIONS = "forms other dispatch regions"
"""The words of a root cause for a pass that forms other regions."""
EXPERIMENT_WORDS = {
    PROVED: "proved by experiment",
    PARTLY: "partly proved by experiment",
}
_SHORT = 200


class ProgramPassProof(Record, frozen=True, omit_defaults=True):
    """The experiment with one pass.

    Either head runs it as base does: it is left out, added, or run by base's compiler.
    Or base's passes go first, up to this one, and head's passes go on.
    """

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=_SHORT)]  # its argument
    class_name: Annotated[str, msgspec.Meta(max_length=_SHORT)]  # what implements it
    runs_on: RunsOn
    status: Status
    restored_regions: Amount  # how many regions that differ are base's again
    # bytes by which the code of head's program shrinks; None if they were not measured
    restored_bytes: Amount | None = None
    # why head alone says less than base's passes before it; empty if head alone was
    # tried, and says it
    why: Words = ""


class ProgramProof(Record, frozen=True, omit_defaults=True):
    """The experiment on one program."""

    status: Status
    why: Words = ""  # why it was not tried; empty if it was
    # one of PROGRAM_PHASES; empty if not tried
    phase: Annotated[str, msgspec.Meta(max_length=_SHORT)] = ""
    # how many regions one side alone has, and how many of these base's IR of the phase
    # makes base's
    regions: Count = 0
    restored_regions: Amount | None = None
    # code of head's program − code of base's program in head's compiler, in bytes; None
    # if it was not measured
    moved_bytes: Amount | None = None
    passed: ProgramPassProof | None = None
    no_pass: Words = ""  # why there is no pass; empty if there is one
    no_bytes: Words = ""  # why the bytes are not known, although they were asked for
    compiles: Count = 0  # runs of a compiler or of its passes

    @property
    def pass_name(self) -> str:
        """Return the pass that forms the regions, wholly or in part.

        It is empty if no experiment names one.
        """
        if self.passed is not None:
            return self.passed.name
        return ""


def regions_status(restored_regions: int, regions: int) -> Status:
    """Return the status of an experiment that restores some of the regions."""
    if restored_regions == regions:
        return "proved"
    if restored_regions > 0:
        return "partly"
    return "refuted"


def untried(reason: str, compiles: int = 0) -> ProgramProof:
    """Return the proof of an experiment that was not made, with the reason."""
    return ProgramProof("not-tried", reason[:MOST_WORDS], compiles=compiles)
