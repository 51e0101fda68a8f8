"""The compiler's own MLIR bindings, in a child process: its IR is parsed by what wrote it."""

from __future__ import annotations

import json
import re
import sys
import tempfile
import threading
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bot.compiler.diagnostics import failure, trim
from bot.compiler.toolchain import Toolchain
from bot.core.planned import Model
from bot.core.policy import here
from bot.core.snapshot import UNFETCHED, Failure
from bot.system.processes import Cancel, Worker, run


class Bindings:
    """A worker process that reads IR for one side; started on first use, restarted after a crash.

    Attributes:
        reason: why there is none; None where there is.
    """

    def __init__(
        self, script: Path, root: Path | None, reason: str, cancel: Cancel, timeout_seconds: float = 120
    ) -> None:
        self._script, self._root, self._cancel = script, root, cancel
        self._timeout_seconds = timeout_seconds
        self.reason = reason if root is None else None
        self._worker: Worker | None = None
        self._lock = threading.Lock()

    def ask(self, operation: str, **fields: object) -> str | None:
        """The worker's answer as JSON text (`{"error": …}` included); None where there are no bindings."""
        if self._root is None:
            return None
        request = json.dumps({"op": operation, **fields})
        with self._lock:
            if self._worker is None:
                self._worker = Worker([sys.executable, "-E", "-s", str(self._script), str(self._root)])
                greeting = self._worker.ask(None, self._cancel, self._timeout_seconds)
                if greeting is None or "ready" not in greeting:
                    self.close()
                    self._root, self.reason = None, here("this compiler's MLIR bindings cannot be loaded")
            answer = self._worker.ask(request, self._cancel, self._timeout_seconds) if self._worker else None
            if answer is None:
                self.close()
                return json.dumps({"error": self.reason or here("the IR reader ended without an answer")})
            return answer

    def close(self) -> None:
        """End the worker, if there is one."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None


# Models as files that the compiler takes on standard input: `.mlir` and `.mlirbc` as they are, `.onnx` imported.


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
