"""Ask the repository for pull requests, labels, permissions, artifacts and ancestry.

If GitHub gives no answer, that is a NetworkError.
"""

from __future__ import annotations

from datetime import datetime
from urllib.parse import quote

from bot.errors import NetworkError
from bot.github.rows import (
    Artifact,
    Artifacts,
    Comment,
    Commit,
    Comparison,
    Event,
    Label,
    Permission,
    PullRequest,
)
from bot.system.hub import Hub
from bot.system.refusals import explain

MOMENT = "%Y-%m-%dT%H:%M:%SZ"
"""How GitHub writes moments, all of them in UTC."""
_BASE_CHANGES = frozenset({"base_ref_changed", "automatic_base_change_succeeded"})
"""The events by which a pull request gets another base branch.

A person makes the first. GitHub makes the other when the base branch was merged and
deleted. Source: "Issue event types" of GitHub's documentation.
"""


def pull(hub: Hub, pull_number: int) -> PullRequest:
    """Return a pull request by its number."""
    with explain(f"read the pull request #{pull_number}", "pull-requests: read"):
        found_pull = hub.find(PullRequest, f"pulls/{pull_number}")
    if found_pull is None:
        raise missing_pull(hub.repository, pull_number, is_seen=False)
    return found_pull


def missing_pull(
    repository: str, pull_number: int, *, is_seen: bool = True
) -> NetworkError:
    """Return the error of a pull request that does not exist.

    `is_seen`: False if a token may not see it either.
    """
    problem = f"there is no pull request #{pull_number} in {repository}"
    if is_seen:
        return NetworkError(problem, hint="check the number")
    hint = "check the number, or give the job `permissions: pull-requests: read`"
    return NetworkError(f"{problem}, or the token may not see it", hint=hint)


def require_open_conversation(hub: Hub, pull_number: int) -> None:
    """Raise NetworkError if a pull request is missing or nobody may comment."""
    if pull(hub, pull_number).locked:
        raise locked(pull_number)


def locked(pull_number: int) -> NetworkError:
    """Return the error of a conversation in which nobody may comment."""
    problem = (
        f"the conversation of #{pull_number} is locked, and the report could not be"
        " written there"
    )
    return NetworkError(problem, hint="unlock it and run the workflow again")


def open_pulls_with_head(
    hub: Hub, head_repository: str, head_branch: str, head_sha: str
) -> list[PullRequest]:
    """Return the open pull requests whose branch is this one and at this commit.

    The branch may be that of a fork. Smallest number first.
    """
    owner = head_repository.partition("/")[0]
    with explain(
        f"look for the pull request of {head_sha[:12]}", "pull-requests: read"
    ):
        pulls = _open_pulls(hub, head=f"{owner}:{head_branch}")
    # GitHub ignores a `head` that it cannot read, and the branch may have moved on.
    of_branch = []
    for pull in pulls:
        is_of_repository = pull.head_repository.lower() == head_repository.lower()
        if pull.head.sha == head_sha and is_of_repository:
            of_branch.append(pull)
    return sorted(of_branch, key=lambda pull: pull.number)


def open_pulls_at(hub: Hub, head_sha: str, base_ref: str) -> list[int]:
    """Return the numbers of all open pull requests at this commit, to this branch.

    It does not matter who opened them.
    """
    with explain(
        f"look for the pull requests of {head_sha[:12]}", "pull-requests: read"
    ):
        pulls = _open_pulls(hub, base=base_ref)
    numbers = []
    for pull in pulls:
        if pull.head.sha == head_sha and pull.base.ref == base_ref:
            numbers.append(pull.number)
    return numbers


def open_pulls_to(hub: Hub, base_ref: str) -> list[int]:
    """Return the numbers of all open pull requests that go to this branch."""
    with explain(f"look for the pull requests to {base_ref}", "pull-requests: read"):
        return [pull.number for pull in _open_pulls(hub, base=base_ref)]


def _open_pulls(hub: Hub, **query: str) -> list[PullRequest]:
    return hub.rows(list[PullRequest], "pulls", state="open", **query)


def base_changed_at(hub: Hub, pull_number: int) -> datetime | None:
    """Return when the pull request last got another base branch.

    None if it never did.
    """
    with explain(f"read the events of #{pull_number}", "pull-requests: read"):
        events = hub.rows(list[Event], f"issues/{pull_number}/events")
    changes = [event.created_at for event in events if event.event in _BASE_CHANGES]
    return max(changes, default=None)


def may_write(hub: Hub, login: str) -> bool:
    """Return whether the user may push to the repository; False for strangers."""
    with explain(f"check whether {login} may write", "metadata: read"):
        place = f"collaborators/{quote(login, safe='')}/permission"
        answer = hub.find(Permission, place)
    return answer is not None and answer.permission in ("admin", "maintain", "write")


def comment_of(hub: Hub, comment_id: int) -> Comment | None:
    """Return a comment; None if it was deleted."""
    with explain("read the comment with the command", "pull-requests: read"):
        return hub.find(Comment, f"issues/comments/{comment_id}", missing=(404, 410))


def labelling(hub: Hub, number: int, *labels: str) -> Event | None:
    """Return the newest setting of any of these labels; None if none is set now.

    Names of labels know no case.
    """
    names = {label.casefold() for label in labels}
    with explain(f"read who labelled #{number}", "issues: read"):
        present = hub.rows(list[Label], f"issues/{number}/labels")
        names &= {label.name.casefold() for label in present}
        if not names:
            return None
        events = hub.rows(list[Event], f"issues/{number}/events")
    settings = []
    for event in events:
        if event.event != "labeled" or not event.label:
            continue
        if event.label.name.casefold() in names:
            settings.append(event)
    return max(settings, key=lambda event: event.id, default=None)


def artifacts(hub: Hub, run_id: int) -> list[Artifact]:
    """Return all artifacts of a run, over all pages, by id."""
    with explain(f"list the artifacts of run {run_id}", "actions: read"):
        found = list[Artifact]()
        for page in hub.pages(Artifacts, f"actions/runs/{run_id}/artifacts"):
            found += page.artifacts
    return sorted(found, key=lambda artifact: artifact.id)


def download(hub: Hub, artifact_id: int, max_bytes: int) -> bytes:
    """Return the zip of one artifact."""
    with explain(
        f"download artifact {artifact_id} of {hub.repository}", "actions: read"
    ):
        return hub.download(f"actions/artifacts/{artifact_id}/zip", max_bytes)


def is_ancestor(hub: Hub, older: str, newer_ref: str) -> bool:
    """Return whether `newer_ref` is at or after `older`.

    False, too, if GitHub does not know one of them.
    """
    with explain(f"compare {older[:12]} with {newer_ref}", "contents: read"):
        # Page 2 leaves out the files, which only page 1 has, and which can be megabytes.
        sides = f"{quote(older, safe='')}...{quote(newer_ref, safe='/')}"
        comparison = hub.find(Comparison, f"compare/{sides}?page=2&per_page=1")
    return comparison is not None and comparison.status in ("ahead", "identical")


def parents(hub: Hub, sha: str) -> tuple[str, ...]:
    """Return the parents of a commit in order.

    Of a merge, the branch that was merged into comes first.
    """
    with explain(f"read the commit {sha[:12]}", "contents: read"):
        # Of the files, which come with it, one is the least to ask for.
        commit = hub.get(Commit, f"commits/{quote(sha, safe='')}", per_page=1)
    return tuple(parent.sha for parent in commit.parents)
