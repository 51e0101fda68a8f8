"""The action's entry: which of the runs on GitHub an event and the action's inputs ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bot.core.codec.json_text import canonical
from bot.errors import BotError, InternalError, UsageError
from bot.github.labs.lab_report import told_lab
from bot.github.posting import command, post
from bot.github.reviewing import baseline, part, review, shards
from bot.github.services import Services, open_services
from bot.github.sites.pages import pages
from bot.inputs.action_inputs import read_inputs
from bot.inputs.events import read_event, run_context
from bot.measurement.cache_limit import limit_of_environment, limited
from bot.measurement.prepare import Show
from bot.publish.actions import write_outputs
from bot.system.processes import Cancel


def act(environ: Mapping[str, str], asked: str, show: Show, cancel: Cancel) -> int:
    """Do what the event asks for (`asked` is `auto`), or insist on one story; returns the exit code.

    1 only where the verdict is fail and the configuration lets it fail the job; 5 where there is no verdict. What
    nobody foresaw is raised as InternalError.
    """
    try:
        return _act(environ, asked, show, cancel)
    except (BotError, OSError):
        raise
    except Exception as error:
        raise InternalError.of(error) from error


def _act(environ: Mapping[str, str], asked: str, show: Show, cancel: Cancel) -> int:
    context = run_context(environ, read_event(environ))
    inputs = read_inputs(environ)
    show.say(f"{context.event or 'no event'}: {context.story} ({context.why})")
    wanted = asked if asked != "auto" else inputs.command
    with (
        open_services(environ, context, inputs, show, cancel) as services,
        limited(services.request.cache, limit_of_environment(), show.say),
    ):
        if inputs.lab:
            return told_lab(services)
        if wanted in _PARTS and context.event:
            _PARTS[wanted](services)
            return 0
        if wanted != "auto" and context.story not in _STORIES_OF[wanted]:
            what = f"this event asks for {context.story!r}, not for {wanted!r}: {context.why}"
            raise UsageError(what, where="event", hint="let the command be auto")
        return _STORIES[context.story](services)


def _nothing(services: Services) -> int:
    services.show.say("nothing to do")
    return 0


def _plan(services: Services) -> None:
    text = canonical(shards(services)).decode()
    print(text)
    if services.outputs:
        write_outputs(services.outputs, {"matrix": text})


_STORIES: Mapping[str, Callable[[Services], int]] = {
    "review": review,
    "baseline": baseline,
    "post": post,
    "command": command,
    "nothing": _nothing,
}
_STORIES_OF: Mapping[str, tuple[str, ...]] = {
    "review": ("review",),
    "baseline": ("baseline",),
    "post": ("post", "command"),
    "plan": (),
    "measure": (),
    "pages": (),
}
_PARTS: Mapping[str, Callable[[Services], None]] = {"plan": _plan, "measure": part, "pages": pages}
