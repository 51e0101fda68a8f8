"""Choose the addresses of a compiler's memory.

Its output may depend on them, and Linux chooses them anew for every process.

If the kernel allows it, compiles run without that randomness, so that the same command
gives the same artifact in every run. A container's default seccomp profile does not
allow it. A layout other than 0 shows whether the compiler would give another artifact
elsewhere: it moves all libraries, by the room that is left for the stack.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Iterator, Sequence

_ADDR_NO_RANDOMIZE = 0x0040000
"""The personality(2) under which programs of this thread get fixed addresses."""
_ASK = 0xFFFFFFFF
# Above 128 MiB the kernel places libraries below the room for the stack (mmap_base in
# arch/x86/mm/mmap.c of Linux). An odd number of MiB: large libraries are aligned to 2
# MiB, smaller steps move nothing.
_STACK_BYTES = (0, 257 << 20, 513 << 20, 4097 << 20, 769 << 20, 1281 << 20)
LAYOUTS = len(_STACK_BYTES)

_LAUNCHER = """
import os, resource, sys
try:
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    resource.setrlimit(resource.RLIMIT_STACK, (int(sys.argv[1]), hard))
except (OSError, ValueError):
    pass
os.execv(sys.argv[2], sys.argv[2:])
"""


@contextlib.contextmanager
def fixed_addresses() -> Iterator[bool]:
    """Start this thread's children without random addresses.

    Yields whether that works.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
    else:
        libc = None
    before = libc.personality(_ASK) if libc else -1
    if libc is None or before < 0 or libc.personality(before | _ADDR_NO_RANDOMIZE) < 0:
        yield False
        return
    try:
        yield bool(libc.personality(_ASK) & _ADDR_NO_RANDOMIZE)
    finally:
        libc.personality(before)


def placed(argv: Sequence[str], layout: int) -> list[str]:
    """Return the command that runs `argv` with one of LAYOUTS memory layouts.

    0 is the usual one.
    """
    room = _STACK_BYTES[layout % LAYOUTS]
    if room:
        return [sys.executable, "-IS", "-c", _LAUNCHER, str(room), *argv]
    return list(argv)
