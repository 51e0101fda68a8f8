"""Give a job after the gate the commits and the selectors that the gate pinned."""

from __future__ import annotations

from dataclasses import replace

from bot.core.asked import ANSWERED_APART, SIDES, Asked
from bot.core.context import ActionInputs, Pull, RunContext
from bot.core.json_text import decoded
from bot.core.spec import COMMIT
from bot.errors import InputError, UsageError

_INPUT = "input asked"


def as_asked(
    context: RunContext, inputs: ActionInputs
) -> tuple[RunContext, ActionInputs]:
    """Return the context and the inputs of a job after the gate.

    In any other job both stay as they are.

    Raises UsageError for the input `asked` without a command, and InputError for
    that of another comment.
    """
    if not inputs.asked:
        return context, inputs
    if context.comment is None:
        raise UsageError("is given, and this event has no command", where=_INPUT)
    command = decoded(
        inputs.asked, Asked, _INPUT, hint="give the output asked of the job gate"
    )
    if (command.comment_id, command.pull_number) != (
        context.comment.id,
        context.comment.pull_number,
    ):
        hint = "give the output asked of this run's gate"
        raise InputError("is of another comment", where=_INPUT, hint=hint)
    typed = command.typed
    context = with_asked(context, command)
    if typed.verb not in ANSWERED_APART:
        return context, inputs
    pinned_inputs = replace(
        inputs,
        base=_side(typed.base, command),
        head=_side(typed.head, command),
        models=typed.models,
        targets=typed.targets,
        flags=typed.flags,
        pull_request=command.pull_number,
    )
    return context, pinned_inputs


def with_asked(context: RunContext, command: Asked) -> RunContext:
    """Return the context of a job that does what a command asks for."""
    about = Pull(
        number=command.pull_number,
        head_sha=command.head_sha,
        base_ref=command.base_ref,
        head_repository=command.head_repository,
    )
    reason = f"{command.who} asks for {command.typed.verb}"
    return context.with_command(command, about, reason)


def _side(text: str, command: Asked) -> str:
    """Return a side with the commit of the pull request that its word stands for."""
    commits = dict(zip(SIDES, (command.base_sha, command.merge_sha), strict=True))
    if text in commits:
        return f"{COMMIT}{commits[text]}"
    return text
