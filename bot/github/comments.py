"""Comments on a pull request: the one comment of a report, replies and reactions.

The one comment is found by the marker in its first line and by its author. Nothing is remembered between runs, so every
step starts from what is there: two runs that create at once, a comment that someone deletes meanwhile, and an answer
that got lost all end with one comment.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from github import GithubException
from github.IssueComment import IssueComment

from bot.system.hub import Hub, explain, in_doubt, required

MAX_COMMENT_CHARACTERS = 65_536
"""GitHub answers a longer body with 422 "body is too long (maximum is 65536 characters)"."""

_TRIES = 4

Action = Literal["created", "updated", "unchanged"]
Content = Literal["+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"]
"""The reactions ("REST API endpoints for reactions")."""


@dataclass(frozen=True, slots=True)
class Published:
    """Where the comment is, and what was done to it."""

    url: str
    action: Action


@dataclass(frozen=True, slots=True)
class _Wish:
    hub: Hub
    number: int
    marker: str
    body: str
    create: bool
    still_current: Callable[[], bool]


def find(hub: Hub, number: int, marker: str) -> list[IssueComment]:
    """The token's own comments whose first line is the marker, over all pages, oldest first; raises NetworkError."""
    with explain(f"read the comments on #{number}", "pull-requests: write"):
        mine = hub.token_login()
        own = [one for one in _oldest_first(hub, number) if author_of(one) == mine]
        return [one for one in own if _first_line(one.body or "") == marker]


def publish(
    hub: Hub, number: int, marker: str, body: str, *, create: bool, still_current: Callable[[], bool]
) -> Published | None:
    """Makes `body` the one comment of this marker.

    The oldest comment of ours is updated in place, younger ones are deleted, a deleted one is created again. A creation
    is followed by another look: where a run that raced with this one was first, ours goes and that one is updated.

    Args:
        marker: the first line of `body`.
        body: at most `MAX_COMMENT_CHARACTERS`.
        create: False where a new comment is not wanted, only the update of an old one.
        still_current: asked right before each write; False where a newer run is responsible by now.

    Returns:
        None where nothing was to be written: there is no comment and `create` is False, or `still_current` said no.

    Raises:
        NetworkError: the comment cannot be written; with the missing permission, where that may be it.
        ValueError: `body` is too long, or does not begin with `marker`.
    """
    if len(body) > MAX_COMMENT_CHARACTERS or _first_line(body) != marker:
        raise ValueError(f"a comment begins with its marker and has at most {MAX_COMMENT_CHARACTERS} characters")
    wish = _Wish(hub, number, marker, body, create, still_current)
    present = find(hub, number, marker)
    first: Action = "updated" if present else "created"
    with explain(f"write the comment on #{number}", "pull-requests: write"):
        for tries_left in reversed(range(_TRIES)):
            try:
                result = _settled(wish, present)
                break
            except Exception as error:
                if not tries_left or not in_doubt(error):
                    raise
            time.sleep(hub.backoff_seconds)
            present = find(hub, number, marker)
    doubted = tries_left < _TRIES - 1
    return replace(result, action=first) if result and doubted and result.action == "unchanged" else result


def _settled(wish: _Wish, present: Sequence[IssueComment]) -> Published | None:
    """One step from the comments that are there to the wished one."""
    if not present:
        if not (wish.create and wish.still_current()):
            return None
        created = wish.hub.issue(wish.number).create_comment(wish.body)
        number, url = required(created.id, "id"), required(created.html_url, "html_url")
        older = [one for one in find(wish.hub, wish.number, wish.marker) if one.id < number]
        if not older:
            return Published(url, "created")
        _unless_gone(created.delete)  # another run was first
        return _settled(wish, older)
    oldest, younger = present[0], present[1:]
    action: Action = "unchanged"
    if not _same(oldest.body or "", wish.body):
        if not wish.still_current():
            return None
        if not _unless_gone(lambda: oldest.edit(wish.body)):
            return _settled(wish, younger)
        action = "updated"
    for one in younger:
        if wish.still_current():
            _unless_gone(one.delete)
    return Published(oldest.html_url, action)


def reply(hub: Hub, number: int, body: str) -> None:
    """Adds a comment; where the answer got lost, only if it is not there already; raises NetworkError."""
    with explain(f"answer on #{number}", "pull-requests: write"):
        try:
            required(hub.issue(number).create_comment(body).id, "id")
        except Exception as error:
            if not in_doubt(error):
                raise
            time.sleep(hub.backoff_seconds)
            mine = hub.token_login()
            for one in reversed(_oldest_first(hub, number)):
                if author_of(one) != mine:
                    break  # what we said before everyone else's last word is not this reply
                if _same(one.body or "", body):
                    return
            required(hub.issue(number).create_comment(body).id, "id")


def react(hub: Hub, comment_id: int, content: Content) -> None:
    """Adds a reaction to a comment; a second one of the same kind changes nothing; raises NetworkError."""
    # GitHub counts the reactions to comments to issues, also where the issue is a pull request.
    with explain(f"react to the comment {comment_id}", "issues: write"):
        IssueComment(hub.requester, url=f"{hub.repo.url}/issues/comments/{comment_id}").create_reaction(content)


def author_of(comment: IssueComment) -> str:
    """The login of who wrote it; empty where the account is gone."""
    return comment.user.login if comment.user else ""


def _oldest_first(hub: Hub, number: int) -> list[IssueComment]:
    return sorted(hub.issue(number).get_comments(), key=lambda one: one.id)


def _unless_gone(write: Callable[[], None]) -> bool:
    """Change or delete a comment; False where it is gone: a run that raced with this one may have been faster."""
    try:
        write()
    except GithubException as refused:
        if refused.status not in {404, 410}:
            raise
        return False
    return True


def _first_line(body: str) -> str:
    return body.split("\n", 1)[0].rstrip("\r")


def _same(one: str, other: str) -> bool:
    """Equal but for what a server may do to line ends and to the last one."""
    return one.replace("\r\n", "\n").rstrip() == other.replace("\r\n", "\n").rstrip()
