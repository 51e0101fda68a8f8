"""Shorten what a compiler prints when it refuses.

The first diagnostics stay, without the IR that it dumps behind them.
"""

from __future__ import annotations

import re

from bot.compiler.machine_limits import blamed
from bot.core.snapshot import Failure
from bot.system.processes import Outcome

MOST_LINES = 12
MOST_CHARACTERS = 1500
LONGEST_LINE = 240
_LONGEST_PENDING = 1 << 20

_DIAGNOSTIC = re.compile(
    r"^\S.*?: ?(?:error|warning|note|remark): |^LLVM ERROR|^iree-compile: |^error: "
)
_DUMP = "see current operation:"
_REMARK = re.compile(r"^\S.*?: ?remark: ")
"""A remark, which never says why a compile failed.

Indented lines after it belong to it.
"""
_PLACED = re.compile(r"\A\S.*?:\d+:\d+: (?:error: )?")
_NOISE = "note: called from"
_LONG_NAME = re.compile(r"'([^']{64})[^']+([^']{32})'")
"""A name in quotation marks.

It is shortened if it would push the figures after it out of a line.
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
    """Return the compiler's own figure if its stack gate refused.

    It is the largest of those that it gives.
    """
    return max((int(match[2]) for match in _STACK.finditer(output)), default=None)


def trim(output: str) -> str:
    """Return the first diagnostics.

    IR, crash traces, directories, random file names and repeated lines are left
    out.
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


class WholeLines:
    """Lines of an output that comes in chunks, each once all of it is there."""

    def __init__(self) -> None:
        self._pending = b""

    def ended_by(self, chunk: bytes) -> list[bytes]:
        """Return the lines that this chunk ends; an empty one is the end of the output.

        A line that is too long to be kept is returned in parts.
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
        return lines


class Undumped:
    """A filter for a compiler's output that leaves out the IR after an error.

    The IR follows `see current operation:`, and can be megabytes.
    """

    def __init__(self) -> None:
        self._dumping = False
        self._lines = WholeLines()

    def __call__(self, chunk: bytes) -> bytes:
        """Return what to keep of all lines that this chunk ends.

        An empty chunk is the end of the output.
        """
        lines = self._lines.ended_by(chunk)
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
    lines = "".join(parts).split("\n")
    return "\n".join([line for line in lines if not line.startswith("#loc")])
