"""The stored baselines as a history: of one report, in the order in which they were stored."""

from __future__ import annotations

from dataclasses import replace

from bot.core.history.repeats import SHORT, Found, named_apart, of_commit
from bot.core.rules.baseline import Entry
from bot.errors import InputError, UsageError
from bot.measurement.prepare import Request, selected
from bot.store.entries import Store


def found_baselines(store: Store, report_id: str, last: int, request: Request) -> tuple[Found, ...]:
    """The `last` baselines of a report that were stored, the oldest first; one that is damaged has its reason.

    Raises UsageError where there is none or a selector matches nothing, NetworkError where the store cannot be asked.
    """
    entries = [entry for entry in store.entries() if entry.report_id == report_id]
    if not entries:
        hint = "the first push to the default branch stores one; is `report_id` that of the configuration?"
        raise UsageError(f"no baseline of report {report_id!r} is stored", where="--store", hint=hint)
    found = named_apart([_found(store, entry) for entry in store.in_order(entries)[-last:]])
    chosen = selected({one.name: one.snapshot for one in found if one.snapshot}, request)
    return tuple(replace(one, snapshot=chosen.get(one.name)) for one in found)


def _found(store: Store, entry: Entry) -> Found:
    try:
        return of_commit(entry.sha, store.load(entry))
    except InputError as error:
        return Found(entry.sha[:SHORT], entry.sha, None, error.line)
