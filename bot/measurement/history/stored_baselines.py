"""The stored baselines as a history: of one report, in the order of the commits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from bot.core.history.repeats import SHORT, Found, named_apart, of_commit
from bot.core.rules.baseline import Entry
from bot.errors import InputError, UsageError
from bot.measurement.prepare import Request, selected
from bot.store.entries import Store


def found_baselines(
    store: Store, report_id: str, line: Sequence[str], last: int, request: Request, say: Callable[[str], None]
) -> tuple[Found, ...]:
    """The `last` baselines of a report, the oldest first; one that is damaged has its reason.

    Args:
        line: the commits of the default branch, newest first. Baselines of other commits are left out, and that is
            said; where none is of the line, all are in the order in which they were stored.

    Raises UsageError where there is none or a selector matches nothing, NetworkError where the store cannot be asked.
    """
    entries = [entry for entry in store.entries() if entry.report_id == report_id]
    if not entries:
        hint = "the first push to the default branch stores one; is `report_id` that of the configuration?"
        raise UsageError(f"no baseline of report {report_id!r} is stored", where="--store", hint=hint)
    baselines = named_apart([_found(store, entry) for entry in _in_order(store, entries, line, say)[-last:]])
    chosen = selected({one.name: one.snapshot for one in baselines if one.snapshot}, request)
    return tuple(replace(one, snapshot=chosen.get(one.name)) for one in baselines)


def _in_order(
    store: Store, entries: Sequence[Entry], line: Sequence[str], say: Callable[[str], None]
) -> Sequence[Entry]:
    place = {sha: -at for at, sha in enumerate(line)}
    stored = store.in_order(entries)
    there = sorted((entry for entry in stored if entry.sha in place), key=lambda entry: place[entry.sha])
    if not there:
        say("in the order in which they were stored: no baseline is of a commit of the default branch here")
    elif other := len(stored) - len(there):
        say(f"left out: {other} of {len(stored)} stored baselines, of no commit on the default branch's line here")
    return there or stored


def _found(store: Store, entry: Entry) -> Found:
    try:
        return of_commit(entry.sha, store.load(entry))
    except InputError as error:
        return Found(entry.sha[:SHORT], entry.sha, None, error.line)
