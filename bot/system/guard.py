"""Keep the child processes of this process, and end everything that they leave behind.

Each child leads a session of its own. A program that a child starts is in this session,
or leaves it for a new one. It cannot enter the session of this process. When its parents
end, it is a *stray*: Linux makes it a child of this process, which is a subreaper. The
guard ends all strays that are not in the session of a running child.

A second process, the *keeper*, knows which children run. If this process is killed, the
input of the keeper ends, and the keeper ends these children. PR_SET_PDEATHSIG cannot do
this. It does not reach what a compiler starts, and it acts when the starting thread ends.
It also has to be set between fork and exec, where a program with threads must not run
Python.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, cast

from bot.errors import StrayProcess
from bot.system.starting import DEVNULL, PIPE, Child, start_child

SCRIPT = """if True:
    import contextlib, os, sys
    alive = set()
    for line in sys.stdin:
        (alive.add if line[0] == "+" else alive.discard)(int(line[1:]))
    for group in alive:
        with contextlib.suppress(OSError):
            os.killpg(group, 9)
"""
"""The script of the keeper, which outlives this process."""
_PR_SET_CHILD_SUBREAPER = 36
_END_SECONDS = 0.002
# How long the kernel may take to end what was killed, or strays to outrun it
_PATIENCE_SECONDS = 10.0
# The wait status of a child, and what it used
Ended = tuple[int, resource.struct_rusage]


class Guard:
    """The children of this process. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.alive: set[int] = set()
        self.process: Child | None = None
        self._patience_seconds = _PATIENCE_SECONDS

    def begin(self, start: Callable[[], Child]) -> Child:
        """Start a child that leads its own session, which is ended with this process."""
        with self._lock:
            if sys.platform == "linux":
                ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            child = start()
            self.alive.add(child.pid)
            self._tell(f"+{child.pid}\n")
            return child

    def ended(self, child: Child) -> Ended | None:
        """Return how the child ended; None while it runs."""
        with self._lock:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if not pid:
                return None
            child.returncode = os.waitstatus_to_exitcode(status)
            self.alive.discard(child.pid)
            _kill_group(child.pid)
            self._tell(f"-{child.pid}\n")
            return status, usage

    def end(self, child: Child) -> Ended:
        """Kill the child and its group."""
        _kill_group(child.pid)
        while (ended := self.ended(child)) is None:
            time.sleep(_END_SECONDS)
        return ended

    def clear(self) -> None:
        """End all strays, whatever they start meanwhile.

        Raises StrayProcess if some are still alive.
        """
        deadline = time.monotonic() + self._patience_seconds
        while strays := self._kill_strays():
            if time.monotonic() > deadline:
                self._patience_seconds = 0.0
                message = (
                    f"{', '.join(strays[:3])}: a compiler started this process, and the"
                    " bot cannot end it"
                )
                raise StrayProcess(
                    message, hint="do not run this compiler; end the process yourself"
                )
            time.sleep(_END_SECONDS)

    def end_all(self) -> None:
        """End children and strays alike, when nothing else is to be run.

        Raises StrayProcess.
        """
        with self._lock:
            for child in self.alive:
                _kill_group(child)
            self.alive.clear()
        self.clear()

    def _kill_strays(self) -> list[str]:
        """Kill the strays that there are now, and return their names.

        A stray that is already gone has a name here, too: it may have started
        others.
        """
        with self._lock:
            spared = {*self.alive, os.getsid(0)}
            if self.process:
                spared.add(self.process.pid)
            names = []
            for pid in _children():
                # A library may have waited for a child of its own meanwhile.
                with contextlib.suppress(ProcessLookupError, ChildProcessError):
                    if os.getsid(pid) in spared:
                        continue
                    # A stray of another user refuses the signal.
                    with contextlib.suppress(PermissionError):
                        os.kill(pid, signal.SIGKILL)
                    names.append(f"{_name_of(pid)} (process {pid})")
                    os.waitpid(pid, os.WNOHANG)
            return names

    def _tell(self, line: str) -> None:
        """Tell the keeper that a child began (`+PID`) or ended (`-PID`)."""
        if self.process is not None and self._is_written(self.process, line):
            return
        # There was no keeper yet, or someone ended it.
        self.process = start_child(
            [sys.executable, "-ISEc", SCRIPT],
            stdin=PIPE,
            stdout=DEVNULL,
            stderr=DEVNULL,
            cwd="/",
            bufsize=0,
        )
        lines = "".join(f"+{group}\n" for group in self.alive)
        if not self._is_written(self.process, lines):
            self.process = None  # the next line starts another

    @staticmethod
    def _is_written(keeper: Child, lines: str) -> bool:
        """Write lines to the keeper; return False if it has ended."""
        try:
            cast("IO[bytes]", keeper.stdin).write(lines.encode())
        except BrokenPipeError:
            return False
        return True


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return "a program"


def _children() -> Iterator[int]:
    """Yield the process ids of the children of all threads of this process.

    There are none on a system that does not pass strays to this process.
    """
    if threads := list(Path("/proc/self/task").glob("*/children")):
        for thread in threads:
            with contextlib.suppress(OSError):  # the thread is over
                yield from map(int, thread.read_bytes().split())
        return
    # a kernel without CONFIG_PROC_CHILDREN
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields_after_name = stat.read_bytes().rpartition(b") ")[2].split()
            if int(fields_after_name[1]) == os.getpid():
                yield int(stat.parent.name)


GUARD = Guard()


def require_none_left() -> None:
    """End all processes that were started, by whomever.

    Raises StrayProcess if one of them cannot be ended.
    """
    GUARD.end_all()
