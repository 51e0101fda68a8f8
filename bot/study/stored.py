"""Stored baselines along the first parents of a branch: which store is meant here, and its commits between two."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from bot.config.configuration import BaselineChoice, Config
from bot.core.baseline import Entry
from bot.core.snapshot import Snapshot
from bot.core.study import Study
from bot.errors import UsageError
from bot.store.data_branch import DataBranch
from bot.store.directory import DirectoryStore
from bot.store.entries import Store, by_commit
from bot.study.history import stored_study
from bot.study.prepare import Request, Show
from bot.system.files import write_atomically
from bot.system.git import Git
from bot.system.processes import Cancel

_SHOWN_DIGITS = 12


@dataclass(frozen=True, slots=True)
class StoredLine:
    """Commits with a stored baseline, from GOOD to BAD.

    Attributes:
        backward: True where GOOD is the newer end.
    """

    store: Store
    entries: tuple[Entry, ...]
    backward: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The commits, shortened."""
        return tuple(entry.sha[:_SHOWN_DIGITS] for entry in self.entries)

    def load(self, place: int) -> Snapshot:
        """The baseline at a place of the line; raises InputError, NetworkError."""
        return self.store.load(self.entries[place])


@contextmanager
def opened_store(chosen: BaselineChoice, git: Git, option: str) -> Iterator[Store]:
    """The store that is chosen; `auto` is the directory where it is there, else the data branch.

    Raises UsageError, with the option that asks for it, where only a run on GitHub can read it.
    """
    if chosen.store == "artifact":
        hint = "download them, and name the files or their directory instead"
        raise UsageError("baselines that are workflow artifacts can only be read on GitHub", where=option, hint=hint)
    directory = Path(chosen.directory)
    if chosen.store == "directory" or (chosen.store == "auto" and directory.is_dir()):
        yield DirectoryStore(directory, write_atomically)
        return
    with DataBranch(git, chosen.branch, default_branch=git.default_branch()) as store:
        yield store


def default_line(git: Git, most: int) -> tuple[str, ...]:
    """The default branch's newest commit as origin has it, and at most so many first parents; empty without one."""
    name = git.default_branch()
    sha = (git.resolve(f"origin/{name}") or git.resolve(name)) if name else None
    return (sha, *git.ancestors(sha, most)) if sha else ()


@contextmanager
def stored_line(config: Config, top: Path, good: str, bad: str, cancel: Cancel) -> Iterator[StoredLine]:
    """The stored commits from GOOD to BAD, both refs of the repository at `top`.

    Raises UsageError where a ref names no commit, has no baseline, or neither is a first-parent ancestor of the other.
    """
    git = Git(top, cancel)
    ends = tuple(_commit(git, ref) for ref in (good, bad))
    if ends[0] == ends[1]:
        raise UsageError("GOOD and BAD are the same commit", where=bad, hint="name two between which the value moved")
    line, backward = _way(git, ends[0], ends[1], config.baseline.ancestors)
    with opened_store(config.baseline, git, "--stored") as store:
        at = by_commit(store, config.report_id)
        for ref, sha in zip((good, bad), ends, strict=True):
            if sha not in at:
                hint = "name commits of the default branch whose run has stored one"
                raise UsageError("no baseline is stored for this commit", where=ref, hint=hint)
        places = [at[sha] for sha in line if sha in at]
        entries = tuple(each[0] if len(each) == 1 else store.in_order(each)[-1] for each in places)
        yield StoredLine(store, entries, backward)


def _commit(git: Git, ref: str) -> str:
    sha = git.resolve(ref)
    if sha is None:
        raise UsageError("is no commit, branch or tag here", where=ref, hint="with --stored, name commits")
    return sha


def _way(git: Git, good: str, bad: str, most: int) -> tuple[list[str], bool]:
    """The commits from good to bad, both with them, and whether good is the newer one."""
    for newer, older in ((bad, good), (good, bad)):
        line = [newer, *git.ancestors(newer, most)]
        if older in line:
            way = line[: line.index(older) + 1]
            return (way, True) if newer == good else (way[::-1], False)
    what = f"neither is a first parent of the other, within {most} commits"
    raise UsageError(what, where=f"{good[:_SHOWN_DIGITS]} and {bad[:_SHOWN_DIGITS]}", hint="see baseline.ancestors")


CONFIGURED = "configured"
"""In place of the name of a store: the configuration's own."""


def last_stored(where: str, last: int, config: Config, request: Request, show: Show, cancel: Cancel) -> Study:
    """The last so many baselines of the default branch.

    `where`: CONFIGURED, `data-branch`, `directory`, or a directory.
    """
    choice = config.baseline
    if where == "data-branch":
        choice = replace(choice, store="data-branch")
    elif where != CONFIGURED:
        choice = replace(choice, store="directory", directory=choice.directory if where == "directory" else where)
    git = Git(request.config.resolve().parent if request.config else Path.cwd(), cancel)
    with opened_store(choice, git, "--store") as store:
        line = default_line(git, config.baseline.ancestors)
        return stored_study(store, config.report_id, line, last, request, show.say)
