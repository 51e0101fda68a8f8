"""How the machine, and not the compiler, ends a compile: no room, no memory, a program that cannot be started."""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bot.core.policy import RAN_OUT, here
from bot.errors import CompilerUnavailable
from bot.system.files import no_room
from bot.system.processes import Outcome

_LEAST_FREE_BYTES = 1 << 20
"""With less than this, a compile that went well may have left half a file."""
_NO_ROOM = re.compile(r"No space left on device|Disk quota exceeded", re.IGNORECASE)
_NOT_STARTED = re.compile(r"error while loading shared libraries: (.{1,200})")
_INCOMPLETE = "check that its files are complete"
_KIND = re.compile(r"(model name|flags|Features|CPU part|isa|uarch)\s*:")
_NO_MEMORY = re.compile(r"out of memory|std::bad_alloc|Cannot allocate memory", re.IGNORECASE)
_GROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_OTHERS = re.compile(
    r"Too many open files|Read-only file system"
    r"|Resource temporarily unavailable|Input/output error|Stale file handle|Permission denied",
    re.IGNORECASE,
)


def require_room(outcome: Outcome, directory: Path) -> None:
    """Refuse what was made in a directory that is full, whether the compiler noticed or not; raises OutputError."""
    stat = os.statvfs(directory)
    free_blocks = stat.f_bavail if os.geteuid() else stat.f_bfree
    is_full = stat.f_blocks and free_blocks * stat.f_frsize < _LEAST_FREE_BYTES  # some do not say how large they are
    if is_full or (not outcome.ok and _NO_ROOM.search(outcome.output)):
        raise no_room(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), tempfile.gettempdir())


def require_started(outcome: Outcome, spec: str) -> None:
    """Refuse a compiler that the loader did not start; raises CompilerUnavailable."""
    if outcome.exit_code == 127 and (match := _NOT_STARTED.search(outcome.output)):
        raise CompilerUnavailable(f"cannot be started: {match[1]}", where=spec, hint=_INCOMPLETE)


def not_started(error: OSError, binary: Path, spec: str) -> Exception:
    """The error of a compiler that the kernel did not start; of anything else, the error itself."""
    if error.filename != str(binary):
        return error
    return CompilerUnavailable(f"cannot be started: {error.strerror}", where=spec, hint=_INCOMPLETE)


def processor(argv: Sequence[str]) -> str:
    """What flags that ask for the code of this very processor depend on; empty where none does."""
    if not any(flag.endswith("=host") for flag in argv):
        return ""
    try:
        said = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        said = ""
    kinds = {line.partition(":")[2].strip() for line in said.splitlines() if _KIND.match(line)}
    return "\n".join((platform.machine(), platform.processor(), *sorted(kinds)))


def blamed(message: str, ending: Outcome) -> str:
    """The message of a failure, marked where it is the machine that refused, and with the memory where that ran out.

    A compiler that says that it got no memory while it holds little asked for far too much at once, as LLVM does where
    it has a size wrong: that is its own crash, and is told as that.
    """
    if words := _memory_words(ending):
        return here(f"{words}: {message}")
    return here(message) if _OTHERS.search(ending.output) else message


def _memory_words(ending: Outcome) -> str:
    """That memory ran out, and how much there was; empty where nothing says so.

    The kernel ends the largest process of a machine that is out of memory with SIGKILL, and tells it nothing.
    """
    has_said, total_kib = bool(_NO_MEMORY.search(ending.output)), memory_kib()
    is_full = ending.peak_rss_kib is not None and 2 * ending.peak_rss_kib >= (total_kib or 0)
    if not (is_full if has_said else ending.signal == "SIGKILL"):
        return ""
    certain = RAN_OUT if has_said else f"{RAN_OUT}, most likely"
    held = f"the compiler held {_size(ending.peak_rss_kib)}" if ending.peak_rss_kib else ""
    has = f"this machine has {_size(total_kib)}" if total_kib else ""
    amounts = ", ".join(part for part in (held, has) if part)
    return f"{certain} ({amounts})" if amounts else certain


def memory_kib() -> int | None:
    """What compiles may use at most: the machine's memory, or less where its control group has a limit."""
    limits: list[int] = []
    for path in _GROUP_LIMITS:
        with contextlib.suppress(OSError, ValueError):  # `max`, or no such control group
            limits.append(int(Path(path).read_text(encoding="ascii")))
    with contextlib.suppress(OSError, ValueError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min((limit for limit in limits if limit), default=0) // 1024 or None


def _size(kib: int) -> str:
    return f"{kib / (1 << 20):.1f} GiB" if kib >= 1 << 20 else f"{kib / 1024:.0f} MiB"
