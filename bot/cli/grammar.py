"""The command line's grammar: commands, options, defaults and help texts with examples.

Help, version and mistakes are told by this file and the few that it imports, so these import next to nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from bot import __version__
from bot.cli.argument_types import directory, limit, path, positive, shard, share, spec, steps
from bot.cli.parsing import Parser
from bot.cli.shared_options import (
    CACHE_HELP,
    SHORT_NAMES,
    add_config,
    add_flags,
    add_format,
    add_globs,
    add_out,
    add_selectors,
    limit_told,
)
from bot.system.defaults import default_cache

SIDES = ("base", "head")

EXAMPLES = """examples:
  code-size-bot compare --base 3.11.0 --head 3.13.0
  code-size-bot compare --base 3.13.0 --head ../iree-build --model 'bert*' --target 'llvm-cpu-*'
  code-size-bot compare --compiler 3.13.0 --flags=--iree-opt-level=O2 --model 'bert*'
  code-size-bot compare --compiler 3.13.0 --head-config edited.yml
  code-size-bot measure --compiler 3.13.0 --out main.json
  code-size-bot compare --base main.json --head dist/iree_base_compiler-3.14.0-cp311-cp311-linux_x86_64.whl
  code-size-bot report --base main.json --head head.json --out out

SPEC is a release (3.13.0, iree-base-compiler==3.13.0, the dated 3.14.0rc20261101), latest or nightly, a wheel file or a
directory of wheels, an iree-compile binary, a virtual environment or build directory holding one, or (compare) a
snapshot.json measured earlier, or a directory with one; a glob ('dist/*.whl') stands for the one path that it matches.
Nightly releases need compiler.find_links of a configuration, or PIP_FIND_LINKS.

