"""Write the one comment of a report on a pull request.

The comment is found by the marker in its first line and by its author. Nothing is
remembered between runs, so every step starts from what is there. Two runs that create
at once, a comment that someone deletes meanwhile, and an answer that got lost all end
with one comment. What GitHub refuses is a NetworkError, with the missing permission
where that may be it.
"""

from __future__ import annotations

from collections.abc import Callable

from github import GithubException

from bot.errors import NetworkError
from bot.github.authorship import is_login, is_own, plain
from bot.github.doubt import Doubt
from bot.github.rows import Comment
from bot.system.hub import Hub
from bot.system.refusals import explain

MAX_COMMENT_CHARACTERS = 65_536
"""GitHub answers a longer body with 422 "body is too long (maximum is 65536 characters)"."""

_TRIES = 4


def find(hub: Hub, number: int, marker: str) -> list[Comment]:
    """Return the token's own comments whose first line is the marker, oldest first.

    All pages are read.
    """
    with explain(f"read the comments on #{number}", "pull-requests: write"):
        login = hub.token_login()
        comments = hub.rows(list[Comment], f"issues/{number}/comments")
    own_comments = [comment for comment in comments if is_own(comment, login, marker)]
    return sorted(own_comments, key=lambda comment: comment.id)


def publish(
    hub: Hub,
    number: int,
    marker: str,
    body: str,
    *,
    create: bool,
    still_current: Callable[[], bool],
) -> str:
    """Make `body` the only comment with this marker, and return its address.

    The address is empty if nothing was written. The bot's oldest comment is updated in
    place, and later ones are deleted. If it was deleted, it is created again. After a
    creation the comments are read again. If another run created one first, the new
    comment is deleted, and the other one is updated.

    `marker`: the first line of `body`; `body`: at most `MAX_COMMENT_CHARACTERS`;
    `create`: False if only an old comment may be updated, and no new one created;
    `still_current`: asked right before each write; returns False if a newer run writes
    the comment.

    Raises ValueError if `body` is too long, or does not begin with `marker`.
    """
    if len(body) > MAX_COMMENT_CHARACTERS or body.partition("\n")[0] != marker:
        raise ValueError(
            f"a comment begins with its marker and has at most {MAX_COMMENT_CHARACTERS}"
            " characters"
        )
    with explain(f"write the comment on #{number}", "pull-requests: write"):
        doubt = Doubt(hub, _TRIES)
        while True:
            try:
                return _settled(
                    hub,
                    number=number,
                    marker=marker,
                    body=body,
                    create=create,
                    still_current=still_current,
                )
            except Exception as error:
                doubt.wait(error)


def _settled(
    hub: Hub,
    number: int,
    marker: str,
    body: str,
    create: bool,
    still_current: Callable[[], bool],
) -> str:
    """Change the comments that are there into the wished one; return its address."""
    present = find(hub, number, marker)
    while True:
        if not present:
            if not (create and still_current()):
                return ""
            place = f"issues/{number}/comments"
            created = hub.write("POST", Comment, place, body=body)
            _require_author(hub, number, created)
            comments = find(hub, number, marker)
            present = [comment for comment in comments if comment.id < created.id]
            if not present:
                return created.html_url
            _delete(hub, created)  # another run was first
        oldest = present[0]
        younger = present[1:]
        if plain(oldest.body) != plain(body):
            if not still_current():
                return ""
            if not _edit(hub, oldest, body):
                present = younger
                continue
        for comment in younger:
            if still_current():
                _delete(hub, comment)
        return oldest.html_url


def _require_author(hub: Hub, number: int, created: Comment) -> None:
    """Raise NetworkError for a new comment with another author than expected.

    The next run would not find it. The comment is deleted: every run would write one more.
    """
    expected = hub.token_login()
    actual = created.user.login if created.user else ""
    if not actual or is_login(actual, expected):
        return
    _delete(hub, created)
    problem = (
        f"cannot keep the comment on #{number}: the token writes as {actual}, not as"
        f" {expected}"
    )
    raise NetworkError(problem, hint=f"set the input `author` to {actual}")


def _unless_gone(write: Callable[[], object]) -> bool:
    """Change or delete a comment.

    Returns False if the comment is gone: another run may have been faster.
    """
    try:
        write()
    except GithubException as refused:
        if refused.status not in {404, 410}:
            raise
        return False
    return True


def _edit(hub: Hub, comment: Comment, body: str) -> bool:
    """Write the text of a comment; return False if the comment is gone."""
    place = f"issues/comments/{comment.id}"
    return _unless_gone(lambda: hub.write("PATCH", Comment, place, body=body))


def _delete(hub: Hub, comment: Comment) -> None:
    """Delete a comment, if another run did not."""
    _unless_gone(lambda: hub.delete(f"issues/comments/{comment.id}"))
