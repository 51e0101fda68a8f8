"""Models as files that the compiler takes on standard input: `.mlir` and `.mlirbc` as they are, `.onnx` imported."""

from __future__ import annotations

import re
import sys
import tempfile
import threading
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bot.compiler.diagnostics import failure, trim
from bot.compiler.tools.toolchain import Toolchain
from bot.core.rules.lasting import here
from bot.core.values.planned import Model
from bot.core.values.snapshot import UNFETCHED, Failure
from bot.system.processes import Cancel, run

_IMPORTER = "iree.compiler.tools.import_onnx"
_MISSING = here("needs the onnx package: pip install 'code-size-bot[onnx]'")
_REMOVED = "not fetched: the model was removed from the cache while the run went on (run it again)"
_MACHINES = re.compile(r"(\w+\.)*(ImportError|ModuleNotFoundError|MemoryError|OSError|\w*(File|Permission)\w*Error)\b")
"""Exceptions of the importer that say nothing of the model."""


@cache
def importer_version(model: Model) -> str:
    """What the import of a model depends on beside the compiler: the package's version; empty for MLIR."""
    if not model.path.endswith(".onnx"):
        return ""
    try:
        return f"onnx {version('onnx')}"
    except PackageNotFoundError:
        return "no onnx"


class Importer:
    """Sources of one side's models, and its temporary files."""

    def __init__(self, toolchain: Toolchain, scratch: Path, timeout_seconds: float, cancel: Cancel) -> None:
        self._toolchain, self._scratch, self._timeout_seconds = toolchain, scratch, timeout_seconds
        self._cancel = cancel
        self._imported: dict[str, Path | Failure] = {}
        self._lock = threading.Lock()

    def source(self, model: Model) -> Path | Failure:
        """The file to feed to the compiler; a Failure where the model cannot be imported."""
        path = Path(model.path)
        if model.url and not path.is_file():
            return Failure(UNFETCHED, _REMOVED)
        if path.suffix != ".onnx":
            return path
        with self._lock:
            if model.name not in self._imported:
                self._imported[model.name] = self._import(path)
            return self._imported[model.name]

    def _import(self, path: Path) -> Path | Failure:
        if self._toolchain.bindings is None:
            return Failure("import", f"cannot import ONNX: {self._toolchain.no_bindings}")
        output = Path(tempfile.mkdtemp(prefix="onnx-", dir=self._scratch)) / f"{path.stem}.mlir"
        outcome = run(
            [sys.executable, "-m", _IMPORTER, str(path), "-o", str(output)],
            cancel=self._cancel,
            cwd=output.parent,
            environment={"PYTHONPATH": str(self._toolchain.bindings), "PYTHONDONTWRITEBYTECODE": "1"},
            timeout_seconds=self._timeout_seconds,
        )
        if outcome.ok and output.is_file():
            return output
        if "No module named 'onnx'" in outcome.output or "iree-import-onnx requires" in outcome.output:
            return Failure("import", _MISSING, outcome.exit_code)
        if "Traceback (most recent call last)" in outcome.output:  # the importer's last word is the one that counts
            last = outcome.output.rstrip().splitlines()[-1]
            message = trim(f"not imported: {last}")
            message = here(message) if _MACHINES.match(last) else message
            return Failure("import", message, outcome.exit_code, outcome.signal)
        return failure(outcome, self._timeout_seconds, "import")
