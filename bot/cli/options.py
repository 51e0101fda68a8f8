"""What several commands take: the types of arguments, and the options they share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from bot.cli.grammar import Arguments, Parser
from bot.errors import UsageError
from bot.system.defaults import cores, default_cache, default_limit

_Value = TypeVar("_Value")
_MOST_DIGITS = 9


def _parsed(parse: Callable[[str], _Value], text: str, allowed: str = "") -> _Value:
    """Return what a text means; argparse shows the words of its own error alone."""
    try:
        return parse(text)
    except ValueError as error:
        hint = ""
        if allowed:
            hint = f" (allowed: {allowed})"
        raise argparse.ArgumentTypeError(f"{error}{hint}") from None


def shard(text: str) -> tuple[int, int]:
    """Parse `2/4`: which part of how many."""
    # only those who measure a part wait for it
    from bot.config.units import (
        parse_shard,
    )

    return _parsed(parse_shard, text)


def positive(text: str) -> int:
    """Parse a whole number from 1 on."""
    if not (text.isascii() and text.isdigit()) or int(text[:_MOST_DIGITS]) < 1:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is not a positive whole number (allowed: 1 or more)"
        )
    if len(text) > _MOST_DIGITS:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is too large (allowed: 1 to {10**_MOST_DIGITS - 1:,})"
        )
    return int(text)


def limit(text: str) -> int:
    """Parse a size with its unit, in bytes."""
    from bot.config.units import parse_size  # only those who give a limit wait for it

    return _parsed(parse_size, text, "0B or more")


def share(text: str) -> float:
    """Parse a percentage, as a share of one."""
    from bot.config.units import parse_share  # likewise

    return _parsed(parse_share, text, "0% or more")


def flags(text: str) -> tuple[str, ...]:
    """Parse compiler flags, quoted as in a shell."""
    from bot.config.targets import parse_flags  # likewise

    return _parsed(parse_flags, text)


def spec(text: str) -> str:
    """Return the text that names a compiler or a snapshot."""
    if not text.strip():
        raise argparse.ArgumentTypeError(
            "the SPEC is empty (is a shell variable unset?)"
        )
    return text


def path(text: str) -> Path:
    """Return a file or a directory."""
    if not text.strip():
        raise argparse.ArgumentTypeError(
            "the path is empty (is a shell variable unset?)"
        )
    return Path(text)


def directory(text: str) -> Path:
    """Return a directory, which need not exist; `~` is the user's own."""
    place = path(text).expanduser()
    if place.is_file():
        raise argparse.ArgumentTypeError(f"{text!r} is a file (name a directory)")
    return place


def clone(text: str) -> Path:
    """Return a clone of a git repository, with files or without."""
    place = directory(text)
    if not (place / ".git").exists() and not (place / "HEAD").is_file():
        problem = f"{text!r} is not a git repository"
        raise argparse.ArgumentTypeError(
            f"{problem} (name a clone of the compiler's repository)"
        )
    return place


# Options that several commands have, each with its default and help text; light to
# import.

CONFIG_HELP = "configuration or suite (default: code-size.yml, else full)"


def shown_cache() -> str:
    """Return the default cache for help texts: with `~` for the home directory."""
    cache = str(default_cache())
    home = str(Path.home())
    if cache.startswith(f"{home}/"):
        cache = f"~{cache.removeprefix(home)}"
    return cache.replace("%", "%%")


def add_globs(parser: Parser) -> None:
    """Add --model and --target."""
    about = "select models by name or glob (repeatable)"
    parser.add_argument(
        "--model", action="append", default=[], metavar="GLOB", help=about
    )
    about = "select targets by name or glob (repeatable)"
    parser.add_argument(
        "--target", action="append", default=[], metavar="GLOB", help=about
    )


def add_cell(parser: Parser) -> None:
    """Add --model and --target, of which each means one."""
    about = "name of the model, its first letters, or a glob"
    parser.add_argument("--model", required=True, metavar="M", help=about)
    about = "name of the target, its first letters, or a glob"
    parser.add_argument("--target", required=True, metavar="T", help=about)


