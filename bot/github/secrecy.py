"""Hides the secrets of the environment from the programs that this one starts: compilers are not trusted.

A child's own environment is scrubbed, but as the same user, or as root in the action's image, it can read its parent's:
`/proc/<pid>/environ` shows the memory in which the kernel put the environment when the program began, whatever was
deleted from `os.environ` since. So that memory is overwritten. Python has its own copy.
"""

from __future__ import annotations

import contextlib
import ctypes
import re
from collections.abc import Iterator
from pathlib import Path

_SECRET_NAME = re.compile(rb"TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|_KEY$", re.IGNORECASE)
_PASSWORD_IN_URL = re.compile(rb"://[^/@]*@")
_ENVIRONMENT_START, _ENVIRONMENT_END = 50, 51
"""Fields of /proc/self/stat, from 1 (proc_pid_stat(5))."""
_PR_SET_DUMPABLE = 4


def hide_secrets() -> None:
    """Overwrite the secrets in /proc/self/environ, and close this process's memory and files to others of its user.

    Without /proc there is nothing to hide. Call it before anything is spawned.
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        for address, size_bytes in _secrets(*_environment()):
            ctypes.memset(address, 0, size_bytes)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _environment() -> tuple[int, bytes]:
    """Where the kernel put the environment, and what is there."""
    fields = Path("/proc/self/stat").read_bytes().rpartition(b") ")[2].split()  # from the third field on
    start, end = (int(fields[number - 3]) for number in (_ENVIRONMENT_START, _ENVIRONMENT_END))
    return start, ctypes.string_at(start, end - start)


def _secrets(start: int, block: bytes) -> Iterator[tuple[int, int]]:
    """Address and size of each value that is a secret."""
    at = start
    for entry in block.split(b"\0"):
        name, _, value = entry.partition(b"=")
        if _SECRET_NAME.search(name) or _PASSWORD_IN_URL.search(value):
            yield at + len(name) + 1, len(value)
        at += len(entry) + 1
