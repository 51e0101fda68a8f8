"""Ask the repository for pull requests, labels, permissions, artifacts and ancestry.

What GitHub does not answer is a NetworkError.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import quote

from github import GithubException
from github.Artifact import Artifact
from github.IssueEvent import IssueEvent
from github.PaginatedList import PaginatedList
from github.PullRequest import PullRequest

from bot.errors import NetworkError
from bot.system.hub import Hub, explain, required

MOMENT = "%Y-%m-%dT%H:%M:%SZ"
"""How GitHub writes moments, all of them in UTC."""
_BASE_CHANGES = frozenset({"base_ref_changed", "automatic_base_change_succeeded"})
"""By a person, and by GitHub when the base branch was merged and deleted.

Source: "Issue event types" of GitHub's documentation.
"""


def pull(hub: Hub, pull_number: int) -> PullRequest:
    """Return a pull request by its number."""
    with explain(f"read the pull request #{pull_number}", "pull-requests: read"):
        try:
            return _whole(hub.repo.get_pull(pull_number).complete())
        except GithubException as refused:
            if refused.status != 404:
                raise
            raise missing_pull(hub.repository, pull_number, is_seen=False) from None


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
    """Raise NetworkError where a pull request is missing or nobody may comment."""
    if pull(hub, pull_number).raw_data.get("locked"):
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
        pulls = [
            _whole(pull)
            for pull in hub.repo.get_pulls(state="open", head=f"{owner}:{head_branch}")
        ]
        # GitHub ignores a `head` that it cannot read, and the branch may have moved on.
        pulls_of_head = [pull for pull in pulls if pull.head.sha == head_sha]
        of_branch = [
            pull
            for pull in pulls_of_head
            if head_repository_of(pull).lower() == head_repository.lower()
        ]
        return sorted(of_branch, key=lambda pull: pull.number)


def open_pulls_at(hub: Hub, head_sha: str, base_ref: str) -> list[int]:
    """Return the numbers of all open pull requests at this commit, to this branch.

    It does not matter who opened them.
    """
    with explain(
        f"look for the pull requests of {head_sha[:12]}", "pull-requests: read"
    ):
        pulls = [
            _whole(pull) for pull in hub.repo.get_pulls(state="open", base=base_ref)
        ]
        return [
            pull.number
            for pull in pulls
            if (pull.head.sha, pull.base.ref) == (head_sha, base_ref)
        ]


def open_pulls_to(hub: Hub, base_ref: str) -> list[int]:
    """Return the numbers of all open pull requests that go to this branch."""
    with explain(f"look for the pull requests to {base_ref}", "pull-requests: read"):
        return [
            _whole(pull).number
            for pull in hub.repo.get_pulls(state="open", base=base_ref)
        ]


def _whole(pull: PullRequest) -> PullRequest:
    """Return the pull request if the program can read all that it needs of it.

    Nothing may be missing or of another type.
    """
    head_repository_of(pull)
    promised = {
        "number": pull.number,
        "head.sha": pull.head.sha,
        "base.ref": pull.base.ref,
        "created_at": pull.created_at,
    }
    for name, value in promised.items():
        required(value, name)
    return pull


def head_repository_of(pull: PullRequest) -> str:
    """`owner/name` of the repository that a pull request comes from.

    Empty where the fork was deleted.
    """
    if pull.head.repo:
        return required(pull.head.repo.full_name, "head.repo.full_name")
    return ""


def base_changed_at(hub: Hub, pull_number: int) -> datetime | None:
    """When the pull request was last given another base branch.

    None where it has the one it was opened with.
    """
    with explain(f"read the events of #{pull_number}", "pull-requests: read"):
        events = hub.issue(pull_number).get_events()
        return max(
            (event.created_at for event in events if event.event in _BASE_CHANGES),
            default=None,
        )


def may_write(hub: Hub, login: str) -> bool:
    """Return whether the user may push to the repository; False for strangers."""
    with explain(f"check whether {login} may write", "metadata: read"):
        try:
            return hub.repo.get_collaborator_permission(login) in (
                "admin",
                "maintain",
                "write",
            )
        except GithubException as refused:
            if refused.status != 404:
                raise
            return False


def first_line_of_comment(hub: Hub, comment_id: int) -> str | None:
    """Return the first line of a comment; None where it was deleted."""
    comment = _comment(hub, comment_id)
    if comment is None:
        return None
    return next(iter((comment.get("body") or "").splitlines()), "")


def comment_written_at(hub: Hub, comment_id: int) -> str:
    """When a comment was written, as GitHub writes moments; empty where it was deleted."""
    comment = _comment(hub, comment_id)
    if comment is None:
        return ""
    return str(comment["created_at"])


def _comment(hub: Hub, comment_id: int) -> dict[str, Any] | None:
    with explain("read the comment with the command", "pull-requests: read"):
        try:
            comment: dict[str, Any] = hub.call("GET", f"issues/comments/{comment_id}")
        except GithubException as refused:
            if refused.status not in (404, 410):
                raise
            return None
        return comment


def labelling(hub: Hub, number: int, *labels: str) -> IssueEvent | None:
    """Return the newest setting of any of these labels; None where none is set now.

    Names of labels know no case.
    """
    names = {label.casefold() for label in labels}
    with explain(f"read who labelled #{number}", "issues: read"):
        issue = hub.issue(number)
        names &= {label.name.casefold() for label in issue.get_labels()}
        if not names:
            return None
        labelled = [
            event
            for event in issue.get_events()
            if required(event.event, "event") == "labeled"
        ]
        settings = [
            event
            for event in labelled
            if event.label and event.label.name.casefold() in names
        ]
        return max(settings, key=lambda event: event.id, default=None)


def artifacts(hub: Hub, run_id: int) -> list[Artifact]:
    """Return all artifacts of a run, over all pages, by id."""
    with explain(f"list the artifacts of run {run_id}", "actions: read"):
        # PyGithub's own reads the run first, for this very address.
        path = f"{hub.repo.url}/actions/runs/{run_id}/artifacts"
        listed = list(
            PaginatedList(Artifact, hub.requester, path, list_item="artifacts")
        )
        for artifact in listed:
            promised = {
                "id": artifact.id,
                "name": artifact.name,
                "size_in_bytes": artifact.size_in_bytes,
                "expired": artifact.expired,
            }
            for name, value in promised.items():
                required(value, name)
        return sorted(listed, key=lambda artifact: artifact.id)


def download(hub: Hub, artifact_id: int, max_bytes: int) -> bytes:
    """Return the zip of one artifact."""
    with explain(
        f"download artifact {artifact_id} of {hub.repository}", "actions: read"
    ):
        return hub.download(f"actions/artifacts/{artifact_id}/zip", max_bytes)


def is_ancestor(hub: Hub, older: str, newer_ref: str) -> bool:
    """Return whether `newer_ref` is at or after `older`.

    False too where GitHub does not know one of them.
    """
    with explain(f"compare {older[:12]} with {newer_ref}", "contents: read"):
        try:
            # Page 2 leaves out the files, which only page 1 has, PyGithub's, and which
            # can be megabytes.
            place = f"compare/{quote(older, safe='')}...{quote(newer_ref, safe='/')}"
            return hub.call("GET", place, page=2, per_page=1)["status"] in (
                "ahead",
                "identical",
            )
        except GithubException as refused:
            if refused.status != 404:
                raise
            return False


def parents(hub: Hub, sha: str) -> tuple[str, ...]:
    """Return the parents of a commit in order.

    Of a merge, the branch that was merged into comes first.
    """
    with explain(f"read the commit {sha[:12]}", "contents: read"):
        # Of the files, which come with it, one is the least to ask for.
        commit = hub.repo.get_commit(sha, commit_files_per_page=1)
        return tuple(required(parent.sha, "sha") for parent in commit.parents)
