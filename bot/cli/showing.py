"""What a terminal shows: news and progress on standard error, the report on standard output."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from bot.core.report import Report, report_lines
from bot.github.runner import log_safe
from bot.show.progress import MeasureProgress
from bot.show.report import print_report
from bot.study.reproducing import notable_build
from bot.study.run import Progress

_FILE_COLUMNS = (
    200  # of what goes into a file or a pipe: nothing has to be left out there
)


def for_log(text: str) -> str:
    """Text as it may be printed: a runner of GitHub Actions takes some lines for commands."""
    return log_safe(text) if os.environ.get("GITHUB_ACTIONS") == "true" else text


@contextmanager
def unread() -> Iterator[None]:
    """Where nobody reads standard output to its end, the rest of it goes nowhere, and that is no failure."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class TerminalShow:
    """Progress and news on standard error, the answer on standard output: drawn, or `as_json`."""

    def __init__(self, *, quiet: bool, as_json: bool = False) -> None:
        self._quiet, self._as_json = quiet, as_json
        self._news, self._out = (
            Console(stderr=True, quiet=quiet, emoji=False),
            Console(emoji=False),
        )
        if not (self._out.is_terminal or os.environ.get("COLUMNS")):
            self._out.width = _FILE_COLUMNS
        self._commands: Sequence[str] = ()

    def reproduce_with(self, commands: Sequence[str]) -> None:
        """Take the commands that the next report prints below it."""
        self._commands = commands

    def say(self, line: str) -> None:
        """One line of news."""
        self._news.print(for_log(line), markup=False, highlight=False, soft_wrap=True)

    def report(self, report: Report, files: Sequence[Path]) -> None:
        """The outcome of a comparison, where it was written, and what to look at next."""
        command = [f"open {files[0].parent / 'report.html'}"]
        if key := notable_build(report):
            command = ["code-size-bot", "explain", str(files[0].parent / "report.json")]
            command += ["--model", key.model, "--target", key.target]
        lines = [f"reproduce: {command}" for command in self._commands]
        lines.append(f"next: {shlex.join(command) if len(command) > 1 else command[0]}")
        following = "" if self._quiet else "\n".join(lines)
        self.answer(
            lambda out: print_report(report, out, quiet=self._quiet),
            lambda: report_lines(report),
            files,
            following,
            even_quiet=True,
        )

    @unread()
    def answer(
        self,
        draw: Callable[[Console], None],
        json: Callable[[], Iterable[bytes]] | None = None,
        files: Sequence[Path] = (),
        following: str = "",
        *,
        even_quiet: bool = False,
    ) -> None:
        """An answer as it was asked for, and where it was written.

        `json`: its pieces, where it has such a form; `following`: the last lines;
        `even_quiet`: True where something of it is drawn in any case.
        """
        written = (
            f"written to {files[0].parent}: {', '.join(file.name for file in files)}"
            if files
            else ""
        )
        if self._as_json and json:
            # where `##[` begins a command, that is escaped, which JSON reads the same
            for piece in json():
                text = piece.decode()
                text = (
                    text if text == for_log(text) else text.replace("##[", "#\\u0023[")
                )
                sys.stdout.buffer.write(text.encode())
            sys.stdout.flush()
            if written:
                self.say(written)
            return
        with self._out.capture() as drawn:
            if even_quiet or not self._quiet or not files:
                draw(self._out)
            for line in filter(None, (written, following)):
                self._out.print(line, markup=False, highlight=False, soft_wrap=True)
        print(for_log(drawn.get()), end="", flush=True)

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """The display of long work."""
        with MeasureProgress(self._news) as progress:
            yield progress
