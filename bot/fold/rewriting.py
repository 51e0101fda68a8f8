"""Rewrite a program at the end of the flow phase so that executables become one.

The IR worker lists which executables could become one, and makes them one, beside the
compiler's own bindings. Its answers are checked here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bot.compiler.bindings import Bindings
from bot.core.record import Count, Name, Record, always
from bot.errors import InputError, MalformedBinary
from bot.study.flow_program import PROGRAM_IR, answer_of
from bot.system.files import require_bounded

RESUME = "--compile-from=flow"


# Names of executables that could become one, in the program's order
Group = tuple[str, ...]


class Groups(Record, frozen=True):
    """Which executables of a program could become one."""

    # executable → the name of its entry point, in the program's order
    entries: Mapping[Name, Name]
    # executables that are not of the form that fusion gives → why
    unfit: Mapping[Name, str]
    # level (`identical`, `constants`, `offsets`, `static-shapes`) → groups of two and
    # more
    groups: Mapping[str, tuple[tuple[Name, ...], ...]]
    # executable → number of elements of its largest operand or result
    elements: Mapping[Name, Count] = always({})


class FoldedGroup(Record, frozen=True):
    """Executables that were folded into one.

    It also has the types of the operands that folding added.
    """

    members: tuple[Name, ...]
    operands: tuple[str, ...]


class LeftGroup(Record, frozen=True):
    """Executables that could not be made one."""

    members: tuple[Name, ...]
    why: Name


class Rewritten(Record, frozen=True):
    """The result for the groups that were asked for."""

    folded: tuple[FoldedGroup, ...]
    left: tuple[LeftGroup, ...]


def groups_of(bindings: Bindings, flow: Path) -> Groups:
    """Ask the worker for the groups that a program has.

    Raises MalformedBinary if the program cannot be read.
    """
    return answer_of(bindings, Groups, "groups", flow=str(flow))


def rewritten(
    bindings: Bindings, flow: Path, groups: Sequence[Group], out: Path
) -> Rewritten:
    """Write the program with each group folded.

    Raises MalformedBinary, with what broke, if the result does not verify.
    """
    result = answer_of(
        bindings, Rewritten, "fold", flow=str(flow), out=str(out), groups=groups
    )
    try:
        require_bounded(out, "the folded program")
    except InputError as error:
        raise MalformedBinary(error.what, where=PROGRAM_IR) from None
    return result
