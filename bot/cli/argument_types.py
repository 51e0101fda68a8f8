"""The kinds of arguments: from a word of the command line to its value, or one line about what is wrong with it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

_Value = TypeVar("_Value")


def _parsed(parse: Callable[[str], _Value], text: str) -> _Value:
    """Argparse tells the words of its own error alone."""
    try:
        return parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def shard(text: str) -> tuple[int, int]:
    """`2/4`: which part of how many."""
    index, _, count = text.partition("/")
    if not (index.isdigit() and count.isdigit() and 1 <= int(index) <= int(count)):
        raise argparse.ArgumentTypeError(f"{text!r} is not I/N with 1 <= I <= N, such as 2/4")
    return int(index), int(count)


def positive(text: str) -> int:
    """A number from 1 on."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return int(text)


def count(text: str) -> int:
    """A number from 0 on."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of 0 or more")
    return int(text)


def limit(text: str) -> int:
    """A size with its unit, in bytes."""
    from bot.config.units import parse_size  # only those who give a limit wait for it

    return _parsed(parse_size, text)


def share(text: str) -> float:
    """A percentage, as a share of one."""
    from bot.config.units import parse_share  # likewise

    return _parsed(parse_share, text)


def steps(text: str) -> int | None:
    """How many releases between two are looked at; None for all."""
    from bot.config.units import parse_steps  # likewise

    return _parsed(parse_steps, text)


def flags(text: str) -> tuple[str, ...]:
    """Compiler flags, quoted as in a shell."""
    from bot.config.targets import parse_flags  # likewise

    return _parsed(parse_flags, text)


def spec(text: str) -> str:
    """What names a compiler or a snapshot."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the SPEC is empty: is a variable of the shell not set?")
    return text


def path(text: str) -> Path:
    """A file or a directory."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the path is empty: is a variable of the shell not set?")
    return Path(text)


def directory(text: str) -> Path:
    """A directory; `~` is the user's own."""
    return path(text).expanduser()


def clone(text: str) -> Path:
    """A clone of a git repository, with files or without."""
    place = directory(text)
    if not (place / ".git").exists() and not (place / "HEAD").is_file():
        raise argparse.ArgumentTypeError(f"{text!r} is no clone of git")
    return place
