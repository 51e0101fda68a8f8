"""The result of a judgement: findings, and the verdict that follows from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from bot.core.metrics import METRIC_BY_ID, Metric
from bot.core.record import Small, Value, shown_sides
from bot.core.snapshot import CellKey, Failure

Level = Literal["warn", "fail"]
Status = Literal["pass", "warn", "fail"]  # what a rule makes of a cell
# unknown: nothing could be compared
VerdictStatus = Literal["pass", "warn", "fail", "unknown"]


class Finding(Small, frozen=True):
    """One rule broken by one cell."""

    key: CellKey
    level: Level
    # the metric's id; None if the state of the cell is the finding
    metric: str | None
    rule: str
    # `change` (absolute and/or relative), `limit`, `state`, or `unknown` (a known value
    # is not any more)
    kind: str
    # the level that was exceeded, as the configuration wrote it (`4KiB and 1.5%`,
    # `32KiB`, `newly-broken`)
    limit: str
    # the value judged, as text with its unit and sign (`+33.5 KiB (+66.5 %)`), never
    # empty
    actual: str
    base: int | None = None
    head: int | None = None
    # line of the configuration at which the rule stands; None for built-in rules
    line: int | None = None
    # by whom, where a person with write access did; then it does not fail any more
    accepted: str | None = None
    # for states, how the cell ended on base and on head: `ok`, `failed: compile,
    # SIGSEGV`, `absent`, …; then `base` and `head` are the figures of the compiler's
    # memory gates, if they refused
    outcomes: tuple[str, str] | None = None
    # the largest growth, or for a limit the largest value, that the level allows, in
    # the metric's unit
    allowed: int | None = None
    # True if base had it, too, and head is not worse: this change did not do it
    known: bool = False
    # True if only some of the values of a non-deterministic build exceed the level.
    # Then `base` and `head` are the most alarming pair, else the least alarming one.
    is_open: bool = False
    # every value seen on base and on head, if there are several
    seen: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    # for states, why the cell has no ordinary artifact on head
    failure: Failure | None = None
    own: Metric | None = None  # the metric, where a configuration declares it
    reason: str = ""  # reason of the acceptance; empty if none was given
    # growth since a smaller value was accepted; None if none was
    grown_since: int | None = None

    @property
    def sides(self) -> tuple[Value, Value]:
        """Return base and head as reports show them."""
        return shown_sides(self.base, self.head, self.seen)

    @property
    def quantity(self) -> Metric:
        """Return the metric itself, of a finding that is about one."""
        return self.own or METRIC_BY_ID[self.metric or ""]

    @property
    def weight(self) -> Status:
        """Return the effect of the finding on the verdict.

        A finding that base had has none, and an accepted one warns.
        """
        if self.known:
            return "pass"
        if self.accepted is not None:
            return "warn"
        return self.level


class Verdict(Small, frozen=True):
    """The outcome of all rules over all cells; findings are sorted, worst first."""

    status: VerdictStatus
    findings: tuple[Finding, ...] = ()

    @property
    def news(self) -> tuple[Finding, ...]:
        """Return the findings of this change: those that base had are left out."""
        return tuple(finding for finding in self.findings if not finding.known)

    @property
    def failing(self) -> tuple[Finding, ...]:
        """Return the findings that fail the check.

        Accepted ones and those that base had are left out.
        """
        return tuple(finding for finding in self.findings if finding.weight == "fail")


def status_of(findings: Iterable[Finding]) -> Status:
    """Return the worst that any of them does to the verdict."""
    weights = {finding.weight for finding in findings}
    if "fail" in weights:
        return "fail"
    if "warn" in weights:
        return "warn"
    return "pass"
