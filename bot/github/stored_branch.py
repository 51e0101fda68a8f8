"""Read the stored baselines of the default branch, and its growth since then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import NamedTuple

from bot.config.configuration import Config
from bot.core.slow_growth import Growth, Line
from bot.core.snapshot import Snapshot
from bot.errors import NoVerdict, UsageError
from bot.github.baselines import stored
from bot.github.services import Services
from bot.github.stores import store_of
from bot.store.entries import by_commit
from bot.study.slow_growth import growth_of, line_of


class StoredBranch(NamedTuple):
    """The default branch as its baselines show it."""

    # commit and baseline, the newest first, never empty
    sides: Sequence[tuple[str, Snapshot]]
    line: Line
    commits: Sequence[str]  # those with a baseline, the newest first
    # reads the baseline of a commit; None if it is damaged
    load: Callable[[str], Snapshot | None]
    growths: tuple[Growth, ...]


def require_default_branch(services: Services, subject: str) -> None:
    """Raise UsageError for a pull request and for another branch than the default one.

    `subject`: the beginning of the sentence, such as `pages are`. The token may only
    read, but the result is published under the repository's name.
    """
    context = services.context
    is_default = (
        bool(context.default_branch)
        and context.ref == f"refs/heads/{context.default_branch}"
    )
    if context.pull or not is_default:
        raise UsageError(
            f"{subject} made only for the default branch, not for"
            f" {context.ref or context.event}",
            where="event",
            hint=(
                "start the workflow on the default branch by push, schedule,"
                " workflow_run or by hand"
            ),
        )


def stored_branch(services: Services, config: Config, most_points: int) -> StoredBranch:
    """Read the newest baselines of the default branch, and the reference ones.

    Growth is counted from the reference ones.

    Raises:
        NoVerdict: no baseline is stored for any of the branch's commits that are
            looked through.
        NetworkError: the store cannot be asked.
    """
    context = services.context
    store = store_of(services, config)
    standings = stored(
        services, store=store, config=config, sha=context.sha, a_commit=1
    )
    sides = []
    for standing in islice(standings, most_points):
        sides.append((standing.entry.sha, standing.snapshot))
    if not sides:
        hint = (
            "a push to the default branch stores one; check `report_id` in the"
            " configuration"
        )
        raise NoVerdict(
            "no baseline is stored", where=context.default_branch, hint=hint
        )

    def load(sha: str) -> Snapshot | None:
        of_commit = stored(
            services,
            store=store,
            config=config,
            sha=sha,
            is_wanted=lambda entry: entry.sha == sha,
            a_commit=1,
        )
        standing = next(of_commit, None)
        if standing:
            return standing.snapshot
        return None

    line = line_of(services.git, context.sha, config.baseline.ancestors)
    with_baseline = by_commit(store, config.report_id)
    commits = [sha for sha in line.commits if sha in with_baseline]
    growths = growth_of(line, stored=commits, loaded=sides, load=load)
    return StoredBranch(
        sides=sides, line=line, commits=commits, load=load, growths=growths
    )
