"""Recognize the comments and issues that this token wrote."""

from __future__ import annotations

from bot.github.rows import Comment, Issue


def is_own(row: Comment | Issue, login: str, marker: str) -> bool:
    """Return whether this login wrote it, with the marker in the first line."""
    # The account of the author may be gone.
    if row.user is None or not is_login(row.user.login, login):
        return False
    return (row.body or "").split("\n", 1)[0].rstrip("\r") == marker


def is_login(login: str, other_login: str) -> bool:
    """Return whether this is one account: GitHub ignores the case of logins."""
    return login.casefold() == other_login.casefold()


def plain(body: str | None) -> str:
    """Return the text without what a server may do to line ends and to the last one."""
    return (body or "").replace("\r\n", "\n").rstrip()
