"""Draw the alarms of one title as a table, with the runs of their builds."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.run_times import MOST_BUILDS
from bot.core.snapshot import CellKey
from bot.show.alarm_rows import EMPTY_CELL
from bot.show.alarms import BROKEN, Alarm, AlarmGroup
from bot.show.blocks import BREAK, Row, Stacked, Stacks, Table, listing, phrase
from bot.show.run_times import RunRows

_ROWS_PER_ALARM = 3  # so many times more rows than lines of alarms have room in a table
_VALUES = Stacked(1, phrase(BREAK))
_LIMIT = Stacked(2, phrase(BREAK), "limit: ")
_CAUSE = Stacked(3, phrase(BREAK), "mainly ")
_STACKS = ((Stacked(0), _CAUSE), (Stacked(1), _LIMIT))
_GROUPED_STACKS = ((Stacked(0), _VALUES, _LIMIT, _CAUSE),)
_BROKEN_STACKS = ((Stacked(0), _VALUES),)


def alarm_table(group: AlarmGroup, count: int, runs: RunRows) -> Table:
    """Return a row for each finding of the first `count` lines.

    If these are too many, return one row for each metric, limit and cause. `runs`: the
    rows of runs. Each follows the last finding of its build. If findings share rows,
    they are at the end.
    """
    lines = group.lines[:count]
    rows = list[Row]()
    for line in lines:
        rows += line.rows
    stacks: Stacks = _STACKS
    if len(rows) > count * _ROWS_PER_ALARM:
        rows = [line.grouped or line.rows[0] for line in lines]
        stacks = _GROUPED_STACKS
        if runs.summary:
            rows.append(runs.summary)
    elif runs.by_build:
        rows = _with_runs(lines, runs)
    headers = ["build", "base → head (change)", "limit", "mainly (share of its change)"]
    if group.title == BROKEN:
        headers[1] = "what happened"
        stacks = _BROKEN_STACKS
    # The last columns are left out if they are empty; build and values always stay.
    while len(headers) > 2 and all(row[len(headers) - 1] == EMPTY_CELL for row in rows):
        headers.pop()
        rows = [row[:-1] for row in rows]
    return Table(
        tuple(headers),
        listing(rows, len(rows) + len(group.lines) - len(lines), "finding"),
        numbers_from=len(headers),
        css="alarms",
        stacks=stacks,
    )


def _with_runs(lines: Sequence[Alarm], runs: RunRows) -> list[Row]:
    """Return the rows of findings; those of a build's run follow its last finding.

    Builds whose findings have no room have the row of their run at the end.
    """
    pairs = list[tuple[CellKey, Row]]()
    for line in lines:
        pairs += zip(line.cells, line.rows, strict=False)
    last = {key: place for place, (key, _) in enumerate(pairs)}
    rows = list[Row]()
    for place, (key, row) in enumerate(pairs):
        rows.append(row)
        if last[key] == place:
            rows += runs.by_build.get(key, ())
    unplaced = [key for key in runs.by_build if key not in last]
    for key in unplaced[:MOST_BUILDS]:
        rows += runs.by_build[key]
    return rows
