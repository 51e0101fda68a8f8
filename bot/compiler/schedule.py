"""Run tasks on a few threads, the costliest one first.

Long tasks first keeps all cores busy to the end. Results travel through the tasks' own
closures, so that the order in which they complete never shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import NamedTuple, Protocol


class Task(NamedTuple):
    """Something to do; the order is the same in every run."""

    cost: float  # only the order matters; the largest goes first
    name: str  # what to call it while it runs; breaks ties
    run: Callable[[], object]


class Watcher(Protocol):
    """An observer of the tasks, which is called from the threads that run them."""

    def started(self, name: str) -> None:
        """Note that a task begins."""

    def ended(self, name: str) -> None:
        """Note that a task has ended."""


def run_all(
    tasks: Iterable[Task], jobs: int, interrupt: Callable[[], None], watcher: Watcher
) -> None:
    """Run the tasks on `jobs` threads.

    The first error is raised when all have stopped, and no task begins after it. Ctrl-C
    (or a SIGTERM turned into an exception) calls `interrupt`, waits for the threads,
    and is raised again.
    """
    waiting = sorted(tasks, key=lambda task: (-task.cost, task.name))[::-1]
    running = set[int]()
    changed = SimpleQueue[None]()
    errors = list[BaseException]()

    def work(number: int) -> None:
        running.add(number)
        while not errors:
            try:
                task = waiting.pop()
            except IndexError:
                break
            try:
                watcher.started(task.name)
                try:
                    task.run()
                finally:
                    watcher.ended(task.name)
            except BaseException as error:
                errors.append(error)
        running.remove(number)
        changed.put(None)

    numbers = range(min(max(1, jobs), len(waiting)))
    unstarted = [Thread(target=work, args=(number,)) for number in numbers]
    interruptions = list[BaseException]()
    while running or (waiting and not errors):
        try:
            while unstarted:
                unstarted.pop().start()
            with suppress(Empty):
                # in short waits, so that an interruption is seen at once
                changed.get(timeout=0.2)
        except (
            BaseException
        ) as error:  # what runs is waited for after a second one, too
            errors.append(error)
            interruptions.append(error)
            interrupt()
    for ended in (*interruptions, *errors):
        raise ended
