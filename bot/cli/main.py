"""The command line: from arguments to an exit code. Only here BotError is caught.

What the commands need is imported when the arguments are known to be right: help, version and mistakes do not wait.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from bot.cli.grammar import build_parser
from bot.errors import BotError, InternalError, Interrupted, OutputError

_AGAIN = "run the same command again: finished cells are in the cache"


def _on_sigterm(_number: int, _frame: object) -> None:
    raise Interrupted("ended by SIGTERM", hint=_AGAIN)


def _joined(argv: Sequence[str]) -> list[str]:
    """The words, `--flags --x` as `--flags=--x`: argparse takes a value that begins with dashes for an option."""
    words: list[str] = []
    for word in argv:
        if words and words[-1] == "--flags":
            words[-1] += f"={word}"
        else:
            words.append(word)
    return words


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    arguments = build_parser().parse_args(_joined(sys.argv[1:] if argv is None else argv))
    signal.signal(signal.SIGTERM, _on_sigterm)
    try:
        from bot.cli.handlers import run

        return run(arguments)
    except BotError as error:
        return _complain(error)
    except KeyboardInterrupt:
        return _complain(Interrupted("interrupted", hint=_AGAIN))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
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
    console = Console(stderr=True, soft_wrap=True)
    console.print(for_log(f"code-size-bot: {error.line}"), style="bold red", markup=False, highlight=False)
    return error.exit_code
