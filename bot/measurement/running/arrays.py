"""Asks the child that makes and compares arrays; what it answers is checked, and what it fails at has a reason."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from bot.core.codec.json_text import canonical, decoded
from bot.core.record import Count, Record
from bot.core.rules.lasting import here
from bot.errors import InputError
from bot.system.files import temporary_directory
from bot.system.processes import Cancel, run

_WHERE = "arrays"
_Answer = TypeVar("_Answer", bound=Record)


class Draw(Record, frozen=True):
    """One output on one input, of both artifacts.

    Attributes:
        finite: of the values before, those that are neither infinite nor NaN.
        different: of the values, those that are not the same to the bit; a NaN is the same as any other.
        relative: the largest difference, as a part of the largest magnitude of the output before; of an integer that
            differs 1; None where there is no such part (sizes, infinities or NaNs differ, or all before is zero).
    """

    before_bytes: Count
    after_bytes: Count
    values: Count
    finite: Count
    different: Count
    relative: float | None


class Output(Record, frozen=True):
    """One output over all draws.

    Attributes:
        constant: True where all finite values are one.
        still: True where there is more than one draw, and it is the same on all of them.
    """

    draws: tuple[Draw, ...]
    constant: bool
    still: bool


class _Compared(Record, frozen=True):
    outputs: tuple[Output, ...]


class _Filled(Record, frozen=True):
    filled: Count


class _Failed(Record, frozen=True):
    error: str


def fill(files: Sequence[Any], directory: Path, cancel: Cancel) -> str | None:
    """Write files as `array_worker` describes them; the reason where that fails."""
    answer = _ask({"fill": files}, _Filled, directory, cancel)
    return answer if isinstance(answer, str) else None


def compare(outputs: Sequence[Any], directory: Path, cancel: Cancel) -> tuple[Output, ...] | str:
    """What can be said of each output, or the reason why nothing can."""
    answer = _ask({"compare": outputs}, _Compared, directory, cancel)
    return answer if isinstance(answer, str) else answer.outputs


def _ask(request: Any, kind: type[_Answer], parent: Path, cancel: Cancel) -> _Answer | str:
    with temporary_directory("arrays-", parent) as directory:
        question, answer = directory / "question.json", directory / "answer.json"
        question.write_bytes(canonical(request))
        argv = [sys.executable, "-E", str(Path(__file__).with_name("array_worker.py"))]
        ended = run(argv, cancel=cancel, stdin=question, stdout=answer, timeout_seconds=1800)
        if not ended.ok:
            how = "did not end" if ended.timed_out else f"was ended by {ended.signal}" if ended.signal else "failed"
            last = ended.output.strip().rpartition("\n")[2][:200]
            return here(f"the process for random data {how}{last and f': {last}'}")
        text = answer.read_bytes()
        try:
            return decoded(text, kind, _WHERE)
        except InputError as error:
            try:
                return here(decoded(text, _Failed, _WHERE).error or error.line)
            except InputError:
                return here(error.line)
