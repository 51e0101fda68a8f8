"""Hides the secrets of the environment from the programs that this one starts: compilers are not trusted.

A child's own environment is scrubbed, but as the same user, or as root in the action's image, it can read its parent's:
`/proc/<pid>/environ` shows the memory in which the kernel put the environment when the program began, whatever was
deleted from `os.environ` since. So that memory is overwritten. Python has its own copy.
"""

from __future__ import annotations

import contextlib
import ctypes
import re
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
        fields = Path("/proc/self/stat").read_bytes().rpartition(b") ")[2].split()  # from the third field on
        at, end = (int(fields[number - 3]) for number in (_ENVIRONMENT_START, _ENVIRONMENT_END))
        for entry in ctypes.string_at(at, end - at).split(b"\0"):
            name, _, value = entry.partition(b"=")
            if _SECRET_NAME.search(name) or _PASSWORD_IN_URL.search(value):
                ctypes.memset(at + len(name) + 1, 0, len(value))
            at += len(entry) + 1
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
