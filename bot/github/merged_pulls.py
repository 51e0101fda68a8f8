"""The pull requests that were merged between two commits of a branch, and what was accepted on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from github.PullRequest import PullRequest

from bot.core.after_merge import MergedPull
from bot.core.publication import is_approval
from bot.show.escape import clean
from bot.system.hub import Hub, explain, required

MOST_COMMITS = 20
"""So many commits are asked for their pull requests at most, one request each: the newest."""
_TITLE_CHARACTERS = 120


class MergedPulls(NamedTuple):
    """The merged pull requests of some commits, the newest first."""

    pulls: tuple[MergedPull, ...] = ()
    approved: tuple[int, ...] = ()  # the numbers of those with a label that accepts findings
    unasked: int = 0  # how many older commits were not asked


def merged_pulls(hub: Hub, commits: Sequence[str], branch: str) -> MergedPulls:
    """Ask for the merged pull requests of commits of a branch.

    `commits`: first parents, the newest first.

    Raises:
        NetworkError: GitHub did not answer.
    """
    found = dict[int, PullRequest]()
    asked = commits[:MOST_COMMITS]
    with explain("read the merged pull requests", "pull-requests: read"):
        for sha in asked:
            for pull in hub.repo.get_commit(sha).get_pulls():
                base_ref = required(pull.base.ref, "base.ref")
                if pull.merged_at is not None and base_ref == branch:
                    found.setdefault(required(pull.number, "number"), pull)
        titled = tuple(MergedPull(number, _title(pull)) for number, pull in found.items())
        approved = tuple(number for number, pull in found.items() if _is_approved(pull))
    return MergedPulls(titled, approved, len(commits) - len(asked))


def _title(pull: PullRequest) -> str:
    return clean(required(pull.title, "title"), _TITLE_CHARACTERS)


def _is_approved(pull: PullRequest) -> bool:
    return any(is_approval(label.name) for label in pull.labels)
