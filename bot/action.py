"""The action's entry: an event and the action's inputs become a context, and the context a story."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from bot.caching import limit_of_environment, limited
from bot.compiler.runner import Cancel
from bot.desk import Desk, open_desk
from bot.errors import BotError, InternalError, UsageError
from bot.inputs.action_inputs import read_inputs
from bot.inputs.events import read_event, run_context
from bot.posting import command, post
from bot.preparing import Show
from bot.publish.actions import write_outputs
from bot.reviewing import baseline, part, review, shards


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
    with open_desk(environ, context, inputs, show, cancel) as desk, _within_limit(desk):
        if wanted in _PARTS and context.event:
            _PARTS[wanted](desk)
            return 0
        if wanted != "auto" and context.story not in _STORIES_OF[wanted]:
            what = f"this event asks for {context.story!r}, not for {wanted!r}: {context.why}"
            raise UsageError(what, where="event", mend="let the command be auto")
        return _STORIES[context.story](desk)


def _within_limit(desk: Desk) -> AbstractContextManager[None]:
    return limited(desk.request.cache, limit_of_environment(), desk.show.say)


def _nothing(desk: Desk) -> int:
    desk.show.say("nothing to do")
    return 0


def _plan(desk: Desk) -> None:
    text = json.dumps(shards(desk))
    print(text)
    if desk.outputs:
        write_outputs(desk.outputs, {"matrix": text})


_STORIES: Mapping[str, Callable[[Desk], int]] = {
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
}
_PARTS: Mapping[str, Callable[[Desk], None]] = {"plan": _plan, "measure": part}
