"""Find the stored baseline of a commit: its own, or that of an ancestor with the same result.

A damaged baseline is skipped in favour of another, and only the log says so: nothing
about the change under review is wrong. The next push that measures the same commit
writes it anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from bot.config.configuration import Config
from bot.core.baseline import Entry
from bot.core.sharding import Costs, known_costs
from bot.core.snapshot import Snapshot
from bot.errors import BotError, InputError, Interrupted
from bot.github.opening import Opened
from bot.github.services import Services
from bot.store.entries import Store, by_commit
from bot.study.side_plan import SidePlan, is_reproducible


class Standing(NamedTuple):
    """A stored snapshot, and by how many commits it is older than the wanted commit."""

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

    What was stored last of a commit comes first. A damaged snapshot is skipped.

    `a_commit`: how many of each commit at most; None: all.

    Raises NetworkError if the store cannot be asked.
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

    None if the event is not a push, or if no baseline is stored.

    Raises NetworkError if the store cannot be asked.
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

    None if there is none. A snapshot counts if it has the side's digest (of
    compiler, suite, targets and flags). If that digest is unknown, because the
    compiler cannot be had any more, only snapshots of the commit itself count.
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

    Any snapshot counts, whatever it was measured with. None if there is none.
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
