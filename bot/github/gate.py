"""Check a command in a comment: who wrote it, what it asks for, and which commits.

This is the first job of a command.

It runs no compiler and no file of the pull request. The jobs after it take their commits
from it, so that a later push changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import quote

from msgspec import structs

from bot.config.experiments import load_experiments
from bot.core.asked import Asked, Comment, Typed
from bot.core.comment_state import CommentState, decode
from bot.core.json_text import canonical
from bot.core.spec import COMMIT
from bot.errors import BotError, Interrupted, NetworkError, UsageError
from bot.github.asked_job import with_asked
from bot.github.comments import find, publish
from bot.github.configurations import judging_rules
from bot.github.repository import (
    MOMENT,
    comment_of,
    may_write,
    parents,
    pull,
    require_open_conversation,
)
from bot.github.rows import Commit, PullRequest
from bot.github.services import Services, require_token
from bot.show.answers import answer_marker, help_answer, mistake_answer
from bot.show.comment import marker
from bot.system.hub import Hub
from bot.system.refusals import explain

_PAUSES = (1, 2, 0)
"""How long to wait between looks at a new head, times the hub's time.

GitHub merges a new head some seconds after the push.
"""
_SHA = re.compile(r"[0-9a-f]{40}")


def gate(services: Services, read_command: Callable[[str], Typed]) -> None:
    """Check the command of a comment, and answer it or pin its commits.

    The jobs after this one use the pinned commits.

    A person without write access gets no answer, so that nobody can make the bot write.

    Raises:
        UsageError: the command is wrong or cannot be carried out; the answer says the same.
        NetworkError: GitHub refuses, or nobody may comment on the pull request.
    """
    comment = services.context.comment
    if comment is None:
        raise UsageError(
            "this event has no command", hint="run `gate` on issue_comment"
        )
    hub = require_token(services)
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
    services.set_outputs(
        {"asked": canonical(command).decode(), "sha": command.merge_sha}
    )
    commit = command.merge_sha[:10]
    services.show.say(
        f"{command.who} asks for {typed.verb} of {commit} (#{command.pull_number})"
    )


def _unfit(hub: Hub, comment: Comment) -> str:
    """Return why a comment is ignored.

    Empty for a command of a person with write access.
    """
    if not comment.author or not may_write(hub, comment.author):
        return f"{comment.author or 'the author'} has no write access"
    now = comment_of(hub, comment.id)
    if now is None:
        return "the comment was deleted"
    lines = (now.body or "").splitlines()
    if lines[:1] != [comment.line]:
        return "the comment was edited: write the command in a new comment"
    return ""


@contextmanager
def _answered(hub: Hub, comment: Comment) -> Iterator[None]:
    """Answer a mistake that is raised inside, and raise it again."""
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
        head_repository=pull_request.head_repository,
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
        hub.pause(pause)
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
    """Return the commit of a ref such as `heads/main`; empty if there is none."""
    with explain(f"read the commit of {ref[:80]}", "contents: read"):
        # Of the files, which come with it, one is the least to ask for.
        place = f"commits/{quote(ref, safe='/')}?per_page=1"
        commit = hub.find(Commit, place, missing=(404, 422))
    return commit.sha if commit else ""


def _require_findings(services: Services, hub: Hub, command: Asked) -> None:
    """Raise UsageError if there is nothing to accept, or if the report changed.

    The report must not change after the command.
    """
    services.git.ensure(command.merge_sha)
    context = with_asked(services.context, command)
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
