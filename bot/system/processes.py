"""Run a program to its end.

The program leads a process group of its own, sees a scrubbed environment, and is gone
when its call returns, whatever happened: a timeout, Ctrl-C, or a diagnostic of 100 MB
(of which only the head is kept). So is all that it started, as `bot.system.guard`
explains.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from bot.system.cancel import Cancel
from bot.system.guard import GUARD, Ended
from bot.system.memory_layout import fixed_addresses, placed
from bot.system.pipes import Head, Keeping
from bot.system.starting import PIPE, STDOUT, Child, start_child

# Number → name; most real-time signals have none
_SIGNALS = {signal.value: signal.name for signal in signal.Signals}
_POLL_SECONDS = 0.1


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

        def start() -> Child:
            with nullcontext() if layout is None else fixed_addresses():
                return start_child(
                    placed(argv, layout or 0),
                    stdin=source,
                    stdout=sink or PIPE,
                    stderr=PIPE if sink else STDOUT,
                    cwd=cwd,
                    environment=environment,
                )

        child = GUARD.begin(start)
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
        _, usage = ended or GUARD.end(child)
        pipe.close()
        GUARD.clear()
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


def _watch(child: Child, head: Head, deadline: float, cancel: Cancel) -> Ended | None:
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
        if (ended := GUARD.ended(child)) is not None:
            return ended
        if not is_open:
            time.sleep(0.002)
    return None
