"""What several commands take: the types of arguments, the options they share, and how wrong ones are told."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from bot.system.defaults import cores, default_cache, default_limit

if TYPE_CHECKING:
    from contextlib import ExitStack

    from bot.cli.showing import TerminalShow
    from bot.system.processes import Cancel

_Value = TypeVar("_Value")


def _parsed(parse: Callable[[str], _Value], text: str) -> _Value:
    """Argparse tells the words of its own error alone."""
    try:
        return parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def shard(text: str) -> tuple[int, int]:
    """`2/4`: which part of how many."""
    from bot.config.units import parse_shard  # only those who measure a part wait for it

    return _parsed(parse_shard, text)


def positive(text: str) -> int:
    """A number from 1 on."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return int(text)


def limit(text: str) -> int:
    """A size with its unit, in bytes."""
    from bot.config.units import parse_size  # only those who give a limit wait for it

    return _parsed(parse_size, text)


def share(text: str) -> float:
    """A percentage, as a share of one."""
    from bot.config.units import parse_share  # likewise

    return _parsed(parse_share, text)


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
    """A directory, which need not be there; `~` is the user's own."""
    place = path(text).expanduser()
    if place.is_file():
        raise argparse.ArgumentTypeError(f"{text!r} is a file, and a directory is wanted")
    return place


def clone(text: str) -> Path:
    """A clone of a git repository, with files or without."""
    place = directory(text)
    if not (place / ".git").exists() and not (place / "HEAD").is_file():
        raise argparse.ArgumentTypeError(f"{text!r} is no clone of git")
    return place


class Arguments(argparse.Namespace):
    """What was typed, and what a run needs beside it."""

    show: TerminalShow
    cancel: Cancel
    closing: ExitStack


class Parser(argparse.ArgumentParser):
    """A parser, and the class of its subcommands' parsers."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Take sides from behind an option, too, which argparse does from Python 3.12 on."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if "sides" in parsed:
            parsed.sides = [*parsed.sides, *(word for word in unknown if not word.startswith("-"))]
            unknown = [word for word in unknown if word.startswith("-")]
        return parsed, unknown

    def error(self, message: str) -> NoReturn:
        """End with one line and code 2."""
        self.exit(2, f"{self.prog}: error: {message}\n")


# Options that several commands have, each with its default and help text; light to import.

CONFIG_HELP = (
    "configuration, or quick, full or triton for a packaged suite (default: .github/code-size.yml or code-size.yml, "
    "here or above in the repository, else the full suite)"
)
SHORT_NAMES = "short names as in reports are understood"


def limit_told() -> str:
    """For the help; as a default of argparse's own it would be read before any mistake is told."""
    return f"(default: {default_limit()})".replace("%", "%%")


def add_globs(parser: Parser) -> None:
    """--model and --target."""
    parser.add_argument("--model", action="append", default=[], metavar="GLOB", help="only these models; repeatable")
    about = f"only these targets; repeatable, and {SHORT_NAMES}: x86_64 is llvm-cpu-x86_64"
    parser.add_argument("--target", action="append", default=[], metavar="GLOB", help=about)


def add_cell(parser: Parser) -> None:
    """--model and --target, of which each means one."""
    about = "the build's model: its name, its beginning, or a glob of it"
    parser.add_argument("--model", required=True, metavar="M", help=about)
    parser.add_argument("--target", required=True, metavar="T", help=f"the build's target: likewise; {SHORT_NAMES}")


def add_sides(parser: Parser, what: str) -> None:
    """--base, --head, --compiler and --flags; `what` a SPEC may name."""
    for side in ("base", "head"):
        text = f"{what} of the {side} side (default: compiler.{side} of the configuration)"
        parser.add_argument(f"--{side}", type=spec, metavar="SPEC", help=text)
    add_compiler(parser, "compiler of a side that is not named")
    add_flags(parser, "for the head side alone", "tried")


def add_compiler(parser: Parser, about: str, *, required: bool = False) -> None:
    """--compiler."""
    parser.add_argument("--compiler", type=spec, required=required, metavar="SPEC", help=about)


def add_config(parser: Parser) -> None:
    """--config."""
    parser.add_argument("--config", type=path, metavar="FILE", help=CONFIG_HELP)


def add_cache(parser: Parser, about: str = "builds and compilers") -> None:
    """--cache."""
    help_text = f"{about} (default: %(default)s)"
    parser.add_argument("--cache", type=directory, default=default_cache(), metavar="DIR", help=help_text)


def add_format(parser: Parser, json: str) -> None:
    """--format; `json`: what comes out then."""
    about = f"json: {json} on standard output (default: %(default)s)"
    parser.add_argument("--format", choices=("text", "json"), default="text", help=about)


def add_selectors(parser: Parser) -> None:
    """What says which cells, and how they are compiled: --config, --model, --target, --jobs, the cache."""
    add_config(parser)
    add_globs(parser)
    add_work(parser)


def add_work(parser: Parser) -> None:
    """--jobs, and the cache."""
    jobs = "compiles side by side (default: %(default)s)"
    parser.add_argument("--jobs", type=positive, default=cores(), metavar="N", help=jobs)
    add_cache(parser)
    about = "size limit of the cache after the run; what was unused for the longest time is removed first"
    parser.add_argument("--cache-limit", type=limit, metavar="SIZE", help=f"{about} {limit_told()}")


def add_out(parser: Parser, files: str = "the six files") -> None:
    """--out, a directory; `files`: what goes there."""
    text = f"where {files} go (default: %(default)s)"
    parser.add_argument("--out", type=path, default=Path("out"), metavar="DIR", help=text)
    parser.set_defaults(out_is_directory=True)


def add_flags(parser: Parser, where: str = "for every build", dest: str = "flags") -> None:
    """--flags; `where`: for which cells."""
    about = f"more compiler flags {where}, quoted as in a shell; repeatable: --flags='--iree-opt-level=O2'"
    parser.add_argument("--flags", dest=dest, type=flags, action="extend", default=[], metavar="FLAGS", help=about)


def add_suspects(parser: Parser) -> None:
    """--suspects and --source."""
    about = (
        "look up on GitHub which commits between the two compilers touched the pass or the knob of a root cause: a few "
        "requests, with the token in GITHUB_TOKEN or GH_TOKEN if there is one"
    )
    parser.add_argument("--suspects", action="store_true", help=about)
    about = "the same in a clone of the compiler's repository, without the network"
    parser.add_argument("--source", type=clone, metavar="DIR", help=about)