exit codes: 0 pass or warn, 1 the verdict is fail, 2 bad usage, configuration or input, 3 GitHub or network,
4 a compiler could not be had, 5 no verdict: nothing could be compared, or an internal error, 130 interrupted
"""


def _compare(parser: argparse.ArgumentParser) -> None:
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
    add_format(parser, "what report.json has, and nothing else,")
    add_out(parser)
    add_selectors(parser)


def _pin_report(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        f"{parser.description}. The root causes lead; with --steps the releases between are measured as well, and each "
        "root cause is told with the step that has the very same. Writes pin.md beside the six files."
    )
    for option, name, text in (("from", "old", "pin before"), ("to", "new", "pin after")):
        parser.add_argument(f"--{option}", dest=name, type=spec, required=True, metavar="SPEC", help=f"the {text}")
    about = "releases between that are measured: all, none, or how many, spread evenly (default: none)"
    parser.add_argument("--steps", type=steps, default=0, metavar="N", help=about)
    add_format(parser, "what report.json has, and nothing else,")
    add_out(parser)
    add_selectors(parser)


def _measure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--compiler", type=spec, required=True, metavar="SPEC", help="the compiler")
    parser.add_argument("--out", type=path, required=True, metavar="FILE", help="the snapshot to write")
    parser.add_argument("--shard", type=shard, default=(1, 1), metavar="I/N", help="measure only part I of N")
    about = "what `plan --shards N` printed; without it, cells are spread by the models' sizes"
    parser.add_argument("--plan", type=path, metavar="FILE", help=about)
    add_flags(parser, "for every cell")
    add_selectors(parser)


def _calibrate(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        f"{parser.description}. Without --model and --target a few cheap cells are taken. "
        "Prints a table, and the lines for the configuration."
    )
    parser.add_argument("--compiler", type=spec, required=True, metavar="SPEC", help="the compiler")
    about = "compiles of each cell, at least 2 (default: %(default)s)"
    parser.add_argument("--runs", type=positive, default=5, metavar="N", help=about)
    add_selectors(parser)


def _merge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("parts", nargs="+", type=path, metavar="part.json", help="snapshots of one run")
    parser.add_argument("--out", type=path, required=True, metavar="FILE", help="the snapshot to write")


def _report(parser: argparse.ArgumentParser) -> None:
    for side in SIDES:
        parser.add_argument(f"--{side}", type=path, required=True, metavar="FILE", help=f"snapshot of the {side} side")
    add_config(parser)
    add_globs(parser)
    texts = "where the IR of both sides may be kept, for differences (default: %(default)s)"
    parser.add_argument("--cache", type=directory, default=default_cache(), metavar="DIR", help=texts)
    add_format(parser, "what report.json has, and nothing else,")
    add_out(parser)


def _goldens(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        f"{parser.description}: text for a commit message, and below it a patch for `git apply`. With --base each "
        "value that changes has its cause. A value that cannot be measured stays, and is listed."
    )
    about = "compiler, or snapshot measured with this configuration, whose values the goldens are to be"
    parser.add_argument("--head", type=spec, required=True, metavar="SPEC", help=about)
    parser.add_argument("--base", type=spec, metavar="SPEC", help="the same of the side that causes are told against")
    parser.add_argument("--out", type=path, metavar="FILE", help="where to write it (default: standard output)")
    add_selectors(parser)


def _fold(parser: argparse.ArgumentParser) -> None:
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


def _explain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("report", type=path, metavar="report.json", help="what a compare has written")
    parser.add_argument(
        "--model", required=True, metavar="M", help="the cell's model: its name, its beginning, or a glob"
    )
    parser.add_argument("--target", required=True, metavar="T", help=f"the cell's target: likewise; {SHORT_NAMES}")
    about = "only this dispatch, with all that is known of it: its name as it is shown, its beginning, or a glob"
    parser.add_argument("--dispatch", metavar="D", help=about)


def _plan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--shards", type=positive, required=True, metavar="N", help="how many")
    about = "an earlier snapshot: spread the cells by what each cost to compile then"
    parser.add_argument("--costs", type=path, metavar="FILE", help=about)
    add_selectors(parser)


def _listed(parser: argparse.ArgumentParser) -> None:
    parser.description = f"{parser.description}, as far as the configuration has them"
    add_config(parser)
    add_globs(parser)
    add_format(parser, "the same as JSON")


def _completion(parser: argparse.ArgumentParser) -> None:
    parser.description = f"{parser.description}, for your shell's start-up file"
    parser.add_argument("shell", choices=("bash", "zsh"), help="which shell")


def _init(parser: argparse.ArgumentParser) -> None:
    found = "Finds its models (.mlir and .mlirbc), the file that pins its compiler, and its default branch."
    parser.description = f"{parser.description}. {found}"
    where = "a directory of the repository (default: the current one)"
    parser.add_argument("--directory", type=directory, default=Path(), metavar="DIR", help=where)
    action = "what the workflows use: OWNER/REPO@COMMIT of this action (default: to be filled in)"
    parser.add_argument("--action", default="", metavar="ACTION", help=action)
    parser.add_argument("--force", action="store_true", help="write over files that are there")


def _doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cache", type=directory, default=default_cache(), metavar="DIR", help=CACHE_HELP)


def _cache(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cache", type=directory, default=default_cache(), metavar="DIR", help=CACHE_HELP)
    about = "remove what was unused for the longest time until the rest is within the limit; what a run uses now stays"
    parser.add_argument("--prune", action="store_true", help=about)
    about = "with --prune: what may stay, such as 2GiB, or 0B for nothing"
    parser.add_argument("--limit", type=limit, metavar="SIZE", help=f"{about} {limit_told()}")


_IN_WORKFLOW = "   # in a workflow: uses: OWNER/REPO@v1, with: {{command: {}}}"


def _action(parser: argparse.ArgumentParser) -> None:
    about = "Reads the event, the token and everything else from the environment that GitHub Actions sets (INPUT_*)."
    parser.description = f"{parser.description}. {about}"


class Command:
    """One subcommand: what it is for, an example, and what adds its own arguments; dataclasses import too much here."""

    def __init__(self, about: str, example: str, arguments: Callable[[argparse.ArgumentParser], None]) -> None:
        self.about, self.example, self.arguments = about, example, arguments


COMMANDS: dict[str, Command] = {
    "init": Command("write a configuration and workflows for a repository", "--action OWNER/REPO@COMMIT", _init),
    "compare": Command(
        "measure two sides and report what changed",
        "--base 3.11.0 --head 3.13.0\n"
        "--base 3.13.0 --head 3.13.0 --flags='--iree-opt-level=O2' --model 'bert*'\n"
        "--compiler 3.13.0 --head-config edited.yml --format json",
        _compare,
    ),
    "pin-report": Command(
        "tell what another release of the compiler does",
        "--from 3.11.0 --to 3.13.0 --steps all --model 'mobilenet*'",
        _pin_report,
    ),
    "measure": Command("measure one side into a snapshot", "--compiler 3.13.0 --out head.json --shard 1/4", _measure),
    "calibrate": Command(
        "measure how much compile time and memory vary here",
        "--compiler 3.13.0 --model 'mobilenet*' --target vmvx --runs 10",
        _calibrate,
    ),
    "merge": Command("join the snapshots of shards", "part-1.json part-2.json --out head.json", _merge),
    "report": Command("compare two snapshots", "--base base.json --head head.json --out out", _report),
    "goldens": Command(
        "print the golden files of the configuration's suites with the measured values",
        "--head 3.13.0 --base 3.12.0 --config code-size.yml --out goldens.patch",
        _goldens,
    ),
    "fold": Command(
        "fold what deduplication left apart, and tell what that saves and costs",
        "--compiler 3.13.0 --model 'mobilenet_v1*' --target x86_64 --out out\n"
        "--compiler 3.13.0 --model 'mobilebert*int8*' --max-slowdown 1% --out out",
        _fold,
    ),
    "explain": Command(
        "tell why one cell changed",
        "out/report.json --model bert_l4_f32_s128 --target x86_64 --dispatch main_dispatch_4",
        _explain,
    ),
    "plan": Command("print the shards of a run as JSON for strategy.matrix", "--shards 4", _plan),
    "models": Command(
        "list the models, where they come from and their cells", "--model 'bert*' --target vulkan", _listed
    ),
    "targets": Command("list the targets, their short names, backends and flags", "--format json", _listed),
    "review": Command(
        "on GitHub: measure a pull request or a manual run, and report", _IN_WORKFLOW.format("review"), _action
    ),
    "post": Command("on GitHub: the trusted half, for forks and comments", _IN_WORKFLOW.format("post"), _action),
    "baseline": Command("on GitHub: measure a push and store its snapshot", _IN_WORKFLOW.format("baseline"), _action),
    "action": Command("on GitHub: what the event asks for", _IN_WORKFLOW.format("auto"), _action),
    "cache": Command("show what the cache holds, and prune it", "--prune --limit 2GiB", _cache),
    "completion": Command("print what completes commands and options in a shell", "bash", _completion),
    "doctor": Command("say what is here, what is missing and how to fix it", "", _doctor),
}


def build_parser() -> argparse.ArgumentParser:
    """The whole grammar; the chosen command is in `command`."""
    form = argparse.RawDescriptionHelpFormatter
    about = "What did this change do to the code that ships?"
    parser = Parser("code-size-bot", description=about, epilog=EXAMPLES, formatter_class=form)
    parser.add_argument("-V", "--version", action="version", version=f"code-size-bot {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        epilog = "\n".join(("example:", *(f"  code-size-bot {name} {one}" for one in command.example.split("\n"))))
        sub = commands.add_parser(
            name, help=command.about, description=command.about, epilog=epilog, formatter_class=form
        )
        sub.add_argument("-q", "--quiet", action="store_true", help="only errors, and where the files are")
        command.arguments(sub)
    return parser
