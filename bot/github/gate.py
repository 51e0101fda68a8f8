"""Check a command in a comment: who wrote it, what it asks for, and which commits.

This is the first job of a command.

It runs no compiler and no file of the pull request. The jobs after it take their commits
from it, so that a later push changes nothing.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import quote

from github import GithubException
from github.PullRequest import PullRequest
from msgspec import structs

from bot.config.experiments import load_experiments
from bot.core.asked import ANSWERED_APART, SIDES, Asked, Comment, Typed
from bot.core.comment_state import CommentState, decode
from bot.core.context import ActionInputs, Pull, RunContext
from bot.core.json_text import canonical, decoded
from bot.core.spec import COMMIT
from bot.errors import BotError, InputError, Interrupted, NetworkError, UsageError
from bot.github.delivering import set_outputs
from bot.github.opening import Services, judging_rules
from bot.github.publishing import find, publish
from bot.github.repository import (
    MOMENT,
    first_line_of_comment,
    head_repository_of,
    may_write,
    parents,
    pull,
    require_open_conversation,
)
from bot.show.answers import answer_marker, help_answer, mistake_answer
from bot.show.comment import marker
from bot.system.hub import Hub, explain

_PAUSES = (1, 2, 0)
"""How long to wait between looks at a new head, times the hub's time.

GitHub merges a new head some seconds after the push.
"""
_SHA = re.compile(r"[0-9a-f]{40}")
_INPUT = "input asked"


def gate(services: Services, read_command: Callable[[str], Typed]) -> None:
    """Check the command of a comment, and answer it or pin its commits.

    The jobs after this one use the pinned commits.

    A person without write access gets no answer, so that nobody can make the bot write.

    Raises:
        UsageError: the command is wrong or cannot be carried out; the answer says the same.
        NetworkError: GitHub refuses, or nobody may comment on the pull request.
    """
    hub, comment = services.hub, services.context.comment
    if comment is None:
        raise UsageError(
            "this event has no command", hint="run `gate` on issue_comment"
        )
    if hub is None:
        raise UsageError(
            "is missing", where="input github-token", hint="give the action a token"
        )
    unfit = _unfit(hub, comment)
    if unfit:
        services.show.say(f"command ignored: {unfit}")
        return
    require_open_conversation(hub, comment.pull_number)
    with _answered(hub, comment):
        typed = read_command(comment.line)
        if typed.verb == "help":
            _answer(hub, comment, help_answer(comment.id, list(load_experiments())))
            return
        command = _pinned(hub, comment, typed)
        if typed.verb == "accept":
            _require_findings(services, hub, command)
    set_outputs(
        services, {"asked": canonical(command).decode(), "sha": command.merge_sha}
    )
    commit = command.merge_sha[:10]
    services.show.say(
        f"{command.who} asks for {typed.verb} of {commit} (#{command.pull_number})"
    )


def as_asked(
    context: RunContext, inputs: ActionInputs
) -> tuple[RunContext, ActionInputs]:
    """Return the context and the inputs of a job after the gate.

    Both are as they are in any other job.

    Raises:
        UsageError: for the input `asked` without a command.
        InputError: for one of another comment.
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
    about = Pull(
        number=command.pull_number,
        head_sha=command.head_sha,
        base_ref=command.base_ref,
        head_repository=command.head_repository,
    )
    typed = command.typed
    reason = f"{command.who} asks for {typed.verb}"
    context = context.with_command(command, about, reason)
    if typed.verb not in ANSWERED_APART:
        return context, inputs
    new_context = replace(
        inputs,
        base=_side(typed.base, command),
        head=_side(typed.head, command),
        models=typed.models,
        targets=typed.targets,
        flags=typed.flags,
        pull_request=command.pull_number,
    )
    return context, new_context


def _side(text: str, command: Asked) -> str:
    """Return a side with the commit of the pull request that its word stands for."""
    commits = dict(zip(SIDES, (command.base_sha, command.merge_sha), strict=True))
    if text in commits:
        return f"{COMMIT}{commits[text]}"
    return text


def _unfit(hub: Hub, comment: Comment) -> str:
    """Say why a comment is not looked at.

    Empty for a command of a person with write access.
    """
    if not comment.author or not may_write(hub, comment.author):
        return f"{comment.author or 'the author'} has no write access"
    line = first_line_of_comment(hub, comment.id)
    if line is None:
        return "the comment was deleted"
    if line != comment.line:
        return "the comment was edited: write the command in a new comment"
    return ""


