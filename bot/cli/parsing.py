"""argparse with the nearest word: a misspelled command or option is told with the one that was meant."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

_CHOICES = re.compile(r"invalid choice: '(?P<given>[^']*)' \(choose from (?P<known>.*)\)$")


def _nearest(word: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches  # only those who misspell wait for it

    return next(iter(get_close_matches(word, list(known), n=1)), "")


class Parser(argparse.ArgumentParser):
    """A parser, and the class of its subcommands' parsers."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuse an option that nearly is one of this parser's; whatever else is unknown is argparse's to refuse."""
        parsed, unknown = super().parse_known_args(args, namespace)
        options = (word.partition("=")[0] for word in unknown if word.startswith("--"))
        for option in options:
            if near := _nearest(option, (name for name in self._option_string_actions if name.startswith("--"))):
                self.error(f"unrecognized arguments: {option} (did you mean {near}?)")
        return parsed, unknown

    def error(self, message: str) -> NoReturn:
        """End with the usage, the message and code 2."""
        choices = _CHOICES.search(message)
        near = _nearest(choices["given"], re.findall(r"[\w-]+", choices["known"])) if choices else ""
        if choices and near:
            message = f"{message[: choices.start()]}invalid choice: {choices['given']!r} (did you mean {near}?)"
        super().error(message)
