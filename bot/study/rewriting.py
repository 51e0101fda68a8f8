"""Rewrite a program at the end of the flow phase.

The IR worker lists which executables could become one, and makes them one.

What is asked is answered by the IR worker, beside the compiler's own bindings; its
answers are checked here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from bot.compiler.bindings import Bindings
from bot.compiler.compiling import CompileInput, CompileSetup, compile_to
from bot.core.record import Count, Name, Record, always
from bot.core.snapshot import Failure
from bot.core.study import Assumption
from bot.errors import InputError, MalformedBinary
from bot.readers.ir_facts import Interface, read_answer
from bot.system.files import require_bounded

FLOW_OPTIONS = ("--compile-to=flow", "--mlir-print-debuginfo")
"""Printing keeps the places.

A compile that goes on from a text without them does not always give the artifact of the
whole compile.
"""
RESUME = "--compile-from=flow"
_WHERE = "program IR"
_RESOURCE = re.compile(r"\bdense_resource<(?:\"([^\"]*)\"|([^>\"]+))>")
_CARRIED = re.compile(r"^\s*(?:\"([^\"]*)\"|([\w.$-]+)): \"0x", re.MULTILINE)
_Answer = TypeVar("_Answer", bound=Record)


class Assumed(Record, frozen=True):
    """What came of an assumption."""

    dimensions: Count  # dynamic dimensions of arguments that it is stated of


Group = tuple[
    str, ...
]  # Names of executables that could become one, in the program's order


class Groups(Record, frozen=True):
    """Which executables of a program could become one."""

    entries: Mapping[Name, Name]
    unfit: Mapping[
        Name, str
    ]  # executables that are not of the form that fusion gives → why
    # level (`identical`, `constants`, `offsets`, `static-shapes`) → groups of two and
    # more
    groups: Mapping[str, tuple[tuple[Name, ...], ...]]
    elements: Mapping[Name, Count] = always(
        {}
    )  # executable → how many the largest tensor has that it takes or gives


class FoldedGroup(Record, frozen=True):
    """Executables that were made one, and the types of the operands that this took."""

    members: tuple[Name, ...]
    operands: tuple[str, ...]


class LeftGroup(Record, frozen=True):
    """Executables that could not be made one."""

    members: tuple[Name, ...]
    why: Name


class Rewritten(Record, frozen=True):
    """What became of the groups that were asked for."""

    folded: tuple[FoldedGroup, ...]
    left: tuple[LeftGroup, ...]


def flow_of(
    setup: CompileSetup, argv: Sequence[str], source: CompileInput, out: Path
) -> Failure | None:
    """Write the program at the end of the flow phase.

    What is wrong where it cannot be had, or not be read again.
    """
    text = compile_to(setup, (*argv, *FLOW_OPTIONS), source)
    if isinstance(text, Failure):
        return text
    if lost := missing_resource(text):
        return Failure(
            "read", f"this compiler drops a constant when it writes the program: {lost}"
        )
    out.write_text(text, encoding="utf-8")
    return None


def missing_resource(text: str) -> str | None:
    """A resource that the module names and does not carry, so that it cannot be read again.

    None: there is none.
    """
    named = {quoted or plain for quoted, plain in _RESOURCE.findall(text)}
    carried = (
        {
            quoted or plain
            for quoted, plain in _CARRIED.findall(text.rpartition("\n{-#")[2])
        }
        if named
        else set()
    )
    return min(named - carried, default=None)


def groups_of(bindings: Bindings, flow: Path) -> Groups:
    """Raises MalformedBinary where the program cannot be read."""
    return _answered(bindings, Groups, "groups", flow=str(flow))


def rewritten(
    bindings: Bindings, flow: Path, groups: Sequence[Group], out: Path
) -> Rewritten:
    """Write the program with each group made one.

    Raises MalformedBinary, with what broke, where it does not verify.
    """
    result = _answered(
        bindings, Rewritten, "fold", flow=str(flow), out=str(out), groups=groups
    )
    try:
        require_bounded(out, "the folded program")
    except InputError as error:
        raise MalformedBinary(error.what, where=_WHERE) from None
    return result


def assumed_in(
    bindings: Bindings, model: Path, out: Path, assumption: Assumption
) -> Assumed:
    """Write the model with an assumption of its dynamic dimensions.

    Raises MalformedBinary where it cannot be read.
    """
    return _answered(
        bindings,
        Assumed,
        "assume",
        model=str(model),
        out=str(out),
        smallest=assumption.smallest,
        largest=assumption.largest,
        divisor=assumption.divisor,
    )


def interface_of(bindings: Bindings, flow: Path) -> Interface | str:
    """What a program takes and gives, or why that is not known."""
    try:
        return _answered(bindings, Interface, "interface", flow=str(flow))
    except MalformedBinary as error:
        return str(error)


def _answered(
    bindings: Bindings, kind: type[_Answer], op: str, **request: object
) -> _Answer:
    if (answer := bindings.ask(op, **request)) is None:
        raise MalformedBinary(
            bindings.reason or "this compiler has no MLIR bindings", where=_WHERE
        )
    return read_answer(answer, kind)
