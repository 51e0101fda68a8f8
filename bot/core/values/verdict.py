"""What a judgement is: findings and the verdict they add up to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from bot.core.record import Count, Record
from bot.core.spread import Value, spread
from bot.core.values.snapshot import CellKey, Failure

Level = Literal["warn", "fail"]
Status = Literal["pass", "warn", "fail"]
"""What a rule makes of a cell."""
VerdictStatus = Literal["pass", "warn", "fail", "unknown"]
"""`unknown`: nothing could be compared, so that there is nothing to judge."""


class Accepted(Record, frozen=True):
    """Who took a failing finding as it is, and why."""

    who: str
    why: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule broken by one cell.

    Attributes:
        metric: the metric's id; None where the state of the cell is the finding.
        kind: `change` (absolute and/or relative), `limit`, `state`, or `unknown` (a known value is not any more).
        limit: the level that was exceeded, as the configuration wrote it (`4KiB and 1.5%`, `32KiB`, `newly-broken`).
        actual: the value judged, as text with its unit and sign (`+33.5 KiB (+66.5 %)`), never empty.
        line: line of the configuration at which the rule stands; None for built-in rules.
        accepted: by whom, where a person with write access accepted it; then it does not fail any more.
        outcomes: for states, how the cell ended on base and on head: `ok`, `failed: compile, SIGSEGV`, `absent`, …;
            then `base` and `head` are the figures of the compiler's memory gates, where they refused.
        allowed: the largest growth, or for a limit the largest value, that the level allows, in the metric's unit.
        known: True where base had it, too, and head is not worse: this change did not do it.
        is_open: True where it exceeds the level with some of the values that were seen, and not with others: the
            compiler does not repeat itself. Then `base` and `head` are those that alarm most, else that alarm least.
        seen: every value that was seen of base and of head, where these are several.
        failure: for states, why the cell has no ordinary artifact on head.
    """

    key: CellKey
    level: Level
    metric: str | None
    rule: str
    kind: str
    limit: str
    actual: str
    base: int | None = None
    head: int | None = None
    line: int | None = None
    accepted: Accepted | None = None
    outcomes: tuple[str, str] | None = None
    allowed: int | None = None
    known: bool = False
    is_open: bool = False
    seen: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    failure: Failure | None = None

    @property
    def sides(self) -> tuple[Value, Value]:
        """Base and head as they are told."""
        return (self.base, self.head) if self.seen is None else (spread(self.seen[0]), spread(self.seen[1]))

    @property
    def weight(self) -> Status:
        """What it does to the verdict: one that base had does nothing, an accepted one warns."""
        if self.known:
            return "pass"
        return "warn" if self.accepted is not None else self.level


class Budget(Record, frozen=True):
    """A value that keeps a limit and uses most of it.

    Attributes:
        base, head: the metric's values; None where base's is not known.
        limit: the largest value that the rule allows, in the metric's unit.
    """

    key: CellKey
    metric: str
    rule: str
    base: Count | None
    head: Count
    limit: Count


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of all rules over all cells; findings are sorted, worst first, and so are budgets."""

    status: VerdictStatus
    findings: tuple[Finding, ...] = ()
    budgets: tuple[Budget, ...] = ()

    @property
    def news(self) -> tuple[Finding, ...]:
        """The findings of this change: those that base had are left out."""
        return tuple(finding for finding in self.findings if not finding.known)


def status_of(findings: Iterable[Finding]) -> Status:
    """The worst that any of them does to the verdict."""
    weights = {finding.weight for finding in findings}
    return "fail" if "fail" in weights else "warn" if "warn" in weights else "pass"
