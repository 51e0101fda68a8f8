"""Keep the head of a child's output, because a diagnostic may have 100 MB."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable

LIMIT_BYTES = 64 * 1024
# After so small a piece the pipe is left to fill for so long
_SMALL_BYTES = 1 << 14
_FILLING_SECONDS = 0.001
# Chunk after chunk of the output → what to keep of it; an empty chunk is its end
Keeping = Callable[[bytes], bytes]


def whole_lines(output: str) -> str:
    """Drop the last line if the limit cut it off.

    The beginning of a line could be read as other words.
    """
    if len(output.encode()) < LIMIT_BYTES:
        return output
    return output.rpartition("\n")[0] or output


class Head:
    """The head of a pipe's output, of the parts that `keeping` leaves."""

    def __init__(self, fd: int, keeping: Keeping) -> None:
        self.fd = fd
        self._keeping = keeping
        self.kept = bytearray()

    def drain(self) -> bool:
        """Read the data that is ready; return False at the end of the stream."""
        chunk = os.read(self.fd, 1 << 16)
        if chunk:
            self._keep(chunk)
            # a compiler that prints its IR writes word by word
            if len(chunk) < _SMALL_BYTES:
                time.sleep(_FILLING_SECONDS)
        return bool(chunk)

    def drain_rest(self) -> None:
        """Read what is left in the pipe after the child ended.

        The amount is bounded, so that a stray grandchild cannot keep us here.
        """
        for _ in range(1024):
            if not select.select([self.fd], [], [], 0)[0] or not self.drain():
                break
        self._keep(b"")

    def _keep(self, chunk: bytes) -> None:
        self.kept += self._keeping(chunk)[: LIMIT_BYTES - len(self.kept)]
