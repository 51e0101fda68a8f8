"""Find the stored baseline of a commit: its own, or that of an ancestor that is alike.

A damaged one is skipped in favour of another, and said in the log only: nothing about
the change under review is wrong, and the next push that measures the same commit writes
it anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from bot.compiler.index import is_missing
from bot.compiler.iree import flags_of
from bot.compiler.release_flags import for_release
from bot.config.configuration import Config
from bot.config.requirements import pinned_compiler
from bot.core.baseline import Entry
from bot.core.planned import LIFTED_LIMIT_FLAG, PlannedCell
from bot.core.report import Baseline
from bot.core.sharding import Costs, known_costs
from bot.core.snapshot import Cell, Snapshot
from bot.errors import BotError, InputError, Interrupted
from bot.github.opening import Opened, Services
from bot.show.filters import plural
from bot.store.entries import Store, by_commit
from bot.study.prepare import is_reproducible
from bot.study.run import SidePlan
from bot.system.processes import Cancel

_MOST_LOADED = 5
"""How many stored snapshots are looked at.

Where so many have nothing in common with the base, older ones have not.
"""


class Base(NamedTuple):
    """The base side: a snapshot, a plan to measure it, or neither.

    `broke` has the reason for neither.
    """

    baseline: Baseline
    snapshot: Snapshot | None = None
    plan: SidePlan | None = None
    notes: tuple[str, ...] = ()  # what a reader must not miss
    broke: str = ""
    # why the base can have no compiler: its pin names a release that does not exist
    no_compiler: str = ""
    # True where stored baselines were not read, as that takes a token
    unread: bool = False
    digest: str = ""  # of the stored snapshot, where it is the base's own; else empty
    # the name of the stored snapshot; None for any other one
    entry: Entry | None = None


class Standing(NamedTuple):
    """A stored snapshot, and how many commits it is older than the wanted commit."""

    distance: int
    entry: Entry
    snapshot: Snapshot


def stored(
    services: Services,
    store: Store,
    config: Config,
    sha: str,
    is_wanted: Callable[[Entry], bool] = lambda _: True,
    a_commit: int | None = None,
) -> Iterator[Standing]:
    """Yield what is stored of a commit, then of its first parents, the nearest first.

    Of each commit, what was stored last comes first. A damaged one is skipped.

    `a_commit`: so many of each commit at most; None: all.

    Raises:
        NetworkError: where the store cannot be asked.
    """
    entries_by_commit = by_commit(store, config.report_id, is_wanted)

    def readable(distance: int, entries: Sequence[Entry]) -> Iterator[Standing]:
        if len(entries) > 1:
            entries = store.in_order(entries)
        for entry in reversed(entries):
            try:
                snapshot = store.load(entry)
            except InputError as error:
                services.show.say(
                    f"skipped a stored baseline that is damaged: {error.line}"
                )
            else:
                yield Standing(distance, entry, snapshot)

    yield from islice(readable(0, entries_by_commit.pop(sha, [])), a_commit)
    if not entries_by_commit:
        return
    ancestors = services.git.ancestors(sha, config.baseline.ancestors)
    for distance, commit in enumerate(ancestors, 1):
        yield from islice(
            readable(distance, entries_by_commit.get(commit, [])), a_commit
        )


def stored_before_push(
    services: Services, store: Store, config: Config
) -> Standing | None:
    """Return the nearest baseline that is not of the pushed commit itself.

    None for another event than a push, and where none is stored.

    Raises:
        NetworkError: where the store cannot be asked.
    """
    if services.context.event != "push":
        return None
    sha = services.context.sha
    standings = stored(
        services,
        store=store,
        config=config,
        sha=sha,
        is_wanted=lambda entry: entry.sha != sha,
    )
    return next(standings, None)


def standing_for(
    services: Services,
    store: Store,
    side: Opened,
    digest: str | None,
    plan: SidePlan | None = None,
) -> Standing | None:
    """Return the stored snapshot that equals what measuring the side would give now.

    None where there is none.

    One counts whose digest (of compiler, suite, targets and flags) is the side's. Where
    that is not known, as its compiler cannot be had any more, only those of the commit
    itself do.
    """
    if plan is not None and not is_reproducible(plan):
        services.show.say(
            "no stored baseline is used: some files that the builds read are unknown"
        )
        return None
    sha = side.wanted.sha

    def is_alike(entry: Entry) -> bool:
        if digest is None:
            return entry.sha == sha
        return entry.digest == digest

    return next(
        stored(services, store=store, config=side.config, sha=sha, is_wanted=is_alike),
        None,
    )


def nearest_costs(services: Services, store: Store, side: Opened) -> Costs | None:
    """Return what the cells cost in the nearest stored snapshot.

    It counts whatever it was measured with. None without any.
    """
    try:
        standing = next(
            stored(services, store=store, config=side.config, sha=side.wanted.sha), None
        )
        if standing:
            return known_costs(standing.snapshot.cells)
        return None
    except Interrupted:
        raise
    except BotError as error:
        services.show.say(
            "stored costs could not be read, so builds are divided by size:"
            f" {error.line}"
        )
        return None


def missing_pin(config: Config, config_name: str, tree: Path, cancel: Cancel) -> str:
    """Say that a commit pins a release which does not exist.

    Empty unless every place of wheels says so.

    `tree`: the commit's files; `config_name`: the configuration's path there, empty for
    the packaged one.
    """
    if not config_name:
        return ""
    side = "head" if config.compiler.head else "base"
    try:
        pin = pinned_compiler(
            config, side=side, folder=(tree / config_name).parent, top=tree, within=tree
        )
        places = pin.places + config.places
        release = places.release(pin.spec)
        is_gone = release is not None and is_missing(release, places, cancel)
    except Interrupted:
        raise
    except BotError:
        return ""
    if not is_gone:
        return ""
    return (
        f"the base pins {places.project}=={release}, and the package index has no such"
        " release"
    )


# A base whose compiler nobody knows. What a stored snapshot has of its models and flags
# is compared, whatever compiler made it. So what changed since may be of the commits in
# between, and a note says so.


def nearest(services: Services, store: Store, side: Opened) -> Base | None:
    """Return the nearest stored ancestor that has a measured cell in common.

    Of its snapshot, the cells with the side's models and flags are taken. It says that
    it was planned as the side is.

    Raises:
        NetworkError: where the store cannot be asked.
    """
    chosen = side.work.planned()
    sha = side.wanted.sha
    ancestors = stored(
        services,
        store=store,
        config=side.config,
        sha=sha,
        is_wanted=lambda entry: entry.sha != sha,
    )
    for distance, entry, snapshot in islice(ancestors, _MOST_LOADED):
        cells = side.work.with_inputs(for_release(snapshot.compiler, chosen.cells))
        planned = {cell.key: cell for cell in cells}
        comparable = (
            cell
            for cell in snapshot.cells
            if cell.key in planned and _is_alike(cell, snapshot, planned[cell.key])
        )
        models = {model.name: model.digest for model in chosen.models}
        targets = {target.name: target.backend for target in chosen.targets}
        snapshot = structs.replace(
            snapshot, cells=tuple(comparable), models=models, targets=targets
        )
        if any(cell.measured for cell in snapshot.cells):
            rule = f"{side.wanted.rule}; snapshot stored for an ancestor"
            baseline = Baseline(rule, side.wanted.sha, distance)
            present = {cell.key for cell in snapshot.cells}
            notes = [older_note(distance)]
            supported = (cell for cell in chosen.cells if not cell.target.unsupported)
            if missing := sum(cell.key not in present for cell in supported):
                reason = (
                    "because the stored ancestor has no such build with the base's"
                    " model and flags"
                )
                notes.append(f"{plural(missing, 'build')} not compared, {reason}")
            return Base(baseline, snapshot, notes=tuple(notes), entry=entry)
    return None


def _is_alike(cell: Cell, stored: Snapshot, planned: PlannedCell) -> bool:
    """Return whether the stored cell has the planned one's model, flags and files."""
    if stored.models.get(cell.key.model) != planned.model.digest:
        return False
    if cell.status == "unsupported" or planned.target.unsupported:
        return cell.status == "unsupported" and bool(planned.target.unsupported)
    if planned.unlisted or cell.inputs != planned.inputs:
        return False
    lifted = LIFTED_LIMIT_FLAG in cell.command
    return flags_of(cell.command) == flags_of(planned.command(lifted=lifted))


def older_note(distance: int | None) -> str:
    """Return the note that changes may come from commits between baseline and base.

    Nobody knows what these commits did.
    """
    if distance:
        commits = plural(distance, "commit")
    else:
        commits = "some commits"
    return (
        f"changes may come from other commits: the baseline is {commits} before the"
        " base"
    )
