"""How work grows with its input: counted where Python does it, CPU time of n against 2n where C code does.

Neither asks how fast a machine is, or how busy: a count is exact, and a ratio has the machine in both halves.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

Input = TypeVar("Input")
LINEAR = 3.0
"""Bound of `cpu_growth`: what is linear gives about 2, what is quadratic 4 and more."""

_ENOUGH_CPU_SECONDS = 0.02
_TRIES = 5


def steps(action: Callable[[], object]) -> int:
    """How many instructions of Python's own machine the action runs, a call of C code being one: no loop is missed."""
    counted = 0

    def count(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal counted
        counted += event == "opcode"
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        action()
    finally:
        sys.settrace(before)
    return counted


def cpu_growth(made: Callable[[int], Input], work: Callable[[Input], object], size: int) -> float:
    """CPU time for an input of twice the size, divided by that for the size: the smallest of a few tries.

    The size is doubled first until the work takes long enough to be told from the clock's own steps. What disturbs a
    measurement only ever adds to it; superlinear work stays superlinear in every try.
    """
    while _cpu_seconds(made(size), work) < _ENOUGH_CPU_SECONDS:
        size *= 2
    return min(_ratio(made(size), made(2 * size), work) for _ in range(_TRIES))


def _ratio(small: Input, large: Input, work: Callable[[Input], object]) -> float:
    below = min(_cpu_seconds(small, work) for _ in range(2))
    return _cpu_seconds(large, work) / below


def _cpu_seconds(value: Input, work: Callable[[Input], object]) -> float:
    gc.collect()
    gc.disable()
    try:
        began = time.thread_time()
        work(value)
        return time.thread_time() - began
    finally:
        gc.enable()
