"""Turn models into files that the compiler takes on standard input.

`.mlir` and `.mlirbc` stay as they are, `.onnx` is imported.
"""

from __future__ import annotations

import re
import sys
import tempfile
import threading
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from msgspec.structs import replace

from bot.compiler.bindings_python import NO_BYTE_CODE
from bot.compiler.compiler import Session
from bot.compiler.diagnostics import failure, trim
from bot.compiler.toolchain import Toolchain
from bot.core.planned import Model, PlannedCell
from bot.core.snapshot import Failure
from bot.core.this_machine import here
from bot.system.processes import run

_IMPORTER = "iree.compiler.tools.import_onnx"
_LFS_POINTER = (  # The beginning of what Git has in place of the file
    b"version https://git-lfs.github.com/spec/"
)
_MISSING = here("needs the onnx package: pip install 'code-size-bot[onnx]'")
_MACHINES = re.compile(
    r"(\w+\.)*(ImportError|ModuleNotFoundError|MemoryError|OSError|\w*(File|Permission)\w*Error)\b"
)
"""Exceptions of the importer that blame the machine, not the model."""


@cache
def importer_version(model: Model) -> str:
    """Return what the import of a model by this Python depends on beside the compiler.

    It is the version of the package onnx, and the options; empty for MLIR.
    """
    if not model.path.endswith(".onnx"):
        return ""
    try:
        package = version("onnx")
    except PackageNotFoundError:
        package = "none"
    return " ".join(("onnx", package, *model.import_flags))


def with_known_importer(
    cells: Sequence[PlannedCell], python: str | None
) -> tuple[PlannedCell, ...]:
    """Return the builds; those that another Python imports are not cached.

    That Python has a package onnx of its own, of which the key of a build has no version.
    """
    result = []
    for cell in cells:
        if python != sys.executable and cell.model.path.endswith(".onnx"):
            reason = f"{python or 'another Python'} has an onnx package of its own"
            result.append(replace(cell, unlisted=cell.unlisted or reason))
        else:
            result.append(cell)
    return tuple(result)


def lfs_pointer(path: Path) -> Failure | None:
    """Return why a model whose file is only a Git LFS pointer is not compiled."""
    with open(path, "rb") as file:
        if file.read(len(_LFS_POINTER)) != _LFS_POINTER:
            return None
    hint = "run `git lfs pull`, or give actions/checkout `lfs: true`"
    return Failure("import", f"the file is a Git LFS pointer, not the model: {hint}")


class Importer:
    """Imports the models of one side, and keeps temporary files."""

    def __init__(self, toolchain: Toolchain, session: Session) -> None:
        self._toolchain = toolchain
        self._session = session
        self._imported: dict[str, Path | Failure] = {}
        self._lock = threading.Lock()

    def source(self, model: Model) -> Path | Failure:
        """Return the file to feed to the compiler, or a Failure of the import."""
        path = Path(model.path)
        if pointer := lfs_pointer(path):
            return pointer
        if path.suffix != ".onnx":
            return path
        with self._lock:
            if model.name not in self._imported:
                self._imported[model.name] = self._import(path, model.import_argv)
            return self._imported[model.name]

    def _import(self, path: Path, flags: Sequence[str]) -> Path | Failure:
        if self._toolchain.bindings is None:
            return Failure(
                "import", f"cannot import ONNX: {self._toolchain.no_bindings}"
            )
        output = (
            Path(tempfile.mkdtemp(prefix="onnx-", dir=self._session.scratch))
            / f"{path.stem}.mlir"
        )
        outcome = run(
            [
                self._toolchain.python,
                *NO_BYTE_CODE,
                "-m",
                _IMPORTER,
                str(path),
                *flags,
                "-o",
                str(output),
            ],
            cancel=self._session.cancel,
            cwd=output.parent,
            environment={"PYTHONPATH": str(self._toolchain.bindings)},
            timeout_seconds=self._session.timeout_seconds,
        )
        if outcome.ok and output.is_file():
            return output
        if (
            "No module named 'onnx'" in outcome.output
            or "iree-import-onnx requires" in outcome.output
        ):
            python = self._toolchain.python
            if python == sys.executable:
                missing = _MISSING
            else:
                missing = here(f"needs the onnx package: {python} has none")
            return Failure("import", missing, outcome.exit_code)
        # Python prints the exception in the last line.
        if "Traceback (most recent call last)" in outcome.output:
            last = outcome.output.rstrip().splitlines()[-1]
            message = trim(f"not imported: {last}")
            if _MACHINES.match(last):
                message = here(message)
            return Failure(
                stage="import",
                message=message,
                exit_code=outcome.exit_code,
                signal=outcome.signal,
            )
        return failure(outcome, self._session.timeout_seconds, "import")
