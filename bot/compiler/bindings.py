"""The compiler's own MLIR bindings, in a child process: its IR is parsed by what wrote it."""

from __future__ import annotations

import json
import re
import sys
import tempfile
import threading
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bot.compiler.compiler import Session
from bot.compiler.diagnostics import failure, trim
from bot.compiler.toolchain import Toolchain
from bot.core.planned import Model
from bot.core.policy import here
from bot.core.snapshot import Failure
from bot.system.processes import Cancel, Worker, run

IR_WORKER = Path(__file__).parents[1] / "readers" / "ir_worker" / "ir_worker.py"
"""Run as a script, beside MLIR bindings; never imported here."""


class Bindings:
    """A worker process that reads IR for one side; started on first use, restarted after a crash.

    Attributes:
        reason: why there is none; None where there is.
    """

    def __init__(
        self,
        root: Path | None,
        reason: str,
        cancel: Cancel,
        timeout_seconds: float = 120,
        python: str = sys.executable,
        script: Path | None = None,
    ) -> None:
        self._argv, self._root, self._cancel = [python, "-E", "-s", str(script or IR_WORKER), str(root)], root, cancel
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
                self._worker = Worker(self._argv)
                greeting = self._worker.ask(None, self._cancel, self._timeout_seconds)
                if greeting is None or greeting.strip() != '{"ready": true}':
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


def working(toolchain: Toolchain, cancel: Cancel) -> Bindings:
    """A worker of the compiler's own bindings."""
    return Bindings(toolchain.bindings, toolchain.no_bindings, cancel, python=toolchain.python)


QUESTIONS = {
    "program": ("1.input", "4.global-optimization", "5.dispatch-creation", "6.flow", "7.stream"),
    "allocas": ("10.executable-targets",),
    "strategies": ("9.executable-configurations",),
}
"""What is asked of the IR of a compile, and of which phases: the ends of their files' names."""


def questions(directory: Path) -> dict[str, dict[str, Path]]:
    """Question → phase, as the IR worker calls it → its file, of those that a compile left in this folder."""
    there: dict[str, dict[str, Path]] = {}
    for question, phases in QUESTIONS.items():
        files = ((phase, min(directory.glob(f"*.{phase}.mlir"), default=None)) for phase in phases)
        there[question] = {phase.partition(".")[2].replace("-", "_"): file for phase, file in files if file}
    return there


# Models as files that the compiler takes on standard input: `.mlir` and `.mlirbc` as they are, `.onnx` imported.


_IMPORTER = "iree.compiler.tools.import_onnx"
_MISSING = here("needs the onnx package: pip install 'code-size-bot[onnx]'")
_MACHINES = re.compile(r"(\w+\.)*(ImportError|ModuleNotFoundError|MemoryError|OSError|\w*(File|Permission)\w*Error)\b")
"""Exceptions of the importer that say nothing of the model."""


@cache
def importer_version(model: Model) -> str:
    """What the import of a model depends on beside the compiler: the package and options; empty for MLIR."""
    if not model.path.endswith(".onnx"):
        return ""
    try:
        return " ".join(("onnx", version("onnx"), *model.import_flags))
    except PackageNotFoundError:
        return "no onnx"


class Importer:
    """Sources of one side's models, and its temporary files."""

    def __init__(self, toolchain: Toolchain, session: Session) -> None:
        self._toolchain, self._session = toolchain, session
        self._imported: dict[str, Path | Failure] = {}
        self._lock = threading.Lock()

    def source(self, model: Model) -> Path | Failure:
        """The file to feed to the compiler; a Failure where the model cannot be imported."""
        path = Path(model.path)
        if path.suffix != ".onnx":
            return path
        with self._lock:
            if model.name not in self._imported:
                self._imported[model.name] = self._import(path, model.import_flags)
            return self._imported[model.name]

    def _import(self, path: Path, flags: Sequence[str]) -> Path | Failure:
        if self._toolchain.bindings is None:
            return Failure("import", f"cannot import ONNX: {self._toolchain.no_bindings}")
        output = Path(tempfile.mkdtemp(prefix="onnx-", dir=self._session.scratch)) / f"{path.stem}.mlir"
        outcome = run(
            [self._toolchain.python, "-m", _IMPORTER, str(path), *flags, "-o", str(output)],
            cancel=self._session.cancel,
            cwd=output.parent,
            environment={"PYTHONPATH": str(self._toolchain.bindings), "PYTHONDONTWRITEBYTECODE": "1"},
            timeout_seconds=self._session.timeout_seconds,
        )
        if outcome.ok and output.is_file():
            return output
        if "No module named 'onnx'" in outcome.output or "iree-import-onnx requires" in outcome.output:
            python = self._toolchain.python
            missing = _MISSING if python == sys.executable else here(f"needs the onnx package: {python} has none")
            return Failure("import", missing, outcome.exit_code)
        if "Traceback (most recent call last)" in outcome.output:  # the importer's last word is the one that counts
            last = outcome.output.rstrip().splitlines()[-1]
            message = trim(f"not imported: {last}")
            message = here(message) if _MACHINES.match(last) else message
            return Failure("import", message, outcome.exit_code, outcome.signal)
        return failure(outcome, self._session.timeout_seconds, "import")
