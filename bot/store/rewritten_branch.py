"""Make a data branch anew of the entries that the retention keeps."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from bot.core.baseline import Entry
from bot.store.branch_commits import commit_blobs, first_commit
from bot.store.entries import FOLDER, entry_of, ir_path_of, path_of
from bot.store.retention import DAY_SECONDS
from bot.system.git import Git


def rewritten_branch(
    git: Git,
    written: Mapping[Entry, int],
    remaining: Sequence[Entry],
    blobs: Mapping[str, str],
    now: int,
) -> str:
    """Make a new branch of the kept entries, with a commit a day.

    Returns the SHA of its tip. Entries of the same source commit go into separate commits
    of the data branch, to keep their order.
    """
    days: list[list[Entry]] = []
    for entry in remaining:
        day = written[entry] // DAY_SECONDS
        is_new = not days or written[days[-1][0]] // DAY_SECONDS != day
        if is_new or any(earlier.sha == entry.sha for earlier in days[-1]):
            days.append([])
        days[-1].append(entry)
    tip = first_commit(git, now)
    for entries in days:
        paths = [path_of(entry) for entry in entries]
        commits = dict[str, None]()
        for entry in entries:
            commits[entry.sha[:10]] = None
            if ir_path_of(entry) in blobs:
                paths.append(ir_path_of(entry))
        added = [f"100644,{blobs[path]},{path}" for path in paths]
        message = f"Code size of {', '.join(commits)}"
        tip = commit_blobs(
            git, parent=tip, added=added, message=message, seconds=written[entries[-1]]
        )
    return tip


def written_times(git: Git, tip: str, paths: Collection[str]) -> dict[Entry, int]:
    """Return when each entry was last written, in seconds since the epoch.

    `paths`: those on the branch now. Other paths of older commits are left out.
    """
    options = ("--first-parent", "--no-renames", "--name-only", "--format=%x00%ct")
    written = dict[Entry, int]()
    log = git.text("log", *options, tip, "--", FOLDER)
    for commit in log.split("\0"):
        lines = [line for line in commit.splitlines() if line]
        seconds = lines[0] if lines else ""
        for path in lines[1:]:
            entry = entry_of(path)
            if entry is not None and path in paths:
                written.setdefault(entry, int(seconds))
    return written
