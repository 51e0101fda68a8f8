"""Find slow growth: compare each measure of a branch with an older baseline.

Small growth adds up over many pushes. The dates are those of commits, in seconds since
the epoch. Nothing here asks for the current time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from bot.core.record import Count, Name, Record, Small
from bot.core.snapshot import Snapshot
from bot.core.words import noun_of

DAY_SECONDS = 86_400
WINDOW_DAYS = 90
Since = Literal["release", "acceptance", "window"]


class Line(Small, frozen=True):
    """The first parents of a branch, the newest first, with what git knows of them."""

    commits: tuple[str, ...]
    # commit → when it was made; a commit without one is not here
    times: Mapping[str, int]
    releases: Mapping[str, str]  # commit → the tag of the release that it became


class Point(Small, frozen=True):
    """Where growth is counted from, or why that is not known."""

    since: Since
    sha: str = ""  # the commit of the baseline; empty if it is not known
    what: str = ""  # what the baseline is: `v1.2`, `accepted by alice`
    reason: str = ""  # why it is not known; empty if it is


class Grown(Record, frozen=True):
    """One measure on both sides, over the builds with one value on each."""

    base: Count | None
    head: Count | None
    builds: Count


class Growth(Record, frozen=True):
    """Each measure since one point."""

    since: Name
    base: str | None  # the commit of the older baseline; None if it is not known
    what: str
    reason: str
    metrics: Mapping[Name, Grown]


def release_point(line: Line, stored: Sequence[str]) -> Point:
    """Return the baseline of the newest release, or the nearest one before it.

    `stored`: the commits with a baseline, the newest first.
    """
    released = next((sha for sha in line.commits if sha in line.releases), None)
    if released is None:
        return Point(
            "release",
            reason=(
                f"no tag of a release is among the newest {len(line.commits):,} commits"
            ),
        )
    tag = line.releases[released]
    commit = _at_or_before(line, stored, line.commits.index(released))
    if commit is None:
        return Point(
            "release", reason=f"no baseline is stored for {tag} or a commit before it"
        )
    distance = line.commits.index(commit) - line.commits.index(released)
    if not distance:
        return Point("release", commit, tag)
    return Point(
        "release", commit, f"{distance:,} {noun_of(distance, 'commit')} before {tag}"
    )


def window_point(line: Line, stored: Sequence[str], days: int = WINDOW_DAYS) -> Point:
    """Return the newest baseline that is so many days older than the newest one.

    The dates are those of the commits. The order of the branch decides from the first
    commit on that is old enough, as dates may be wrong.
    """
    newest = next((sha for sha in stored if sha in line.times), None)
    if newest is None:
        return Point("window", reason="the dates of the stored baselines are not known")
    begin = line.times[newest] - days * DAY_SECONDS
    old = list[int]()
    for place, sha in enumerate(line.commits):
        if sha in line.times and line.times[sha] <= begin:
            old.append(place)
    if old:
        commit = _at_or_before(line, stored, old[0])
    else:
        commit = None
    if commit is None:
        oldest = [line.times[sha] for sha in stored if sha in line.times]
        age_days = (line.times[newest] - min(oldest)) // DAY_SECONDS
        return Point("window", reason=_too_short(line, age_days, days))
    # A date after the window is wrong: a commit that is so old follows in the branch.
    if line.times.get(commit, begin + 1) > begin:
        return Point(
            "window", commit, f"{days} days or more before the newest baseline"
        )
    age_days = (line.times[newest] - line.times[commit]) // DAY_SECONDS
    return Point("window", commit, f"{age_days:,} days before the newest baseline")


def _too_short(line: Line, age_days: int, days: int) -> str:
    commits = f"the newest {len(line.commits):,} commits"
    return f"the baselines of {commits} cover only {age_days:,} of {days} days"


def acceptance_point(loaded: Sequence[tuple[str, Snapshot]]) -> Point:
    """Return the newest baseline that records an acceptance.

    `loaded`: the baselines, newest first.
    """
    for sha, snapshot in loaded:
        if accepted := snapshot.accepted:
            reason = f": {accepted.reason}" if accepted.reason else ""
            return Point("acceptance", sha, f"accepted by {accepted.who}{reason}")
    if len(loaded) > 1:
        newest = f"the newest {len(loaded):,} baselines"
    else:
        newest = "the newest baseline"
    return Point("acceptance", reason=f"no acceptance is recorded in {newest}")


def _at_or_before(line: Line, stored: Sequence[str], place: int) -> str | None:
    """Return the nearest commit with a baseline, from a place in the line on."""
    with_baseline = set(stored)
    return next((sha for sha in line.commits[place:] if sha in with_baseline), None)
