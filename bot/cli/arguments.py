"""The arguments of each command, by a function of its name; what several commands share is in `shared_options`.

Imported wherever help is shown, so it imports next to nothing.
"""
# ruff: noqa: D103 (what a command is for stands once, in the grammar's table)

from __future__ import annotations

import argparse
from pathlib import Path

from bot.cli.history_arguments import replay
from bot.cli.options import (
    CACHE_HELP,
    SHORT_NAMES,
    add_config,
    add_flags,
    add_format,
    add_globs,
    add_out,
    add_selectors,
    add_suspects,
    add_work,
    directory,
    limit,
    limit_told,
    path,
    positive,
    shard,
    share,
    spec,
    steps,
)
from bot.system.defaults import default_cache

SIDES = ("base", "head")


def compare(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        f"{parser.description}. With --flags, --base-config or --head-config it tries them: a compiler that is named "
        "for one side is then both sides'; where none is, each side has the head of its configuration."
    )
    for side in SIDES:
        text = f"compiler or snapshot of the {side} side (default: compiler.{side} of the configuration)"
        parser.add_argument(f"--{side}", type=spec, metavar="SPEC", help=text)
    parser.add_argument("--compiler", type=spec, metavar="SPEC", help="compiler of a side that is not named")
    add_flags(parser, "for the head side alone")
    for side, rules in (("base", ", and the rules"), ("head", "")):
        text = f"models, targets and flags of the {side} side{rules} (default: --config)"
        parser.add_argument(f"--{side}-config", type=path, metavar="FILE", help=text)
    add_suspects(parser)
    add_format(parser, "what report.json has, and nothing else,")
    add_out(parser)
    add_selectors(parser)


def pin_report(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        f"{parser.description}. The root causes lead; with --steps the releases between are measured as well, and each "
        "root cause is told with the step that has the very same. Writes pin.md beside the six files."
    )
    for option, name, text in (("from", "old", "pin before"), ("to", "new", "pin after")):
        parser.add_argument(f"--{option}", dest=name, type=spec, required=True, metavar="SPEC", help=f"the {text}")
    about = "releases between that are measured: all, none, or how many, spread evenly (default: none)"
    parser.add_argument("--steps", type=steps, default=0, metavar="N", help=about)
    add_suspects(parser)
    add_format(parser, "what report.json has, and nothing else,")
    add_out(parser)
    add_selectors(parser)


def measure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--compiler", type=spec, required=True, metavar="SPEC", help="the compiler")
    parser.add_argument("--out", type=path, required=True, metavar="FILE", help="the snapshot to write")
    parser.add_argument("--shard", type=shard, default=(1, 1), metavar="I/N", help="measure only part I of N")
    about = "what `plan --shards N` printed; without it, cells are spread by the models' sizes"
    parser.add_argument("--plan", type=path, metavar="FILE", help=about)
    add_flags(parser, "for every cell")
    add_selectors(parser)


def calibrate(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        f"{parser.description}. Without --model and --target a few cheap cells are taken. "
        "Prints a table, and the lines for the configuration. With --replay: what the thresholds would have said of "
        "changes that were measured before."
    )
    one = parser.add_mutually_exclusive_group(required=True)
    one.add_argument("--compiler", type=spec, metavar="SPEC", help="the compiler")
    replay(parser, one)
    about = "compiles of each cell, at least 2 (default: %(default)s)"
    parser.add_argument("--runs", type=positive, default=5, metavar="N", help=about)
    add_selectors(parser)


def merge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("parts", nargs="+", type=path, metavar="part.json", help="snapshots of one run")
    parser.add_argument("--out", type=path, required=True, metavar="FILE", help="the snapshot to write")


def report(parser: argparse.ArgumentParser) -> None:
    for side in SIDES:
        parser.add_argument(f"--{side}", type=path, required=True, metavar="FILE", help=f"snapshot of the {side} side")
    add_config(parser)
    add_globs(parser)
    texts = "where the IR of both sides may be kept, for differences (default: %(default)s)"
    parser.add_argument("--cache", type=directory, default=default_cache(), metavar="DIR", help=texts)
    add_suspects(parser)
    add_format(parser, "what report.json has, and nothing else,")
    add_out(parser)


def goldens(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        f"{parser.description}: text for a commit message, and below it a patch for `git apply`. With --base each "
        "value that changes has its cause. A value that cannot be measured stays, and is listed."
    )
    about = "compiler, or snapshot measured with this configuration, whose values the goldens are to be"
    parser.add_argument("--head", type=spec, required=True, metavar="SPEC", help=about)
    parser.add_argument("--base", type=spec, metavar="SPEC", help="the same of the side that causes are told against")
    parser.add_argument("--out", type=path, metavar="FILE", help="where to write it (default: standard output)")
    add_selectors(parser)


