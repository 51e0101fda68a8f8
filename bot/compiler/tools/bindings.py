"""The compiler's own MLIR bindings, in a child process: its IR is parsed by what wrote it."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

from bot.core.rules.lasting import here
from bot.system.processes import Cancel, Worker


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
