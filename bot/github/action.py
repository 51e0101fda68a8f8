"""The action's entry: which of the runs on GitHub an event and the action's inputs ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bot.config.events import read_event, read_inputs, run_context
from bot.core.context import ActionInputs, RunContext
from bot.core.json_text import canonical
from bot.errors import BotError, InternalError, UsageError
from bot.github.delivering import failure_in_summary
from bot.github.opening import Services, open_services
from bot.github.pages import pages
from bot.github.posting import post
from bot.github.reviewing import baseline, part, review, shards
from bot.github.runner import write_outputs
from bot.study.cache_limit import limit_of_environment, limited
from bot.study.prepare import Show
from bot.system.processes import Cancel

_AT_HOME = "at a terminal: code-size-bot compare, or measure"


def act(environ: Mapping[str, str], wanted: str, show: Show, cancel: Cancel) -> int:
    """Do what the event asks for (`wanted` is `auto`), or insist on one story; returns the exit code.

    1 only where the verdict is fail and the configuration lets it fail the job; 5 where there is no verdict. What
    nobody foresaw is raised as InternalError.
    """
    try:
        nothing = RunContext("nothing", "")
        with open_services(environ, nothing, ActionInputs(), show, cancel) as unread, failure_in_summary(unread):
            context, inputs = run_context(environ, read_event(environ)), read_inputs(environ)
        with open_services(environ, context, inputs, show, cancel) as services, failure_in_summary(services):
            name, why, run = _chosen(context, wanted if wanted != "auto" else inputs.command)
            show.say(f"{context.event or 'no event'}: {name} ({why})")
            with limited(services.request.cache, limit_of_environment(), show.say):
                return run(services) or 0
    except (BotError, OSError):
        raise
    except Exception as error:
        raise InternalError.of(error) from error


def _chosen(context: RunContext, wanted: str) -> tuple[str, str, Callable[[Services], int | None]]:
    """What is done, and why it is that; raises UsageError where event and command do not go together."""
    if wanted in _PARTS and context.event:
        return wanted, f"command {wanted}", _PARTS[wanted]
    if wanted not in ("auto", context.story):
        what = f"this event asks for {context.story!r}, not for {wanted!r}: {context.why}"
        raise UsageError(what, where="event", hint="let the command be auto" if context.event else _AT_HOME)
    return context.story, context.why, _STORIES[context.story]


def _plan(services: Services) -> None:
    text = canonical(shards(services)).decode()
    print(text)
    if services.outputs:
        write_outputs(services.outputs, {"matrix": text})


_STORIES: Mapping[str, Callable[[Services], int | None]] = {
    "review": review,
    "baseline": baseline,
    "post": post,
    "nothing": lambda services: services.show.say("nothing to do"),
}
_PARTS: Mapping[str, Callable[[Services], None]] = {"plan": _plan, "measure": part, "pages": pages}
