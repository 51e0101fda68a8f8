"""Make the request of a command's arguments, and run the command.

Each command shares what happens before and after its own run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from bot.cli.grammar import Arguments
from bot.cli.showing import TerminalShow
from bot.config.configuration import chosen_config, load_config
from bot.show.views import ask_for
from bot.study.cache_limit import limit_of_environment, limited
from bot.study.prepare import Work
from bot.study.request import Request
from bot.study.specs import named_file
from bot.system.cancel import Cancel
from bot.system.files import require_writable, sweep_temporary
from bot.system.guard import require_none_left
from bot.system.tokens import require_no_token

_NOTHING = "no-verdict"
"""The directory below --out for the files of a run that compared nothing."""


def perform(arguments: Arguments) -> int:
    """Run the command that was asked for; returns the exit code."""
    # Every command that compiles has --jobs; `plan` has it and compiles nothing.
    if "jobs" in arguments and getattr(arguments, "compiles", True):
        require_no_token(os.environ)
    sweep_temporary()
    ask_for(vars(arguments))
    as_json = getattr(arguments, "format", "text") == "json"
    arguments.show = TerminalShow(quiet=arguments.quiet, as_json=as_json)
    arguments.cancel = Cancel()
    with ExitStack() as stack:
        stack.callback(require_none_left)
        arguments.closing = stack
        if "cache_limit" in arguments:
            if arguments.cache_limit is None:
                limit = limit_of_environment()
            else:
                limit = arguments.cache_limit
            stack.enter_context(limited(arguments.cache, limit, arguments.show.say))
        return arguments.run(arguments) or 0


def work_of(
    arguments: Arguments,
    specs: dict[str, str | None] | None = None,
    *,
    models: bool = True,
) -> Work:
    """Return the work that the arguments ask for.

    The configuration is read with its models, or without them. Whether the directory of
    `--out` can be written to is found out now, before an hour of compiles.
    """
    request = request_of(arguments, specs)
    config = load_config(request.config, models=models)
    if "out_is_directory" in arguments:
        require_writable(request.out)
    return Work(
        request=request, config=config, show=arguments.show, cancel=arguments.cancel
    )


def request_of(
    arguments: Arguments, specs: dict[str, str | None] | None = None
) -> Request:
    """Return the request of the arguments, as far as the command has them.

    `specs`: side, or `both` → SPEC.
    """
    values = vars(arguments)
    shared = {"jobs", "cache", "out", "shard", "suspects", "source"} & values.keys()
    same = {name: values[name] for name in shared}
    return Request(
        specs={side: named_file(spec) for side, spec in (specs or {}).items() if spec},
        config=chosen_config(arguments.config, arguments.show.say),
        models=_selectors(values.get("model", ())),
        targets=_selectors(values.get("target", ())),
        flags=tuple(values.get("flags", ())),
        tried=tuple(values.get("tried", ())),
        closing=arguments.closing,
        **same,
    )


def _selectors(texts: str | list[str]) -> tuple[str, ...]:
    if isinstance(texts, str):
        return (texts,)
    return tuple(texts)


def place_of_nothing(out: Path, file: str, say: Callable[[str], None]) -> Path:
    """Return where a run that compared nothing writes.

    It is `out`, or a folder below it where an earlier run left its `file` in `out`.
    """
    if not (out / file).exists():
        return out
    say(f"kept the old {out / file}: this run compared nothing")
    return out / _NOTHING
