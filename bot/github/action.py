"""Choose and start the run that an event and the action's inputs ask for.

This is the entry of the action on GitHub.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from bot.config.events import read_event, read_inputs, run_context
from bot.core.asked import Typed
from bot.core.context import ActionInputs, RunContext
from bot.core.json_text import canonical
from bot.errors import BotError, InternalError, UsageError
from bot.github.after_merge import after_merge
from bot.github.asked_job import as_asked
from bot.github.delivering import failure_in_summary
from bot.github.gate import gate
from bot.github.lab import measure_lab, report_lab
from bot.github.measuring_push import baseline
from bot.github.pages import pages
from bot.github.parts import part, shards
from bot.github.posting import post
from bot.github.preparing import prepare
from bot.github.reporting import report
from bot.github.reviewing import review
from bot.github.runner import write_outputs
from bot.github.services import Services, open_services
from bot.github.storing import store
from bot.github.weekly import weekly
from bot.study.cache_limit import limit_of_environment, limited
from bot.study.request import Show
from bot.system.cancel import Cancel
from bot.system.ownership import give_to_owner
from bot.system.tokens import require_no_token

_AT_HOME = "at a terminal, use code-size-bot compare or measure"
_Run = Callable[[Services], int | None]
_ReadCommand = Callable[[str], Typed]


class _Chosen(NamedTuple):
    """The chosen run: its work, the reason for it, and whether it runs compilers."""

    name: str
    why: str
    run: _Run
    compiles: bool = False


def act(
    environ: Mapping[str, str],
    command: str,
    show: Show,
    cancel: Cancel,
    read_command: _ReadCommand,
) -> int:
    """Do what the event asks for (`command` is `auto`), or insist on one command.

    Returns the exit code. It is 1 only if the verdict is fail and the configuration
    lets that fail the job. It is 5 if there is no verdict.

    `read_command`: the grammar of commands in a comment.

    Raises BotError for whatever a user can cause, and InternalError for everything
    else.
    """
    try:
        nothing = RunContext("nothing", "")
        with (
            open_services(
                environ,
                context=nothing,
                inputs=ActionInputs(),
                show=show,
                cancel=cancel,
            ) as unread,
            failure_in_summary(unread),
        ):
            event_context = run_context(environ, read_event(environ))
            context, inputs = as_asked(event_context, read_inputs(environ))
            chosen = _chosen(
                context,
                command=command if command != "auto" else inputs.command,
                inputs=inputs,
                read_command=read_command,
            )
            if chosen.compiles:
                require_no_token(environ)
            _require_no_store_token(chosen, inputs)
        with (
            open_services(
                environ, context=context, inputs=inputs, show=show, cancel=cancel
            ) as services,
            failure_in_summary(services),
        ):
            show.say(f"{context.event or 'no event'}: {chosen.name} ({chosen.why})")
            cache = services.request.cache
            with (
                owned_by_workspace(services),
                limited(cache, limit_of_environment(), show.say),
            ):
                return chosen.run(services) or 0
    except (BotError, OSError):
        raise
    except Exception as error:
        raise InternalError.of(error) from error


def _chosen(
    context: RunContext, command: str, inputs: ActionInputs, read_command: _ReadCommand
) -> _Chosen:
    """Choose the run.

    Raises:
        UsageError: where event and command do not go together.
    """
    reason = context.why
    if context.event and command in _ANYWHERE:
        return _Chosen(command, f"command {command}", _ANYWHERE[command])
    _require_possible(context, command)
    if context.story == "nothing":
        return _Chosen("nothing", reason, _say_nothing)
    if command == "auto":
        name = _ASKED[context.story][0]
    else:
        name = command
    is_lab = context.asked is not None and context.asked.typed.verb == "lab"
    if name == "gate":
        return _Chosen(name, reason, partial(gate, read_command=read_command))
    if name == "measure":
        return _chosen_measure(context, inputs, is_lab=is_lab)
    if is_lab:
        return _Chosen(name, reason, report_lab)
    if name == "report" and context.story == "baseline":
        return _Chosen(name, reason, after_merge)
    return _Chosen(name, reason, _AFTERWARDS[name])


def _require_possible(context: RunContext, command: str) -> None:
    """Raise UsageError where the event does not ask for this command."""
    story = context.story
    possible_commands = _ASKED[story]
    if command in ("auto", *possible_commands):
        return
    if story == "nothing" and context.event:
        return
    problem = (
        f"this event asks for {_any_of(possible_commands) or story},"
        f" not for {command!r}: {context.why}"
    )
    if context.event:
        hint = "set the command to auto"
    else:
        hint = _AT_HOME
    raise UsageError(problem, where="event", hint=hint)


def _chosen_measure(
    context: RunContext, inputs: ActionInputs, *, is_lab: bool
) -> _Chosen:
    """Choose the run that compiles what the event is about."""
    reason = context.why
    run: _Run = baseline
    if is_lab:
        run = measure_lab
    elif inputs.shard:
        run = part
        reason = f"{reason}, one shard"
    elif context.story == "review":
        run = review
    return _Chosen("measure", reason, run, compiles=True)


def _any_of(commands: Sequence[str]) -> str:
    """Join commands, as in `measure, store or report`."""
    return " or ".join(filter(None, (", ".join(commands[:-1]), *commands[-1:])))


def _require_no_store_token(chosen: _Chosen, inputs: ActionInputs) -> None:
    """Raise UsageError where a command got the store's token but has no use for it.

    Only the commands that fetch for others or store may have it.
    """
    if inputs.store_token and chosen.name not in (*_WITH_STORE_TOKEN, "nothing"):
        problem = f"the command {chosen.name} takes no token of another repository"
        raise UsageError(
            problem, where="input store-token", hint="give it to prepare and store only"
        )


@contextmanager
def owned_by_workspace(services: Services) -> Iterator[None]:
    """Give what the run writes into the workspace to its owner, however the run ends.

    The container runs as root.
    """
    workspace = services.git.directory
    paths = [workspace / ".git", services.out]
    cache = services.inputs.cache
    if cache:
        paths.append(services.at(cache))
    try:
        yield
    finally:
        if workspace.is_dir():
            give_to_owner(workspace, paths)


def _plan(services: Services) -> None:
    text = canonical(shards(services)).decode()
    print(text)
    if services.outputs:
        write_outputs(services.outputs, {"matrix": text})


def _say_nothing(services: Services) -> None:
    services.show.say("nothing to do")


_ASKED: Mapping[str, tuple[str, ...]] = {
    "review": ("measure", "report"),
    "baseline": ("measure", "store", "report"),
    "post": ("post",),
    "command": ("gate",),
    "nothing": (),
}
"""An event's subject → the commands that it allows; `auto` stands for the first."""
_AFTERWARDS: Mapping[str, _Run] = {"report": report, "store": store, "post": post}
_ANYWHERE: Mapping[str, _Run] = {
    "prepare": prepare,
    "plan": _plan,
    "pages": pages,
    "weekly": weekly,
}
_WITH_STORE_TOKEN = ("prepare", "store")
"""The commands that may have the token for another repository with the baselines."""
