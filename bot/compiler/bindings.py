"""Run the compiler's own MLIR bindings in child processes.

The IR is parsed by the program that wrote it.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

from bot.compiler.toolchain import Toolchain
from bot.core.this_machine import here
from bot.system.cancel import Cancel
from bot.system.worker import Worker

IR_WORKER = Path(__file__).parents[1] / "readers" / "ir_worker" / "ir_worker.py"
"""The script that runs beside MLIR bindings; it is never imported here."""


class Bindings:
    """The processes that read IR for one side.

    Each answers one question at a time. One is started when a question comes and all
    others are busy, or after a crash.

    Attributes:
        reason: why there are no processes; None if there are some.
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
            # The worker reads the byte code of Python itself, as its start takes twice as
            # long without. It reads none beside the bindings: see `_bindings` there.
            "-B",
            str(script or IR_WORKER),
            str(root),
        ]
        self._root = root
        self._cancel = cancel
        self._timeout_seconds = timeout_seconds
        self.reason = reason if root is None else None
        self._idle: list[Worker] = []
        self._lock = threading.Lock()

    def ask(self, operation: str, **fields: object) -> str | None:
        """Return a worker's answer as JSON text (`{"error": …}` included).

        None if there are no bindings.
        """
        if self._root is None:
            return None
        request = json.dumps({"op": operation, **fields})
        worker = self._idle_worker() or self._started_worker()
        if worker is None:
            return _error(self.reason or "")
        answer = self._answer(worker, request)
        if answer is None:
            return _error(here("the IR reader ended without an answer"))
        # The worker that was used last is used next: it knows the programs that other
        # targets have, too.
        with self._lock:
            self._idle.append(worker)
        return answer

    def _idle_worker(self) -> Worker | None:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            return None

    def _started_worker(self) -> Worker | None:
        """Start a worker; return None if it cannot load the bindings."""
        worker = Worker(self._argv)
        greeting = self._answer(worker, None)
        if greeting is not None and greeting.strip() == '{"ready": true}':
            return worker
        worker.close()
        self._root = None
        self.reason = here("this compiler's MLIR bindings cannot be loaded")
        return None

    def _answer(self, worker: Worker, request: str | None) -> str | None:
        """Return the worker's answer; without one, or if interrupted, end the worker."""
        answer = None
        try:
            answer = worker.ask(request, self._cancel, self._timeout_seconds)
        finally:
            if answer is None:
                worker.close()
        return answer

    def close(self) -> None:
        """End the workers."""
        with self._lock:
            while self._idle:
                self._idle.pop().close()


def _error(reason: str) -> str:
    return json.dumps({"error": reason})


def working(toolchain: Toolchain, cancel: Cancel) -> Bindings:
    """Return the workers of the compiler's own bindings."""
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
"""Question about the IR of a compile → the phases that it needs.

Phases are named by the ends of their files' names.
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
