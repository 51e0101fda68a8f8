"""How work grows with its input: counted where Python does it, CPU time of n against 8n where C code does.

Neither asks how fast a machine is, or how busy: a count is exact, and a ratio has the
machine in both halves.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from types import FrameType
from typing import Any, TypeVar

Input = TypeVar("Input")
GROWTH = 8
"""How many times the smaller input the larger one is: so far apart that no busy machine takes one for the other."""

LINEAR = 22.0
"""Bound of `cpu_growth`: what is linear gives about 8 (up to 13 with caches and logarithms), what is quadratic 64."""

_ENOUGH_CPU_SECONDS = 0.02


def steps(action: Callable[[], object]) -> int:
    """How many instructions of Python's own machine the action runs, a call of C code being one: no loop is missed."""
    counted = 0

    def count(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal counted
        counted += event == "opcode"
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return count

    before = sys.gettrace()
    with _no_collection():
        sys.settrace(count)
        try:
            action()
        finally:
            sys.settrace(before)
    return counted


def cpu_growth(
    make_input: Callable[[int], Input],
    work: Callable[[Input], object],
    size: int,
    tries: int = 5,
) -> float:
    """CPU time for an input of twice the size, divided by that for one `GROWTH` times smaller.

    Each the least of a few tries: the small one of two at least, as it is the one whose
    disturbance would hide a growth.

    What disturbs a measurement only ever adds to it. The size has to be large enough
    that what does not grow is little beside what does.
    """
    small = make_input(2 * size // GROWTH)
    large = make_input(2 * size)
    turns = 1
    below = _cpu_seconds(small, work, turns)
    while below < _ENOUGH_CPU_SECONDS:
        turns *= 2
        below = _cpu_seconds(small, work, turns)
    above = inf
    for _ in range(tries):
        below = min(below, _cpu_seconds(small, work, turns))
        above = min(above, _cpu_seconds(large, work, turns))
        if above < LINEAR * below:
            break
    return above / below


def _cpu_seconds(value: Input, work: Callable[[Input], object], turns: int) -> float:
    with _no_collection():
        began = time.thread_time()
        for _ in range(turns):
            work(value)
        return time.thread_time() - began


@contextmanager
def _no_collection() -> Iterator[None]:
    """The collector calls what others hung onto it (`gc.callbacks`): Python code that is not the action's."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