def fold(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        f"{parser.description}. Executables that deduplication left apart are made one, with what they differ in as "
        "operands; the result is compiled, and on the CPU run and timed beside the original. Writes fold.json, fold.md "
        "and the folded modules. What is not equal, or has no gain, is left and listed: that is no failure."
    )
    about = "the compiler (default: compiler.head of the configuration)"
    parser.add_argument("--compiler", type=spec, metavar="SPEC", help=about)
    about = (
        "the most run time that a fold may cost, such as 1%% "
        "(default: fold.max_slowdown of the configuration, else every fold with gain is kept)"
    )
    parser.add_argument("--max-slowdown", type=share, metavar="PERCENT", help=about)
    about = "compile only: outputs are not compared, and nothing is timed"
    parser.add_argument("--no-run", action="store_true", help=about)
    add_flags(parser, "for every cell")
    add_out(parser, "the files")
    add_selectors(parser)


def explain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("report", type=path, metavar="report.json", help="what a compare has written")
    parser.add_argument(
        "--model", required=True, metavar="M", help="the cell's model: its name, its beginning, or a glob"
    )
    parser.add_argument("--target", required=True, metavar="T", help=f"the cell's target: likewise; {SHORT_NAMES}")
    about = "only this dispatch, with all that is known of it: its name as it is shown, its beginning, or a glob"
    parser.add_argument("--dispatch", metavar="D", help=about)


def trace(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        f"{parser.description}: it is compiled alone with its IR printed after each pass, and its operations are "
        "counted. Tells the passes, the first after which the sides are apart by a good part of what they are in the "
        "end, and the commands that print all of it."
    )
    parser.add_argument("--model", required=True, metavar="M", help="the model: its name, or a glob of one")
    parser.add_argument("--target", required=True, metavar="T", help=f"the target: likewise; {SHORT_NAMES}")
    about = "the dispatch: its name on either side, its beginning (dispatch_9), or a glob"
    parser.add_argument("--dispatch", required=True, metavar="D", help=about)
    for side in SIDES:
        text = f"compiler of the {side} side (default: compiler.{side} of the configuration)"
        parser.add_argument(f"--{side}", type=spec, metavar="SPEC", help=text)
    parser.add_argument("--compiler", type=spec, metavar="SPEC", help="compiler of a side that is not named")
    add_flags(parser, "for the head side alone")
    add_suspects(parser)
    add_format(parser, "the passes as JSON")
    parser.set_defaults(out=Path())
    add_config(parser)
    add_work(parser)


def plan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--shards", type=positive, required=True, metavar="N", help="how many")
    about = "an earlier snapshot: spread the cells by what each cost to compile then"
    parser.add_argument("--costs", type=path, metavar="FILE", help=about)
    add_selectors(parser)


def listed(parser: argparse.ArgumentParser) -> None:
    parser.description = f"{parser.description}, as far as the configuration has them"
    add_config(parser)
    add_globs(parser)
    add_format(parser, "the same as JSON")


def completion(parser: argparse.ArgumentParser) -> None:
    parser.description = f"{parser.description}, for your shell's start-up file"
    parser.add_argument("shell", choices=("bash", "zsh"), help="which shell")


def init(parser: argparse.ArgumentParser) -> None:
    description = "Finds its models (.mlir and .mlirbc), the file that pins its compiler, and its default branch."
    parser.description = f"{parser.description}. {description}"
    where = "a directory of the repository (default: the current one)"
    parser.add_argument("--directory", type=directory, default=Path(), metavar="DIR", help=where)
    action = "what the workflows use: OWNER/REPO@COMMIT of this action (default: to be filled in)"
    parser.add_argument("--action", default="", metavar="ACTION", help=action)
    parser.add_argument("--force", action="store_true", help="write over files that are there")


def doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cache", type=directory, default=default_cache(), metavar="DIR", help=CACHE_HELP)


def cache(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cache", type=directory, default=default_cache(), metavar="DIR", help=CACHE_HELP)
    about = "remove what was unused for the longest time until the rest is within the limit; what a run uses now stays"
    parser.add_argument("--prune", action="store_true", help=about)
    about = "with --prune: what may stay, such as 2GiB, or 0B for nothing"
    parser.add_argument("--limit", type=limit, metavar="SIZE", help=f"{about} {limit_told()}")


def action(parser: argparse.ArgumentParser) -> None:
    about = "Reads the event, the token and everything else from the environment that GitHub Actions sets (INPUT_*)."
    parser.description = f"{parser.description}. {about}"
