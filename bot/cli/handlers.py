"""A handler for each command: from parsed arguments to an exit code, with everything that the commands import."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from bot.cli.bisect import BisectOptions, bisect, require_one
from bot.cli.cache import prune
from bot.cli.cache import show as shown_cache
from bot.cli.calibrate import calibrate, replay
from bot.cli.compare import compare
from bot.cli.doctor import examine
from bot.cli.fold import fold
from bot.cli.goldens import goldens
from bot.cli.history import HistoryOptions, history
from bot.cli.init import init
from bot.cli.lab import lab, told_experiments
from bot.cli.listing import listed, table
from bot.cli.measure import measure, merge, plan_shards
from bot.cli.pin_report import pin_report
from bot.cli.ratchet import ratchet
from bot.cli.report import report
from bot.cli.showing import TerminalShow, for_log
from bot.cli.trace import trace
from bot.config.configuration import chosen_config
from bot.core.fold import FoldOptions
from bot.core.json_text import canonical
from bot.core.policy import Verdict
from bot.core.sharding import agreed
from bot.errors import InputError, UsageError
from bot.github.secrecy import hide_secrets
from bot.render.terminal.bisect_text import bisect_lines
from bot.study.between import named_file
from bot.study.cache_limit import limit_of_environment, limited
from bot.study.prepare import Request, require_writable
from bot.system.files import sweep_temporary, write_atomically
from bot.system.processes import Cancel, require_none_left


def _text(path: Path | None) -> str | None:
    try:
        return path.read_text(encoding="utf-8") if path else None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
        raise InputError(f"cannot be read: {reason}", where=str(path)) from None


def _request(arguments: argparse.Namespace, specs: dict[str, str | None], show: TerminalShow) -> Request:
    plan, plan_at = _text(getattr(arguments, "plan", None)), str(getattr(arguments, "plan", None) or "")
    return Request(
        specs={side: named_file(spec) for side, spec in specs.items() if spec},
        config=chosen_config(arguments.config, show.say),
        models=tuple(arguments.model),
        targets=tuple(arguments.target),
        jobs=arguments.jobs,
        cache=arguments.cache,
        out=getattr(arguments, "out", Path("out")),
        shard=getattr(arguments, "shard", (1, 1)),
        plan=plan,
        plan_at=plan_at,
        releases=agreed(plan, plan_at) if plan else {},
        suspects=getattr(arguments, "suspects", False),
        source=getattr(arguments, "source", None),
    )


def _selected(arguments: argparse.Namespace, show: TerminalShow) -> Request:
    config = chosen_config(arguments.config, show.say)
    return Request(config=config, models=tuple(arguments.model), targets=tuple(arguments.target))


def _exit_code(verdict: Verdict) -> int:
    """The verdict `unknown` has none: its story ends with NoVerdict."""
    return 1 if verdict.status == "fail" else 0


def _compare(arguments: argparse.Namespace, show: TerminalShow, cancel: Cancel) -> int:
    own = {"base": arguments.base_config, "head": arguments.head_config}
    configs = {side: chosen_config(path, show.say) for side, path in own.items() if path}
    if len(configs) == len(own):
        arguments.config = arguments.config or arguments.base_config  # nothing is left to be looked for
    specs = {"base": arguments.base, "head": arguments.head, "both": arguments.compiler}
    request = replace(_request(arguments, specs, show), configs=configs, tried=tuple(arguments.flags))
    return _exit_code(compare(request, show, cancel))


def _pin_report(arguments: argparse.Namespace, show: TerminalShow, cancel: Cancel) -> int:
    request = _request(arguments, {"base": arguments.old, "head": arguments.new}, show)
    return _exit_code(pin_report(request, arguments.steps, show, cancel))


def _measure(arguments: argparse.Namespace, show: TerminalShow, cancel: Cancel) -> None:
    request = _request(arguments, {"head": arguments.compiler}, show)
    measure(replace(request, flags=tuple(arguments.flags)), show, cancel)


def _calibrate(arguments: argparse.Namespace, show: TerminalShow, cancel: Cancel) -> None:
    if arguments.replay:
        told = replay(_selected(arguments, show), arguments.replay, arguments.alarms, show.say)
        print(for_log("\n".join(told)))
        return
    if arguments.alarms is not None:
        raise UsageError("is for a replay", where="--alarms", hint="give --replay, too")
    request = _request(arguments, {"head": arguments.compiler}, show)
    print(for_log("\n".join(calibrate(request, arguments.runs, show, cancel))))


def _bisect(arguments: argparse.Namespace, show: TerminalShow, cancel: Cancel) -> None:
    arguments.model, arguments.target = [arguments.model], [arguments.target]
    good, bad = (end if arguments.stored else named_file(end) for end in (arguments.good, arguments.bad))
    how = (arguments.limit, arguments.change, tuple(arguments.among), arguments.stored)
    told = bisect(BisectOptions(arguments.metric, good, bad, *how), _request(arguments, {}, show), show, cancel)
    print(for_log(canonical(told).decode() if arguments.format == "json" else "\n".join(bisect_lines(told))))
    require_one(told)


def _ratchet(arguments: argparse.Namespace, show: TerminalShow, cancel: Cancel) -> None:
    if arguments.out:
        require_writable(arguments.out.parent)
    request = Request(config=chosen_config(arguments.config, show.say))
    _patch(ratchet(request, arguments.measured, arguments.headroom, cancel), arguments.out, show)


def _patch(text: str, out: Path | None, show: TerminalShow) -> None:
    if out is None:
        sys.stdout.buffer.write(for_log(text).encode())
        sys.stdout.flush()
    else:
        write_atomically(out, text.encode())
        show.say(f"wrote {out}")


def _merge(arguments: argparse.Namespace, show: TerminalShow, _cancel: Cancel) -> None:
    merge(arguments.parts, arguments.out, show)


def _report(arguments: argparse.Namespace, show: TerminalShow, cancel: Cancel) -> int:
    where = {name: getattr(arguments, name) for name in ("cache", "out", "suspects", "source")}
    request = replace(_selected(arguments, show), **where)
    return _exit_code(report(request, arguments.base, arguments.head, show, cancel))


def _goldens(arguments: argparse.Namespace, show: TerminalShow, cancel: Cancel) -> None:
    out: Path | None = arguments.out
    arguments.out = Path("out")
    if out:
        require_writable(out.parent)
    text = goldens(_request(arguments, {"base": arguments.base, "head": arguments.head}, show), show, cancel)
    _patch(text, out, show)


def _fold(arguments: argparse.Namespace, show: TerminalShow, cancel: Cancel) -> None:
    request = _request(arguments, {"head": arguments.compiler}, show)
    options = FoldOptions(arguments.max_slowdown, not arguments.no_run)
    fold(replace(request, flags=tuple(arguments.flags)), options, show, cancel)


def _history(arguments: argparse.Namespace, show: TerminalShow, cancel: Cancel) -> None:
    request = replace(_request(arguments, {}, show), flags=tuple(arguments.flags))
    history(request, HistoryOptions(tuple(arguments.releases), arguments.store or "", arguments.last), show, cancel)


def _lab(arguments: argparse.Namespace, show: TerminalShow, cancel: Cancel) -> None:
    if arguments.list or arguments.experiment is None:
        print(for_log("\n".join(told_experiments(arguments.experiments))))
        return
    request = replace(_request(arguments, {"head": arguments.compiler}, show), flags=tuple(arguments.flags))
    lab(arguments.experiment, arguments.experiments, request, run=not arguments.no_run, show=show, cancel=cancel)


def _explain(arguments: argparse.Namespace, show: TerminalShow, _cancel: Cancel) -> None:
    show.explain(arguments)


def _trace(arguments: argparse.Namespace, show: TerminalShow, cancel: Cancel) -> None:
    arguments.model, arguments.target = [arguments.model], [arguments.target]
    specs = {"base": arguments.base, "head": arguments.head, "both": arguments.compiler}
    request = replace(_request(arguments, specs, show), tried=tuple(arguments.flags))
    trace(request, arguments.dispatch, show, cancel)


def _plan(arguments: argparse.Namespace, show: TerminalShow, cancel: Cancel) -> None:
    plan = plan_shards(_request(arguments, {}, show), arguments.shards, arguments.costs, cancel)
    print(canonical(plan).decode())


def _listed(arguments: argparse.Namespace, show: TerminalShow, cancel: Cancel) -> None:
    listing = listed(_selected(arguments, show), cancel)
    told = listing.models if arguments.command == "models" else listing.targets
    print(for_log(canonical(told).decode() if arguments.format == "json" else table(told)))


def _completion(arguments: argparse.Namespace, _show: TerminalShow, _cancel: Cancel) -> None:
    from bot.cli.completion import script  # its library is for this alone

    print(script(arguments.shell))


def _cache(arguments: argparse.Namespace, _show: TerminalShow, _cancel: Cancel) -> None:
    if arguments.prune:
        print(prune(arguments.cache, _limit(arguments.limit)))
    else:
        print(shown_cache(arguments.cache))


def _init(arguments: argparse.Namespace, show: TerminalShow, cancel: Cancel) -> None:
    show.started(init(arguments.directory, arguments.action, arguments.force, cancel))


def _doctor(arguments: argparse.Namespace, _show: TerminalShow, cancel: Cancel) -> int:
    return 0 if examine(arguments.cache, cancel) else 2


def _action(arguments: argparse.Namespace, show: TerminalShow, cancel: Cancel) -> int:
    from bot.github.action import act  # the GitHub half costs a third of a second to import

    mode = "auto" if arguments.command == "action" else arguments.command
    return act(os.environ, mode, show, cancel)


HANDLERS: dict[str, Callable[[argparse.Namespace, TerminalShow, Cancel], int | None]] = {
    "init": _init,
    "compare": _compare,
    "pin-report": _pin_report,
    "measure": _measure,
    "calibrate": _calibrate,
    "bisect": _bisect,
    "ratchet": _ratchet,
    "merge": _merge,
    "report": _report,
    "goldens": _goldens,
    "fold": _fold,
    "history": _history,
    "lab": _lab,
    "explain": _explain,
    "trace": _trace,
    "plan": _plan,
    **dict.fromkeys(("models", "targets"), _listed),
    "cache": _cache,
    "completion": _completion,
    "doctor": _doctor,
    **dict.fromkeys(("review", "post", "baseline", "action"), _action),
}


def _limit(given: int | None) -> int:
    return limit_of_environment() if given is None else given


def run(arguments: argparse.Namespace) -> int:
    """Run the command that was asked for; returns the exit code."""
    hide_secrets()
    sweep_temporary()
    show = TerminalShow(quiet=arguments.quiet, as_json=getattr(arguments, "format", "text") == "json")
    with ExitStack() as stack:
        stack.callback(require_none_left)
        if "cache_limit" in arguments:
            stack.enter_context(limited(arguments.cache, _limit(arguments.cache_limit), show.say))
        return HANDLERS[arguments.command](arguments, show, Cancel()) or 0
