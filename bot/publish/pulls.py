"""Pull requests: what one is now, which belong to a commit, who may write, and who set a label."""

from __future__ import annotations

from dataclasses import dataclass

from github import GithubException
from github.PullRequest import PullRequest

from bot.publish.github import Hub, explain

_WRITERS = frozenset({"admin", "maintain", "write"})


@dataclass(frozen=True, slots=True)
class PullInfo:
    """A pull request as it is now.

    Attributes:
        state: `open` or `closed`.
        head_repository: `owner/name`; empty where the fork was deleted.
        merge_sha: the test merge commit; None while GitHub has none (a conflict, or not computed yet).
    """

    number: int
    state: str
    head_sha: str
    base_ref: str
    base_sha: str
    head_repository: str
    merge_sha: str | None
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Labelling:
    """Who set a label, and which event that was; `who` is empty where the account is gone."""

    event_id: int
    who: str


def pull(hub: Hub, number: int) -> PullInfo:
    """A pull request by its number.

    Raises:
        NetworkError: it cannot be read, or there is none.
    """
    with explain(f"read the pull request #{number}", "pull-requests: read"):
        return _info(hub.repo.get_pull(number))


def open_pulls_with_head(hub: Hub, head_repository: str, head_branch: str, head_sha: str) -> list[PullInfo]:
    """The open pull requests whose branch is this one and is at this commit; smallest number first.

    Args:
        head_repository: `owner/name` of the branch's repository, a fork perhaps.

    Raises:
        NetworkError: they cannot be read.
    """
    owner = head_repository.partition("/")[0]
    with explain(f"look for the pull request of {head_sha[:12]}", "pull-requests: read"):
        listed = [_info(found) for found in hub.repo.get_pulls(state="open", head=f"{owner}:{head_branch}")]
    # GitHub ignores a `head` that it cannot read, and the branch may have moved on.
    mine = (info for info in listed if info.head_sha == head_sha)
    of_fork = (info for info in mine if info.head_repository.lower() == head_repository.lower())
    return sorted(of_fork, key=lambda info: info.number)


def may_write(hub: Hub, login: str) -> bool:
    """True where the user may push to the repository; False for strangers.

    Raises:
        NetworkError: GitHub does not say.
    """
    with explain(f"ask whether {login} may write", "metadata: read"):
        try:
            return hub.repo.get_collaborator_permission(login) in _WRITERS
        except GithubException as error:
            if error.status != 404:
                raise
            return False


def labelling(hub: Hub, number: int, label: str) -> Labelling | None:
    """The newest setting of a label that is set now; None where it is not. Names of labels know no case.

    Raises:
        NetworkError: the labels or events cannot be read.
    """
    wanted = label.casefold()
    with explain(f"read who labelled #{number}", "issues: read"):
        issue = hub.repo.get_issue(number)
        if wanted not in (one.name.casefold() for one in issue.get_labels()):
            return None
        events = [event for event in issue.get_events() if event.event == "labeled" and event.label is not None]
        settings = [event for event in events if event.label.name.casefold() == wanted]
        newest = max(settings, key=lambda event: event.id, default=None)
        return Labelling(newest.id, newest.actor.login if newest.actor is not None else "") if newest else None


def _info(found: PullRequest) -> PullInfo:
    return PullInfo(
        number=found.number,
        state=found.state,
        head_sha=found.head.sha,
        base_ref=found.base.ref,
        base_sha=found.base.sha,
        head_repository=found.head.repo.full_name if found.head.repo is not None else "",
        merge_sha=found.merge_commit_sha,
        labels=tuple(sorted(one.name for one in found.labels)),
    )
