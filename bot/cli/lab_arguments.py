"""The arguments of `lab`; imported wherever help is shown, so it imports next to nothing."""

from __future__ import annotations

import argparse

from bot.cli.options import add_flags, add_out, add_selectors, path, spec


def lab(parser: argparse.ArgumentParser) -> None:
    """What an experiment is asked with."""
    parser.description = (
        f"{parser.description}. Its variants are measured as any cell is, and compared with the first of them; where "
        "the experiment asks for it, artifacts are run and timed. Writes lab.json, lab.md and lab.html."
    )
    about = "the experiment; without one, they are listed"
    parser.add_argument("experiment", nargs="?", metavar="EXPERIMENT", help=about)
    parser.add_argument("--list", action="store_true", help="list the experiments, and end")
    about = "your own experiments (default: the packaged ones)"
    parser.add_argument("--experiments", type=path, metavar="FILE", help=about)
    about = "compiler of the variants that name none (default: compiler.head of the configuration)"
    parser.add_argument("--compiler", type=spec, metavar="SPEC", help=about)
    parser.add_argument("--no-run", action="store_true", help="compile only: nothing is run, and nothing timed")
    add_flags(parser, "for every cell")
    add_out(parser, "the three files")
    add_selectors(parser)