@contextmanager
def _answered(hub: Hub, comment: Comment) -> Iterator[None]:
    """Answer a mistake within, and raise it."""
    try:
        yield
    except (Interrupted, NetworkError):
        raise
    except BotError as error:
        _answer(hub, comment, mistake_answer(comment.id, error))
        raise


def _answer(hub: Hub, comment: Comment, body: str) -> None:
    mark = answer_marker(comment.id)
    publish(
        hub,
        number=comment.pull_number,
        marker=mark,
        body=body,
        create=True,
        still_current=lambda: True,
    )


def _pinned(hub: Hub, comment: Comment, typed: Typed) -> Asked:
    """Return the command with full commits in place of everything that may move."""
    pull_request, merge_sha, base_sha = _merged(hub, comment.pull_number)
    base = _pinned_side(hub, typed.base)
    head = _pinned_side(hub, typed.head)
    return Asked(
        typed=structs.replace(typed, base=base, head=head),
        line=" ".join(comment.line.split()),
        who=comment.author,
        comment_id=comment.id,
        written_at=comment.written_at,
        pull_number=comment.pull_number,
        head_sha=pull_request.head.sha,
        merge_sha=merge_sha,
        base_sha=base_sha,
        base_ref=pull_request.base.ref,
        head_repository=head_repository_of(pull_request),
    )


def _merged(hub: Hub, number: int) -> tuple[PullRequest, str, str]:
    """Return an open pull request, GitHub's merge of its head, and its first parent."""
    where = f"#{number}"
    for pause in _PAUSES:
        pull_request = pull(hub, number)
        if pull_request.state != "open":
            raise UsageError(
                "the pull request is closed",
                where=where,
                hint="reopen it, then write the command again",
            )
        merge_sha = pull_request.merge_commit_sha or ""
        if _SHA.fullmatch(merge_sha):
            made_of = parents(hub, merge_sha)
        else:
            made_of = ()
        if len(made_of) == 2 and made_of[1] == pull_request.head.sha:
            return pull_request, merge_sha, made_of[0]
        time.sleep(hub.backoff_seconds * pause)
    hint = (
        "resolve conflicts with the base branch, or wait a minute; then write the"
        " command again"
    )
    raise UsageError("GitHub has no merge commit of its head", where=where, hint=hint)


def _pinned_side(hub: Hub, side: str) -> str:
    """Return a side with the full commit of its branch or tag."""
    if not side.startswith(COMMIT):
        return side
    name = side.removeprefix(COMMIT).removeprefix("refs/")
    is_whole = name.startswith(("heads/", "tags/")) or _SHA.fullmatch(name)
    for ref in (name,) if is_whole else (f"heads/{name}", f"tags/{name}"):
        sha = _commit_of(hub, ref)
        if sha:
            return f"{COMMIT}{sha}"
    hint = "name a branch, a tag or a full commit of 40 digits"
    problem = f"{name[:80]!r} is neither a branch nor a tag of {hub.repository}"
    raise UsageError(problem, where=COMMIT, hint=hint)


def _commit_of(hub: Hub, ref: str) -> str:
    """Return the commit of a ref such as `heads/main`; empty where there is none."""
    with explain(f"read the commit of {ref[:80]}", "contents: read"):
        try:
            # Of the files, which come with it, one is the least to ask for.
            return str(
                hub.call("GET", f"commits/{quote(ref, safe='/')}", per_page=1)["sha"]
            )
        except GithubException as refused:
            if refused.status not in (404, 422):
                raise
            return ""


def _require_findings(services: Services, hub: Hub, command: Asked) -> None:
    """Raise UsageError where there is nothing to accept, or the report changed.

    It must not change after the command.
    """
    services.git.ensure(command.merge_sha)
    about = Pull(
        number=command.pull_number,
        head_sha=command.head_sha,
        base_ref=command.base_ref,
        head_repository=command.head_repository,
    )
    context = services.context.with_command(command, about, "accept")
    report_id = judging_rules(replace(services, context=context))[0].report_id
    reports = find(hub, command.pull_number, marker(report_id))
    state = decode(reports[0].body or "") if reports else None
    if not (state or CommentState()).findings:
        hint = "wait for a report with failing findings"
        raise UsageError(
            "there is nothing to accept", where=f"#{command.pull_number}", hint=hint
        )
    if f"{reports[0].updated_at:{MOMENT}}" >= command.written_at:
        hint = "read it, then write the command again"
        problem = "the report changed after this command"
        raise UsageError(problem, where=f"#{command.pull_number}", hint=hint)
