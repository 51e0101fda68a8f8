"""Pull requests: what one is now, which belong to a commit, who may write, and who set a label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from bot.publish.hub import Hub, explain
from bot.publish.shapes import number, rows, text, text_or_none
from bot.system.retrying import Refused

_WRITERS = frozenset({"admin", "maintain", "write"})
_BASE_CHANGES = frozenset({"base_ref_changed", "automatic_base_change_succeeded"})
"""By a person, and by GitHub when the base branch was merged and deleted ("Issue event types")."""


@dataclass(frozen=True, slots=True)
class PullInfo:
    """A pull request as it is now.

    Attributes:
        state: `open` or `closed`.
        head_repository: `owner/name`; empty where the fork was deleted.
        merge_sha: the test merge commit; None while GitHub has none (a conflict, or not computed yet).
        created_at: as GitHub writes moments, which sort as text.
    """

    number: int
    state: str
    head_sha: str
    base_ref: str
    base_sha: str
    head_repository: str
    merge_sha: str | None
    labels: tuple[str, ...]
    created_at: str


@dataclass(frozen=True, slots=True)
class Labelling:
    """Who set a label, and which event that was; `who` is empty where the account is gone."""

    event_id: int
    who: str


def pull(hub: Hub, pull_number: int) -> PullInfo:
    """A pull request by its number.

    Raises:
        NetworkError: it cannot be read, or there is none.
    """
    with explain(f"read the pull request #{pull_number}", "pull-requests: read"):
        return _info(hub.call("GET", f"pulls/{pull_number}"))


def open_pulls_with_head(hub: Hub, head_repository: str, head_branch: str, head_sha: str) -> list[PullInfo]:
    """The open pull requests whose branch is this one and is at this commit; smallest number first.

    Args:
        head_repository: `owner/name` of the branch's repository, a fork perhaps.

    Raises:
        NetworkError: they cannot be read.
    """
    owner = head_repository.partition("/")[0]
    with explain(f"look for the pull request of {head_sha[:12]}", "pull-requests: read"):
        listed = [_info(found) for found in hub.listed("pulls", state="open", head=f"{owner}:{head_branch}")]
    # GitHub ignores a `head` that it cannot read, and the branch may have moved on.
    mine = (info for info in listed if info.head_sha == head_sha)
    of_fork = (info for info in mine if info.head_repository.lower() == head_repository.lower())
    return sorted(of_fork, key=lambda info: info.number)


def open_pulls_at(hub: Hub, head_sha: str, base_ref: str) -> list[int]:
    """The numbers of all open pull requests that are at this commit and go to this branch, whoever opened them.

    Raises:
        NetworkError: they cannot be read.
    """
    with explain(f"look for the pull requests of {head_sha[:12]}", "pull-requests: read"):
        listed = [_info(found) for found in hub.listed("pulls", state="open", base=base_ref)]
    return [info.number for info in listed if (info.head_sha, info.base_ref) == (head_sha, base_ref)]


def base_changed_at(hub: Hub, pull_number: int) -> str:
    """When the pull request was last given another base branch; empty where it has the one it was opened with.

    Raises:
        NetworkError: its events cannot be read.
    """
    with explain(f"read the events of #{pull_number}", "pull-requests: read"):
        events = hub.listed(f"issues/{pull_number}/events")
        return max((text(one, "created_at") for one in events if text(one, "event") in _BASE_CHANGES), default="")


def may_write(hub: Hub, login: str) -> bool:
    """True where the user may push to the repository; False for strangers.

    Raises:
        NetworkError: GitHub does not say.
    """
    with explain(f"ask whether {login} may write", "metadata: read"):
        try:
            answer = hub.call("GET", f"collaborators/{quote(login, safe='')}/permission")
            return text(answer, "permission") in _WRITERS
        except Refused as refused:
            if refused.status != 404:
                raise
            return False


def labelling(hub: Hub, issue: int, label: str) -> Labelling | None:
    """The newest setting of a label that is set now; None where it is not. Names of labels know no case.

    Raises:
        NetworkError: the labels or events cannot be read.
    """
    wanted = label.casefold()
    with explain(f"read who labelled #{issue}", "issues: read"):
        if wanted not in (text(one, "name").casefold() for one in hub.listed(f"issues/{issue}/labels")):
            return None
        labelled = [one for one in hub.listed(f"issues/{issue}/events") if text(one, "event") == "labeled"]
        settings = [one for one in labelled if (text_or_none(one, "label.name") or "").casefold() == wanted]
        newest = max(settings, key=lambda one: number(one, "id"), default=None)
        return Labelling(number(newest, "id"), text_or_none(newest, "actor.login") or "") if newest else None


def _info(found: Any) -> PullInfo:
    return PullInfo(
        number=number(found, "number"),
        state=text(found, "state"),
        head_sha=text(found, "head.sha"),
        base_ref=text(found, "base.ref"),
        base_sha=text(found, "base.sha"),
        head_repository=text_or_none(found, "head.repo.full_name") or "",
        merge_sha=text_or_none(found, "merge_commit_sha"),
        labels=tuple(sorted(text(one, "name") for one in rows(found, "labels"))),
        created_at=text(found, "created_at"),
    )
