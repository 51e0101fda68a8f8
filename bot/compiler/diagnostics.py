"""Shorten what a compiler prints when it refuses.

The first diagnostics stay, without the IR that it dumps behind them.
"""

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
from bot.core.snapshot import Failure
from bot.errors import InputError
from bot.system.files import no_room
from bot.system.processes import Outcome

MOST_LINES = 12
MOST_CHARACTERS = 1500
LONGEST_LINE = 240
_LONGEST_PENDING = 1 << 20
RAN_OUT_LIKELY = f"{RAN_OUT}, most likely"  # What SIGKILL means

_DIAGNOSTIC = re.compile(
    r"^\S.*?: ?(?:error|warning|note|remark): |^LLVM ERROR|^iree-compile: |^error: "
)
_DUMP = "see current operation:"
_REMARK = re.compile(r"^\S.*?: ?remark: ")
"""Never says why a compile failed; what follows it is indented and belongs to it."""
_PLACED = re.compile(r"\A\S.*?:\d+:\d+: (?:error: )?")
_NOISE = "note: called from"
_LONG_NAME = re.compile(r"'([^']{64})[^']+([^']{32})'")
"""A name in quotation marks.

It is shortened where it would push the figures behind it out of a line.
"""
_CRASH = re.compile(
    r"^(PLEASE submit a bug report|Please report issues to|Stack dump|\s*#\d+"
    r" 0x|Aborted)"
)
DIRECTORIES = re.compile(r"(?<![\w.</])/(?:[^\s/:'\"]+/)+")
_RANDOM_NAME = re.compile(r"(?<=\w)-[0-9a-f]{6}(?=\.(?:o|so|obj|dll|dylib|wasm)\b)")
_UNKNOWN_OPTION = re.compile(r"Unknown command line argument '(--?[^'=\s]+)")
_STACK = re.compile(
    r"exceeded stack allocation limit of (\d+) bytes for function\. Got (\d+) bytes"
)
_SHARED = re.compile(r"uses (\d+) bytes of shared memory; exceeded the limit of (\d+)")


def unknown_option(output: str) -> str | None:
    """Return the option that the compiler does not know, if it says so."""
    match = _UNKNOWN_OPTION.search(output)
    if match:
        return match[1]
    return None


def reason(message: str) -> str:
    """Return the first error of a message, or its first line.

    The place (`<stdin>:12:3: error: `) and the operation are left out.
    """
    lines = message.strip().splitlines() or [""]
    first = next((line for line in lines if "error: " in line), lines[0])
    return _PLACED.sub("", first).partition(": %")[0]


def stack_figure_bytes(output: str) -> int | None:
    """Return the compiler's own figure where its stack gate refused.

    This is the largest of those that it gives.
    """
    return max((int(match[2]) for match in _STACK.finditer(output)), default=None)


def trim(output: str) -> str:
    """Return the first diagnostics.

    There is no IR, no crash trace, no directory or random file name, and no line twice.
    """
    kept_lines: list[str] = []
    dumping = False
    for line in output.splitlines():
        if _CRASH.match(line) or len(kept_lines) >= MOST_LINES:
            break
        dumping = dumping and not _DIAGNOSTIC.match(line)
        if _DUMP in line or _REMARK.match(line):
            dumping = True
        elif not dumping and line.strip() and not line.endswith(_NOISE):
            short = _RANDOM_NAME.sub("", DIRECTORIES.sub("", line.rstrip()))
            if len(short) > LONGEST_LINE:
                short = _LONG_NAME.sub(r"'\1…\2'", short)
            if len(short) > LONGEST_LINE:
                short = f"{short[: LONGEST_LINE - 1]}…"
            if short not in kept_lines:
                kept_lines.append(short)
    return "\n".join(kept_lines)[:MOST_CHARACTERS]


