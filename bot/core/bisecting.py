"""Bisect by values and rules: what is bad, and which candidate to look at next.

The rules are:

* Candidates stand in a row from a good end to a bad one. A candidate is bad if its
  value is above a limit, as lower is better for every metric. Without a limit of the
  user's, the limit is halfway between the values of the two ends.
* A non-deterministic candidate has several values. It is bad if all of them are bad,
  good if none is, and skipped if they disagree.
* A candidate that cannot be measured is skipped. The next look is always at the middle
  candidate between the last good and the first bad one. So there are at most
  ceil(log2(n + 1)) looks at n candidates between the ends, and one more for each
  skipped candidate.
* Bisection finds one place where good turns to bad. If the value changes at several
  places, there may be others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from bot.core.comparable import comparable
from bot.core.record import Count, Record
from bot.core.snapshot import Cell

BISECT_SCHEMA = "code-size-bisect/1"
Judged = Literal["good", "bad", "skipped"]


class Candidate(Record, frozen=True):
    """One candidate that was looked at."""

    name: str
    judged: Judged
    # what its command gave, each value once, the lowest first; empty if it was not
    # measured
    values: tuple[Count, ...] = ()
    reason: str = ""  # why it was skipped; empty otherwise


class Bisection(Record, frozen=True):
    """The result of a bisection."""

    metric: str
    model: str
    target: str
    rule: str  # what is bad, in words
    limit: Count  # the largest value that is good
    candidates: Count  # how many there are, with both ends
    looks: tuple[Candidate, ...]  # in the order of the candidates, from GOOD to BAD
    # last_good, first_bad: names; what lies between the two, if anything does, could
    # not be measured
    last_good: str
    first_bad: str
    # all candidates that may be the first bad one, if there are several
    could_be: tuple[str, ...]
    # state of the cell, from the older end to the newer: `changed`, `newly-broken`, …
    state: str
    # cause, why: of that change; None and empty if they are not known
    cause: str | None
    why: str
    notes: tuple[str, ...]
    commands: tuple[str, ...]  # what shows the change
    schema: str = BISECT_SCHEMA

    def candidate(self, name: str) -> Candidate:
        """Return one of those that were looked at."""
        return next(look for look in self.looks if look.name == name)


def judged(values: Sequence[int], limit: int) -> Judged:
    """Judge a candidate by all its values, of which there is at least one.

    A value is bad if it is above the limit.
    """
    if min(values) > limit:
        return "bad"
    if max(values) <= limit:
        return "good"
    return "skipped"


class Bracket(NamedTuple):
    """The places of the last candidate known to be good and the first known bad one."""

    good: int
    bad: int


def bracket(count: int, judge: Callable[[int], Judged]) -> Bracket:
    """Find where good turns to bad among `count` candidates.

    The first one is good, and the last one is bad.

    `judge`: looks at one of the candidates between; is asked at most once for each.
    """
    good = 0
    bad = count - 1
    between = list(range(1, bad))
    while between:
        half = len(between) // 2
        middle = between.pop(half)
        result = judge(middle)
        if result == "good":
            good = middle
            between = between[half:]
        elif result == "bad":
            bad = middle
            between = between[:half]
    return Bracket(good, bad)


def values_of(
    cell: Cell | None, good: Cell | None, metric: str
) -> tuple[tuple[int, ...], str]:
    """Return the metric's values of one cell, or an empty tuple and the reason.

    `good`: the cell of the good end. A value that cannot be compared with it is
    unknown.
    """
    if cell is None:
        return (), "has no such build"
    if not cell.measured:
        return (), (
            f"{cell.status}: {cell.failure.first_line}" if cell.failure else cell.status
        )
    cell = comparable(good, cell)[1] or cell
    values = {outcome.metrics.get(metric) for outcome in (cell.outcome, *cell.others)}
    if None in values:
        reason = "non-deterministic: some compiles of it have no value"
        return (), reason if len(values) > 1 else cell.reasons.get(metric, "not known")
    return tuple(sorted(value for value in values if value is not None)), ""
