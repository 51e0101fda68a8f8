"""What a compiler says when it refuses: the first diagnostics, without the IR it dumps behind them."""

from __future__ import annotations

import re

from bot.compiler.machine import blamed
from bot.core.snapshot import Failure
from bot.system.processes import Outcome

MOST_LINES = 12
MOST_CHARACTERS = 1500
LONGEST_LINE = 240
_LONGEST_PENDING = 1 << 20

_DIAGNOSTIC = re.compile(r"^\S.*?: ?(?:error|warning|note|remark): |^LLVM ERROR|^iree-compile: |^error: ")
_DUMP = "see current operation:"
_REMARK = re.compile(r"^\S.*?: ?remark: ")
"""Never says why a compile failed; what follows it is indented and belongs to it."""
_PLACED = re.compile(r"\A\S.*?:\d+:\d+: (?:error: )?")
_NOISE = "note: called from"
_CRASH = re.compile(r"^(PLEASE submit a bug report|Please report issues to|Stack dump|\s*#\d+ 0x|Aborted)")
_DIRECTORIES = re.compile(r"(?<![\w.</])/(?:[^\s/:'\"]+/)+")
_RANDOM_NAME = re.compile(r"(?<=\w)-[0-9a-f]{6}(?=\.(?:o|so|obj|dll|dylib|wasm)\b)")
_UNKNOWN_OPTION = re.compile(r"Unknown command line argument '(--?[^'=\s]+)")
_STACK = re.compile(r"exceeded stack allocation limit of (\d+) bytes for function\. Got (\d+) bytes")
_SHARED = re.compile(r"uses (\d+) bytes of shared memory; exceeded the limit of (\d+)")


def unknown_option(output: str) -> str | None:
    """The option that the compiler does not know, if that is what it says."""
    match = _UNKNOWN_OPTION.search(output)
    return match[1] if match else None


def reason(message: str) -> str:
    """The first error of a message, or its first line, without place (`<stdin>:12:3: error: `) and operation."""
    lines = message.strip().splitlines() or [""]
    said = next((line for line in lines if "error: " in line), lines[0])
    return _PLACED.sub("", said).partition(": %")[0]


def stack_figure_bytes(output: str) -> int | None:
    """The compiler's own figure where its stack gate refused: the largest of those it gives."""
    return max((int(match[2]) for match in _STACK.finditer(output)), default=None)


def trim(output: str) -> str:
    """The first diagnostics: no IR, no crash traces, no directories and random file names, no line twice."""
    shown: list[str] = []
    dumping = False
    for line in output.splitlines():
        if _CRASH.match(line) or len(shown) >= MOST_LINES:
            break
        dumping = dumping and not _DIAGNOSTIC.match(line)
        if _DUMP in line or _REMARK.match(line):
            dumping = True
        elif not dumping and line.strip() and not line.endswith(_NOISE):
            short = _RANDOM_NAME.sub("", _DIRECTORIES.sub("", line.rstrip()))
            short = short if len(short) <= LONGEST_LINE else f"{short[: LONGEST_LINE - 1]}…"
            shown += [short] if short not in shown else []
    return "\n".join(shown)[:MOST_CHARACTERS]


class Undumped:
    """A compiler's output as it comes, without the IR behind `see current operation:`, which can be megabytes."""

    def __init__(self) -> None:
        self._dumping = False
        self._pending = b""

    def __call__(self, chunk: bytes) -> bytes:
        """What to keep of all lines that this chunk ends; an empty one is the end of the output."""
        *lines, self._pending = (self._pending + chunk).splitlines(keepends=True) or [b""]
        if not chunk or self._pending.endswith(b"\n") or len(self._pending) > _LONGEST_PENDING:
            lines.append(self._pending)
            self._pending = b""
        return b"".join(line for line in lines if self._is_kept(line))

    def _is_kept(self, line: bytes) -> bool:
        if self._dumping and line[:1].isspace():
            return False
        text = line.decode("utf-8", "replace")
        self._dumping = _DUMP in text or (self._dumping and not _DIAGNOSTIC.match(text) and not _CRASH.match(text))
        return not self._dumping or _DUMP in text


def failure(ending: Outcome, timeout_seconds: float, stage: str = "compile") -> Failure:
    """What a reader is told of a compile that ended badly; never without a message."""
    if ending.timed_out:
        return Failure("timeout", f"not finished after {timeout_seconds:g} s")
    if option := unknown_option(ending.output):
        return Failure("option", f"this compiler does not know the option {option}", ending.exit_code)
    message = trim(ending.output)
    if ending.signal:
        message = f"ended by {ending.signal}" + (f"\n{message}" if message else "")
    message = message or f"exit code {ending.exit_code} without a message"
    shared = _SHARED.search(ending.output)
    return Failure(
        stage=stage,
        message=blamed(message, ending),
        exit_code=ending.exit_code,
        signal=ending.signal,
        figure_bytes=int(shared[1]) if shared else stack_figure_bytes(ending.output),
    )


_PARENTHESES = re.compile(r'"(?:[^"\\]|\\.)*"|[()]')
_PLACE = " loc("


def without_places(text: str) -> str:
    """IR or a diagnostic without its source locations, `loc(…)`, whatever stands in them; one cut off ends the text."""
    parts, at = [], 0
    while (start := text.find(_PLACE, at)) >= 0:
        parts.append(text[at:start])
        depth, at = 0, len(text)
        for match in _PARENTHESES.finditer(text, start + len(_PLACE) - 1):
            depth += {"(": 1, ")": -1}.get(match[0], 0)
            if depth == 0:
                at = match.end()
                break
    parts.append(text[at:])
    return "\n".join(line for line in "".join(parts).split("\n") if not line.startswith("#loc"))
