"""Which stored baseline stands for a commit: the same, one that is waited for, or the nearest ancestor that is alike.

A damaged one is skipped in favour of another, and said in the log only: nothing about the change under review is wrong,
and the next push that measures the same commit writes it anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from msgspec import structs

from bot.compiler.iree import flags_of, for_release
from bot.config.configuration import Config
from bot.core.baseline import Choice, Entry, between, choose
from bot.core.planned import LIFTED_LIMIT_FLAG, PlannedCell
from bot.core.report import Baseline
from bot.core.sharding import Costs, known_costs
from bot.core.snapshot import Cell, Snapshot
from bot.errors import BotError, InputError, Interrupted, NetworkError
from bot.github.opening import Opened, Services
from bot.github.repository import unfinished_push
from bot.show.blocks import plain
from bot.show.compared import gap_words
from bot.show.filters import plural
from bot.store.entries import Store, by_commit

_MOST_LOADED = 5
"""Stored snapshots that are looked at: where so many have nothing in common with the base, older ones have not."""
_NAMED = 3
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 15, 240
"""Each pause is twice the one before: an hour is some twenty looks, each a request or, with artifacts, up to 31."""
_Result = TypeVar("_Result")


def standing_for(services: Services, store: Store, side: Opened, digest: str | None) -> tuple[Choice, Snapshot] | None:
    """The stored snapshot that gives what measuring the side's commit now would give; None where there is none.

    Raises NetworkError where the store cannot be asked.
    """
    sha, report_id, entries = side.wanted.sha, side.config.report_id, list(store.entries())

    def newest(several: Sequence[Entry]) -> Entry:
        return store.in_order(several)[-1]

    while True:
        choice = choose(entries, report_id, sha, (), digest, newest)
        if choice is None and any((one.digest, one.report_id) == (digest, report_id) for one in entries):
            ancestors = services.git.ancestors(sha, side.config.baseline.ancestors)
            choice = choose(entries, report_id, sha, ancestors, digest, newest)
        if choice is None:
            return None
        if snapshot := loaded(services, store, choice.entry):
            return choice, snapshot
        entries.remove(choice.entry)


def stored_at(
    services: Services, store: Store, report_id: str, sha: str, is_wanted: Callable[[Snapshot], bool]
) -> Snapshot | None:
    """A stored snapshot of that very commit which is the wanted one."""
    entries = [entry for entry in store.entries() if (entry.report_id, entry.sha) == (report_id, sha)]
    return next(filter(is_wanted, _readable(services, store, entries)), None)


def nearest_costs(services: Services, store: Store, side: Opened) -> Costs | None:
    """What the cells cost in the nearest stored snapshot, whatever that was measured with; None without any."""
    try:
        entries = by_commit(store, side.config.report_id)
        if not entries:
            return None
        line = (side.wanted.sha, *services.git.ancestors(side.wanted.sha, side.config.baseline.ancestors))
        of_line = (entry for sha in line for entry in entries.get(sha, ()))
        snapshot = next(_readable(services, store, of_line), None)
        return known_costs(snapshot.cells) if snapshot else None
    except Interrupted:
        raise
    except BotError as error:
        services.show.say(f"cells are spread by size, as stored costs could not be read: {error.line}")
        return None


def _readable(services: Services, store: Store, entries: Iterable[Entry]) -> Iterator[Snapshot]:
    """The snapshots of those that can be read, one at a time."""
    return (snapshot for entry in entries if (snapshot := loaded(services, store, entry)))


def newest_first(services: Services, store: Store, entries: Iterable[Entry]) -> Iterator[tuple[Entry, Snapshot]]:
    """Those of one commit that can be read, what was stored last at the beginning."""
    several = list(entries)
    for entry in reversed(store.in_order(several) if len(several) > 1 else several):
        if snapshot := loaded(services, store, entry):
            yield entry, snapshot


def loaded(services: Services, store: Store, entry: Entry) -> Snapshot | None:
    """One stored snapshot; None where it is damaged, which is said."""
    try:
        return store.load(entry)
    except InputError as error:
        services.show.say(f"skipped a stored baseline that is damaged: {error.line}")
        return None


# A base whose compiler nobody knows. What a stored snapshot has of its models and flags is compared, whatever compiler
# made it. So what changed since may be of the commits in between; these are told with it.


class Stored(NamedTuple):
    """A stored snapshot that stands for a side; `notes`: what a reader must not miss."""

    baseline: Baseline
    snapshot: Snapshot
    notes: tuple[str, ...] = ()


def nearest(services: Services, store: Store, side: Opened) -> Stored | None:
    """The nearest stored ancestor of the side's commit that has a measured cell in common with it.

    Of its snapshot what has the side's models and flags, and says that it was planned as that is.
    Raises NetworkError where the store cannot be asked.
    """
    chosen, entries, looked_at = side.work.planned(), by_commit(store, side.config.report_id), 0
    line = services.git.ancestors(side.wanted.sha, side.config.baseline.ancestors) if entries else ()
    for sha in line:
        for _, stored in newest_first(services, store, entries.get(sha, ())):
            planned = {cell.key: cell for cell in for_release(stored.compiler, chosen.cells)}
            alike = (one for one in stored.cells if one.key in planned and _is_alike(one, stored, planned[one.key]))
            models = {model.name: model.digest for model in chosen.models}
            targets = {target.name: target.backend for target in chosen.targets}
            snapshot = structs.replace(stored, cells=tuple(alike), models=models, targets=targets)
            if any(cell.measured for cell in snapshot.cells):
                baseline = Baseline(f"{side.wanted.rule}; snapshot stored for an ancestor", side.wanted.sha)
                baseline = with_gap(services, side.config, baseline, sha)
                known = {cell.key for cell in snapshot.cells}
                wanted = (one for one in chosen.cells if not one.target.unsupported)
                notes = gap_note(baseline)
                if missing := [str(one.key) for one in wanted if one.key not in known]:
                    rest = f" and {len(missing) - _NAMED:,} more" if len(missing) > _NAMED else ""
                    what = "not compared, as the stored ancestor has no such cell with the base's model and flags"
                    notes += (f"{what}: {', '.join(missing[:_NAMED])}{rest}",)
                return Stored(baseline, snapshot, notes)
            looked_at += 1
            if looked_at == _MOST_LOADED:
                return None
    return None


def _is_alike(cell: Cell, stored: Snapshot, planned: PlannedCell) -> bool:
    """True where the stored cell's model and flags are the planned one's."""
    if stored.models.get(cell.key.model) != planned.model.digest:
        return False
    if cell.status == "unsupported" or planned.target.unsupported:
        return cell.status == "unsupported" and bool(planned.target.unsupported)
    lifted = LIFTED_LIMIT_FLAG in cell.command
    return flags_of(cell.command) == flags_of(planned.command(lifted=lifted))


def with_gap(services: Services, config: Config, baseline: Baseline, measured: str) -> Baseline:
    """The baseline with how far from its base it was measured, at commit `measured`, and what lies between."""
    base = baseline.sha or ""
    line = services.git.ancestors(base, config.baseline.ancestors)
    gap = between(services.git.touched(measured, base), config.baseline.compiler_paths)
    distance = line.index(measured) + 1 if measured in line else None
    return structs.replace(baseline, distance=distance, between=gap)


def gap_note(baseline: Baseline) -> tuple[str, ...]:
    """That what changed may be of other commits, where compiler source was touched in between."""
    gap = baseline.between
    if gap is None or not gap.sources:
        return ()
    commits = plural(baseline.distance, "commit") if baseline.distance else "some commits"
    words = plain(gap_words(gap))
    return (f"what changed may come from other commits: the baseline is {commits} before the base; {words}",)


# The base commit's own run, which measures and stores what a pull request is to be compared with.


def awaited(services: Services, side: Opened, look: Callable[[], _Result | None]) -> tuple[_Result | None, str]:
    """What `look` gives while the run for the push of the side's commit is not over, or just after that.

    Only pauses are counted: `baseline.wait_minutes` bounds their sum. So nothing here reads a clock.

    Returns it, and one line that says why there was no wait although one was asked for; empty where there was none to
    wait for, or the wait took place.
    """
    limit, sha, result = 60 * side.config.baseline.wait_minutes, side.wanted.sha, None
    if not limit:
        return None, ""
    waited, pause, run = 0, _FIRST_PAUSE_SECONDS, ""
    try:
        while result is None and waited < limit and (run := _push_run(services, sha)):
            services.show.say(f"waiting for the baseline of {sha[:10]}: {run}; {waited} of at most {limit} s waited")
            services.cancel.wait(min(pause, limit - waited))
            waited, pause = waited + min(pause, limit - waited), min(2 * pause, _LONGEST_PAUSE_SECONDS)
            result = look()
    except NetworkError as error:
        services.show.say(line := f"the base commit's own run is not waited for: {error.line}")
        return look(), line
    if result is None:
        over = f"{run} after {waited} s, which is enough" if run else "no run of it is going on"
        services.show.say(f"no baseline of {sha[:10]} to wait for: {over}")
    return result or look(), ""


def _push_run(services: Services, sha: str) -> str:
    """The run that is going on for the push of a commit, in words; empty for none."""
    if services.hub is None:
        raise NetworkError("there is no token", hint="give the action a token: it asks for the run")
    if not services.context.workflow:
        raise NetworkError("the workflow is not known", where="environment: GITHUB_WORKFLOW_REF")
    run = unfinished_push(services.hub, sha, services.context.workflow)
    return f"run {run[0]} is {run[1].replace('_', ' ')}" if run else ""
