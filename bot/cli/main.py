"""List the commands in groups, run the chosen one, and return its exit code.

`--help`, `--version` and usage errors are fast, as a command imports what it needs only
when it runs. Every error that a command raises becomes one line and an exit code here.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Any

from bot import __version__
from bot.cli import (
    action,
    bisect,
    compare,
    doctor,
    explain,
    fold,
    history,
    init,
    lab,
    listing,
    measure,
    merge,
    models,
    plan,
    report,
    trace,
)
from bot.cli.grammar import Arguments, Parser
from bot.errors import BotError, InternalError, Interrupted, OutputError

GROUPS = {
    "ask": {
        "compare": (compare, "measure two sides and report what changed"),
        "report": (report, "compare two snapshots and report what changed"),
        "explain": (explain, "show why one build changed"),
        "trace": (trace, "follow one dispatch through the passes of two compilers"),
        "history": (history, "show what each release changed"),
        "bisect": (
            bisect,
            "find the first release, wheel or snapshot with a bad value",
        ),
        "lab": (lab, "compare several variants of flags, compilers or models"),
        "fold": (fold, "merge near-duplicate executables and measure the saving"),
    },
    "keep": {
        "measure": (measure, "measure one side and write a snapshot"),
    },
    "set up": {
        "init": (init, "write a configuration and workflows for a repository"),
        "doctor": (doctor, "check this machine, and show how to fix what is missing"),
        "models": (models, "list the models, their builds, sizes and files"),
        "targets": (listing, "list the targets, their builds, backends and flags"),
    },
    "in CI": {
        "plan": (plan, "print the shards of a run as JSON for strategy.matrix"),
        "merge": (merge, "merge the snapshots of shards"),
        "post": (action, "post the report of a fork's run"),
        "action": (action, "run the command that the event and the inputs select"),
    },
}
"""Group → command → its file, and what it is for."""
COMMANDS = {
    name: command for group in GROUPS.values() for name, command in group.items()
}
_EPILOG = """examples:
  code-size-bot compare 3.11.0 3.13.0 --config quick
  code-size-bot explain out --model mobilenet_v1_f32_224 --target x86_64
  code-size-bot measure --compiler 3.13.0 --out main.json --config quick
  code-size-bot compare main.json 3.13.0 --config quick --model 'bert*s128' \
--flags='--iree-opt-level=O2'

A SPEC is one of these:
  release     3.13.0, 3.13 (the same), 3.14.0rc20261101, iree-base-compiler==3.13.0, \
latest or nightly
  file        a wheel, an iree-compile binary, or a snapshot.json that an earlier run \
wrote
  directory   a virtual environment, a build directory, or a directory with one wheel \
or a snapshot.json
  glob        'dist/*.whl' for the one file that it matches

A nightly release also needs compiler.find_links in the configuration, or \
PIP_FIND_LINKS.

The configuration is .github/code-size.yml or code-size.yml of this directory, or of \
the nearest one above it in the \
repository. Without one, the suite `full` is measured. The packaged suites are quick, \
full and triton.

exit codes:
  0    the verdict is pass or warn
  1    the verdict is fail
  2    bad usage, configuration or input
  3    GitHub or the network failed
  4    a compiler is not available
  5    no verdict: nothing could be compared, or an internal error
  130  interrupted

`code-size-bot COMMAND --help` shows the options and examples of a command.
"""
_QUIET = "print only errors, the verdict and the output paths"
_AGAIN = "run the same command again: finished builds are in the cache"


def build_parser() -> Parser:
    """Build the grammar, with the commands in their groups."""
    lines = [
        "Review the size of compiled code: what grew, why, and whether that is allowed."
    ]
    for group, group_commands in GROUPS.items():
        lines += [
            "",
            f"{group}:",
            *(f"    {name:12}{about}" for name, (_, about) in group_commands.items()),
        ]
    parser = Parser("code-size-bot", description="\n".join(lines), epilog=_EPILOG)
    parser.commands = tuple(COMMANDS)
    parser.add_argument(
        "-V", "--version", action="version", version=f"code-size-bot {__version__}"
    )
    commands = parser.add_subparsers(
        dest="command",
        required=True,
        prog=parser.prog,
        metavar="COMMAND",
        help="name of a command",
    )
    for name, (command, about) in COMMANDS.items():
        _add_command(commands.add_parser(name), command, about)
    return parser


def _add_command(parser: Parser, command: Any, about: str) -> None:
    """Give the parser of a command its texts and options."""
    parser.description = f"{about[0].upper()}{about[1:]}."
    parser.epilog = "\n".join(
        ("examples:", *(f"  {line}" for line in command.EXAMPLES))
    )
    parser.example = command.EXAMPLES[-1] if command.EXAMPLES else ""
    parser.add_argument("-q", "--quiet", action="store_true", help=_QUIET)
    parser.set_defaults(run=command.run)
    command.arguments(parser)


def _on_signal(number: int, _frame: object) -> None:
    raise Interrupted(f"ended by {signal.Signals(number).name}", hint=_AGAIN)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    if isinstance(sys.stdout, TextIOWrapper):  # standard error does this by itself
        sys.stdout.reconfigure(errors="backslashreplace")
    parser = build_parser()
    command_line = argv
    if command_line is None:
        command_line = sys.argv[1:]
    if not command_line:
        parser.print_help()
        return 0
    arguments = Arguments()
    parser.parse_args(command_line, arguments)
    try:
        from bot.cli.showing import unread
        from bot.cli.work import perform

        _handle_signals()
        with unread():
            return perform(arguments)
        return 0  # nobody reads standard output any more, which `unread` ignores
    except BotError as error:
        return _complain(error)
    except KeyboardInterrupt:
        return _complain(Interrupted("interrupted", hint=_AGAIN))
    except OSError as error:
        where = str(error.filename or "")
        hint = "free some space, or check the permissions"
        return _complain(
            OutputError(error.strerror or str(error), where=where, hint=hint)
        )
    except Exception as error:
        internal = InternalError.of(error)
        internal.__cause__ = error
        return _complain(internal)


def _handle_signals() -> None:
    """End the run on a signal, unless the signal is ignored, as it is under nohup."""
    handlers = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: _on_signal,
        signal.SIGHUP: _on_signal,
    }
    for number, handler in handlers.items():
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _complain(error: BotError) -> int:
    import traceback

    from rich.console import Console

    from bot.cli.showing import for_log

    if isinstance(error, InternalError) and os.environ.get("CODE_SIZE_TRACEBACK"):
        lines = traceback.format_exception(error.__cause__ or error)
        print(for_log("".join(lines)), end="", file=sys.stderr)
    console = Console(stderr=True, soft_wrap=True, emoji=False)
    console.print(
        for_log(f"code-size-bot: {error.line}"),
        style="bold red",
        markup=False,
        highlight=False,
    )
    return error.exit_code
