"""Start a worker: a child that answers each line with one line."""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Sequence
from typing import IO, cast

from bot.system.cancel import Cancel
from bot.system.guard import GUARD
from bot.system.starting import DEVNULL, PIPE, start_child

_POLL_SECONDS = 0.1
_CHUNK_BYTES = 1 << 16
_LONGEST_ANSWER_BYTES = 1 << 28


class Worker:
    """A child that answers each line with one line, for one thread at a time.

    `close` ends it.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        self._child = GUARD.begin(
            lambda: start_child(
                argv,
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                umask=0o022,  # it leaves byte code beside the compiler, which others may share
            )
        )
        self._pending = bytearray()

    def ask(
        self, line: str | None, cancel: Cancel, timeout_seconds: float = 120
    ) -> str | None:
        """Return the answer to `line`, or the worker's greeting if `line` is None.

        Returns None if the worker died, or did not read and answer in time.
        """
        deadline = time.monotonic() + timeout_seconds
        try:
            if line is not None:
                self._send(line.encode() + b"\n", cancel, deadline)
            return self._read_line(cancel, deadline)
        except (OSError, ValueError):
            return None

    def _send(self, request: bytes, cancel: Cancel, deadline: float) -> None:
        """Write a request; raise TimeoutError if the worker does not read it in time."""
        fd = cast("IO[bytes]", self._child.stdin).fileno()
        os.set_blocking(fd, False)
        unsent = memoryview(request)
        while unsent:
            cancel.check()
            if time.monotonic() > deadline:
                self.close()
                raise TimeoutError
            if select.select([], [fd], [], _POLL_SECONDS)[1]:
                written = os.write(fd, unsent[:_CHUNK_BYTES])
                unsent = unsent[written:]

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
            GUARD.end(self._child)
        GUARD.clear()
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
