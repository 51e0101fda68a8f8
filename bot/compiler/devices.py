"""Find the devices that a model names itself: the compiler then ignores the target."""

from __future__ import annotations

import mmap
import re
from pathlib import Path

_INPUT_PHASE = "*.1.input.mlir"
"""The phase before the compiler adds the devices of its command."""
_DEVICE = re.compile(rb"#hal\.device\.(?:target|alias|ordinal|select|fallback)<")
_TARGET = re.compile(rb'#hal\.executable\.target<"([\w.-]{1,80})", "([\w.-]{1,80})"')
_MOST_TARGETS = 4


def own_devices(phases: Path) -> str | None:
    """Return why a compile is not one of the planned target.

    None if the model names no device. `phases`: the folder of
    `--dump-compilation-phases-to`.
    """
    path = min(phases.glob(_INPUT_PHASE), default=None)
    if path is None or path.stat().st_size == 0:
        return None
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text,
    ):
        if not _DEVICE.search(text):
            return None
        pairs = [b" ".join(match.groups()).decode() for match in _TARGET.finditer(text)]
    named = list(dict.fromkeys(pairs))
    listed = [*named[:_MOST_TARGETS], *(["…"] if len(named) > _MOST_TARGETS else [])]
    whose = f" ({', '.join(listed)})" if listed else ""
    return (
        f"the model names its own devices{whose}, which replace the target: "
        "remove hal.device.targets and device globals"
    )
