"""Options that several commands have, each with its default and help text; imported by the grammar alone."""

from __future__ import annotations

import argparse
from pathlib import Path

from bot.cli.argument_types import clone, directory, flags, limit, path, positive
from bot.system.defaults import cores, default_cache, default_limit

CACHE_HELP = "cells and compilers (default: %(default)s)"
CONFIG_HELP = (
    "configuration, or `default` for the packaged suite (default: .github/code-size.yml or code-size.yml, here or "
    "above in the repository, else the packaged suite)"
)
SHORT_NAMES = "short names as in reports are understood"


def limit_told() -> str:
    """For the help; as a default of argparse's own it would be read before any mistake is told."""
    return f"(default: {default_limit()})".replace("%", "%%")


def add_globs(parser: argparse.ArgumentParser) -> None:
    """--model and --target."""
    parser.add_argument("--model", action="append", default=[], metavar="GLOB", help="only these models; repeatable")
    about = f"only these targets; repeatable, and {SHORT_NAMES}: x86_64 is llvm-cpu-x86_64"
    parser.add_argument("--target", action="append", default=[], metavar="GLOB", help=about)


def add_config(parser: argparse.ArgumentParser) -> None:
    """--config."""
    parser.add_argument("--config", type=path, metavar="FILE", help=CONFIG_HELP)


def add_format(parser: argparse.ArgumentParser, json: str) -> None:
    """--format; `json`: what comes out then."""
    about = f"json: {json} on standard output (default: %(default)s)"
    parser.add_argument("--format", choices=("text", "json"), default="text", help=about)


def add_selectors(parser: argparse.ArgumentParser) -> None:
    """What says which cells, and how they are compiled: --config, --model, --target, --jobs, the cache."""
    add_config(parser)
    add_globs(parser)
    add_work(parser)


def add_work(parser: argparse.ArgumentParser) -> None:
    """--jobs, and the cache."""
    jobs = "compiles side by side (default: %(default)s)"
    parser.add_argument("--jobs", type=positive, default=cores(), metavar="N", help=jobs)
    parser.add_argument("--cache", type=directory, default=default_cache(), metavar="DIR", help=CACHE_HELP)
    about = "size limit of the cache after the run; what was unused for the longest time is removed first"
    parser.add_argument("--cache-limit", type=limit, metavar="SIZE", help=f"{about} {limit_told()}")


def add_out(parser: argparse.ArgumentParser, files: str = "the six files") -> None:
    """--out, a directory; `files`: what goes there."""
    text = f"where {files} go (default: %(default)s)"
    parser.add_argument("--out", type=path, default=Path("out"), metavar="DIR", help=text)


def add_flags(parser: argparse.ArgumentParser, where: str) -> None:
    """--flags; `where`: for which cells."""
    about = f"more compiler flags {where}, quoted as in a shell; repeatable: --flags='--iree-opt-level=O2'"
    parser.add_argument("--flags", type=flags, action="extend", default=[], metavar="FLAGS", help=about)


def add_suspects(parser: argparse.ArgumentParser) -> None:
    """--suspects and --source."""
    about = (
        "look up on GitHub which commits between the two compilers touched the pass or the knob of a root cause: a few "
        "requests, with the token in GITHUB_TOKEN or GH_TOKEN if there is one"
    )
    parser.add_argument("--suspects", action="store_true", help=about)
    about = "the same in a clone of the compiler's repository, without the network"
    parser.add_argument("--source", type=clone, metavar="DIR", help=about)
