"""Choose the snapshots that a data branch keeps.

It keeps all of the last days, and one a week of the time before.
"""

from __future__ import annotations

from collections.abc import Mapping

from bot.core.baseline import Entry

DAY_SECONDS = 86_400
IR_DAYS = 14
"""Number of days after which a snapshot may lose its IR, when the branch is next thinned.

Each report's last snapshot keeps it. The IR is fifteen times as large as the snapshot.
"""
_MONDAY_DAYS = 3  # the epoch began on a Thursday


def week_of(seconds: float) -> int:
    """Return the number of the week, counted from the epoch.

    Weeks begin on Monday, in UTC.
    """
    return int(seconds // DAY_SECONDS + _MONDAY_DAYS) // 7


def kept_entries(
    written: Mapping[Entry, int], keep_days: int, now: float
) -> list[Entry]:
    """Return the entries to keep, oldest first.

    `written`: when each was stored, in seconds since the epoch. Of the time before
    `keep_days`, the last entry of each report in each week is kept.
    """
    oldest = now - keep_days * DAY_SECONDS
    in_order = sorted(written, key=lambda entry: (written[entry], entry))
    last_of_week = dict[tuple[str, int], Entry]()
    for entry in in_order:
        last_of_week[entry.report_id, week_of(written[entry])] = entry
    weekly = set(last_of_week.values())
    return [entry for entry in in_order if written[entry] >= oldest or entry in weekly]


def entries_with_ir(written: Mapping[Entry, int], now: float) -> set[Entry]:
    """Return the entries that keep their IR.

    These are the entries of the last days, and the last one of each report.
    """
    oldest = now - IR_DAYS * DAY_SECONDS
    in_order = sorted(written, key=lambda entry: (written[entry], entry))
    last_of_report = dict[str, Entry]()
    recent = set[Entry]()
    for entry in in_order:
        last_of_report[entry.report_id] = entry
        if written[entry] >= oldest:
            recent.add(entry)
    return recent.union(last_of_report.values())
