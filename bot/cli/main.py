"""The command line: from arguments to a story of the pipeline and an exit code. Only here BotError is caught."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from rich.console import Console

from bot.cli.doctor import examine
from bot.cli.grammar import build_parser
from bot.commands.cache import prune
from bot.commands.cache import show as shown_cache
from bot.commands.calibrate import calibrate
from bot.commands.compare import compare
from bot.commands.explain import explain
from bot.commands.measure import measure
from bot.commands.merge import merge
from bot.commands.plan import plan_shards
from bot.commands.report import report
from bot.core.codec.json_text import canonical
from bot.core.values.verdict import Verdict
from bot.core.values.whole_report import Report
from bot.errors import BotError, InputError, InternalError, Interrupted, OutputError
from bot.github.secrecy import hide_secrets
from bot.measurement.cache_limit import limited
from bot.measurement.prepare import Request
from bot.measurement.run import Progress
from bot.publish.actions import log_safe
from bot.render.terminal.progress import MeasureProgress
from bot.render.terminal.report_text import print_report
from bot.system.files import sweep_temporary
from bot.system.processes import Cancel


def _for_log(text: str) -> str:
    """Text as it may be printed: a runner of GitHub Actions takes some lines for commands."""
    return log_safe(text) if os.environ.get("GITHUB_ACTIONS") == "true" else text


class _Show:
    """Progress and news on standard error, the report on standard output."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._news, self._out = Console(stderr=True, quiet=quiet), Console()

    def say(self, line: str) -> None:
        self._news.print(_for_log(line), markup=False, highlight=False, soft_wrap=True)

    def report(self, report: Report, files: Sequence[Path]) -> None:
        with self._out.capture() as told:
            if not self._quiet:
                print_report(report, self._out)
            names = ", ".join(file.name for file in files)
            line = f"written to {files[0].parent}: {names}"
            self._out.print(line, markup=False, highlight=False, soft_wrap=True)
        print(_for_log(told.get()), end="", flush=True)

    def explain(self, arguments: argparse.Namespace) -> None:
        with self._out.capture() as told:
            explain(arguments.report, arguments.model, arguments.target, arguments.dispatch, self._out)
        print(_for_log(told.get()), end="", flush=True)

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        with MeasureProgress(self._news) as progress:
            yield progress


def _text(path: Path | None) -> str | None:
    try:
        return path.read_text(encoding="utf-8") if path else None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
        raise InputError(f"cannot be read: {reason}", where=str(path)) from None


def _request(arguments: argparse.Namespace, specs: dict[str, str | None]) -> Request:
    return Request(
        specs={side: spec for side, spec in specs.items() if spec},
        config=arguments.config,
        models=tuple(arguments.model),
        targets=tuple(arguments.target),
        jobs=arguments.jobs,
        cache=arguments.cache,
        out=getattr(arguments, "out", Path("out")),
        shard=getattr(arguments, "shard", (1, 1)),
        plan=_text(getattr(arguments, "plan", None)),
    )


def _exit_code(verdict: Verdict) -> int:
    """The verdict `unknown` has none: its story ends with NoVerdict."""
    return 1 if verdict.status == "fail" else 0


def _compare(arguments: argparse.Namespace, show: _Show, cancel: Cancel) -> int:
    request = _request(arguments, {"base": arguments.base, "head": arguments.head})
    return _exit_code(compare(request, show, cancel))


def _measure(arguments: argparse.Namespace, show: _Show, cancel: Cancel) -> int:
    measure(_request(arguments, {"head": arguments.compiler}), show, cancel)
    return 0


def _calibrate(arguments: argparse.Namespace, show: _Show, cancel: Cancel) -> int:
    lines = calibrate(_request(arguments, {"head": arguments.compiler}), arguments.runs, show, cancel)
    print(_for_log("\n".join(lines)))
    return 0


def _merge(arguments: argparse.Namespace, show: _Show, _cancel: Cancel) -> int:
    merge(arguments.parts, arguments.out, show)
    return 0


def _report(arguments: argparse.Namespace, show: _Show, _cancel: Cancel) -> int:
    models, targets = tuple(arguments.model), tuple(arguments.target)
    request = Request({}, arguments.config, models, targets, cache=arguments.cache, out=arguments.out)
    return _exit_code(report(request, arguments.base, arguments.head, show))


def _explain(arguments: argparse.Namespace, show: _Show, _cancel: Cancel) -> int:
    show.explain(arguments)
    return 0


def _plan(arguments: argparse.Namespace, _show: _Show, cancel: Cancel) -> int:
    found = plan_shards(_request(arguments, {}), arguments.shards, arguments.costs, cancel)
    print(canonical(found).decode())
    return 0


def _cache(arguments: argparse.Namespace, _show: _Show, _cancel: Cancel) -> int:
    if arguments.prune:
        print(prune(arguments.cache, arguments.limit))
    else:
        print(shown_cache(arguments.cache))
    return 0


def _doctor(arguments: argparse.Namespace, _show: _Show, cancel: Cancel) -> int:
    return 0 if examine(arguments.cache, cancel) else 2


def _action(arguments: argparse.Namespace, show: _Show, cancel: Cancel) -> int:
    hide_secrets()
    from bot.github.action import act  # the GitHub half costs a third of a second to import

    asked = "auto" if arguments.command == "action" else arguments.command
    return act(os.environ, asked, show, cancel)


HANDLERS: dict[str, Callable[[argparse.Namespace, _Show, Cancel], int]] = {
    "compare": _compare,
    "measure": _measure,
    "calibrate": _calibrate,
    "merge": _merge,
    "report": _report,
    "explain": _explain,
    "plan": _plan,
    "cache": _cache,
    "doctor": _doctor,
    **dict.fromkeys(("review", "post", "baseline", "action"), _action),
}


def _on_sigterm(_number: int, _frame: object) -> None:
    raise Interrupted("ended by SIGTERM", hint="run the same command again: finished cells are in the cache")


def _within_limit(arguments: argparse.Namespace, show: _Show) -> AbstractContextManager[None]:
    """The limit of those commands that have one."""
    if "cache_limit" not in arguments:
        return nullcontext()
    return limited(arguments.cache, arguments.cache_limit, show.say)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    arguments = build_parser().parse_args(argv)
    signal.signal(signal.SIGTERM, _on_sigterm)
    sweep_temporary()
    try:
        show = _Show(quiet=arguments.quiet)
        with _within_limit(arguments, show):
            return HANDLERS[arguments.command](arguments, show, Cancel())
    except BotError as error:
        return _complain(error)
    except KeyboardInterrupt:
        return _complain(Interrupted("interrupted", hint="run the same command again: finished cells are in the cache"))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        where, hint = str(error.filename or ""), "free some space, or check the permissions"
        return _complain(OutputError(error.strerror or str(error), where=where, hint=hint))
    except Exception as error:
        return _complain(_internal(error))


def _internal(error: Exception) -> InternalError:
    told = InternalError.of(error)
    told.__cause__ = error
    return told


def _complain(error: BotError) -> int:
    if isinstance(error, InternalError) and os.environ.get("CODE_SIZE_TRACEBACK"):
        lines = traceback.format_exception(error.__cause__ or error)
        print(_for_log("".join(lines)), end="", file=sys.stderr)
    console = Console(stderr=True, soft_wrap=True)
    console.print(_for_log(f"code-size-bot: {error.line}"), style="bold red", markup=False, highlight=False)
    return error.exit_code
