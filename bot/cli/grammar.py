"""The command line's grammar: all commands, what each is for, and an example; `arguments` has their options.

Help, version and mistakes are told by this file and the few that it imports, so these import next to nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from bot import __version__
from bot.cli import arguments, history_arguments, lab_arguments
from bot.cli.options import Parser

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


_IN_WORKFLOW = "   # in a workflow: uses: OWNER/REPO@v1, with: {{command: {}}}"


class Command:
    """One subcommand: what it is for, an example, and what adds its own arguments; dataclasses import too much here."""

    def __init__(self, about: str, example: str, arguments: Callable[[argparse.ArgumentParser], None]) -> None:
        self.about, self.example, self.arguments = about, example, arguments


COMMANDS: dict[str, Command] = {
    "init": Command(
        "write a configuration and workflows for a repository", "--action OWNER/REPO@COMMIT", arguments.init
    ),
    "compare": Command(
        "measure two sides and report what changed",
        "--base 3.11.0 --head 3.13.0\n"
        "--base 3.13.0 --head 3.13.0 --flags='--iree-opt-level=O2' --model 'bert*'\n"
        "--compiler 3.13.0 --head-config edited.yml --format json",
        arguments.compare,
    ),
    "pin-report": Command(
        "tell what another release of the compiler does",
        "--from 3.11.0 --to 3.13.0 --steps all --model 'mobilenet*'",
        arguments.pin_report,
    ),
    "measure": Command(
        "measure one side into a snapshot", "--compiler 3.13.0 --out head.json --shard 1/4", arguments.measure
    ),
    "calibrate": Command(
        "measure how much compile time and memory vary here, or replay changes against thresholds",
        "--compiler 3.13.0 --model 'mobilenet*' --target vmvx --runs 10\n"
        "--replay nightly/*.json --config code-size.yml --alarms 1",
        arguments.calibrate,
    ),
    "bisect": Command(
        "find where a number moved: the first bad one among releases, wheels or snapshots",
        "--model mobilenet_v1_f32_224 --target x86_64 3.11.0 3.13.0\n"
        "--metric executables --model 'bert*s128' --target vmvx --among dist 3.12.0 3.13.0\n"
        "--model mobilenet_v1_f32_224 --target x86_64 --limit 64KiB --among 'nightly/*.json' a.json b.json",
        history_arguments.bisect,
    ),
    "ratchet": Command(
        "print a patch that makes the limits of the configuration as tight as what is measured",
        "out/head.json --config code-size.yml --headroom 2% --out limits.patch",
        history_arguments.ratchet,
    ),
    "merge": Command("join the snapshots of shards", "part-1.json part-2.json --out head.json", arguments.merge),
    "report": Command("compare two snapshots", "--base base.json --head head.json --out out", arguments.report),
    "goldens": Command(
        "print the golden files of the configuration's suites with the measured values",
        "--head 3.13.0 --base 3.12.0 --config code-size.yml --out goldens.patch",
        arguments.goldens,
    ),
    "fold": Command(
        "fold what deduplication left apart, and tell what that saves and costs",
        "--compiler 3.13.0 --model 'mobilenet_v1*' --target x86_64 --out out\n"
        "--compiler 3.13.0 --model 'mobilebert*int8*' --max-slowdown 1% --out out",
        arguments.fold,
    ),
    "history": Command(
        "tell what each release of the compiler did to the code of the suite",
        "--releases 3.8.0..3.13.0 --target 'llvm-cpu-*'\n"
        "--releases 3.11.0,3.13.0,build/tools/iree-compile --model 'mobilenet*'\n"
        "--store data-branch --last 50",
        history_arguments.history,
    ),
    "lab": Command(
        "ask one question of several variants of flags, compilers or models, and tell what each gives",
        "llvm-size-passes --compiler 3.13.0 --model 'mobilenet_v1*' --target x86_64 --out out\n"
        "opt-level --compiler 3.13.0 --model bert_l4_f32_s128 --no-run\n"
        "--list",
        lab_arguments.lab,
    ),
    "explain": Command(
        "tell why one cell changed",
        "out/report.json --model bert_l4_f32_s128 --target x86_64 --dispatch main_dispatch_4",
        arguments.explain,
    ),
    "trace": Command(
        "follow one dispatch through the passes of both compilers, to the one that makes the difference",
        "--model bert_l4_f32_dyn --target x86_64 --dispatch dispatch_1 --base 3.11.0 --head 3.13.0\n"
        "--model 'mobilenet_v1*f32*' --target riscv64 --dispatch dispatch_9 --format json",
        arguments.trace,
    ),
    "plan": Command("print the shards of a run as JSON for strategy.matrix", "--shards 4", arguments.plan),
    "models": Command(
        "list the models, where they come from and their cells", "--model 'bert*' --target vulkan", arguments.listed
    ),
    "targets": Command("list the targets, their short names, backends and flags", "--format json", arguments.listed),
    "review": Command(
        "on GitHub: measure a pull request or a manual run, and report", _IN_WORKFLOW.format("review"), arguments.action
    ),
    "post": Command(
        "on GitHub: the trusted half, for forks and comments", _IN_WORKFLOW.format("post"), arguments.action
    ),
    "baseline": Command(
        "on GitHub: measure a push and store its snapshot", _IN_WORKFLOW.format("baseline"), arguments.action
    ),
    "action": Command("on GitHub: what the event asks for", _IN_WORKFLOW.format("auto"), arguments.action),
    "cache": Command("show what the cache holds, and prune it", "--prune --limit 2GiB", arguments.cache),
    "completion": Command("print what completes commands and options in a shell", "bash", arguments.completion),
    "doctor": Command("say what is here, what is missing and how to fix it", "", arguments.doctor),
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
