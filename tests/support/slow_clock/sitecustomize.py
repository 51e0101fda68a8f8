"""A slow machine for one Python program: wall clock and CPU times go CLOCK_FACTOR times as fast as the real ones.

A child gets this by having the folder first on PYTHONPATH.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from resource import struct_rusage
from typing import Any

FACTOR = float(os.environ.get("CLOCK_FACTOR", "1"))


def scaled(real: Callable[[], float]) -> Callable[[], float]:
    """The clock from now on."""
    start = real()
    return lambda: start + (real() - start) * FACTOR


class Usage:
    """What a child used, with scaled times."""

    def __init__(self, real: struct_rusage) -> None:
        self._real = real
        self.ru_utime = real.ru_utime * FACTOR
        self.ru_stime = real.ru_stime * FACTOR

    def __getattr__(self, name: str) -> Any:
        """Anything else as it is."""
        return getattr(self._real, name)


_wait4 = os.wait4


def wait4(pid: int, options: int) -> tuple[int, int, Usage]:
    """Wait as `os.wait4` does."""
    pid, status, usage = _wait4(pid, options)
    return pid, status, Usage(usage)


for _name in ("monotonic", "perf_counter", "process_time", "time"):
    setattr(time, _name, scaled(getattr(time, _name)))
setattr(os, "wait4", wait4)  # noqa: B010 (a type checker knows another one)
