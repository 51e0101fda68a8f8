"""Runs tasks on a few threads, the costliest ready one first; a finished task may hand out more.

Long tasks first keeps all cores busy to the end. Results travel through the tasks' own closures, so that the order in
which they complete never shows.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Task:
    """Something to do.

    Attributes:
        cost: only the order matters; the largest goes first.
        name: what to call it while it runs; breaks ties, so that the order is the same in every run.
        run: does it and returns the tasks that have become ready.
    """

    cost: float
    name: str
    run: Callable[[], Iterable[Task]]


class Watcher(Protocol):
    """Is told what runs; called from the threads that run it."""

    def started(self, name: str) -> None:
        """A task begins."""

    def ended(self, name: str) -> None:
        """It is over."""


class _Queue:
    def __init__(self, tasks: Iterable[Task], watcher: Watcher) -> None:
        self._watcher = watcher
        self._ready: list[tuple[float, str, int, Task]] = []
        self._changed = threading.Condition()
        self._running = self._count = 0
        self.error: BaseException | None = None
        self._push(tasks)

    def _push(self, tasks: Iterable[Task]) -> None:
        for task in tasks:
            self._count += 1
            heapq.heappush(self._ready, (-task.cost, task.name, self._count, task))

    def take(self) -> Task | None:
        """The next task; None when there will be no more."""
        with self._changed:
            while not self._ready and self._running and not self.error:
                self._changed.wait()
            if self.error or not self._ready:
                return None
            self._running += 1
            return heapq.heappop(self._ready)[3]

    def done(self, more: Iterable[Task], error: BaseException | None) -> None:
        with self._changed:
            self._running -= 1
            self.error = self.error or error
            self._push(more)
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        with self._changed:
            self.error = self.error or error
            self._changed.notify_all()

    def wait(self) -> None:
        """Until nothing runs and nothing will (an interrupted `Thread.join` takes a running thread for ended)."""
        with self._changed:
            while self._running or (self._ready and not self.error):
                self._changed.wait(0.2)

    def work(self) -> None:
        while (task := self.take()) is not None:
            more: Iterable[Task] = ()
            error = None
            try:
                self._watcher.started(task.name)
                try:
                    more = list(task.run())
                finally:
                    self._watcher.ended(task.name)
            except BaseException as caught:
                error = caught  # raised again in the caller's thread
            self.done(more, error)


def run_all(tasks: Iterable[Task], jobs: int, interrupt: Callable[[], None], watcher: Watcher) -> None:
    """Run the tasks and all that they hand out on `jobs` threads; the first error is raised when all have stopped.

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
