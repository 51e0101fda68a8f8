"""Find the pull requests of a merge queue's commit.

What was accepted on them counts for the queue.
"""

from __future__ import annotations

import re

from bot.core.context import Queue
from bot.github.repository import open_pulls_to
from bot.system.git import Git
from bot.system.hub import Hub

_MOST_COMMITS = 200
_IN_BRANCH = re.compile(r"/pr-([1-9][0-9]{0,9})-[0-9a-f]{40}\Z")
"""The end of the branch that GitHub makes for the last pull request of a group."""
_IN_SUBJECT = re.compile(
    r"Merge pull request #([1-9][0-9]{0,9}) |.*\(#([1-9][0-9]{0,9})\)\Z"
)
"""The subjects that GitHub gives a merge commit and a squashed one."""


def queued_pulls(hub: Hub, git: Git, queue: Queue, sha: str) -> list[int]:
    """Return the numbers of a queue's open pull requests, smallest first.

    They are between the base of the queue and its commit.

    A subject may be anybody's words, so only open pull requests to the queue's branch
    count.
    """
    named = set[int]()
    match = _IN_BRANCH.search(queue.head_ref)
    if match:
        named.add(int(match[1]))
    for subject in _subjects(git, queue.base_sha, sha):
        if match := _IN_SUBJECT.match(subject):
            named.add(int(match[1] or match[2]))
    return sorted(named & set(open_pulls_to(hub, queue.base_ref)))


def _subjects(git: Git, base_sha: str, sha: str) -> list[str]:
    """Return the subjects of the commits of a queue, the newest first."""
    commits = [sha]
    for commit in git.ancestors(sha, _MOST_COMMITS):
        if commit == base_sha:
            break
        commits.append(commit)
    return git.text(
        "log", "--no-walk=unsorted", "--format=%s", *commits, "--"
    ).splitlines()
