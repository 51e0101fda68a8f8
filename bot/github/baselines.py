"""Stored baselines as the runs on GitHub ask for them: one that is damaged counts as none.

It is skipped in favour of another, and said in the log only: nothing about the change under review is wrong, and the
next push that measures the same commit writes it anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from bot.core.rules.baseline import Choice, Entry, choose
from bot.core.rules.sharding import Costs, known_costs
from bot.core.values.snapshot import Snapshot
from bot.errors import BotError, InputError, Interrupted
from bot.github.opening import Opened
from bot.github.services import Services
from bot.store.entries import Store, by_commit


def standing_for(services: Services, store: Store, side: Opened, digest: str | None) -> tuple[Choice, Snapshot] | None:
    """The stored snapshot that gives what measuring the side's commit now would give; None where there is none.

    Raises NetworkError where the store cannot be asked.
    """
    sha, report_id, left = side.wanted.sha, side.config.report_id, list(store.entries())

    def chosen() -> Choice | None:
        exact = choose(left, report_id, sha, (), digest, store.newest)
        if exact or not any(entry.digest == digest and entry.report_id == report_id for entry in left):
            return exact
        ancestors = services.git.ancestors(sha, side.config.baseline.ancestors)
        return choose(left, report_id, sha, ancestors, digest, store.newest)

    while found := chosen():
        if snapshot := loaded(services, store, found.entry):
            return found, snapshot
        left.remove(found.entry)
    return None


def stored_at(
    services: Services, store: Store, report_id: str, sha: str, is_wanted: Callable[[Snapshot], bool]
) -> Snapshot | None:
    """A stored snapshot of that very commit which is the wanted one."""
    entries = [entry for entry in store.entries() if (entry.report_id, entry.sha) == (report_id, sha)]
    return next(filter(is_wanted, _whole(services, store, entries)), None)


def nearest_costs(services: Services, store: Store, side: Opened) -> Costs | None:
    """What the cells cost in the nearest stored snapshot, whatever that was measured with; None without any."""
    try:
        at = by_commit(store, side.config.report_id)
        if not at:
            return None
        line = (side.wanted.sha, *services.git.ancestors(side.wanted.sha, side.config.baseline.ancestors))
        found = next(_whole(services, store, (entry for sha in line for entry in at.get(sha, ()))), None)
        return known_costs(found.cells) if found else None
    except Interrupted:
        raise
    except BotError as error:
        services.show.say(f"cells are spread by size, as stored costs could not be read: {error.line}")
        return None


def _whole(services: Services, store: Store, entries: Iterable[Entry]) -> Iterator[Snapshot]:
    """Those that can be read, one at a time."""
    return (snapshot for entry in entries if (snapshot := loaded(services, store, entry)))


def loaded(services: Services, store: Store, entry: Entry) -> Snapshot | None:
    """One stored snapshot; None where it is damaged, which is said."""
    try:
        return store.load(entry)
    except InputError as error:
        services.show.say(f"skipped a stored baseline that is damaged: {error.line}")
        return None
