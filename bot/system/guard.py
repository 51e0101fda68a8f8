"""The guard: keeps account of the children of this process, so that nothing lives on of what they started.

A program that leaves its process group and its session, and whose parents end, is nobody's child. Linux gives it to
this process (a subreaper), which tells it by its session: a child has one of its own, which everything that it starts
is in or leaves for a new one, and none can enter this process's own. What is in the session of a child that still runs
is spared; all other strays are ended, until none is left.

Where this process is killed, a process that reads which groups are alive ends these when its input ends. The kernel's
own way (PR_SET_PDEATHSIG) spares the children of a compiler, strikes when the thread ends that started it, and has to
be set between fork and exec, where a program with threads must not run Python.
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
from typing import IO, Generic, Protocol, TypeVar, cast

from bot.errors import InternalError, StrayProcess

SCRIPT = """if True:
    import contextlib, os, sys
    alive = set()
    for line in sys.stdin:
        (alive.add if line[0] == "+" else alive.discard)(int(line[1:]))
    for group in alive:
        with contextlib.suppress(OSError):
            os.killpg(group, 9)
"""
"""What the process runs that outlives this one."""
_PR_SET_CHILD_SUBREAPER = 36
_POLL_SECONDS = 0.002
_PATIENCE_SECONDS = 10.0
"""How long the kernel may take to end what was killed, or strays to outrun it."""

_Child = TypeVar("_Child", bound="Child")

Ended = tuple[int, resource.struct_rusage]
"""The wait status of a child, and what it used."""


class Child(Protocol):
    """A process that this one started."""

    pid: int
    returncode: int | None
    stdin: IO[bytes] | None

    def kill(self) -> None:
        """End it."""

    def wait(self) -> int:
        """Until it has ended."""


class Guard(Generic[_Child]):
    """The children of this process; for any thread.

    Args:
        start: starts the process that outlives this one: on first use, and where it was ended.
    """

    def __init__(self, start: Callable[[], _Child]) -> None:
        self._start, self._lock = start, threading.Lock()
        self.alive: set[int] = set()
        self.process: _Child | None = None
        self._is_trusted = True
        self._patience_seconds = _PATIENCE_SECONDS

    def begin(self, start: Callable[[], _Child], *, alone: bool = False) -> _Child:
        """Start a child that leads a session of its own, which is ended with this process.

        Args:
            alone: it has a credential. Whatever ran beside a compiler may be under its control by now, as it has the
                same user; so nothing else may live, not even the process that outlives this one.

        Raises:
            StrayProcess: something that a compiler started cannot be ended.
        """
        if alone:
            with self._lock:
                if self.process is not None and not self._is_trusted:
                    self.process.kill()
                    self.process.wait()
                    self.process = None
                self._is_trusted = not self.alive
            self.clear()
        with self._lock:
            if alone and (self.alive or not self._is_trusted):
                raise InternalError("a program with a credential was to start beside one that is not trusted")
            self._is_trusted = alone
            if sys.platform == "linux":
                ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            child = start()
            self.alive.add(child.pid)
            self._tell(f"+{child.pid}\n")
            return child

    def ended(self, child: _Child) -> Ended | None:
        """How the child ended; None while it runs."""
        with self._lock:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if not pid:
                return None
            child.returncode = os.waitstatus_to_exitcode(status)
            self.alive.discard(child.pid)
            _kill_group(child.pid)
            self._tell(f"-{child.pid}\n")
            return status, usage

    def end(self, child: _Child) -> Ended:
        """Kill the child and its group."""
        _kill_group(child.pid)
        while (ended := self.ended(child)) is None:
            time.sleep(_POLL_SECONDS)
        return ended

    def clear(self) -> None:
        """End all strays, whatever they start meanwhile; raises StrayProcess where some live on."""
        deadline = time.monotonic() + self._patience_seconds
        while strays := self._kill_strays():
            if time.monotonic() > deadline:
                self._patience_seconds = 0.0
                what = f"{', '.join(strays[:3])}: a compiler started it, and it cannot be ended"
                raise StrayProcess(what, hint="do not run this compiler; end the process yourself")
            time.sleep(_POLL_SECONDS)

    def end_all(self) -> None:
        """End children and strays alike, when nothing else is to be run; raises StrayProcess."""
        with self._lock:
            for child in self.alive:
                _kill_group(child)
            self.alive.clear()
        self.clear()

    def _kill_strays(self) -> list[str]:
        """Kill those that there are; what they are called, also where they are gone: others may have come of them."""
        with self._lock:
            spared, names = {*self.alive, os.getsid(0), self.process.pid if self.process else 0}, []
            for pid in _children():
                with contextlib.suppress(ProcessLookupError, ChildProcessError):  # a child of some library's
                    if os.getsid(pid) not in spared:
                        with contextlib.suppress(PermissionError):  # it runs as another user
                            os.kill(pid, signal.SIGKILL)
                        names.append(f"{_name(pid)} (process {pid})")
                        os.waitpid(pid, os.WNOHANG)
            return names

    def _tell(self, line: str) -> None:
        if self.process is None:
            self.process, line = self._start(), "".join(f"+{group}\n" for group in self.alive)
        try:
            cast("IO[bytes]", self.process.stdin).write(line.encode())
        except BrokenPipeError:  # someone ended it: the next line starts another
            self.process = None


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _children() -> Iterator[int]:
    """Those of all threads of this process; none on a system that gives it no strays."""
    if threads := list(Path("/proc/self/task").glob("*/children")):
        for thread in threads:
            with contextlib.suppress(OSError):  # the thread is over
                yield from map(int, thread.read_bytes().split())
        return
    for stat in Path("/proc").glob("[0-9]*/stat"):  # a kernel without CONFIG_PROC_CHILDREN
        with contextlib.suppress(OSError):
            if stat.read_bytes().rpartition(b") ")[2].split()[1] == str(os.getpid()).encode():
                yield int(stat.parent.name)


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    return "a program"
