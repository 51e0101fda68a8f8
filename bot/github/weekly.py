"""Summarize slow growth from the stored baselines of the default branch.

This is the command `weekly`.

Nothing is measured, and nothing of a pull request is read. The summary goes to the page
of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bot.config.configuration import Config
from bot.core.drift import Weekly
from bot.core.slow_growth import DAY_SECONDS, WINDOW_DAYS, window_point
from bot.core.snapshot import Snapshot
from bot.errors import NoVerdict
from bot.github.configurations import configuration_of, require_configuration
from bot.github.runner import write_summary
from bot.github.services import Services
from bot.github.stored_branch import StoredBranch, require_default_branch, stored_branch
from bot.show.weekly import weekly_markdown, write_weekly
from bot.study.drifts import grown_builds, largest_drifts, sizes_of

MOST_BASELINES = 200
"""How many baselines, the newest, are read at most for the steps of a drift."""
_WEEK_DAYS = 7


class Past(NamedTuple):
    """The older baseline that a summary compares with."""

    sha: str
    snapshot: Snapshot
    notes: tuple[str, ...] = ()


def weekly(services: Services) -> None:
    """Write the weekly files to `out`, and the summary of the run.

    The files are `weekly.json`, `weekly.md` and `weekly.html`.

    Raises:
        ConfigError: the branch has no configuration.
        UsageError: the run is of another branch than the default one, or of a pull request.
        NoVerdict: fewer than two baselines are stored.
    """
    require_default_branch(services, "the weekly summary is")
    config, name = configuration_of(services, services.at(""))
    if not name:
        require_configuration(services.inputs.config)
    branch = stored_branch(services, config, MOST_BASELINES)
    if len(branch.sides) < 2:
        hint = "run it again after the next push that changes the result"
        raise NoVerdict(
            "only one baseline is stored",
            where=services.context.default_branch,
            hint=hint,
        )
    summary = summary_of(config, branch)
    files = write_weekly(summary, config.templates, services.out)
    if services.summary:
        write_summary(services.summary, weekly_markdown(summary, config.templates))
    services.show.say(
        f"written to {services.out}: {', '.join(file.name for file in files)}"
    )


def summary_of(config: Config, branch: StoredBranch) -> Weekly:
    """Compare the newest baseline with that of 90 days before.

    If there is none, compare it with the oldest one that is stored.
    """
    head_sha, head = branch.sides[0]
    past = _past(branch)
    between = _between(branch.sides, past.sha)
    week = window_point(branch.line, branch.commits, _WEEK_DAYS)
    week_ago = branch.load(week.sha) if week.sha else None
    grown = grown_builds(past.snapshot, head)
    compared = sizes_of(past.snapshot).keys() & sizes_of(head).keys()
    return Weekly(
        base=past.sha,
        head=head_sha,
        days=_days(branch, past.sha, head_sha),
        compared=len(compared),
        grown=len(grown),
        drifts=largest_drifts(
            config, base=(past.sha, past.snapshot), between=between, week_ago=week_ago
        ),
        growths=branch.growths,
        notes=past.notes,
    )


def _past(branch: StoredBranch) -> Past:
    point = window_point(branch.line, branch.commits)
    snapshot = branch.load(point.sha) if point.sha else None
    if snapshot is not None:
        notes: tuple[str, ...] = ()
        if point.sha not in dict(branch.sides):
            notes = _only_newest(branch.sides)
        return Past(point.sha, snapshot, notes)
    sha, oldest = branch.sides[-1]
    reason = point.reason or "the baseline cannot be read"
    return Past(
        sha,
        oldest,
        (
            (
                f"n/a over {WINDOW_DAYS} days, because {reason}. The summary compares"
                " with the oldest baseline."
            ),
        ),
    )


def _only_newest(sides: Sequence[tuple[str, Snapshot]]) -> tuple[str, ...]:
    return (
        (
            f"the steps are those of the newest {len(sides):,} baselines; the first"
            " step includes all earlier growth"
        ),
    )


def _between(
    sides: Sequence[tuple[str, Snapshot]], base_sha: str
) -> list[tuple[str, Snapshot]]:
    """Return the baselines after the older one, the oldest first."""
    newer = list[tuple[str, Snapshot]]()
    for sha, snapshot in sides:
        if sha == base_sha:
            break
        newer.append((sha, snapshot))
    return newer[::-1]


def _days(branch: StoredBranch, base_sha: str, head_sha: str) -> int:
    times = branch.line.times
    return max(0, times[head_sha] - times[base_sha]) // DAY_SECONDS
