"""Start processes; no other module does.

A process runs to its end, or is a worker that answers line by line.

Every child leads a process group of its own, sees a scrubbed environment, and is gone
when its call returns, whatever happened: a timeout, Ctrl-C, or a diagnostic of 100 MB
(of which only the head is kept). So is all that it started:

A program that leaves its process group and its session, and whose parents end, is
nobody's child. Linux gives it to this process (a subreaper), which tells it by its
session: a child has one of its own, which everything that it starts is in or leaves for
a new one, and none can enter this process's own. What is in the session of a child that
still runs is spared; all other strays are ended, until none is left.

Where this process is killed, a process that reads which groups are alive ends these
when its input ends. The kernel's own way (PR_SET_PDEATHSIG) spares the children of a
compiler, strikes when the thread ends that started it, and has to be set between fork
and exec, where a program with threads must not run Python.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from bot.errors import Interrupted, StrayProcess
from bot.system.memory_layout import fixed_addresses, placed
from bot.system.pipes import Head, Keeping
from bot.system.tokens import is_token

_KEPT_VARIABLES = (
    "PATH",
    "HOME",
    "LD_LIBRARY_PATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
)
# Number → name; most real-time signals have none
_SIGNALS = {signal.value: signal.name for signal in signal.Signals}
_POLL_SECONDS = 0.1
SCRIPT = """if True:
    import contextlib, os, sys
    alive = set()
    for line in sys.stdin:
        (alive.add if line[0] == "+" else alive.discard)(int(line[1:]))
    for group in alive:
        with contextlib.suppress(OSError):
            os.killpg(group, 9)
"""
"""The script of the process that outlives this one."""
_PR_SET_CHILD_SUBREAPER = 36
_END_SECONDS = 0.002
# How long the kernel may take to end what was killed, or strays to outrun it
_PATIENCE_SECONDS = 10.0
_CHUNK_BYTES = 1 << 16
_LONGEST_ANSWER_BYTES = 1 << 28


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a child ended."""

    exit_code: int | None  # None where a signal ended it
    signal: str | None  # the signal's name, None where it exited
    timed_out: bool  # True where the time limit ended it
    # the head of standard output and error together, at most
    # `bot.system.pipes.LIMIT_BYTES`; of standard error alone where standard output went
    # to a file
    output: str
    cpu_ms: int  # user plus system time, of the child and those it waited for
    # peak resident set, likewise; None where it is not above this process's own, which
    # Linux hands down through exec, so that the kernel's figure says nothing
    peak_rss_kib: int | None

    @property
    def ok(self) -> bool:
        """Return True for exit code 0."""
        return self.exit_code == 0


class Cancel:
    """A flag that ends all running children: set once, by Ctrl-C or SIGTERM."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Ask every call of `run` to end its child and raise Interrupted."""
        self._event.set()

    def check(self) -> None:
        """Raise Interrupted if set."""
        if self._event.is_set():
            raise Interrupted(
                "interrupted",
                hint="run the same command again: finished builds are in the cache",
            )


class Meter:
    """Adds up the CPU time of compiles, by model. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.cpu_ms: dict[str, int] = {}

    def add(self, name: str, cpu_ms: int) -> None:
        """Count one finished compile."""
        with self._lock:
            self.cpu_ms[name] = self.cpu_ms.get(name, 0) + cpu_ms


def scrubbed_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a child: where programs are, and `extra`.

    It never has a token of GitHub.
    """
    environment = {
        name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ
    }
    added = {name: value for name, value in (extra or {}).items() if not is_token(name)}
    return {**environment, "LC_ALL": "C", **added}


_Child = subprocess.Popen[bytes]
# The wait status of a child, and what it used
Ended = tuple[int, resource.struct_rusage]


