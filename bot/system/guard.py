"""The guard: a process that ends the children which this process leaves behind, however this one ends.

It reads which process groups are alive, and ends them where its input ends. The kernel's own way (PR_SET_PDEATHSIG)
spares the children of a compiler, strikes when the thread ends that started it, and has to be set between fork and
exec, where a program with threads must not run Python.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import IO, Protocol, cast

SCRIPT = """if True:
    import contextlib, os, sys
    alive = set()
    for line in sys.stdin:
        (alive.add if line[0] == "+" else alive.discard)(int(line[1:]))
    for group in alive:
        with contextlib.suppress(OSError):
            os.killpg(group, 9)
"""
"""What the guard runs."""


class Process(Protocol):
    """The guard as this process sees it."""

    pid: int
    stdin: IO[bytes] | None


class Guard:
    """Tells the guard what is alive; `start` starts one, on first use and where it was ended. For any thread."""

    def __init__(self, start: Callable[[], Process]) -> None:
        self._start, self._lock = start, threading.Lock()
        self.alive: set[int] = set()
        self.process: Process | None = None

    def add(self, group: int) -> None:
        """From now on the group is ended with this process."""
        with self._lock:
            self.alive.add(group)
            self._tell(f"+{group}\n")

    def remove(self, group: int) -> None:
        """The group is gone, and its number may be given to another."""
        with self._lock:
            self.alive.discard(group)
            self._tell(f"-{group}\n")

    def _tell(self, line: str) -> None:
        if self.process is None:
            self.process, line = self._start(), "".join(f"+{group}\n" for group in self.alive)
        try:
            cast("IO[bytes]", self.process.stdin).write(line.encode())
        except BrokenPipeError:  # someone ended it: the next line starts another
            self.process = None
