"""Write the IR of each executable of a program to a file of its own.

`executables_in` divides a cached program; `executables_at` compiles the model again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from bot.compiler.compiling import CompileInput, CompileSetup, compile_to
from bot.compiler.toolchain import UNTHREADED
from bot.core.snapshot import Failure
from bot.study.compiling_alone import dump_options
from bot.study.foreign_ir import run_tool

_DIVIDING = "--pass-pipeline=builtin.module(iree-hal-dump-executable-sources{path=.})"
_PROGRAM = "program"
_NAMED = re.compile(rb'hal\.executable (?:public |private )?@("?)([^"\s{]+)\1')
_NAME_WITHIN_BYTES = 8192


def executables_in(
    setup: CompileSetup, program: bytes, out: Path
) -> dict[str, Path] | Failure:
    """Divide a program that is at the phase SOURCES; return executable → file.

    Args:
        program: a compile wrote it at the phase `compiling_alone.SOURCES`; it may
            have locations.
        out: an empty directory.
    """
    path = out / _PROGRAM
    path.write_bytes(program)
    failed = run_tool(
        setup,
        name="iree-opt",
        arguments=("-", _DIVIDING, UNTHREADED, "-o", os.devnull),
        directory=out,
        stdin=path,
    )
    return failed or _paths_by_executable(out)


def executables_at(
    setup: CompileSetup,
    argv: Sequence[str],
    source: CompileInput,
    phase: str,
    out: Path,
) -> dict[str, Path] | Failure:
    """Write the IR of a model's executables at a phase; return executable → file.

    Args:
        phase: SOURCES or CONFIGURATIONS.
        out: an empty directory for the files.
    """
    result = compile_to(setup, (*argv, *dump_options(phase, out)), source)
    if isinstance(result, Failure):
        return result
    return _paths_by_executable(out)


def _paths_by_executable(out: Path) -> dict[str, Path]:
    paths = {}
    for path in sorted(out.glob("*.mlir")):
        if path.is_file():  # no pipe, that is
            with path.open("rb") as file:
                name = _NAMED.search(file.read(_NAME_WITHIN_BYTES))
            if name:
                paths[name[2].decode("utf-8", "replace")] = path
    return paths
