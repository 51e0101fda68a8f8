"""Find out what code for the processor of this machine depends on."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from pathlib import Path

_KIND = re.compile(r"(model name|flags|Features|CPU part|isa|uarch)\s*:")


def processor(argv: Sequence[str]) -> str:
    """Return what code for this very processor depends on.

    Empty if no flag asks for such code.
    """
    if not any(flag.endswith("=host") for flag in argv):
        return ""
    kinds = set()
    for line in cpuinfo().splitlines():
        if _KIND.match(line):
            kinds.add(line.partition(":")[2].strip())
    return "\n".join((platform.machine(), platform.processor(), *sorted(kinds)))


def cpuinfo() -> str:
    """Return the kernel's description of the processors; empty if there is none."""
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
