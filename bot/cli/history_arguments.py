"""The arguments of the commands over many releases, by a function of the command's name; imports next to nothing."""
# ruff: noqa: D103 (what a command is for stands once, in the grammar's table)

from __future__ import annotations

import argparse

from bot.cli.options import (
    SHORT_NAMES,
    add_config,
    add_flags,
    add_format,
    add_out,
    add_selectors,
    add_suspects,
    add_work,
    count,
    path,
    positive,
    spec,
)


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
    parser.add_argument("--last", type=positive, default=100, metavar="N", help=about)
    add_flags(parser, "for every cell")
    add_format(parser, "what history.json has, and nothing else,")
    add_out(parser, "the three files")
    add_selectors(parser)


def bisect(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        f"{parser.description}. Bad is a value above the limit: without --limit and --change, one that is nearer "
        "to BAD's than to GOOD's. Between two releases all that are offered are candidates, between two wheels those "
        "of their directory. What cannot be measured is skipped."
    )
    parser.add_argument("good", type=spec, metavar="GOOD", help="a SPEC, or with --stored a commit: here it is good")
    parser.add_argument("bad", type=spec, metavar="BAD", help="likewise: here it is bad")
    about = "what moved, by its id (default: %(default)s)"
    parser.add_argument("--metric", default="artifact_bytes", metavar="ID", help=about)
    parser.add_argument("--model", required=True, metavar="M", help="the cell's model: its name, or a glob of it")
    parser.add_argument("--target", required=True, metavar="T", help=f"the cell's target: likewise; {SHORT_NAMES}")
    bad = parser.add_mutually_exclusive_group()
    bad.add_argument("--limit", type=spec, metavar="VALUE", help="bad is what is above it: 64KiB, 120")
    bad.add_argument("--change", type=spec, metavar="VALUE", help="bad is what grew by more since GOOD: 10%%, 4KiB, 3")
    where = parser.add_mutually_exclusive_group()
    about = (
        "what lies between, from GOOD to BAD: a SPEC, a glob, or a directory of wheels or of snapshots; repeatable "
        "(default: what is offered)"
    )
    where.add_argument("--among", type=spec, action="append", default=[], metavar="SPEC", help=about)
    about = "the stored baselines of the configuration, along first parents; GOOD and BAD are commits then"
    where.add_argument("--stored", action="store_true", help=about)
    add_config(parser)
    add_work(parser)
    add_suspects(parser)
    add_format(parser, "what bisect.json has, and nothing else,")
    add_out(parser, "bisect.json and the report of the step")


def ratchet(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        f"{parser.description}: text for a commit message, and below it a patch for `git apply`. No limit gets looser, "
        "and none is changed for which a cell is not measured or not deterministic: these are listed."
    )
    about = "what is measured now: a snapshot, or the report.json or directory of a compare, of which it is the head"
    parser.add_argument("measured", type=path, metavar="FILE", help=about)
    about = "what stays above the largest value (default: %(default)s)"
    parser.add_argument("--headroom", type=spec, default="0%", metavar="PERCENT", help=about)
    add_config(parser)
    parser.add_argument("--out", type=path, metavar="FILE", help="where to write it (default: standard output)")


def replay(parser: argparse.ArgumentParser, other: argparse._MutuallyExclusiveGroup) -> None:
    about = (
        "measure nothing, but hold each of these against the one before, by the configuration's thresholds: snapshots "
        "in their order, or one history.json"
    )
    other.add_argument("--replay", type=path, nargs="+", default=[], metavar="FILE", help=about)
    about = "with --replay: tell for each rule the smallest level that alarms in so many of the steps at most"
    parser.add_argument("--alarms", type=count, metavar="N", help=about)
