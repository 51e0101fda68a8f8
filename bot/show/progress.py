"""Live progress of long work: a bar on a terminal, an occasional line elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from bot.core.snapshot import Cell
from bot.show.filters import plural

_LINE_EVERY_SECONDS = 20.0
_MOST_NAMES = 2


class MeasureProgress:
    """Builds done, running, failed, and the time left; use as a context manager.

    The methods may be called from any thread. A build that is compiled again is counted
    once: no more can be done, nor fail, than the last plan had to do. A later stage,
    such as tracing, has its own count.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = threading.Lock()
        self._running: list[str] = []
        self._done = self._failed = self._total = 0
        self._noun = "build"
        self._stage = ""  # what runs when all cells are measured; empty before
        self._planned_at = self._last_line = time.monotonic()
        columns = (
            BarColumn(bar_width=24),
            TextColumn("{task.fields[counts]}"),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.description}"),
        )
        self._bar = Progress(
            *columns, console=console, transient=True, disable=not console.is_terminal
        )
        self._task = self._bar.add_task("", total=None, counts="")

    def __enter__(self) -> MeasureProgress:
        """Draw the bar."""
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the bar, whatever happened."""
        self._bar.stop()

    def say(self, line: str) -> None:
        """Print one line above the bar."""
        self._console.print(escape(line), highlight=False, soft_wrap=True)

    def plan(self, cells: int, cached: int, cost: float, about: str = "", /) -> None:
        """Set the number of all cells, that of the cached ones, and the others' cost.

        `about`: the sides of these cells, if there are several.
        """
        with self._lock:
            self._total = cells
            self._done = cached
            self._failed = 0
            self._noun = "compile" if about else "build"
            self._stage = ""
            self._planned_at = time.monotonic()
            self._bar.reset(self._task, total=cost or 1.0)
            self._refresh()
        self.say(f"{plural(cells, self._noun)}{about}, {cached} from the cache")

    def stage(self, about: str, tasks: int, noun: str, /) -> None:
        """Show the next kind of work, and count its tasks from 0."""
        with self._lock:
            self._stage = about
            self._noun = noun
            self._total = tasks
            self._done = 0
            self._bar.reset(self._task, total=tasks)
            self._refresh()
        self.say(f"{about}: {plural(tasks, noun)}")

    def started(self, name: str) -> None:
        """Name a task beside the bar: it began to run."""
        with self._lock:
            self._running.append(name)
            self._refresh()

    def ended(self, name: str) -> None:
        """Stop naming a task beside the bar: it has ended."""
        with self._lock:
            self._running.remove(name)
            if self._stage:
                self._done += 1
                self._bar.advance(self._task)
            self._refresh()
            self._say_sometimes()

    def measured(self, _side: str, cell: Cell, cost: float) -> None:
        """Count a cell that is done, well or badly."""
        with self._lock:
            if self._stage or self._done >= self._total:
                return
            self._done += 1
            self._failed += not cell.measured
            self._bar.advance(self._task, cost)
            self._refresh()
            self._say_sometimes()

    def spent(self, cpu_ms: Mapping[str, int], jobs: int) -> None:
        """Print the cost of measuring all cells of the last plan."""
        seconds = time.monotonic() - self._planned_at
        cpu_seconds = sum(cpu_ms.values()) / 1000
        if cpu_seconds:
            share = cpu_seconds / (seconds * jobs)
            self.say(
                f"compiled: {cpu_seconds:.1f} CPU s in {seconds:.1f} s, {share:.0%} of"
                f" {plural(jobs, 'thread')}"
            )

    def _say_sometimes(self) -> None:
        """Print the counts if there is no bar, and if the last line is old enough."""
        if (
            not self._console.is_terminal
            and time.monotonic() - self._last_line > _LINE_EVERY_SECONDS
        ):
            self._last_line = time.monotonic()
            self.say(self._counts())

    def _counts(self) -> str:
        if self._stage:
            return (
                f"{self._stage}: {self._done}/{plural(self._total, self._noun)},"
                f" {len(self._running)} running"
            )
        # with several sides, most builds may have failed before: the report shows which
        # are new
        failed = ""
        if self._failed and self._noun == "build":
            failed = f", {self._failed} failed"
        return (
            f"{self._done}/{plural(self._total, self._noun)}, {len(self._running)}"
            f" running{failed}"
        )

    def _refresh(self) -> None:
        names = ", ".join(self._running[:_MOST_NAMES])
        self._bar.update(self._task, counts=self._counts(), description=escape(names))
