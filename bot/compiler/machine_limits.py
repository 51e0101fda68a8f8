"""Recognize a compile that the machine, and not the compiler, ended.

There may be no room or no memory, or a program that cannot be started.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import tempfile
from pathlib import Path

from bot.core.this_machine import RAN_OUT, here
from bot.errors import InputError
from bot.system.files import no_room
from bot.system.processes import Outcome

# With less than this, a compile that went well may have left half a file
_LEAST_FREE_BYTES = 1 << 20
_NO_ROOM = re.compile(r"No space left on device|Disk quota exceeded", re.IGNORECASE)
NO_MEMORY = re.compile(
    r"out of memory|std::bad_alloc|Cannot allocate memory", re.IGNORECASE
)
_GROUP_LIMITS = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)
_OTHERS = re.compile(
    r"Too many open files|Read-only file system"
    r"|Resource temporarily unavailable|Input/output error|Stale file handle|Permission"
    r" denied"
    r"|error while loading shared libraries",
    re.IGNORECASE,
)


def require_room(outcome: Outcome, directory: Path) -> None:
    """Raise an error if a directory is full, whether the compiler noticed or not.

    Raises OutputError if there is no room, and InputError if the compiler removed
    the directory.
    """
    try:
        stat = os.statvfs(directory)
    except FileNotFoundError:
        raise InputError("the compiler removed the folder that it worked in") from None
    free_blocks = stat.f_bavail if os.geteuid() else stat.f_bfree
    # some do not say how large they are
    is_full = stat.f_blocks and free_blocks * stat.f_frsize < _LEAST_FREE_BYTES
    if is_full or (not outcome.ok and _NO_ROOM.search(outcome.output)):
        raise no_room(
            OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), tempfile.gettempdir()
        )


def blamed(message: str, ending: Outcome) -> str:
    """Return the message of a failure, marked if the machine caused it.

    If memory ran out, the message says how much there was. A compiler may report no
    memory while it holds little. Then it asked for far too much at once, as LLVM
    does when it has a size wrong. That is its own crash, and is reported so.
    """
    if memory_text := _memory_words(ending):
        return here(f"{memory_text}: {message}")
    if _OTHERS.search(ending.output):
        return here(message)
    return message


def _memory_words(ending: Outcome) -> str:
    """Return that memory ran out, and how much there was.

    Empty if nothing says so. The kernel ends the largest process of a machine that
    is out of memory with SIGKILL, and gives it no reason.
    """
    has_said = bool(NO_MEMORY.search(ending.output))
    total_kib = memory_kib()
    is_full = ending.peak_rss_kib is not None and 2 * ending.peak_rss_kib >= (
        total_kib or 0
    )
    if not (is_full if has_said else ending.signal == "SIGKILL"):
        return ""
    certain = RAN_OUT if has_said else RAN_OUT_LIKELY
    held_text = ""
    if ending.peak_rss_kib:
        held_text = f"the compiler held {_size(ending.peak_rss_kib)}"
    if total_kib:
        has = f"this machine has {_size(total_kib)}"
    else:
        has = ""
    amounts = ", ".join(part for part in (held_text, has) if part)
    if amounts:
        return f"{certain} ({amounts})"
    return certain


def memory_kib() -> int | None:
    """Return the memory that compiles may use at most.

    It is the machine's, or less if its control group has a limit.
    """
    limits: list[int] = []
    for path in _GROUP_LIMITS:
        # `max`, or no such control group
        with contextlib.suppress(OSError, ValueError):
            limits.append(int(Path(path).read_text(encoding="ascii")))
    with contextlib.suppress(OSError, ValueError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min((limit for limit in limits if limit), default=0) // 1024 or None


def _size(kib: int) -> str:
    if kib >= 1 << 20:
        return f"{kib / (1 << 20):.1f} GiB"
    return f"{kib / 1024:.0f} MiB"


RAN_OUT_LIKELY = f"{RAN_OUT}, most likely"  # What SIGKILL means
