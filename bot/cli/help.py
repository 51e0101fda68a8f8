"""Lay out help texts.

No line is wider than the terminal, and examples stay commands that can be pasted.
"""

from __future__ import annotations

import argparse
import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

_LEAST_COLUMNS = 24  # on a narrower terminal, lines are as wide as this
_OPTION_COLUMNS = 26  # where the texts of options begin at the latest
# a table whose texts would be narrower has them below the names
_LEAST_TEXT_COLUMNS = 20
_COMMAND = re.compile(r" +(?:code-size-bot|git|cd) .*")
_ROW = re.compile(r"( *\S+ {2,})\S")
_TEXT = r"(?:[^\s'\"]|'[^']*'|\"[^\"]*\")+"
# an option stays on one line with its value
_WORD = re.compile(rf"--[^\s=]+ (?!-){_TEXT}|{_TEXT}")


class HelpFormatter(argparse.HelpFormatter):
    """Wraps paragraphs, tables, options and commands to the width of the terminal."""

    def __init__(self, prog: str) -> None:
        columns = max(shutil.get_terminal_size().columns, _LEAST_COLUMNS)
        super().__init__(prog, max_help_position=_OPTION_COLUMNS, width=columns)

    def _format_usage(
        self, _usage: str | None, actions: Iterable[argparse.Action], *_rest: Any
    ) -> str:
        """Return one short line: what is required, and that there are options."""
        options = list[str]()
        positionals = list[str]()
        for action in actions:
            if action.option_strings and action.required:
                options.append(f"{action.option_strings[-1]} {action.metavar}")
            elif not action.option_strings:
                positionals.append(self._format_args(action, str(action.metavar)))
        line = " ".join(["usage:", self._prog, *options, "[options]", *positionals])
        wrapped = textwrap.wrap(
            line, self._width, subsequent_indent="    ", break_on_hyphens=False
        )
        return "\n".join(wrapped) + "\n\n"

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(text, width, break_on_hyphens=False)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = list[str]()
        for line in text.splitlines():
            lines += _fitted(indent + line, width)
        return "\n".join(lines)


def _fitted(line: str, width: int) -> Iterator[str]:
    """Yield the lines that a paragraph, a row of a table or a command takes."""
    if not line.strip():
        yield ""
        return
    if _COMMAND.fullmatch(line):
        yield from _command(line, width)
        return
    margin = len(line) - len(line.lstrip())
    row = _ROW.match(line)
    if row and width - len(row[1]) >= _LEAST_TEXT_COLUMNS:
        margin = len(row[1])
    elif row:
        line = " ".join(line.split())
        line = " " * margin + line
        margin += 2
    yield from textwrap.wrap(
        line,
        width,
        subsequent_indent=" " * margin,
        break_on_hyphens=False,
        drop_whitespace=True,
    )


def _command(line: str, width: int) -> Iterator[str]:
    """Yield a command on one line, or on several that a backslash continues."""
    if len(line) <= width:
        yield line
        return
    margin = " " * (len(line) - len(line.lstrip()))
    pending = ""
    for word in _WORD.findall(line):
        if pending and len(f"{pending} {word} \\") > width:
            yield f"{pending} \\"
            pending = f"{margin}  {word}"
        elif pending:
            pending = f"{pending} {word}"
        else:
            pending = f"{margin}{word}"
    yield pending
