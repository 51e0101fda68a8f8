"""The only module that spawns processes: one at a time to its end, or a worker that answers line by line.

Every child leads a process group of its own, sees a scrubbed environment, and is gone when its call returns, whatever
happened: a timeout, Ctrl-C, or a diagnostic of 100 MB (of which only the head is kept). It is gone too when this
process is killed: a guard outlives it just long enough to see to that.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from bot.errors import Interrupted
from bot.system.downloads import fixed_addresses, placed
from bot.system.files import Head, Keeping
from bot.system.guard import SCRIPT, Ended, Guard

_KEPT_VARIABLES = ("PATH", "HOME", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
_SIGNALS = {one.value: one.name for one in signal.Signals}
"""Number → name; most real-time signals have none."""
_POLL_SECONDS = 0.1
_CHUNK_BYTES = 1 << 16
_LONGEST_ANSWER_BYTES = 1 << 28


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a child ended."""

    exit_code: int | None  # None where a signal ended it
    signal: str | None  # the signal's name, None where it exited
    timed_out: bool  # True where the time limit ended it
    # the head of standard output and error together, at most `bot.system.files.LIMIT_BYTES`; of standard error alone
    # where standard output went to a file
    output: str
    cpu_ms: int  # user plus system time, of the child and those it waited for
    # peak resident set, likewise; None where it is not above this process's own, which Linux hands down through exec,
    # so that the kernel's figure says nothing
    peak_rss_kib: int | None

    @property
    def ok(self) -> bool:
        """True for exit code 0."""
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
            raise Interrupted("interrupted", hint="run the same command again: finished cells are in the cache")

    def wait(self, seconds: float) -> None:
        """Let time pass; raises Interrupted as soon as it is set."""
        self._event.wait(seconds)
        self.check()


class Meter:
    """Adds up the CPU time of compiles, by model; may be used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.cpu_ms: dict[str, int] = {}

    def add(self, name: str, cpu_ms: int) -> None:
        """Count one finished compile."""
        with self._lock:
            self.cpu_ms[name] = self.cpu_ms.get(name, 0) + cpu_ms


def scrubbed_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a child may see: where programs are and nothing else; never a token."""
    own = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    return {**own, "LC_ALL": "C", **(extra or {})}


_guard = Guard(
    lambda: subprocess.Popen(
        [sys.executable, "-ISEc", SCRIPT],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=scrubbed_environment(),
        start_new_session=True,
    )
)


def require_none_left() -> None:
    """End whatever was started, by whom it may be; raises StrayProcess where that cannot be ended."""
    _guard.end_all()


def _watch(child: subprocess.Popen[bytes], head: Head, deadline: float, cancel: Cancel) -> Ended | None:
    """Follow the child and its pipe to their end; wait status and usage, or None when the deadline passed."""
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
    inherited: Sequence[int] = (),
    keeping: Keeping = bytes,
) -> Outcome:
    """Run one program to its end; raises OSError where it cannot be started and Interrupted when cancelled.

    Args:
        stdout: a file for the whole of standard output; `output` then holds the head of standard error alone.
        layout: of a compiler's memory, as in `bot.system.downloads`; None: as the system likes.
        inherited: file descriptors that the child gets under the same numbers.
        keeping: chunk after chunk of its output → what to keep of it, before the head is cut; an empty one ends it.
    """
    with open(stdin or os.devnull, "rb") as source, open(stdout, "wb") if stdout else nullcontext() as sink:

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
                    pass_fds=inherited,
                )

        child = _guard.begin(start, alone=bool(inherited))
    pipe = cast("IO[bytes]", child.stdout or child.stderr)
    head, ended = Head(pipe.fileno(), keeping), None
    try:
        ended = _watch(child, head, time.monotonic() + timeout_seconds, cancel)
        if ended is not None:
            head.drain_rest()
    finally:
        timed_out = ended is None
        _, usage = ended or _guard.end(child)
        pipe.close()
        _guard.clear()
    code, own_peak_kib = child.returncode, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Outcome(
        exit_code=code if code >= 0 and not timed_out else None,
        signal=_SIGNALS.get(-code, f"signal {-code}") if code < 0 else None,
        timed_out=timed_out,
        output=bytes(head.kept).decode("utf-8", "replace"),
        cpu_ms=round((usage.ru_utime + usage.ru_stime) * 1000),
        peak_rss_kib=usage.ru_maxrss if usage.ru_maxrss > own_peak_kib else None,
    )


class Worker:
    """A child that answers each line it is sent with one line; started once, ended with `close`."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._lock = threading.Lock()
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

    def ask(self, line: str | None, cancel: Cancel, timeout_seconds: float = 120) -> str | None:
        """The answer to `line` (to nothing: its greeting); None where it died or did not answer in time."""
        with self._lock:
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
            if time.monotonic() > deadline or len(self._pending) > _LONGEST_ANSWER_BYTES:
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
