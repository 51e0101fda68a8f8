"""Choose the stored baselines that show slow growth of a branch.

Git's dates and tags decide which they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from bot.core.history_totals import growth_since
from bot.core.slow_growth import (
    Growth,
    Line,
    Point,
    acceptance_point,
    release_point,
    window_point,
)
from bot.core.snapshot import Snapshot
from bot.system.git import Git

_RELEASE = re.compile(r"(?:.*[-_/])?v?\d+(?:\.\d+)+")
"""The name of a tag that is a release: `v1.2`, `iree-3.13.0`.

A pre-release such as `v1.2-rc1` is no release here.
"""


def line_of(git: Git, newest_sha: str, ancestors: int) -> Line:
    """Return a commit and its first parents, with dates and the tags of releases."""
    commits = (newest_sha, *git.ancestors(newest_sha, ancestors))
    tags = {}
    for sha, names in git.tags().items():
        for name in names:
            if _RELEASE.fullmatch(name):
                tags[sha] = name
    return Line(commits, git.commit_times(newest_sha, len(commits)), tags)


def growth_of(
    line: Line,
    stored: Sequence[str],
    loaded: Sequence[tuple[str, Snapshot]],
    load: Callable[[str], Snapshot | None],
) -> tuple[Growth, ...]:
    """Compare the newest baseline with older ones.

    These are of the last release, the last acceptance and 90 days ago.

    `stored`: the commits with a baseline, the newest first; `loaded`: the newest of
    them, with their snapshots; `load`: reads the baseline of a commit, None if it is
    damaged.
    """
    snapshots = dict[str, Snapshot]()
    for sha, snapshot in loaded:
        snapshots.setdefault(sha, snapshot)  # of several baselines the one stored last
    points = (
        release_point(line, stored),
        acceptance_point(loaded),
        window_point(line, stored),
    )
    _, head = loaded[0]
    growths = []
    for point in points:
        base = _snapshot(point, snapshots, load)
        growths.append(growth_since(point, base, head))
    return tuple(growths)


def _snapshot(
    point: Point, snapshots: dict[str, Snapshot], load: Callable[[str], Snapshot | None]
) -> Snapshot | None:
    if not point.sha:
        return None
    return snapshots.get(point.sha) or load(point.sha)
