"""The compiler's own MLIR bindings, in a child process.

The IR is parsed by the program that wrote it.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

from bot.compiler.bindings_python import NO_BYTE_CODE
from bot.compiler.toolchain import Toolchain
from bot.core.this_machine import here
from bot.system.processes import Cancel, Worker

IR_WORKER = Path(__file__).parents[1] / "readers" / "ir_worker" / "ir_worker.py"
"""Run as a script, beside MLIR bindings; never imported here."""


class Bindings:
    """A worker process that reads IR for one side.

    It is started on first use, and restarted after a crash.

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
        self._argv = [
            python,
            "-E",
            "-s",
            *NO_BYTE_CODE,
            str(script or IR_WORKER),
            str(root),
        ]
        self._root = root
        self._cancel = cancel
        self._timeout_seconds = timeout_seconds
        self.reason = reason if root is None else None
        self._worker: Worker | None = None
        self._lock = threading.Lock()

    def ask(self, operation: str, **fields: object) -> str | None:
        """Return the worker's answer as JSON text (`{"error": …}` included).

        None where there are no bindings.
        """
        if self._root is None:
            return None
        request = json.dumps({"op": operation, **fields})
        with self._lock:
            if self._worker is None:
                self._worker = Worker(self._argv)
                greeting = self._worker.ask(None, self._cancel, self._timeout_seconds)
                if greeting is None or greeting.strip() != '{"ready": true}':
                    self.close()
                    self._root = None
                    self.reason = here("this compiler's MLIR bindings cannot be loaded")
            answer = None
            if self._worker:
                answer = self._worker.ask(request, self._cancel, self._timeout_seconds)
            if answer is None:
                self.close()
                return json.dumps(
                    {
                        "error": (
                            self.reason or here("the IR reader ended without an answer")
                        )
                    }
                )
            return answer

    def close(self) -> None:
        """End the worker, if there is one."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None


def working(toolchain: Toolchain, cancel: Cancel) -> Bindings:
    """Return a worker of the compiler's own bindings."""
    return Bindings(
        toolchain.bindings, toolchain.no_bindings, cancel, python=toolchain.python
    )


QUESTIONS = {
    "program": (
        "1.input",
        "4.global-optimization",
        "5.dispatch-creation",
        "6.flow",
        "7.stream",
    ),
    "allocas": ("10.executable-targets",),
    "strategies": ("9.executable-configurations",),
}
"""What is asked of the IR of a compile, and of which phases.

Phases are the ends of their files' names.
"""


def questions(directory: Path) -> dict[str, dict[str, Path]]:
    """Return question → phase → its file, of those that a compile left here.

    A phase is called as the IR worker calls it.
    """
    files_by_question: dict[str, dict[str, Path]] = {}
    for question, phases in QUESTIONS.items():
        files = dict[str, Path]()
        for phase in phases:
            for file in sorted(directory.glob(f"*.{phase}.mlir"))[:1]:
                files[phase.partition(".")[2].replace("-", "_")] = file
        files_by_question[question] = files
    return files_by_question
