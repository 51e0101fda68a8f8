"""Measure how work grows with its input.

`steps` counts the instructions of Python code. `cpu_growth` compares the CPU time of two
inputs, for work that C code does. Neither depends on how fast or how busy the machine is.
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
"""Ratio of the two input sizes: large enough to separate linear from quadratic on a busy machine."""

LINEAR = 22.0
"""Bound of `cpu_growth`: what is linear gives about 8 (up to 13 with caches and logarithms), what is quadratic 64."""

_ENOUGH_CPU_SECONDS = 0.02


def steps(action: Callable[[], object]) -> int:
    """Count the instructions of Python code that the action runs.

    A call into C code counts as one: `cpu_growth` is for loops inside it.
    """
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
    """Return the CPU time for an input of twice the size, divided by that for one `GROWTH` times smaller.

    Each try stands for itself. The small input runs twice, and the shorter time counts: a
    disturbance there would hide a growth. The first ratio below `LINEAR` ends it, else the
    least one counts.

    The size has to be so large that the work that does not grow is a small part.
    """
    small = make_input(2 * size // GROWTH)
    large = make_input(2 * size)
    turns = 1
    below = _cpu_seconds(small, work, turns)
    while below < _ENOUGH_CPU_SECONDS:
        turns *= 2
        below = _cpu_seconds(small, work, turns)
    least_ratio = inf
    for _ in range(tries):
        below = min(_cpu_seconds(small, work, turns), _cpu_seconds(small, work, turns))
        least_ratio = min(least_ratio, _cpu_seconds(large, work, turns) / below)
        if least_ratio < LINEAR:
            break
    return least_ratio


def _cpu_seconds(value: Input, work: Callable[[Input], object], turns: int) -> float:
    with _no_collection():
        began = time.thread_time()
        for _ in range(turns):
            work(value)
        return time.thread_time() - began


@contextmanager
def _no_collection() -> Iterator[None]:
    """Turn the garbage collector off: it calls Python code of others (`gc.callbacks`)."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
