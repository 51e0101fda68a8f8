"""What a terminal shows: news and progress on standard error, the report on standard output."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from bot.cli.explain import explain
from bot.cli.init import Started
from bot.core.fold import FoldAudit
from bot.core.history import History
from bot.core.json_text import canonical
from bot.core.lab import Lab
from bot.core.parting import Traced
from bot.core.report import Report
from bot.core.report_json import report_lines
from bot.core.study_json import history_lines
from bot.github.runner import log_safe
from bot.render.terminal.progress import MeasureProgress
from bot.render.terminal.report_text import print_report
from bot.render.terminal.trace_text import print_trace, trace_json
from bot.render.text.escape import visible
from bot.show.blocks import TERMINAL
from bot.show.fold import fold_blocks
from bot.show.history import history_blocks
from bot.show.lab import lab_blocks
from bot.show.renderers import print_blocks
from bot.study.run import Progress


def for_log(text: str) -> str:
    """Text as it may be printed: a runner of GitHub Actions takes some lines for commands."""
    return log_safe(text) if os.environ.get("GITHUB_ACTIONS") == "true" else text


def print_json(report: Report) -> None:
    """What `report.json` has; on a runner, where `##[` begins a command, that is escaped, which JSON reads the same."""
    _print_pieces(report_lines(report))


def _print_pieces(pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        text = piece.decode()
        sys.stdout.write(text if text == for_log(text) else text.replace("##[", "#\\u0023["))
    sys.stdout.flush()


def _written(files: Sequence[Path]) -> str:
    return f"written to {files[0].parent}: {', '.join(file.name for file in files)}"


class TerminalShow:
    """Progress and news on standard error, the report on standard output: drawn, or `as_json`."""

    def __init__(self, *, quiet: bool, as_json: bool = False) -> None:
        self._quiet, self._as_json = quiet, as_json
        self._news, self._out = Console(stderr=True, quiet=quiet), Console()

    def say(self, line: str) -> None:
        """One line of news."""
        self._news.print(for_log(line), markup=False, highlight=False, soft_wrap=True)

    def report(self, report: Report, files: Sequence[Path]) -> None:
        """The outcome, and where it was written."""
        written = _written(files)
        if self._as_json:
            print_json(report)
            self.say(written)
            return
        with self._out.capture() as told:
            if not self._quiet:
                print_report(report, self._out)
            self._out.print(written, markup=False, highlight=False, soft_wrap=True)
        print(for_log(told.get()), end="", flush=True)

    def folded(self, audit: FoldAudit, files: Sequence[Path]) -> None:
        """What a fold audit found, and where it was written."""
        with self._out.capture() as told:
            if not self._quiet:
                print_blocks(fold_blocks(audit, TERMINAL), self._out)
            self._out.print(_written(files), markup=False, highlight=False, soft_wrap=True)
        print(for_log(told.get()), end="", flush=True)

    def history(self, history: History, files: Sequence[Path]) -> None:
        """What a history found, and where it was written."""
        written = _written(files)
        if self._as_json:
            _print_pieces(history_lines(history))
            self.say(written)
            return
        with self._out.capture() as told:
            if not self._quiet:
                print_blocks(history_blocks(history, TERMINAL), self._out)
            self._out.print(written, markup=False, highlight=False, soft_wrap=True)
        print(for_log(told.get()), end="", flush=True)

    def experimented(self, lab: Lab, files: Sequence[Path]) -> None:
        """What an experiment gave, and where it was written."""
        with self._out.capture() as told:
            if not self._quiet:
                print_blocks(lab_blocks(lab, TERMINAL), self._out)
            self._out.print(_written(files), markup=False, highlight=False, soft_wrap=True)
        print(for_log(told.get()), end="", flush=True)

    def explain(self, arguments: argparse.Namespace) -> None:
        """What a report says of one cell."""
        with self._out.capture() as told:
            explain(arguments.report, arguments.model, arguments.target, arguments.dispatch, self._out)
        print(for_log(told.get()), end="", flush=True)

    def traced(self, traced: Traced) -> None:
        """One dispatch through the passes of both sides."""
        with self._out.capture() as told:
            if self._as_json:
                print(for_log(canonical(trace_json(traced)).decode()))
            else:
                print_trace(traced, self._out)
        print(for_log(told.get()), end="", flush=True)

    def started(self, started: Started) -> None:
        """What `init` found and wrote, and what is left to do."""
        told = [*started.notes, ""] if not self._quiet else []
        told += [f"wrote {path}" for path in started.written]
        if not self._quiet:
            told += ["", "next:", *(f"{number}. {step}" for number, step in enumerate(started.steps, 1))]
        print(for_log("\n".join(map(visible, told))), flush=True)

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """The display of long work."""
        with MeasureProgress(self._news) as progress:
            yield progress
