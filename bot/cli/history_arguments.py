"""The arguments of the commands over many releases, by a function of the command's name; imports next to nothing."""
# ruff: noqa: D103 (what a command is for stands once, in the grammar's table)

from __future__ import annotations

import argparse

from bot.cli.argument_types import positive, spec
from bot.cli.shared_options import add_flags, add_format, add_out, add_selectors

_LAST = 100


def history(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        f"{parser.description}: when each number of each cell moved, by how much and why. Measures what the cache does "
        "not have, and writes history.json, history.md and history.html. Where a model does not compile there is a "
        "gap with its reason."
    )
    about = (
        "a range of releases with all that are offered between (3.8.0..3.13.0, 3.11.0..latest), or any SPECs and "
        "snapshots; repeatable, and with commas between"
    )
    parser.add_argument("--releases", type=spec, action="append", default=[], metavar="SPECS", help=about)
    about = (
        "the stored baselines in place of releases: data-branch, directory, or a directory "
        "(default: where the configuration keeps them)"
    )
    parser.add_argument("--store", type=spec, nargs="?", const="configured", metavar="PLACE", help=about)
    about = "with --store: only the last N that were stored (default: %(default)s)"
    parser.add_argument("--last", type=positive, default=_LAST, metavar="N", help=about)
    add_flags(parser, "for every cell")
    add_format(parser, "what history.json has, and nothing else,")
    add_out(parser, "the three files")
    add_selectors(parser)
