"""`completion`: what a shell needs to complete commands, options and files, made of the grammar by shtab."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from bot.cli.options import Arguments, Parser

EXAMPLES = ("bash",)


def arguments(parser: Parser) -> None:
    parser.description = f"{parser.description}, for your shell's start-up file"
    parser.add_argument("shell", choices=("bash", "zsh"), help="which shell")


def run(arguments: Arguments) -> None:
    print(script(arguments.shell))


def script(shell: str) -> str:
    """The text for the shell's start-up file; `shell` is `bash` or `zsh`."""
    import shtab

    from bot.cli.main import build_parser

    parser = build_parser(listed=True)
    for action in _actions(parser):
        if action.metavar in ("FILE", "DIR", "SPEC", "report.json", "part.json"):
            action.complete = shtab.DIRECTORY if action.metavar == "DIR" else shtab.FILE  # type: ignore[attr-defined]
    text: str = shtab.complete(parser, shell=shell)
    return text


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
