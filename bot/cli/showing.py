"""What a terminal shows: news and progress on standard error, the report on standard output."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from bot.commands.explain import explain
from bot.commands.init import Started
from bot.core.values.whole_report import Report
from bot.measurement.run import Progress
from bot.publish.actions import log_safe
from bot.render.terminal.progress import MeasureProgress
from bot.render.terminal.report_text import print_report


def for_log(text: str) -> str:
    """Text as it may be printed: a runner of GitHub Actions takes some lines for commands."""
    return log_safe(text) if os.environ.get("GITHUB_ACTIONS") == "true" else text


class TerminalShow:
    """Progress and news on standard error, the report on standard output."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._news, self._out = Console(stderr=True, quiet=quiet), Console()

    def say(self, line: str) -> None:
        """One line of news."""
        self._news.print(for_log(line), markup=False, highlight=False, soft_wrap=True)

    def report(self, report: Report, files: Sequence[Path]) -> None:
        """The outcome, and where it was written."""
        with self._out.capture() as told:
            if not self._quiet:
                print_report(report, self._out)
            names = ", ".join(file.name for file in files)
            line = f"written to {files[0].parent}: {names}"
            self._out.print(line, markup=False, highlight=False, soft_wrap=True)
        print(for_log(told.get()), end="", flush=True)

    def explain(self, arguments: argparse.Namespace) -> None:
        """What a report says of one cell."""
        with self._out.capture() as told:
            explain(arguments.report, arguments.model, arguments.target, arguments.dispatch, self._out)
        print(for_log(told.get()), end="", flush=True)

    def started(self, started: Started) -> None:
        """What `init` found and wrote, and what is left to do."""
        told = [*started.notes, ""] if not self._quiet else []
        told += [f"wrote {path}" for path in started.written]
        if not self._quiet:
            told += ["", "next:", *(f"{number}. {step}" for number, step in enumerate(started.steps, 1))]
        print(for_log("\n".join(told)), flush=True)

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """The display of long work."""
        with MeasureProgress(self._news) as progress:
            yield progress
