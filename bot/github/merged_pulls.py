"""Find the pull requests merged between two commits, and what was accepted on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bot.config.configuration import Config
from bot.core.acceptance import Acceptance
from bot.core.after_merge import MergedPull
from bot.errors import NetworkError
from bot.github.acceptance import accepted_on
from bot.github.destination import Destination
from bot.github.rows import PullRequest
from bot.github.services import Services
from bot.show.escape import clean
from bot.system.hub import Hub
from bot.system.refusals import explain

MOST_COMMITS = 20
"""For how many commits, the newest, GitHub is asked for pull requests.

That takes one request each.
"""
_TITLE_CHARACTERS = 120


class MergedPulls(NamedTuple):
    """The merged pull requests of some commits, the newest first."""

    pulls: tuple[MergedPull, ...] = ()
    unasked: int = 0  # how many older commits were not asked


def merged_pulls(hub: Hub, commits: Sequence[str], branch: str) -> MergedPulls:
    """Ask for the merged pull requests of commits of a branch.

    `commits`: first parents, the newest first.

    Raises:
        NetworkError: GitHub did not answer.
    """
    pulls = dict[int, PullRequest]()
    asked_commits = commits[:MOST_COMMITS]
    with explain("read the merged pull requests", "pull-requests: read"):
        for sha in asked_commits:
            for pull in hub.rows(list[PullRequest], f"commits/{sha}/pulls"):
                if pull.merged_at is not None and pull.base.ref == branch:
                    pulls.setdefault(pull.number, pull)
    titled = []
    for number, pull in pulls.items():
        titled.append(MergedPull(number, clean(pull.title, _TITLE_CHARACTERS)))
    return MergedPulls(tuple(titled), len(commits) - len(asked_commits))


class Merges(NamedTuple):
    """The commits between a baseline and a pushed commit, with their pull requests.

    The pull requests are those that GitHub knows.
    """

    # first parents, the newest first; the pushed commit is the first
    commits: tuple[str, ...]
    asked: MergedPulls = MergedPulls()
    acceptance: Acceptance | None = None
    # why the pull requests are not known; empty if they are, or if nothing asked for
    # them
    unknown: str = ""


def merges_of(
    services: Services, hub: Hub, config: Config, commits: tuple[str, ...]
) -> Merges:
    """Ask for the merged pull requests of a push and for what was accepted on them.

    If GitHub refuses, a line says so.
    """
    context = services.context
    try:
        merged = merged_pulls(hub, commits, context.default_branch)
        to = Destination(
            pull=None, head_sha=context.sha, run_id=context.run_id, config=config
        )
        acceptance = accepted_on(hub, [pull.number for pull in merged.pulls], to)
        return Merges(commits, merged, acceptance)
    except NetworkError as error:
        services.show.say(error.line)
        return Merges(commits, unknown=error.line)
