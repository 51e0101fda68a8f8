"""What a judgement is: findings and the verdict they add up to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bot.core.record import Record
from bot.core.values.snapshot import CellKey

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
        level: how bad it is.
        metric: the metric's id; None where the state of the cell is the finding.
        rule: the rule's name.
        kind: `change` (absolute and/or relative), `limit`, `state`, or `unknown` (a known value is not any more).
        limit: the level that was exceeded, as the configuration wrote it (`4KiB and 1.5%`, `32KiB`, `newly-broken`).
        actual: the value judged, as text with its unit and sign (`+33.5 KiB (+66.5 %)`), never empty.
        base, head: the metric's values; None where not known.
        line: line of the configuration at which the rule stands; None for built-in rules.
        accepted: by whom, where a person with write access accepted it; then it does not fail any more.
        outcomes: for states, how the cell ended on base and on head: `ok`, `failed: compile, SIGSEGV`, `absent`, …;
            then `base` and `head` are the figures of the compiler's memory gates, where they refused.
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


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of all rules over all cells; findings are sorted, worst first."""

    status: VerdictStatus
    findings: tuple[Finding, ...] = ()