class Undumped:
    """A compiler's output as it comes, without the IR behind an error.

    The IR follows `see current operation:`, and can be megabytes.
    """

    def __init__(self) -> None:
        self._dumping = False
        self._pending = b""

    def __call__(self, chunk: bytes) -> bytes:
        """Return what to keep of all lines that this chunk ends.

        An empty chunk is the end of the output.
        """
        *lines, self._pending = (self._pending + chunk).splitlines(keepends=True) or [
            b""
        ]
        if (
            not chunk
            or self._pending.endswith(b"\n")
            or len(self._pending) > _LONGEST_PENDING
        ):
            lines.append(self._pending)
            self._pending = b""
        return b"".join(line for line in lines if self._is_kept(line))

    def _is_kept(self, line: bytes) -> bool:
        if self._dumping and line[:1].isspace():
            return False
        text = line.decode("utf-8", "replace")
        self._dumping = _DUMP in text or (
            self._dumping and not _DIAGNOSTIC.match(text) and not _CRASH.match(text)
        )
        return not self._dumping or _DUMP in text


def failure(ending: Outcome, timeout_seconds: float, stage: str = "compile") -> Failure:
    """Return the failure of a compile that ended badly.

    It always has a message.
    """
    if ending.timed_out:
        return Failure("timeout", f"not finished after {timeout_seconds:g} s")
    if option := unknown_option(ending.output):
        return Failure(
            "option",
            f"this compiler does not know the option {option}",
            ending.exit_code,
        )
    message = trim(ending.output)
    if ending.signal:
        message = f"ended by {ending.signal}" + (f"\n{message}" if message else "")
    message = message or f"exit code {ending.exit_code} without a message"
    shared_bytes = max(
        (int(match[1]) for match in _SHARED.finditer(ending.output)), default=None
    )
    return Failure(
        stage=stage,
        message=blamed(message, ending),
        exit_code=ending.exit_code,
        signal=ending.signal,
        figure_bytes=(
            stack_figure_bytes(ending.output) if shared_bytes is None else shared_bytes
        ),
    )


_PARENTHESES = re.compile(r'"(?:[^"\\]|\\.)*"|[()]')
_PLACE = " loc("


def without_places(text: str) -> str:
    """Return IR or a diagnostic without its source locations, `loc(…)`.

    A location that is cut off ends the text.
    """
    parts = []
    offset = 0
    while (start := text.find(_PLACE, offset)) >= 0:
        parts.append(text[offset:start])
        depth = 0
        offset = len(text)
        for match in _PARENTHESES.finditer(text, start + len(_PLACE) - 1):
            depth += {"(": 1, ")": -1}.get(match[0], 0)
            if depth == 0:
                offset = match.end()
                break
    parts.append(text[offset:])
    return "\n".join(
        line for line in "".join(parts).split("\n") if not line.startswith("#loc")
    )


# How the machine, and not the compiler, ends a compile: no room, no memory, a program
# that cannot be started.


# With less than this, a compile that went well may have left half a file
_LEAST_FREE_BYTES = 1 << 20
_NO_ROOM = re.compile(r"No space left on device|Disk quota exceeded", re.IGNORECASE)
_KIND = re.compile(r"(model name|flags|Features|CPU part|isa|uarch)\s*:")
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
    """Refuse what was made in a directory that is full.

    It is refused whether the compiler noticed or not.

    Raises:
        OutputError: there is no room.
        InputError: the compiler removed the directory.
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


def processor(argv: Sequence[str]) -> str:
    """Return what flags for the code of this very processor depend on.

    Empty where no flag asks for such code.
    """
    if not any(flag.endswith("=host") for flag in argv):
        return ""
    kinds = {
        line.partition(":")[2].strip()
        for line in cpuinfo().splitlines()
        if _KIND.match(line)
    }
    return "\n".join((platform.machine(), platform.processor(), *sorted(kinds)))


def cpuinfo() -> str:
    """Return what the kernel says of the processors; empty for nothing."""
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def blamed(message: str, ending: Outcome) -> str:
    """Return the message of a failure, marked where the machine refused.

    It has the memory where that ran out. A compiler that reports no memory while it
    holds little asked for far too much at once, as LLVM does where it has a size wrong:
    that is its own crash, and is reported so.
    """
    if memory_text := _memory_words(ending):
        return here(f"{memory_text}: {message}")
    if _OTHERS.search(ending.output):
        return here(message)
    return message


def _memory_words(ending: Outcome) -> str:
    """Return that memory ran out, and how much there was.

    Empty where nothing says so.

    The kernel ends the largest process of a machine that is out of memory with SIGKILL,
    and tells it nothing.
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

    It is the machine's, or less where its control group has a limit.
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
