"""The run times of failing builds: base's and head's artifacts, in pairs."""

from __future__ import annotations

from typing import Annotated

import msgspec

from bot.core.record import Count, Record, always
from bot.core.runs import Run
from bot.core.snapshot import CellKey

MOST_BUILDS = 8
"""The most builds of one comparison that are run.

It is a count, so that each machine runs the same builds.
"""
MOST_ROWS = 20_000
_MOST_NOTE = 400

Note = Annotated[str, msgspec.Meta(max_length=_MOST_NOTE)]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
Ratio = Annotated[float, msgspec.Meta(gt=0, lt=1e9)]


class TimeRatio(Record, frozen=True):
    """How long head's artifact runs beside base's, in CPU time of one thread.

    Raises ValueError for a ratio outside its own interval.
    """

    # base_us, head_us: medians of one run, in microseconds
    base_us: Count
    head_us: Count
    pairs: Count
    ratio: Ratio  # median of head / base over the pairs
    # low, high: an interval that holds the true median ratio with 95 % probability
    low: Ratio
    high: Ratio

    def __post_init__(self) -> None:
        """Raise ValueError for an interval that does not contain its ratio."""
        if not self.low <= self.ratio <= self.high:
            raise ValueError("the ratio of run times is outside its interval")


class BuildRun(Record, frozen=True, omit_defaults=True):
    """The result of running both artifacts of one failing build."""

    model: Text
    target: Text
    # whether head's artifact gave the outputs of base's; None if that is not known
    equal: bool | None = always(None)
    # on what inputs the outputs were compared, or why they were not
    equal_note: Note = ""
    time: TimeRatio | None = always(None)
    # why there is no run time; empty if there is one
    time_note: Note = ""


class RunTimes(Record, frozen=True):
    """The results of running artifacts, as `run_times` of `report.json` has them."""

    # the processor and the runtime, in one line; empty if nothing was run
    machine: Note
    # the failing builds, the worst first
    builds: Annotated[tuple[BuildRun, ...], msgspec.Meta(max_length=MOST_ROWS)]

    @property
    def by_build(self) -> dict[CellKey, BuildRun]:
        """Return each build with what running it gave."""
        return {CellKey(run.model, run.target): run for run in self.builds}


def build_run(model: str, target: str, run: Run) -> BuildRun:
    """Return the result of a run, with base as the reference."""
    time = None
    if run.price is not None:
        price = run.price
        time = TimeRatio(
            base_us=price.before_us,
            head_us=price.after_us,
            pairs=price.pairs,
            ratio=price.ratio,
            low=price.low,
            high=price.high,
        )
    return BuildRun(
        model=model,
        target=target,
        equal=run.equal,
        equal_note=_short(run.equal_note),
        time=time,
        time_note="" if time else _short(run.price_note),
    )


def not_run(model: str, target: str, reason: str) -> BuildRun:
    """Return a build whose artifacts were not run, with the reason."""
    return BuildRun(
        model=model,
        target=target,
        equal_note=_short(reason),
        time_note=_short(reason),
    )


def _short(note: str) -> str:
    words = " ".join(note.split())
    if len(words) <= _MOST_NOTE:
        return words
    return f"{words[: _MOST_NOTE - 1]}…"
