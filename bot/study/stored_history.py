"""Read the stored baselines of a branch as the variants of a history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from bot.config.configuration import BaselineChoice
from bot.core.baseline import Entry
from bot.core.mappings import known_values
from bot.core.slow_growth import Growth
from bot.core.snapshot import Cell, CellKey, Snapshot
from bot.core.study import GAPS, SHORT, Study, Variant, named_apart, of_commit
from bot.errors import UsageError
from bot.store.data_branch import DataBranch
from bot.store.directory import DirectoryStore
from bot.store.entries import Store
from bot.study.prepare import Work
from bot.study.slow_growth import growth_of, line_of
from bot.system.git import Git

CONFIGURED = "configured"  # In place of the name of a store: the configuration's own


class StoredStudy(NamedTuple):
    """Stored baselines as a study, and the growth of the branch since older ones."""

    study: Study
    growths: tuple[Growth, ...] = ()


def last_stored(where: str, last: int, work: Work) -> StoredStudy:
    """Return the last baselines of the configuration's report, oldest first.

    A damaged baseline has its reason. Only baselines of the default branch's commits
    count, and the user sees how many were left out. If no baseline is of such a commit,
    all count, in the order in which they were stored.

    `where`: CONFIGURED, `data-branch`, or a directory. `auto` is the directory of the
    configuration if it exists, else the data branch.

    Raises:
        UsageError: there is none, or a selector matches nothing.
        NetworkError: the store cannot be read.
    """
    choice = work.config.baseline
    config = work.request.config
    directory = _directory_of(where, choice)
    git = Git(config.resolve().parent if config else Path.cwd(), work.cancel)
    name = git.default_branch()
    with (
        _branch(git, choice, name)
        if directory is None
        else nullcontext(DirectoryStore(directory))
    ) as store:
        commits = _commits_of(git, name, choice.ancestors)
        entries = _entries_of_report(store, work.config.report_id)
        stored = store.in_order(entries)
        on_line = _entries_of(commits, stored)
        _say_left_out(len(stored), on_line=len(on_line), say=work.show.say)
        held_cells: dict[CellKey, Cell] = {}
        shown_entries = (on_line or stored)[-last:]
        variants = [_loaded(entry, store, held_cells) for entry in shown_entries]
        study = named_apart(variants)
        snapshots = {variant.name: variant.snapshot for variant in study.variants}
        chosen = work.selected(known_values(snapshots))
        loaded = []
        for entry, variant in zip(shown_entries, study.variants, strict=True):
            if variant.name in chosen:
                loaded.append((entry.sha, chosen[variant.name]))
        growths: tuple[Growth, ...] = ()
        if on_line and loaded:
            growths = _growths(
                git, commits=commits, on_line=on_line, loaded=loaded[::-1], store=store
            )
    return StoredStudy(_with_snapshots(study, chosen), growths)


def _with_snapshots(study: Study, snapshots: Mapping[str, Snapshot]) -> Study:
    """Return the study with other snapshots, by the names of the variants."""
    variants = []
    for variant in study.variants:
        snapshot = snapshots.get(variant.name)
        variants.append(structs.replace(variant, snapshot=snapshot))
    return Study(tuple(variants))


def _directory_of(where: str, choice: BaselineChoice) -> Path | None:
    """Return the directory of the baselines; None if the data branch has them."""
    if where == "data-branch":
        return None
    if where != CONFIGURED:
        return Path(where)
    directory = Path(choice.directory)
    if choice.store == "directory":
        return directory
    if choice.store == "auto" and directory.is_dir():
        return directory
    return None


def _commits_of(git: Git, branch: str, most_ancestors: int) -> tuple[str, ...]:
    """Return the commits of a branch, newest first; empty if the branch is unknown."""
    if not branch:
        return ()
    newest_sha = git.resolve(f"origin/{branch}") or git.resolve(branch)
    if not newest_sha:
        return ()
    return (newest_sha, *git.ancestors(newest_sha, most_ancestors))


def _entries_of_report(store: Store, report_id: str) -> list[Entry]:
    """Return the stored baselines of a report; raises UsageError if there are none."""
    entries = [entry for entry in store.entries() if entry.report_id == report_id]
    if not entries:
        hint = (
            "the first push to the default branch stores one; check `report_id` in the"
            " configuration"
        )
        raise UsageError(
            f"no baseline of report {report_id!r} is stored", where="--store", hint=hint
        )
    return entries


def _entries_of(commits: Sequence[str], stored: Sequence[Entry]) -> list[Entry]:
    """Return the baselines of these commits, the oldest first."""
    ages = {sha: age for age, sha in enumerate(commits)}
    entries = [entry for entry in stored if entry.sha in ages]
    return sorted(entries, key=lambda entry: -ages[entry.sha])


def _say_left_out(stored: int, on_line: int, say: Callable[[str], None]) -> None:
    """Report how many stored baselines do not belong to the default branch."""
    if not on_line:
        say(
            "no stored baseline belongs to this default branch: baselines keep the"
            " order of storage"
        )
    elif stored > on_line:
        say(
            f"left out: {stored - on_line} of {stored} stored baselines, which do not"
            " belong to this default branch"
        )


def _loaded(entry: Entry, store: Store, held_cells: dict[CellKey, Cell]) -> Variant:
    """Return a stored baseline as a variant; a damaged one has its reason."""
    try:
        return of_commit(entry.sha, _held_once(store.load(entry), held_cells))
    except GAPS as error:
        return Variant(entry.sha[:SHORT], entry.sha, reason=error.line)


def _growths(
    git: Git,
    commits: Sequence[str],
    on_line: Sequence[Entry],
    loaded: Sequence[tuple[str, Snapshot]],
    store: Store,
) -> tuple[Growth, ...]:
    """Return the growth of a branch.

    `commits`: of the branch, the newest first; `on_line`: its baselines, the oldest
    first; `loaded`: those that are shown, the newest first.
    """
    entries = {entry.sha: entry for entry in on_line}

    def load(sha: str) -> Snapshot | None:
        try:
            return store.load(entries[sha])
        except GAPS:
            return None

    newest_first = list(dict.fromkeys(entry.sha for entry in reversed(on_line)))
    return growth_of(
        line_of(git, commits[0], len(commits) - 1),
        stored=newest_first,
        loaded=loaded,
        load=load,
    )


def _branch(git: Git, choice: BaselineChoice, default_branch: str) -> DataBranch:
    """Return the data branch with the baselines.

    It is in the repository, or in the one beside it that the configuration names.
    """
    if not choice.repository:
        return DataBranch(git, choice.branch, default_branch=default_branch)
    return DataBranch(
        git, choice.branch, address=git.address_beside_origin(choice.repository)
    )


_OF_CELLS = Cell.__struct_fields__


def _held_once(side: Snapshot, held_cells: dict[CellKey, Cell]) -> Snapshot:
    """Return the snapshot, sharing equal parts of each cell with its last one.

    Few cells change in a night, so this saves memory. `held_cells`: the last cell of
    each key, which is updated.
    """
    for cell in side.cells:
        last = held_cells.get(cell.key, cell)
        same = {}
        for name in _OF_CELLS:
            value = getattr(last, name)
            if value == getattr(cell, name):
                same[name] = value
        if len(same) < len(_OF_CELLS):
            last = structs.replace(cell, **same)
        held_cells[cell.key] = last
    cells = [held_cells[cell.key] for cell in side.cells]
    return structs.replace(side, cells=tuple(cells))
