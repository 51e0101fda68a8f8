"""Remember answers about a program, so that it is read once for all targets.

The phases of one model are nearly the same text for each target. Only the lines that
define its devices differ, and no answer depends on these lines.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .ir_walk import Answer

Question = Callable[[Any, Any], Answer]
"""Gets the bindings and a module, and answers from these alone."""

# An answer about the sources of a large program has a few hundred KiB.
MOST_REMEMBERED = 100

_DEVICES = re.compile(
    rb"^(?:#(?:executable|device)_target_\w+ = .*"
    rb"|  util\.global private @__device_\d+ = #device_target_\w+(?: loc\(.*\))?)\n",
    re.MULTILINE,
)
_NAME_OF_DEVICE = re.compile(rb"#(?:executable|device)_target_")


class Answers:
    """Answers about the IR in files, each remembered by question and text."""

    def __init__(self, ir: Any, parse: Callable[[bytes], Any]) -> None:
        self._ir = ir
        self._parse = parse
        self._remembered: dict[tuple[str, bytes], Answer] = {}

    def about(self, path: str, question: Question) -> Answer:
        """Return the answer to a question about the module in a file."""
        text = Path(path).read_bytes()
        digest = hashlib.sha256(without_devices(text)).digest()
        key = (question.__name__, digest)
        answer = self._remembered.pop(key, None)
        if answer is None:
            answer = question(self._ir, self._parse(text))
        # Evict the least recently used answer.
        self._remembered[key] = answer
        if len(self._remembered) > MOST_REMEMBERED:
            oldest = next(iter(self._remembered))
            del self._remembered[oldest]
        return answer


def without_devices(text: bytes) -> bytes:
    """Return the text of a program without the lines that define its devices.

    If any other line names one of these, the text is returned as it is. Otherwise
    two programs with equal other lines could mean different things.
    """
    others = _DEVICES.sub(b"", text)
    if _NAME_OF_DEVICE.search(others):
        return text
    return others
