"""The command line: all commands in their groups, and the way from words to an exit code.

Help, version and mistakes do not wait: a command's file imports what its run needs when it runs. Only here BotError is
caught.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from io import TextIOWrapper

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
    plan,
    report,
    trace,
)
from bot.cli.options import Arguments, Parser
from bot.errors import BotError, InternalError, Interrupted, OutputError

GROUPS = {
    "ask": {
        "compare": (compare, "measure two sides and report what changed"),
        "report": (report, "compare two snapshots"),
        "explain": (explain, "tell why one build changed"),
        "trace": (trace, "follow one dispatch through the passes of both compilers"),
        "history": (history, "tell what each release did to the code of the suite"),
        "bisect": (bisect, "find where a number moved, among releases, wheels or snapshots"),
        "lab": (lab, "compare several variants of flags or releases"),
        "fold": (fold, "fold what deduplication left apart, and tell what that saves"),
    },
    "keep": {
        "measure": (measure, "measure one side into a snapshot"),
    },
    "set up": {
        "init": (init, "write a configuration and workflows for a repository"),
        "doctor": (doctor, "say what is here, what is missing and how to fix it"),
        "models": (listing, "list the models, where they come from and their builds"),
        "targets": (listing, "list the targets, their short names, backends and flags"),
    },
    "in CI": {
        "plan": (plan, "print the shards of a run as JSON for strategy.matrix"),
        "merge": (merge, "join the snapshots of shards"),
        "post": (action, "on GitHub: report what the run of a fork measured"),
        "action": (action, "on GitHub: what the event and the input command ask for"),
    },
}
"""Group → command → its file, and what it is for."""
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}
_EPILOG = """examples:
  code-size-bot compare 3.11.0 3.13.0 --config quick
  code-size-bot compare 3.13.0 ../iree-build --model 'bert*' --target 'llvm-cpu-*'
  code-size-bot compare --compiler 3.13.0 --flags=--iree-opt-level=O2 --model 'bert*'
  code-size-bot compare --compiler 3.13.0 --head-config edited.yml
  code-size-bot measure --compiler 3.13.0 --out main.json
  code-size-bot compare main.json dist/iree_base_compiler-3.14.0-cp311-cp311-linux_x86_64.whl
  code-size-bot report --base main.json --head head.json --out out

SPEC is a release (3.13.0, iree-base-compiler==3.13.0, the dated 3.14.0rc20261101), latest or nightly, a wheel file or a
directory of wheels, an iree-compile binary, a virtual environment or build directory holding one, or (compare) a
snapshot.json measured earlier, or a directory with one; a glob ('dist/*.whl') stands for the one path that it matches.
Nightly releases need compiler.find_links of a configuration, or PIP_FIND_LINKS.

exit codes: 0 pass or warn, 1 the verdict is fail, 2 bad usage, configuration or input, 3 GitHub or network,
4 a compiler could not be had, 5 no verdict: nothing could be compared, or an internal error, 130 interrupted
"""
_QUIET = "no news: only errors, the verdict, and where the files are; of what writes none, the answer"
_AGAIN = "run the same command again: finished builds are in the cache"


def build_parser() -> argparse.ArgumentParser:
    """The grammar; its commands are listed in their groups."""
    lines = ["What did this change do to the code that ships?"]
    for group, known in GROUPS.items():
        lines += ["", f"{group}:", *(f"    {name:12}{about}" for name, (_, about) in known.items())]
    form = argparse.RawDescriptionHelpFormatter
    parser = Parser("code-size-bot", description="\n".join(lines), epilog=_EPILOG, formatter_class=form)
    parser.add_argument("-V", "--version", action="version", version=f"code-size-bot {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (command, about) in COMMANDS.items():
        epilog = "\n".join(("example:", *(f"  code-size-bot {name} {one}" for one in command.EXAMPLES)))
        sub = commands.add_parser(name, description=about, epilog=epilog, formatter_class=form)
        sub.add_argument("-q", "--quiet", action="store_true", help=_QUIET)
        sub.set_defaults(run=command.run)
        command.arguments(sub)
    return parser


def _on_signal(number: int, _frame: object) -> None:
    raise Interrupted(f"ended by {signal.Signals(number).name}", hint=_AGAIN)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    if isinstance(sys.stdout, TextIOWrapper):  # standard error does this by itself
        sys.stdout.reconfigure(errors="backslashreplace")
    words: list[str] = []
    for word in sys.argv[1:] if argv is None else argv:
        if words and words[-1] == "--flags":  # argparse takes a value that begins with dashes for an option
            words[-1] += f"={word}"
        else:
            words.append(word)
    arguments = build_parser().parse_args(words, Arguments())
    try:
        from bot.cli.showing import unread
        from bot.cli.work import perform

        handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: _on_signal, signal.SIGHUP: _on_signal}
        for number, handler in handlers.items():
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
                signal.signal(number, handler)
        with unread():
            return perform(arguments)
        return 0
    except BotError as error:
        return _complain(error)
    except KeyboardInterrupt:
        return _complain(Interrupted("interrupted", hint=_AGAIN))
    except OSError as error:
        where, hint = str(error.filename or ""), "free some space, or check the permissions"
        return _complain(OutputError(error.strerror or str(error), where=where, hint=hint))
    except Exception as error:
        shown = InternalError.of(error)
        shown.__cause__ = error
        return _complain(shown)


def _complain(error: BotError) -> int:
    import traceback

    from rich.console import Console

    from bot.cli.showing import for_log

    if isinstance(error, InternalError) and os.environ.get("CODE_SIZE_TRACEBACK"):
        lines = traceback.format_exception(error.__cause__ or error)
        print(for_log("".join(lines)), end="", file=sys.stderr)
    console = Console(stderr=True, soft_wrap=True, emoji=False)
    console.print(for_log(f"code-size-bot: {error.line}"), style="bold red", markup=False, highlight=False)
    return error.exit_code
