"""Ask a compiler which options it understands, and by which names.

All of it is asked with one trivial module, some 50 ms a question. Some options have
other names in other releases. As the compiler itself is asked which of two names it
knows, nightly builds and forks are right too. From 3.5.0 to 3.13.0 all other options of
the default configuration have one name.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bot.compiler.diagnostics import unknown_option
from bot.compiler.toolchain import UNTHREADED, Toolchain
from bot.errors import CompilerUnavailable
from bot.system.cancel import Cancel
from bot.system.processes import Outcome, run

TRIVIAL = """module {
  func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = arith.addf %a, %a : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""
# Each leaves a file in the compile's own directory and no trace in the artifact. Whole
# compiles fill the cores, so that threads inside one only cost.
MEASURING_OPTIONS = (
    UNTHREADED,
    "--dump-compilation-phases-to=phases",
    "--stack-usage-file=stack-usage.txt",
    "--iree-llvmcpu-keep-linker-artifacts",
    "--iree-scheduling-dump-statistics-format=json",
    "--iree-scheduling-dump-statistics-file=statistics.json",
)
RENAMED = "--iree-hip-", "--iree-rocm-"
"""Beginnings of the options of rocm: up to 3.10.0, and from 3.12.0 on.

3.11.0 knows both.
"""


def other_name(flag: str) -> str:
    """Return the flag as releases before or after the renaming call it.

    If the names do not differ, it is the flag itself.
    """
    old, new = RENAMED
    if flag.startswith(old):
        return flag.replace(old, new, 1)
    return flag.replace(new, old, 1)


def unknown_option_of(
    toolchain: Toolchain, flags: Sequence[str], scratch: Path, cancel: Cancel
) -> str | None:
    """Return the first of the flags' options that the compiler does not know.

    Raises CompilerUnavailable.
    """
    outcome = _compile_input(toolchain, argv=flags, scratch=scratch, cancel=cancel)
    if outcome.ok:
        return None
    return unknown_option(outcome.output)


def known_measuring_options(
    toolchain: Toolchain, scratch: Path, cancel: Cancel
) -> tuple[str, ...]:
    """Return the MEASURING_OPTIONS that this compiler knows.

    Raises CompilerUnavailable if it cannot start at all.
    """
    options = list(MEASURING_OPTIONS)
    while True:
        outcome = _compile_input(
            toolchain, argv=options, scratch=scratch, cancel=cancel
        )
        if outcome.ok:
            unknown = None
        else:
            unknown = unknown_option(outcome.output)
        remaining = []
        for option in options:
            if option.partition("=")[0] != unknown:
                remaining.append(option)
        if outcome.ok or len(remaining) == len(options):
            break
        options = remaining
    if not outcome.ok:
        lines = outcome.output.strip().splitlines()[:1] or [
            f"exit code {outcome.exit_code}"
        ]
        raise CompilerUnavailable(
            f"cannot compile a trivial module: {lines[0][:200]}",
            where=toolchain.info.spec,
        )
    return tuple(options)


def _compile_input(
    toolchain: Toolchain, argv: Sequence[str], scratch: Path, cancel: Cancel
) -> Outcome:
    source = scratch / "trivial.mlir"
    source.write_text(TRIVIAL, encoding="utf-8")
    command = [
        str(toolchain.binary),
        "-",
        *argv,
        "--compile-to=input",
        "-o",
        str(scratch / "trivial.input"),
    ]
    outcome = run(
        command,
        cancel=cancel,
        stdin=source,
        cwd=scratch,
        timeout_seconds=toolchain.patience_seconds,
    )
    if outcome.timed_out:
        problem = (
            "cannot compile a trivial module: not finished after"
            f" {toolchain.patience_seconds:g} s"
        )
        raise CompilerUnavailable(problem, where=toolchain.info.spec)
    return outcome
