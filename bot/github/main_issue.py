"""Find, create, update and close the issue about a main branch on GitHub.

The issue is open while the branch exceeds its thresholds.

An issue is found by the marker in its first line and by its author, like the comment of
a pull request. Every step starts from what is there. If two runs create an issue at the
same time, the younger issue is closed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from github import GithubException

from bot.core.after_merge import IssueState, decode_issue
from bot.errors import NetworkError
from bot.github.authorship import is_own, plain
from bot.github.doubt import Doubt
from bot.github.rows import Issue
from bot.system.hub import Hub
from bot.system.refusals import explain

_TRIES = 3
_TURNED_OFF = 410  # "Issues has been disabled in this repository."
Which = Literal["open", "all"]


@dataclass(frozen=True, slots=True)
class OwnIssue:
    """An issue that this program wrote."""

    issue: Issue
    # None if a person or another version changed the hidden line
    state: IssueState | None

    @property
    def number(self) -> int:
        """Return the number of the issue."""
        return self.issue.number

    @property
    def is_open(self) -> bool:
        """Return whether the issue is open."""
        return self.issue.state == "open"

    @property
    def was_closed_by_a_person(self) -> bool:
        """Return whether the issue is closed, and not by the bot."""
        return (
            not self.is_open and self.state is not None and not self.state.is_resolved
        )


def own_issues(hub: Hub, marker: str, state: Which) -> list[OwnIssue]:
    """Return the token's own issues whose first line is the marker, the oldest first.

    All pages are read.
    """
    with _explained("read the issue about the main branch", "issues: read"):
        login = hub.token_login()
        issues = hub.rows(list[Issue], "issues", state=state, creator=login)
    own = []
    for issue in issues:
        if is_own(issue, login, marker):
            own.append(OwnIssue(issue, decode_issue(issue.body or "", marker)))
    return sorted(own, key=lambda issue: issue.number)


def create_issue(hub: Hub, marker: str, title: str, body: str) -> str:
    """Create an issue unless another run was first, and return the address.

    It is the address of the issue that stays.

    `body`: begins with the marker.
    """
    with _explained("write the issue about the main branch", "issues: write"):
        doubt = Doubt(hub, _TRIES)
        is_written = False
        while not is_written:
            try:
                hub.write("POST", Issue, "issues", title=title, body=body)
                is_written = True
            except Exception as error:
                doubt.wait(error)
                is_written = bool(own_issues(hub, marker, "open"))
        return _only_oldest(hub, marker)


def _only_oldest(hub: Hub, marker: str) -> str:
    """Close all open issues but the oldest, which another run may have created.

    Returns the address of the oldest.
    """
    present = own_issues(hub, marker, "open")
    if not present:
        raise NetworkError(
            "the issue about the main branch is not there after it was created",
            hint="run it again",
        )
    close_younger(hub, present)
    return present[0].issue.html_url


def close_younger(hub: Hub, present: Sequence[OwnIssue]) -> None:
    """Close all open issues but the first: two runs created one at the same time."""
    for issue in present[1:]:
        with _explained(f"close the issue #{issue.number}", "issues: write"):
            _edit(hub, issue, state="closed", state_reason="not_planned")


def _edit(hub: Hub, issue: OwnIssue, **fields: str) -> None:
    hub.write("PATCH", Issue, f"issues/{issue.number}", **fields)


def update_issue(
    hub: Hub, issue: OwnIssue, title: str, body: str, *, is_resolved: bool = False
) -> bool:
    """Write title and body, and close the issue if it is resolved.

    Returns False if nothing differed.
    """
    with _explained(f"write the issue #{issue.number}", "issues: write"):
        if is_resolved:
            closing = {"state": "closed", "state_reason": "completed"}
            _edit(hub, issue, title=title, body=body, **closing)
            return True
        if (issue.issue.title, plain(issue.issue.body)) == (title, plain(body)):
            return False
        _edit(hub, issue, title=title, body=body)
        return True


@contextmanager
def _explained(action: str, permission: str) -> Iterator[None]:
    """Do what `explain` does, and name the setting of a repository without issues."""
    with explain(action, permission):
        try:
            yield
        except GithubException as refused:
            if refused.status != _TURNED_OFF:
                raise
            hint = (
                "turn issues on in the settings of the repository, or remove"
                " `after_merge: issue`"
            )
            raise NetworkError(
                f"cannot {action}: issues are turned off", hint=hint
            ) from None
