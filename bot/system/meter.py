"""Add up the CPU time of compiles."""

from __future__ import annotations

import threading


class Meter:
    """Adds up the CPU time of compiles, by model. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.cpu_ms: dict[str, int] = {}

    def add(self, name: str, cpu_ms: int) -> None:
        """Count one finished compile."""
        with self._lock:
            self.cpu_ms[name] = self.cpu_ms.get(name, 0) + cpu_ms
