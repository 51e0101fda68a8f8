"""Comments on a pull request: the one comment of a report, replies and reactions.

The one comment is found by the marker in its first line and by its author. Nothing is remembered between runs, so every
step starts from what is there: two runs that create at once, a comment that someone deletes meanwhile, and an answer
that got lost all end with one comment.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from bot.publish.hub import Hub, explain, in_doubt
from bot.publish.shapes import number as number_at
from bot.publish.shapes import text, text_or_none
from bot.system.retrying import Refused

MAX_COMMENT_CHARACTERS = 65_536
"""GitHub answers a longer body with 422 "body is too long (maximum is 65536 characters)"."""

_TRIES = 4

Action = Literal["created", "updated", "unchanged"]
Content = Literal["+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"]
"""The reactions ("REST API endpoints for reactions")."""


@dataclass(frozen=True, slots=True)
class Found:
    """A comment that this token wrote."""

    id: int
    body: str
    url: str


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


def find(hub: Hub, number: int, marker: str) -> list[Found]:
    """The token's own comments whose first line is the marker, over all pages, oldest first.

    Raises:
        NetworkError: the comments cannot be read.
    """
    with explain(f"read the comments on #{number}", "pull-requests: write"):
        mine = hub.token_login()
        own = (found for author, found in _listed(hub, number) if author == mine)
        return [found for found in own if _first_line(found.body) == marker]


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
    done: Action = "updated" if present else "created"
    with explain(f"write the comment on #{number}", "pull-requests: write"):
        for tries_left in reversed(range(_TRIES)):
            try:
                result = _settle(wish, present)
                break
            except Exception as error:
                if not tries_left or not in_doubt(error):
                    raise
            time.sleep(hub.backoff_seconds)
            present = find(hub, number, marker)
    doubted = tries_left < _TRIES - 1
    return replace(result, action=done) if result and doubted and result.action == "unchanged" else result


def reply(hub: Hub, number: int, body: str) -> None:
    """Adds a comment; where the answer got lost, only if it is not there already.

    Raises:
        NetworkError: the comment cannot be written.
    """
    with explain(f"answer on #{number}", "pull-requests: write"):
        try:
            _post(hub, number, body)
        except Exception as error:
            if not in_doubt(error):
                raise
            time.sleep(hub.backoff_seconds)
            if not _said_last(hub, number, body):
                _post(hub, number, body)


def react(hub: Hub, comment_id: int, content: Content) -> None:
    """Adds a reaction to a comment; a second one of the same kind changes nothing.

    Raises:
        NetworkError: the reaction cannot be added.
    """
    # GitHub counts the reactions to comments to issues, also where the issue is a pull request.
    with explain(f"react to the comment {comment_id}", "issues: write"):
        hub.call("POST", f"issues/comments/{comment_id}/reactions", {"content": content})


def _settle(wish: _Wish, present: Sequence[Found]) -> Published | None:
    """One step from the comments that are there to the wished one."""
    if not present:
        return _create(wish) if wish.create and wish.still_current() else None
    oldest, younger = present[0], present[1:]
    action: Action = "unchanged"
    if not _same(oldest.body, wish.body):
        if not wish.still_current():
            return None
        if not _edit(wish.hub, oldest.id, wish.body):
            return _settle(wish, younger)
        action = "updated"
    for found in younger:
        if wish.still_current():
            _delete(wish.hub, found.id)
    return Published(oldest.url, action)


def _create(wish: _Wish) -> Published | None:
    """Creates the comment, and takes it back where another run was first."""
    created = _post(wish.hub, wish.number, wish.body)
    older = [found for found in find(wish.hub, wish.number, wish.marker) if found.id < created.id]
    if not older:
        return Published(created.url, "created")
    _delete(wish.hub, created.id)
    return _settle(wish, older)


def _listed(hub: Hub, number: int) -> list[tuple[str, Found]]:
    """Who wrote each comment (empty where the account is gone), and the comment; oldest first."""
    listed = hub.listed(f"issues/{number}/comments")
    return sorted(((text_or_none(one, "user.login") or "", _found(one)) for one in listed), key=lambda one: one[1].id)


def _found(comment: Any) -> Found:
    return Found(number_at(comment, "id"), text_or_none(comment, "body") or "", text(comment, "html_url"))


def _said_last(hub: Hub, number: int, body: str) -> bool:
    """True where we said this after everyone else's last word."""
    mine = hub.token_login()
    for author, found in reversed(_listed(hub, number)):
        if author != mine:
            return False
        if _same(found.body, body):
            return True
    return False


def _post(hub: Hub, number: int, body: str) -> Found:
    return _found(hub.call("POST", f"issues/{number}/comments", {"body": body}))


def _edit(hub: Hub, comment_id: int, body: str) -> bool:
    """False where the comment is gone."""
    try:
        _found(hub.call("PATCH", f"issues/comments/{comment_id}", {"body": body}))
    except Refused as refused:
        if refused.status not in {404, 410}:
            raise
        return False
    return True


def _delete(hub: Hub, comment_id: int) -> None:
    try:
        hub.call("DELETE", f"issues/comments/{comment_id}")
    except Refused as refused:
        if refused.status not in {404, 410}:  # a run that raced with this one may have been faster
            raise


def _first_line(body: str) -> str:
    return body.split("\n", 1)[0].rstrip("\r")


def _same(one: str, other: str) -> bool:
    """Equal but for what a server may do to line ends and to the last one."""
    return one.replace("\r\n", "\n").rstrip() == other.replace("\r\n", "\n").rstrip()
