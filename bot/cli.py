"""The command line: arguments, environment and exit codes. The only place that catches BotError."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from bot import __version__, pipeline
from bot.compiler.runner import Cancel
from bot.core.plan import shard
from bot.core.report import Report
from bot.core.verdict import Verdict
from bot.doctor import examine
from bot.errors import BotError, Interrupted, UsageError
from bot.measuring import Progress
from bot.render.progress import MeasureProgress
from bot.render.terminal import print_report

EXAMPLES = """examples:
  code-size-bot compare --base 3.11.0 --head 3.13.0
  code-size-bot compare --head ../iree-build --model 'bert*' --target 'llvm-cpu-*'
  code-size-bot measure --compiler 3.13.0 --out main.json
  code-size-bot compare --base main.json --head dist/iree_base_compiler-3.14.0-cp311-cp311-linux_x86_64.whl
  code-size-bot report --base main.json --head head.json --out out

SPEC is a release (3.13.0 or iree-base-compiler==3.13.0), a wheel file or a directory of wheels, an iree-compile
binary, a virtual environment or build directory holding one, or (compare) a snapshot.json measured earlier.

exit codes: 0 pass or warn, 1 the verdict is fail, 2 bad usage, configuration or input, 3 GitHub or network,
4 a compiler could not be had, 130 interrupted
"""


class _Show:
    """Progress and news on standard error, the report on standard output."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._news, self._out = Console(stderr=True, quiet=quiet), Console()

    def say(self, line: str) -> None:
        self._news.print(line, markup=False, highlight=False)

    def report(self, report: Report, files: Sequence[Path]) -> None:
        if not self._quiet:
            print_report(report, self._out)
        directories = sorted({str(file.parent) for file in files})
        names = ", ".join(file.name for file in files)
        self._out.print(f"written to {', '.join(directories)}: {names}", markup=False, highlight=False, soft_wrap=True)

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        with MeasureProgress(self._news) as progress:
            yield progress


def _default_cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get("CODE_SIZE_CACHE") or f"{home}/code-size-bot").expanduser()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _shard(text: str) -> tuple[int, int]:
    index, _, count = text.partition("/")
    if not (index.isdigit() and count.isdigit() and 1 <= int(index) <= int(count)):
        raise argparse.ArgumentTypeError(f"{text!r} is not I/N with 1 <= I <= N, such as 2/4")
    return int(index), int(count)


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return int(text)


def _selectors(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, metavar="FILE", help="configuration (default: the packaged suite)")
    parser.add_argument("--model", action="append", default=[], metavar="GLOB", help="only these models; repeatable")
    parser.add_argument("--target", action="append", default=[], metavar="GLOB", help="only these targets; repeatable")
    parser.add_argument(
        "--jobs", type=_positive, default=_cores(), metavar="N", help="compiles side by side (default: %(default)s)"
    )
    parser.add_argument(
        "--cache", type=Path, default=_default_cache(), metavar="DIR", help="cells and compilers (default: %(default)s)"
    )


def _request(arguments: argparse.Namespace, specs: dict[str, str | None]) -> pipeline.Request:
    return pipeline.Request(
        specs={side: spec for side, spec in specs.items() if spec},
        config=arguments.config,
        models=tuple(arguments.model),
        targets=tuple(arguments.target),
        jobs=getattr(arguments, "jobs", 1),
        cache=getattr(arguments, "cache", _default_cache()).expanduser(),
        out=getattr(arguments, "out", Path("out")),
        shard=getattr(arguments, "shard", (1, 1)),
    )


def _exit_code(verdict: Verdict) -> int:
    return 1 if verdict.status == "fail" else 0


def _compare(arguments: argparse.Namespace, show: _Show, cancel: Cancel) -> int:
    request = _request(arguments, {"base": arguments.base, "head": arguments.head})
    return _exit_code(pipeline.compare(request, show, cancel))


def _measure(arguments: argparse.Namespace, show: _Show, cancel: Cancel) -> int:
    pipeline.measure(_request(arguments, {"head": arguments.compiler}), show, cancel)
    return 0


def _merge(arguments: argparse.Namespace, show: _Show, cancel: Cancel) -> int:
    pipeline.merge(arguments.parts, arguments.out, show)
    return 0


def _report(arguments: argparse.Namespace, show: _Show, cancel: Cancel) -> int:
    return _exit_code(pipeline.report(arguments.base, arguments.head, arguments.config, arguments.out, show))


