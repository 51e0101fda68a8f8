"""Waits for the base commit's own run, which measures and stores what a pull request is to be compared with.

Only pauses are counted: `baseline.wait_minutes` bounds their sum. So nothing here reads a clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from bot.errors import NetworkError
from bot.github.opening import Opened
from bot.github.repository import unfinished_push
from bot.github.services import Services

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 15, 240
"""Each pause is twice the one before: an hour is some twenty looks, each a request or, with artifacts, up to 31."""
_Found = TypeVar("_Found")


def awaited(services: Services, side: Opened, look: Callable[[], _Found | None]) -> tuple[_Found | None, str]:
    """What `look` finds while the run for the push of the side's commit is not over, or just after that.

    Returns it, and one line that says why there was no wait although one was asked for; empty where there was none to
    wait for, or the wait took place.
    """
    limit, sha, found = 60 * side.config.baseline.wait_minutes, side.wanted.sha, None
    if not limit:
        return None, ""
    waited, pause, run = 0, _FIRST_PAUSE_SECONDS, ""
    try:
        while found is None and waited < limit and (run := _run(services, sha)):
            services.show.say(f"waiting for the baseline of {sha[:10]}: {run}; {waited} of at most {limit} s waited")
            services.cancel.wait(min(pause, limit - waited))
            waited, pause = waited + min(pause, limit - waited), min(2 * pause, _LONGEST_PAUSE_SECONDS)
            found = look()
    except NetworkError as error:
        services.show.say(line := f"the base commit's own run is not waited for: {error.line}")
        return look(), line
    if found is None:
        over = f"{run} after {waited} s, which is enough" if run else "no run of it is going on"
        services.show.say(f"no baseline of {sha[:10]} to wait for: {over}")
    return found or look(), ""


def _run(services: Services, sha: str) -> str:
    """The run that is going on, in words; empty for none."""
    if services.hub is None:
        raise NetworkError("there is no token", hint="give the action a token: it asks for the run")
    if not services.context.workflow:
        raise NetworkError("the workflow is not known", where="environment: GITHUB_WORKFLOW_REF")
    found = unfinished_push(services.hub, sha, services.context.workflow)
    return f"run {found[0]} is {found[1].replace('_', ' ')}" if found else ""