def add_sides(parser: Parser, subject: str) -> None:
    """Add --base, --head, --compiler and --flags.

    `subject`: the things that a SPEC may name.
    """
    for side in ("base", "head"):
        about = f"{side} {subject} (default: compiler.{side})"
        parser.add_argument(f"--{side}", type=spec, metavar="SPEC", help=about)
    add_compiler(parser, "compiler of each side that has no SPEC of its own")
    add_flags(parser, "the head side only", "tried")


def add_compiler(parser: Parser, about: str, *, required: bool = False) -> None:
    """Add --compiler."""
    parser.add_argument(
        "--compiler", type=spec, required=required, metavar="SPEC", help=about
    )


def add_config(parser: Parser) -> None:
    """Add --config."""
    parser.add_argument("--config", type=path, metavar="FILE", help=CONFIG_HELP)


def add_cache(parser: Parser, about: str = "cache directory") -> None:
    """Add --cache."""
    about = f"{about} (default: {shown_cache()})"
    parser.add_argument(
        "--cache", type=directory, default=default_cache(), metavar="DIR", help=about
    )


def add_format(parser: Parser, json: str) -> None:
    """Add --format; `json`: what is printed in that format."""
    about = f"print text or {json} (default: %(default)s)"
    parser.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        metavar="FORMAT",
        help=about,
    )


def add_selectors(parser: Parser) -> None:
    """Add what selects and compiles builds: models, targets, jobs and the cache."""
    add_config(parser)
    add_globs(parser)
    add_work(parser)


def add_work(parser: Parser) -> None:
    """Add --jobs, --cache and --cache-limit."""
    about = "run N compiles at the same time (default: %(default)s)"
    parser.add_argument(
        "--jobs", type=positive, default=cores(), metavar="N", help=about
    )
    add_cache(parser)
    # as a default of argparse, the limit would be parsed before any other mistake is
    # reported
    about = (
        f"evict unused entries above this size (default: {default_limit()})".replace(
            "%", "%%"
        )
    )
    parser.add_argument("--cache-limit", type=limit, metavar="SIZE", help=about)


def add_out(parser: Parser, files: str = "the six files of the report") -> None:
    """Add --out, a directory; `files`: what is written there."""
    about = f"write {files} here (default: %(default)s)"
    parser.add_argument(
        "--out", type=path, default=Path("out"), metavar="DIR", help=about
    )
    parser.set_defaults(out_is_directory=True)


def add_flags(parser: Parser, where: str = "every build", dest: str = "flags") -> None:
    """Add --flags; `where`: the builds that get them."""
    about = f"add compiler flags to {where} (repeatable)"
    parser.add_argument(
        "--flags",
        dest=dest,
        type=flags,
        action="extend",
        default=[],
        metavar="FLAGS",
        help=about,
    )


def add_suspects(parser: Parser) -> None:
    """Add --suspects and --source."""
    about = "list compiler commits on GitHub behind each cause"
    parser.add_argument("--suspects", action="store_true", help=about)
    about = "search this clone for the commits, not GitHub"
    parser.add_argument("--source", type=clone, metavar="DIR", help=about)


def named_sides(arguments: Arguments) -> dict[str, str | None]:
    """Return what base and head are, named by position or by option.

    None for a side without a name. Raises UsageError for a third side, and for a side
    with two names.
    """
    sides: list[str] = arguments.sides
    if len(sides) > 2:
        hint = "`history --releases` compares more than two"
        raise UsageError("too many sides", where=" ".join(sides), hint=hint)
    specs: dict[str, str | None] = {"base": arguments.base, "head": arguments.head}
    for side, word in zip(specs, sides, strict=False):
        option = specs[side]
        if option:
            hint = f"leave out --{side}"
            raise UsageError(
                f"the {side} side is named twice",
                where=f"{word} and --{side} {option}",
                hint=hint,
            )
        specs[side] = word
    return specs
