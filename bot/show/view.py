"""The view: a report as values that templates and the terminal only have to lay out. Pure; no escapes, no files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bot.core.policy import Finding
from bot.core.report import Report
from bot.show.alarms import (
    AcceptedGroup,
    AlarmGroup,
    FailureGroup,
    OverRow,
    ReasonGroup,
    accepted,
    alarms,
    close,
    failures,
    over_limit,
    unmeasured,
)
from bot.show.blocks import Limits, Line, Listing, Phrase, fair_in_order, listing
from bot.show.compared import changes, compared, notes
from bot.show.escape import clean, clip
from bot.show.facts import STACK_LIMIT_BYTES, Facts, build_facts
from bot.show.grid import Grid, build_grid
from bot.show.headline import Totals, headline, totals
from bot.show.report import settled
from bot.show.rows import MetricRow, finding_row
from bot.show.why import held, roots, step_lines

_BROKE_CHARS = 1_000


@dataclass(frozen=True, slots=True)
class ReportView:
    """Everything that there is to lay out, in the order in which it is read.

    Attributes:
        status: `pass`, `warn`, `fail` or `unknown`.
        headline: the sentence that has to be enough.
        broke, resolved, untrusted: as in the report.
        changes: what is not the same on both sides: compilers, flags, models, targets.
        totals: a row for each target that something changed on, and one for all.
        pin: as in the report.
        steps: the releases between the two, where they were measured.
        roots: what changed, over all cells; `held`: how much of it is shown, in words.
        alarms: cells that broke a rule or are newly broken, worst first, by what is wrong with them.
        close: values that grew and use most of a limit; `closer`: those that do and did not grow.
        accepted: by whom and why, with their findings.
        notes: what else a reader should know.
        grid: the state of every cell.
        findings: those of this change; `known`: those that base had.
        broken_newly, broken: cells that do not compile on head, and on neither side.
        over: cells that the compiler's stack gate refuses on both sides.
    """

    status: str
    headline: Phrase
    broke: str
    resolved: bool
    untrusted: bool
    changes: tuple[Phrase, ...]
    commits: Phrase
    totals: Totals
    pin: bool
    steps: Listing[Line]
    roots: Listing[Line]
    held: str
    alarms: tuple[AlarmGroup, ...]
    close: Listing[Phrase]
    accepted: Listing[AcceptedGroup]
    notes: Listing[str]
    grid: Grid
    unmeasured: Listing[ReasonGroup]
    settled: Listing[Phrase]
    findings: Listing[MetricRow]
    known: Listing[MetricRow]
    closer: Listing[Phrase]
    broken_newly: Listing[FailureGroup]
    broken: Listing[FailureGroup]
    broken_cells: int
    over: Listing[OverRow]
    stack_limit_bytes: int


def build_view(report: Report, limits: Limits) -> ReportView:
    """Make the view of a report in one size."""
    return views(build_facts(report))(limits)


def views(facts: Facts) -> Callable[[Limits], ReportView]:
    """What makes the view of a report in any size; what is the same in all of them is worked out once."""
    alike = _alike(facts)

    def view(limits: Limits) -> ReportView:
        parts = {**alike, **_first_screen(facts, limits), **_folds(facts, limits)}
        return ReportView(**parts)

    return view


def _alike(facts: Facts) -> dict[str, Any]:
    report = facts.report
    return {
        "status": report.verdict.status,
        "headline": headline(facts),
        "broke": clip(clean(report.broke), _BROKE_CHARS),
        "resolved": report.resolved,
        "untrusted": report.untrusted,
        "changes": changes(facts),
        "totals": totals(facts),
        "pin": report.pin,
        "commits": compared(report).commits,
        "broken_cells": facts.count("broken"),
        "stack_limit_bytes": STACK_LIMIT_BYTES,
    }


def _first_screen(facts: Facts, limits: Limits) -> dict[str, Any]:
    told = roots(facts, limits)
    return {
        "roots": told,
        "steps": step_lines(facts, limits),
        "held": held(facts, told),
        "alarms": alarms(facts, limits),
        "close": close(facts, limits, True),
        "accepted": accepted(facts, limits),
        "notes": notes(facts.report, limits),
    }


def _folds(facts: Facts, limits: Limits) -> dict[str, Any]:
    verdict = facts.report.verdict
    return {
        "grid": build_grid(facts, limits),
        "unmeasured": unmeasured(facts, limits),
        "settled": settled(facts, limits),
        "findings": _findings(facts, verdict.news, limits.findings),
        "known": _findings(facts, [one for one in verdict.findings if one.known], limits.findings, "known finding"),
        "closer": close(facts, limits, False),
        "broken_newly": failures(facts, "newly-broken", limits),
        "broken": failures(facts, "broken", limits),
        "over": over_limit(facts, limits),
    }


def _findings(facts: Facts, findings: Sequence[Finding], limit: int, noun: str = "finding") -> Listing[MetricRow]:
    shown = fair_in_order(findings, lambda finding: finding.key.model, limit)
    return listing((finding_row(facts, finding) for finding in shown), len(findings), noun)
