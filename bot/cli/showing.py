"""Show news and progress on standard error, and the report on standard output."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from bot.core.report import Report
from bot.core.report_json import report_lines
from bot.github.runner import log_safe
from bot.show.progress import MeasureProgress
from bot.show.report import print_report
from bot.study.reproducing import notable_build
from bot.study.resources import Progress

# of what goes into a file or a pipe: nothing has to be left out there
_FILE_COLUMNS = 200


def for_log(text: str) -> str:
    """Return a text as it may be printed in a log.

    A runner of GitHub Actions takes some lines for commands.
    """
    if os.environ.get("GITHUB_ACTIONS") == "true":
        return log_safe(text)
    return text


@contextmanager
def unread() -> Iterator[None]:
    """Ignore that nobody reads standard output to its end.

    The rest of it then goes nowhere, and that is no failure.
    """
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class TerminalShow:
    """Progress and news on standard error, the answer on standard output.

    The answer is drawn, or `as_json`.
    """

    def __init__(self, *, quiet: bool, as_json: bool = False) -> None:
        self._quiet = quiet
        self._as_json = as_json
        self._news = Console(stderr=True, quiet=quiet, emoji=False)
        self._out = Console(emoji=False)
        if not (self._out.is_terminal or os.environ.get("COLUMNS")):
            self._out.width = _FILE_COLUMNS
        self._commands: Sequence[str] = ()

    def reproduce_with(self, commands: Sequence[str]) -> None:
        """Take the commands that the next report prints below it."""
        self._commands = commands

    def say(self, line: str) -> None:
        """Print one line of news."""
        self._news.print(for_log(line), markup=False, highlight=False, soft_wrap=True)

    def wrote(self, line: str) -> None:
        """Print where a file was written; with -q on standard output, as reports do."""
        if self._quiet:
            print(for_log(line), flush=True)
        else:
            self.say(line)

    def report(self, report: Report, files: Sequence[Path]) -> None:
        """Show the outcome of a comparison, its files, and what to read next."""
        following_command = ["open", str(files[0].parent / "report.html")]
        if key := notable_build(report):
            report_file = str(files[0].parent / "report.json")
            following_command = ["code-size-bot", "explain", report_file]
            following_command += ["--model", key.model, "--target", key.target]
        lines = [f"reproduce: {command}" for command in self._commands]
        lines.append(f"next: {shlex.join(following_command)}")
        if self._quiet:
            following = ""
        else:
            following = "\n".join(lines)
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
        """Show an answer as it was asked for, and where it was written.

        `json`: its pieces, where it has such a form. `following`: the last lines.
        `even_quiet`: True where something of it is drawn in any case.
        """
        written = ""
        if files:
            names = ", ".join(file.name for file in files)
            written = f"written to {files[0].parent}: {names}"
        if self._as_json and json:
            _write_json(json())
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
        """Yield the display of long work."""
        with MeasureProgress(self._news) as progress:
            yield progress


def _write_json(pieces: Iterable[bytes]) -> None:
    """Write JSON to standard output.

    Where `##[` begins a command of the log, it is escaped; JSON reads that the same.
    """
    for piece in pieces:
        text = piece.decode()
        if text != for_log(text):
            text = text.replace("##[", "#\\u0023[")
        sys.stdout.buffer.write(text.encode())
    sys.stdout.flush()
