"""Runs tasks on a few threads, the costliest one first.

Long tasks first keeps all cores busy to the end. Results travel through the tasks' own closures, so that the order in
which they complete never shows.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Task:
    """Something to do.

    Attributes:
        cost: only the order matters; the largest goes first.
        name: what to call it while it runs; breaks ties, so that the order is the same in every run.
        run: does it; what it returns says nothing.
    """

    cost: float
    name: str
    run: Callable[[], object]


class Watcher(Protocol):
    """Is told what runs; called from the threads that run it."""

    def started(self, name: str) -> None:
        """A task begins."""

    def ended(self, name: str) -> None:
        """A task has ended."""


class _Queue:
    def __init__(self, tasks: Iterable[Task], watcher: Watcher) -> None:
        self._watcher = watcher
        self._ready = deque(sorted(tasks, key=lambda task: (-task.cost, task.name)))
        self._changed = threading.Condition()
        self._running = 0
        self.error: BaseException | None = None

    def fail(self, error: BaseException) -> None:
        with self._changed:
            self.error = self.error or error

    def wait(self) -> None:
        """Until nothing runs and nothing will (an interrupted `Thread.join` takes a running thread for ended)."""
        with self._changed:
            while self._running or (self._ready and not self.error):
                self._changed.wait(0.2)

    def work(self) -> None:
        while True:
            with self._changed:
                if self.error or not self._ready:
                    return
                self._running += 1
                task = self._ready.popleft()
            try:
                self._watcher.started(task.name)
                try:
                    task.run()
                finally:
                    self._watcher.ended(task.name)
            except BaseException as error:
                self.fail(error)  # raised again in the caller's thread
            with self._changed:
                self._running -= 1
                self._changed.notify_all()


def run_all(tasks: Iterable[Task], jobs: int, interrupt: Callable[[], None], watcher: Watcher) -> None:
    """Run the tasks on `jobs` threads; the first error is raised when all have stopped.

    Ctrl-C (or a SIGTERM turned into an exception) calls `interrupt`, waits for the threads, and is raised again.
    """
    queue = _Queue(tasks, watcher)
    try:
        for _ in range(max(1, jobs)):
            threading.Thread(target=queue.work, daemon=True).start()
        queue.wait()
    except BaseException as error:
        queue.fail(error)
        interrupt()
        queue.wait()
        raise
    if queue.error is not None:
        raise queue.error
