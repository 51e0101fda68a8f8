"""Ask the IR worker about a program at the end of the flow phase.

The worker runs with the compiler's own bindings. Its answers are checked here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from bot.compiler.bindings import Bindings
from bot.compiler.compiling import CompileInput, CompileSetup, compile_to
from bot.core.record import Count, Record
from bot.core.snapshot import Failure
from bot.core.study import Assumption
from bot.errors import MalformedBinary
from bot.readers.ir_facts import Interface, read_answer

FLOW_OPTIONS = ("--compile-to=flow", "--mlir-print-debuginfo")
"""Printing keeps the places.

A compile that goes on from a text without them does not always give the artifact of the
whole compile.
"""
PROGRAM_IR = "program IR"
"""The place that an error about a program names."""
_RESOURCE = re.compile(r"\bdense_resource<(?:\"([^\"]*)\"|([^>\"]+))>")
_CARRIED = re.compile(r"^\s*(?:\"([^\"]*)\"|([\w.$-]+)): \"0x", re.MULTILINE)
_Answer = TypeVar("_Answer", bound=Record)


class Assumed(Record, frozen=True):
    """The result of an assumption."""

    dimensions: Count  # dynamic dimensions of arguments that it is stated of


def flow_of(
    setup: CompileSetup, argv: Sequence[str], source: CompileInput, out: Path
) -> Failure | None:
    """Write the program at the end of the flow phase, and return why that failed.

    It fails if there is no such program, or if it cannot be read again.
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
    """Return a resource that the module names but does not contain; None without one.

    Such a module cannot be read again.
    """
    missing = {quoted or plain for quoted, plain in _RESOURCE.findall(text)}
    if not missing:
        return None
    for quoted, plain in _CARRIED.findall(text.rpartition("\n{-#")[2]):
        missing.discard(quoted or plain)
    return min(missing, default=None)


def assumed_in(
    bindings: Bindings, model: Path, out: Path, assumption: Assumption
) -> Assumed:
    """Write the model with an assumption of its dynamic dimensions.

    Raises MalformedBinary if the model cannot be read.
    """
    return answer_of(
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
    """Return the arguments and results of a program, or why they are not known."""
    try:
        return answer_of(bindings, Interface, "interface", flow=str(flow))
    except MalformedBinary as error:
        return str(error)


def answer_of(
    bindings: Bindings, kind: type[_Answer], op: str, **request: object
) -> _Answer:
    """Return the worker's answer to a request.

    Raises MalformedBinary if there are no bindings, or the answer is an error.
    """
    if (answer := bindings.ask(op, **request)) is None:
        raise MalformedBinary(
            bindings.reason or "this compiler has no MLIR bindings", where=PROGRAM_IR
        )
    return read_answer(answer, kind)
