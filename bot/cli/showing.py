"""What a terminal shows: news and progress on standard error, the report on standard output."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from bot.core.report import Report
from bot.core.report_json import report_lines
from bot.github.runner import log_safe
from bot.render.terminal.progress import MeasureProgress
from bot.show.report import print_report
from bot.study.run import Progress


def for_log(text: str) -> str:
    """Text as it may be printed: a runner of GitHub Actions takes some lines for commands."""
    return log_safe(text) if os.environ.get("GITHUB_ACTIONS") == "true" else text


class TerminalShow:
    """Progress and news on standard error, the answer on standard output: drawn, or `as_json`."""

    def __init__(self, *, quiet: bool, as_json: bool = False) -> None:
        self._quiet, self._as_json = quiet, as_json
        self._news, self._out = Console(stderr=True, quiet=quiet), Console()

    def say(self, line: str) -> None:
        """One line of news."""
        self._news.print(for_log(line), markup=False, highlight=False, soft_wrap=True)

    def report(self, report: Report, files: Sequence[Path]) -> None:
        """The outcome of a comparison, and where it was written."""
        self.answer(lambda out: print_report(report, out), lambda: report_lines(report), files)

    def answer(
        self,
        draw: Callable[[Console], None],
        json: Callable[[], Iterable[bytes]] | None = None,
        files: Sequence[Path] = (),
    ) -> None:
        """An answer as it was asked for, and where it was written; `json`: its pieces, where it has such a form."""
        written = f"written to {files[0].parent}: {', '.join(file.name for file in files)}" if files else ""
        if self._as_json and json:
            for piece in json():  # where `##[` begins a command, that is escaped, which JSON reads the same
                text = piece.decode()
                sys.stdout.write(text if text == for_log(text) else text.replace("##[", "#\\u0023["))
            sys.stdout.flush()
            if written:
                self.say(written)
            return
        with self._out.capture() as drawn:
            if not self._quiet or not files:
                draw(self._out)
            if written:
                self._out.print(written, markup=False, highlight=False, soft_wrap=True)
        print(for_log(drawn.get()), end="", flush=True)

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """The display of long work."""
        with MeasureProgress(self._news) as progress:
            yield progress
