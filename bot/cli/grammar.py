"""Parse the command line, and explain mistakes.

A mistake ends with one line that names the nearest command, option or value.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from bot.cli.help import HelpFormatter

if TYPE_CHECKING:
    from bot.cli.showing import TerminalShow
    from bot.system.cancel import Cancel

_FLAGS = "--flags"  # the option whose values begin with dashes themselves
_MISSING = "the following arguments are required: "


class Arguments(argparse.Namespace):
    """What was typed, and what a run needs beside it."""

    show: TerminalShow
    cancel: Cancel


class Parser(argparse.ArgumentParser):
    """The parser of the program, and of each of its commands."""

    # the names of all commands; empty in the parser of a command
    commands: Collection[str] = ()
    example = ""  # a command that works, for hints

    def __init__(self, prog: str | None = None, **settings: Any) -> None:
        super().__init__(
            prog, formatter_class=HelpFormatter, allow_abbrev=False, **settings
        )

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> argparse.Namespace:
        """Parse all words; ends the program where one has no meaning."""
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self._refuse(
                unknown[0],
                f"unexpected argument for {parsed.command}",
                f"see {self._help(parsed.command)}",
            )
        return parsed

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Check the words, then parse them; a list of words may go on behind an option.

        Argparse itself does the latter from Python 3.12 on.
        """
        arguments = sys.argv[1:]
        if args is not None:
            arguments = list(args)
        if self.commands:
            checked = self._checked_start(arguments)
        else:
            checked = self._checked(arguments)
        parsed, unknown = super().parse_known_args(checked, namespace)
        listed = next(
            (action for action in self._actions if action.nargs in ("*", "+")), None
        )
        if listed is None or listed.option_strings or not unknown:
            return parsed, unknown
        if "--" in unknown:
            unknown.remove("--")  # it only ends the options
        values = getattr(parsed, listed.dest) or []
        unlisted = [self._get_value(listed, word) for word in unknown]
        setattr(parsed, listed.dest, [*values, *unlisted])
        return parsed, []

    def error(self, message: str) -> NoReturn:
        """End with one line and code 2; `message` is argparse's own."""
        if message.startswith(_MISSING):
            problem = f"missing: {message.removeprefix(_MISSING)}"
            message = problem
            if self.example:
                message = f"{problem} (for example: {self.example})"
        self.exit(2, f"{self.prog}: {message.removeprefix('argument ')}\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            allowed = " or ".join(map(str, action.choices))
            raise argparse.ArgumentError(
                action, f"{value!r} is not a known value (allowed: {allowed})"
            )

    def _refuse(self, where: str, problem: str, hint: str) -> NoReturn:
        self.error(f"{_visible(where)}: {problem} ({hint})")

    def _help(self, command: str = "") -> str:
        return " ".join(filter(None, (self.prog, command, "--help")))

    def _checked_start(self, arguments: Sequence[str]) -> Sequence[str]:
        """Return the words of the program.

        Ends it where they begin with no option of its own and no command.
        """
        for word in arguments:
            if not word.startswith("-"):
                if word not in self.commands:
                    self._refuse(
                        word, "unknown command", self._suggestion(word, self.commands)
                    )
                return arguments
            if word.partition("=")[0] not in self._option_string_actions:
                self._refuse_option(
                    word, "write the options of a command after its name"
                )
        if not {"-h", "--help", "-V", "--version"} & set(arguments):
            self.error(f"missing: a command (see {self._help()})")
        return arguments

    def _checked(self, arguments: Sequence[str]) -> list[str]:
        """Return the words; a value with a leading dash is joined to its option by `=`."""
        checked = list[str]()
        remaining = list(arguments)
        while remaining:
            word = remaining.pop(0)
            if word == "--":
                return [*checked, word, *remaining]
            if word.startswith("-") and word != "-":
                word = self._checked_option(word, remaining)
            checked.append(word)
        return checked

    def _checked_option(self, word: str, remaining: list[str]) -> str:
        """Return an option, with its value where that begins with a dash.

        `remaining` loses this value.
        """
        name, equals, _ = word.partition("=")
        action = self._option_string_actions.get(name)
        if action is None:
            if not self._is_flags_in_one(word):
                self._refuse_option(name)
            return word
        if action.nargs == 0 and equals:
            self._refuse(word, f"{name} takes no value", f"write {name} alone")
        if action.nargs is not None or equals:
            return word
        if remaining and (name == _FLAGS or _is_negative(remaining[0])):
            return f"{name}={remaining.pop(0)}"
        if not remaining or (remaining[0].startswith("-") and remaining[0] != "-"):
            self._refuse(
                name,
                "the value is missing",
                f"write {name} {action.metavar or 'VALUE'}",
            )
        return word

    def _is_flags_in_one(self, word: str) -> bool:
        """Return whether a word such as `-qh` consists of options without values."""
        if word.startswith("--"):
            return False
        for letter in word[1:]:
            action = self._option_string_actions.get(f"-{letter}")
            if action is None or action.nargs != 0:
                return False
        return True

    def _refuse_option(self, name: str, hint: str = "") -> NoReturn:
        options = self._option_string_actions
        names = [option for option in options if option.startswith("--")]
        self._refuse(name, "unknown option", hint or self._suggestion(name, names))

    def _suggestion(self, word: str, names: Collection[str]) -> str:
        name = _nearest(word, names)
        if name:
            return f"did you mean {name!r}?"
        return f"see {self._help()}"


def _nearest(word: str, names: Collection[str]) -> str:
    """Return the name that was probably meant; empty where none is near.

    Dashes do not make options alike.
    """
    from bot.core.near import nearest

    plain = {name.lstrip("-"): name for name in names}
    near = nearest(word.lstrip("-"), plain)
    if near:
        return plain[near[0]]
    return ""


def _is_negative(word: str) -> bool:
    """Return True for a value below zero, such as `-1GiB`, which is not an option."""
    return word[:1] == "-" and word[1:2].isdigit()


def _visible(word: str) -> str:
    """Return a word as it can stand in one line."""
    if word and word.isprintable():
        return word
    return repr(word)
