"""The run context: what an event asks for, as one value.

Everything else follows from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from msgspec.structs import replace

from bot.core.asked import ANSWERED_APART, Asked, Comment
from bot.core.record import Small

Story = Literal["review", "baseline", "post", "command", "nothing"]
"""The kinds of runs that an event can ask for.

* review: two sides are measured and reported.
* baseline: a commit is measured and stored.
* post: the run of a pull request that could not write has ended, and is reported.
* command: a comment asks for something, and is not checked yet.
* nothing: `why` has the reason.
"""


class Pull(Small, frozen=True):
    """A pull request."""

    number: int
    head_sha: str  # the tip of its branch; checks and staleness go by it
    base_ref: str = ""
    head_repository: str = ""  # `owner/name`; empty if the fork was deleted
    is_locked: bool = False  # True if nobody may comment on it


class Queue(Small, frozen=True):
    """The commit of a merge queue: the base with the queued pull requests on top."""

    base_sha: str  # the commit that they are merged onto
    base_ref: str  # the branch that they go to
    head_ref: str  # the branch of the queue's commit, which names the last pull request


class WorkflowRun(Small, frozen=True):
    """The finished run that a `workflow_run` event is about."""

    id: int
    head_sha: str
    head_branch: str
    head_repository: str
    conclusion: str
    actor: str
    workflow: str = ""  # the workflow's name; its artifacts carry it
    # when its first attempt was started, as GitHub writes moments
    # (`2026-01-31T12:00:00Z`)
    created_at: str = ""


class RunContext(Small, frozen=True):
    """One run of the bot under GitHub Actions."""

    story: Story
    why: str
    event: str = ""
    repository: str = ""  # `owner/name` of the repository that the run belongs to
    api_url: str = "https://api.github.com"
    server_url: str = "https://github.com"
    run_id: int = 0
    sha: str = (  # `GITHUB_SHA`: the merge commit of a pull request, the pushed commit of a push
        ""
    )
    ref: str = ""
    default_branch: str = ""
    actor: str = ""
    pull: Pull | None = None
    queue: Queue | None = None
    run: WorkflowRun | None = None
    # True if GitHub gives the run a token without write access (a fork, Dependabot)
    read_only: bool = False
    comment: Comment | None = None  # the comment with a command
    asked: Asked | None = None  # the command of that comment, checked and pinned

    @property
    def is_foreign(self) -> bool:
        """Return whether the pull request is from another repository."""
        return (
            self.pull is not None
            and self.pull.head_repository.casefold() != self.repository.casefold()
        )

    def with_command(self, command: Asked, pull: Pull, reason: str) -> RunContext:
        """Return the run that carries out a command, on the pinned merge commit.

        The event's commit does not matter. A command with an answer of its own is about
        no pull request's head, as a run that a person started.
        """
        if command.typed.verb in ANSWERED_APART:
            about = None
        else:
            about = pull
        return replace(
            self,
            story="review",
            why=reason,
            sha=command.merge_sha,
            pull=about,
            asked=command,
        )

    @property
    def is_proposal(self) -> bool:
        """Return whether this is a pull request or a merge queue.

        The rules of the branch hold, into which the change is to be merged.
        """
        return self.pull is not None or self.queue is not None

    @property
    def run_url(self) -> str:
        """Return the address of this run's page."""
        return f"{self.server_url}/{self.repository}/actions/runs/{self.run_id}"


@dataclass(frozen=True, slots=True)
class ActionInputs:
    """The parsed inputs of action.yml: one field per input that is more than text."""

    # `auto` (what the event asks for) or a command of the program
    command: str = "auto"
    github_token: str = field(default="", repr=False)
    # for the repository that stores the baselines, if it is another
    store_token: str = field(default="", repr=False)
    # login under which the token writes; needed if it is a GitHub App's, which may not
    # ask for its login
    author: str = ""
    config: str = ""
    # base, head: a SPEC, a git ref or a snapshot; empty: the commit of that side as the
    # event has it
    base: str = ""
    head: str = ""
    models: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    # number of the pull request that a manual run reports to; None: job summary only
    pull_request: int | None = None
    asked: str = ""  # JSON: the command of a comment, as the job `gate` checked it
    shards: int | None = None
    shard: tuple[int, int] | None = None  # which part of how many
    plan: str = ""  # what `plan --shards` printed, for `shard`
    # files or globs of snapshots that together are the head side, measured by a matrix
    # of runners
    parts: tuple[str, ...] = ()
    measured: str = ""  # the directory that has what the measuring job handed over
    outcome: str = ""  # how the measuring job ended, in GitHub's words
    # the stored baselines as files, for a job that may not fetch them
    baselines: str = ""
    jobs: int | None = None
    cache: str = ""
    out: str = ""
