"""What one compiler understands: which measuring options, and how it writes each target's device.

All of it is asked with one trivial module, some 50 ms a question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.compiler.diagnostics import unknown_option
from bot.compiler.tools.toolchain import Toolchain
from bot.errors import CompilerUnavailable
from bot.system.processes import Cancel, Outcome, run

TRIVIAL = """module {
  func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = arith.addf %a, %a : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""

UNTHREADED = "--mlir-disable-threading"
# Each leaves a file in the compile's own directory and no trace in the artifact. Whole compiles fill the cores, so
# that threads inside one only cost; locations keep the diagnostics and the resumed compile the same as the direct one.
MEASURING_OPTIONS = (
    UNTHREADED,
    "--dump-compilation-phases-to=phases",
    "--stack-usage-file=stack-usage.txt",
    "--iree-llvmcpu-keep-linker-artifacts",
    "--iree-scheduling-dump-statistics-format=json",
    "--iree-scheduling-dump-statistics-file=statistics.json",
)
RESUME_OPTIONS = ("--compile-to=stream", "--mlir-print-debuginfo")

_DEVICE = re.compile(
    r"^(  util\.global private @__device_0 = )(#hal\.device\.target<.*>)( : !hal\.device(?: loc\(.*\))?)$", re.MULTILINE
)
_TARGET = "#hal.executable.target<"


def device_of(stream_text: str) -> str | None:
    """The device that a module at the end of the stream phase names; None unless exactly one line names a target."""
    found = _DEVICE.findall(stream_text)
    if len(found) != 1 or found[0][1].count(_TARGET) != stream_text.count(_TARGET):
        return None
    return str(found[0][1])


def with_device(stream_text: str, device: str) -> str:
    """The module with another target's device in that line."""
    return _DEVICE.sub(lambda match: f"{match[1]}{device}{match[3]}", stream_text, count=1)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the compiler made of one set of flags: the device it names, or the option it does not know."""

    device: str | None = None
    unknown: str | None = None


def ask_device(toolchain: Toolchain, argv: Sequence[str], scratch: Path, cancel: Cancel) -> Answer:
    """Compile the trivial module for one target up to the stream phase."""
    source, output = scratch / "trivial.mlir", scratch / "trivial.stream.mlir"
    source.write_text(TRIVIAL, encoding="utf-8")
    output.unlink(missing_ok=True)
    command = [str(toolchain.binary), "-", *argv, *RESUME_OPTIONS, UNTHREADED, "-o", str(output)]
    outcome = run(command, cancel=cancel, stdin=source, cwd=scratch, timeout_seconds=120)
    if not outcome.ok or not output.is_file():
        return Answer(unknown=unknown_option(outcome.output))
    return Answer(device=device_of(output.read_text(encoding="utf-8", errors="replace")))


def knows(toolchain: Toolchain, flag: str, scratch: Path, cancel: Cancel) -> bool:
    """False where the compiler says that it does not know the flag's option."""
    outcome = _compile_input(toolchain, (flag,), scratch, cancel)
    return outcome.ok or unknown_option(outcome.output) is None


def known_measuring_options(toolchain: Toolchain, scratch: Path, cancel: Cancel) -> tuple[str, ...]:
    """Those of MEASURING_OPTIONS that this compiler knows; raises CompilerUnavailable where it cannot start at all."""
    options = list(MEASURING_OPTIONS)
    while True:
        outcome = _compile_input(toolchain, options, scratch, cancel)
        unknown = None if outcome.ok else unknown_option(outcome.output)
        rest = [option for option in options if unknown is None or option.partition("=")[0] != unknown]
        if outcome.ok or len(rest) == len(options):
            break
        options = rest
    if not outcome.ok:
        said = outcome.output.strip().splitlines()[:1] or [f"exit code {outcome.exit_code}"]
        raise CompilerUnavailable(f"cannot compile a trivial module: {said[0][:200]}", where=toolchain.info.spec)
    return tuple(options)


def _compile_input(toolchain: Toolchain, argv: Sequence[str], scratch: Path, cancel: Cancel) -> Outcome:
    source = scratch / "trivial.mlir"
    source.write_text(TRIVIAL, encoding="utf-8")
    command = [str(toolchain.binary), "-", *argv, "--compile-to=input", "-o", str(scratch / "trivial.input")]
    return run(command, cancel=cancel, stdin=source, cwd=scratch, timeout_seconds=120)