def _plan(arguments: argparse.Namespace, show: _Show, cancel: Cancel) -> int:
    cells = pipeline.planned_cells(_request(arguments, {}), cancel)
    parts = [(i, shard(cells, i, arguments.shards)) for i in range(1, arguments.shards + 1)]
    matrix = [{"shard": f"{i}/{arguments.shards}", "cells": len(part)} for i, part in parts if part]
    print(json.dumps({"include": matrix}))
    return 0


def _doctor(arguments: argparse.Namespace, show: _Show, cancel: Cancel) -> int:
    return 0 if examine(_default_cache(), cancel) else 2


Handler = Callable[[argparse.Namespace, _Show, Cancel], int]


def _parser() -> argparse.ArgumentParser:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "code-size-bot",
        description="What did this change do to the code that ships?",
        epilog=EXAMPLES,
        formatter_class=form,
    )
    parser.add_argument("--version", action="version", version=f"code-size-bot {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, handler: Handler, about: str, example: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(
            name, help=about, description=about, epilog=f"example:\n  code-size-bot {example}", formatter_class=form
        )
        sub.add_argument("-q", "--quiet", action="store_true", help="only errors, and where the files are")
        sub.set_defaults(handler=handler)
        return sub

    sub = command(
        "compare", _compare, "measure two sides and report what changed", "compare --base 3.11.0 --head 3.13.0"
    )
    sub.add_argument("--base", metavar="SPEC", help="compiler or snapshot of the base side")
    sub.add_argument("--head", metavar="SPEC", help="compiler or snapshot of the head side")
    sub.add_argument(
        "--out", type=Path, default=Path("out"), metavar="DIR", help="where the six files go (default: %(default)s)"
    )
    _selectors(sub)

    sub = command(
        "measure", _measure, "measure one side into a snapshot", "measure --compiler 3.13.0 --out head.json --shard 1/4"
    )
    sub.add_argument("--compiler", required=True, metavar="SPEC", help="the compiler")
    sub.add_argument("--out", type=Path, required=True, metavar="FILE", help="the snapshot to write")
    sub.add_argument("--shard", type=_shard, default=(1, 1), metavar="I/N", help="measure only part I of N")
    _selectors(sub)

    sub = command("merge", _merge, "join the snapshots of shards", "merge part-1.json part-2.json --out head.json")
    sub.add_argument("parts", nargs="+", type=Path, metavar="part.json", help="snapshots of one run")
    sub.add_argument("--out", type=Path, required=True, metavar="FILE", help="the snapshot to write")

    sub = command("report", _report, "compare two snapshots", "report --base base.json --head head.json --out out")
    sub.add_argument("--base", type=Path, required=True, metavar="FILE", help="snapshot of the base side")
    sub.add_argument("--head", type=Path, required=True, metavar="FILE", help="snapshot of the head side")
    sub.add_argument("--config", type=Path, metavar="FILE", help="where thresholds come from")
    sub.add_argument(
        "--out", type=Path, default=Path("out"), metavar="DIR", help="where the six files go (default: %(default)s)"
    )

    sub = command("plan", _plan, "print the shards of a run as JSON for strategy.matrix", "plan --shards 4")
    sub.add_argument("--shards", type=_positive, required=True, metavar="N", help="how many")
    _selectors(sub)

    command("doctor", _doctor, "say what is here, what is missing and how to mend it", "doctor")
    return parser


def _on_sigterm(number: int, frame: object) -> None:
    raise Interrupted("ended by SIGTERM", mend="finished cells are in the cache")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    arguments = _parser().parse_args(argv)
    signal.signal(signal.SIGTERM, _on_sigterm)
    cancel = Cancel()
    try:
        handler: Handler = arguments.handler
        return handler(arguments, _Show(quiet=arguments.quiet), cancel)
    except BotError as error:
        return _complain(error)
    except KeyboardInterrupt:
        return _complain(Interrupted("interrupted", mend="run the same command again: finished cells are in the cache"))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        where = str(error.filename or "")
        return _complain(
            UsageError(error.strerror or str(error), where=where, mend="free some space or check permissions")
        )


def _complain(error: BotError) -> int:
    Console(stderr=True, soft_wrap=True).print(
        f"code-size-bot: {error.line}", style="bold red", markup=False, highlight=False
    )
    return error.exit_code