class Guard:
    """The children of this process. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.alive: set[int] = set()
        self.process: _Child | None = None
        self._patience_seconds = _PATIENCE_SECONDS

    def begin(self, start: Callable[[], _Child]) -> _Child:
        """Start a child that leads its own session, which is ended with this process."""
        with self._lock:
            if sys.platform == "linux":
                ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            child = start()
            self.alive.add(child.pid)
            self._tell(f"+{child.pid}\n")
            return child

    def ended(self, child: _Child) -> Ended | None:
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

    def end(self, child: _Child) -> Ended:
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
                # a child of some library's
                with contextlib.suppress(ProcessLookupError, ChildProcessError):
                    if os.getsid(pid) not in spared:
                        # it runs as another user
                        with contextlib.suppress(PermissionError):
                            os.kill(pid, signal.SIGKILL)
                        name = "a program"
                        with contextlib.suppress(OSError):
                            name = (
                                Path(f"/proc/{pid}/comm")
                                .read_text(errors="replace")
                                .strip()
                            )
                        names.append(f"{name} (process {pid})")
                        os.waitpid(pid, os.WNOHANG)
            return names

    def _tell(self, line: str) -> None:
        if self.process is None:
            line = "".join(f"+{group}\n" for group in self.alive)
            self.process = subprocess.Popen(
                [sys.executable, "-ISEc", SCRIPT],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=scrubbed_environment(),
                start_new_session=True,
            )
        try:
            cast("IO[bytes]", self.process.stdin).write(line.encode())
        except BrokenPipeError:  # someone ended it: the next line starts another
            self.process = None


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


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
            if (
                stat.read_bytes().rpartition(b") ")[2].split()[1]
                == str(os.getpid()).encode()
            ):
                yield int(stat.parent.name)


_guard = Guard()


def require_none_left() -> None:
    """End all processes that were started, by whomever.

    Raises StrayProcess if one of them cannot be ended.
    """
    _guard.end_all()


def _watch(
    child: subprocess.Popen[bytes], head: Head, deadline: float, cancel: Cancel
) -> Ended | None:
    """Follow the child and its pipe to their end.

    Returns wait status and usage; None if the deadline passed.
    """
    is_open = True
    while time.monotonic() < deadline:
        cancel.check()
        if is_open and select.select([head.fd], [], [], _POLL_SECONDS)[0]:
            is_open = head.drain()
            if is_open:
                continue
        if (ended := _guard.ended(child)) is not None:
            return ended
        if not is_open:
            time.sleep(0.002)
    return None


def run(
    argv: Sequence[str],
    *,
    cancel: Cancel,
    stdin: Path | None = None,
    stdout: Path | None = None,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    timeout_seconds: float = 3600,
    layout: int | None = None,
    keeping: Keeping = bytes,
) -> Outcome:
    """Run one program to its end.

    Raises OSError if it cannot be started and Interrupted when cancelled.

    `stdout`: a file for the whole of standard output; `output` then holds the head of
    standard error alone; `layout`: of a compiler's memory (`bot.system.memory_layout`);
    None: as the system likes; `keeping`: chunk after chunk of its output → what to keep
    of it, before the head is cut; an empty one ends it.
    """
    with (
        open(stdin or os.devnull, "rb") as source,
        open(stdout, "wb") if stdout else nullcontext() as sink,
    ):

        def start() -> subprocess.Popen[bytes]:
            with nullcontext() if layout is None else fixed_addresses():
                return subprocess.Popen(
                    placed(argv, layout or 0),
                    stdin=source,
                    stdout=sink or subprocess.PIPE,
                    stderr=subprocess.PIPE if sink else subprocess.STDOUT,
                    cwd=cwd,
                    env=scrubbed_environment(environment),
                    start_new_session=True,
                )

        child = _guard.begin(start)
    pipe = cast("IO[bytes]", child.stdout or child.stderr)
    head = Head(pipe.fileno(), keeping)
    ended = None
    try:
        ended = _watch(
            child, head=head, deadline=time.monotonic() + timeout_seconds, cancel=cancel
        )
        if ended is not None:
            head.drain_rest()
    finally:
        timed_out = ended is None
        _, usage = ended or _guard.end(child)
        pipe.close()
        _guard.clear()
    code = child.returncode
    own_peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Outcome(
        exit_code=code if code >= 0 and not timed_out else None,
        signal=_SIGNALS.get(-code, f"signal {-code}") if code < 0 else None,
        timed_out=timed_out,
        output=bytes(head.kept).decode("utf-8", "replace"),
        cpu_ms=round((usage.ru_utime + usage.ru_stime) * 1000),
        peak_rss_kib=usage.ru_maxrss if usage.ru_maxrss > own_peak_kib else None,
    )


class Worker:
    """A child that answers each line with one line, for one thread at a time.

    `close` ends it.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        self._child = _guard.begin(
            lambda: subprocess.Popen(
                list(argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=scrubbed_environment(),
                start_new_session=True,
                umask=0o022,  # it leaves byte code beside the compiler, which others may share
            )
        )
        self._pending = bytearray()

    def ask(
        self, line: str | None, cancel: Cancel, timeout_seconds: float = 120
    ) -> str | None:
        """Return the answer to `line`, or the worker's greeting if `line` is None.

        Returns None if the worker died or did not answer in time.
        """
        try:
            if line is not None and self._child.stdin is not None:
                self._child.stdin.write(line.encode() + b"\n")
                self._child.stdin.flush()
            return self._read_line(cancel, time.monotonic() + timeout_seconds)
        except (OSError, ValueError):
            return None

    def _read_line(self, cancel: Cancel, deadline: float) -> str | None:
        fd = cast("IO[bytes]", self._child.stdout).fileno()
        searched = 0
        while (end := self._pending.find(b"\n", searched)) < 0:
            searched = len(self._pending)
            cancel.check()
            if (
                time.monotonic() > deadline
                or len(self._pending) > _LONGEST_ANSWER_BYTES
            ):
                self.close()
                return None
            if select.select([fd], [], [], _POLL_SECONDS)[0]:
                chunk = os.read(fd, _CHUNK_BYTES)
                if not chunk:
                    return None
                self._pending += chunk
        line = self._pending[:end].decode("utf-8", "replace")
        del self._pending[: end + 1]
        return line

    def close(self) -> None:
        """End the child, and whatever it started."""
        if self._child.returncode is None:
            _guard.end(self._child)
        _guard.clear()
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
