"""The view: a report as values that templates and the terminal only have to lay out. Pure; no escapes, no files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bot.core.rules.quiet import is_standing
from bot.core.values.verdict import Finding
from bot.core.values.whole_report import Report
from bot.render.reasons.model_tables import OVERVIEWS, pair_tables
from bot.render.reasons.why_lines import WhyCell, causes, held, roots, whys
from bot.render.text.escape import clean, clip
from bot.render.text.filters import plural
from bot.render.text.phrase import Phrase
from bot.render.text.selection import Limits, Listing, fair_in_order, listing
from bot.render.view.accepted import AcceptedGroup, accepted
from bot.render.view.compilers import Commands, Compared, commands, compared, notes
from bot.render.view.details import CostRow, ModelChanges, Unchanged, changed, costs, settled, unchanged
from bot.render.view.facts import STACK_LIMIT_BYTES, Facts, build_facts, level_of
from bot.render.view.failures import FailureGroup, OverRow, ReasonGroup, failures, over_limit, unmeasured
from bot.render.view.grid import Grid, build_grid
from bot.render.view.headline import counts, headline
from bot.render.view.movers import Movers, movers
from bot.render.view.rows import MetricRow, finding_row
from bot.render.view.text_tables import Line, Table

_FAILURES_AT_ONCE = 4
_REASONS_AT_ONCE = 3
_BROKE_CHARS = 1_000


@dataclass(frozen=True, slots=True)
class ReportView:
    """Everything that there is to lay out, in the order in which it is read.

    Attributes:
        status: `pass`, `warn`, `fail` or `unknown`.
        headline: the sentence that has to be enough.
        broke, resolved, untrusted: as in the report.
        ask: True where there is something to accept, and a pull request to do it on.
        accepted: by whom and why, with their findings.
        undrawn: the first reasons why cells were not measured; `unmeasured` has all.
        broken_newly: cells that compiled on base and do not on head; those below the first few are in
            `broken_newly_rest`.
        exceeded: findings that are no growth: a limit that is exceeded anew, a value that is not known any more,
            a state (other than newly broken) that the rules forbid.
        standing: limits that were exceeded by the same value on base, and cells that ended on base as they did.
        over: cells that the compiler's stack gate refuses on both sides.
        roots: what changed, over all cells; `held`: how much of it is shown, in words.
        causes: cause and place of the alarms, a line for those that are alike.
        whys: changed cells with all that is known of why.
        fusion, folding, pairs: what there is to say of whole models.
    """

    status: str
    headline: Phrase
    broke: str
    resolved: bool
    untrusted: bool
    ask: bool
    accepted: Listing[AcceptedGroup]
    counts: Phrase
    compared: Compared
    notes: Listing[str]
    grid: Grid
    undrawn: Listing[ReasonGroup]
    unmeasured: Listing[ReasonGroup]
    broken_newly_cells: int
    broken_newly: Listing[FailureGroup]
    broken_newly_rest: Listing[FailureGroup]
    exceeded: Listing[MetricRow]
    standing: Listing[MetricRow]
    regressions: Movers
    improvements: Movers
    findings: Listing[MetricRow]
    changed_cells: int
    changed: Listing[ModelChanges]
    settled: Listing[Phrase]
    broken_cells: int
    broken: Listing[FailureGroup]
    over: Listing[OverRow]
    unchanged: Unchanged
    costs: tuple[CostRow, ...]
    commands: Listing[Commands]
    roots: Listing[Line]
    held: str
    causes: Listing[Line]
    whys: Listing[WhyCell]
    fusion: Table
    folding: Table
    pairs: Listing[Table]
    stack_limit_bytes: int
    left_out: tuple[str, ...]


def build_view(report: Report, limits: Limits, facts: Facts | None = None) -> ReportView:
    """Make the view of a report; `facts` saves working them out again for another size."""
    facts = facts or build_facts(report)
    parts = _parts(facts, limits)
    return ReportView(**parts, left_out=tuple(_left_out(parts)))


def _parts(facts: Facts, limits: Limits) -> dict[str, Any]:
    report, verdict = facts.report, facts.report.verdict
    groups, reasons = failures(facts, "newly-broken", limits), unmeasured(facts, limits)
    told = roots(facts, limits)
    return {
        "status": verdict.status,
        **_standing_of(facts, limits),
        "headline": headline(facts),
        "counts": counts(facts),
        "compared": compared(report),
        "notes": notes(report, limits),
        "grid": build_grid(facts, limits),
        "undrawn": listing(reasons.items[:_REASONS_AT_ONCE], reasons.total, reasons.noun),
        "unmeasured": reasons,
        "broken_newly_cells": facts.count("newly-broken"),
        "broken_newly": listing(groups.items[:_FAILURES_AT_ONCE], groups.total, groups.noun),
        "broken_newly_rest": listing(groups.items[_FAILURES_AT_ONCE:], groups.total - _FAILURES_AT_ONCE, groups.noun),
        "exceeded": _findings(facts, [f for f in verdict.findings if _is_exceeded(facts, f)], limits.movers),
        "standing": _findings(facts, [f for f in verdict.findings if is_standing(f)], limits.findings),
        "regressions": movers(facts, 1, limits, limits.movers),
        "improvements": movers(facts, -1, limits, max(3, limits.movers // 3)),
        "findings": _findings(facts, verdict.findings, limits.findings),
        "changed_cells": facts.count("changed"),
        "changed": changed(facts, limits),
        "settled": settled(facts, limits),
        "broken_cells": facts.count("broken"),
        "broken": failures(facts, "broken", limits),
        "over": over_limit(facts, limits),
        "unchanged": unchanged(facts, limits),
        "costs": costs(facts),
        "commands": commands(facts, limits),
        "roots": told,
        "held": held(facts, told),
        "causes": causes(facts, limits),
        "whys": whys(facts, limits),
        **{name: table(facts, limits) for name, table in OVERVIEWS},
        "pairs": pair_tables(facts, limits),
        "stack_limit_bytes": STACK_LIMIT_BYTES,
    }


def _standing_of(facts: Facts, limits: Limits) -> dict[str, Any]:
    """How the report stands towards the pull request and its people."""
    report = facts.report
    failing = any(level_of(finding) == "fail" for finding in report.verdict.findings)
    return {
        "broke": clip(clean(report.broke), _BROKE_CHARS),
        "resolved": report.resolved,
        "untrusted": report.untrusted,
        "ask": failing and bool(report.links or report.state_line),
        "accepted": accepted(facts, limits),
    }


def _findings(facts: Facts, findings: Sequence[Finding], limit: int) -> Listing[MetricRow]:
    shown = fair_in_order(findings, lambda finding: finding.key.model, limit)
    return listing((finding_row(facts, finding) for finding in shown), len(findings), "finding")


def _is_exceeded(facts: Facts, finding: Finding) -> bool:
    if facts.deltas[finding.key].state == "newly-broken" and finding.metric in (None, "stack_alloca_bytes"):
        return False  # told among the newly broken
    if facts.deltas[finding.key].state == "unmeasured" and (finding.kind, finding.level) == ("state", "warn"):
        return False  # told in the headline and below the grid
    return finding.kind != "change" and not is_standing(finding)


def _left_out(parts: dict[str, Any]) -> Iterator[str]:
    """What this size has no room for, in words; tables of the largest are selections by their nature."""
    models: Listing[ModelChanges] = parts["changed"]
    hidden = sum(model.rows.more for model in models)
    lists = [parts["grid"].models, *(parts[name] for name in _COMPLETE), *(parts[name].rows for name, _ in OVERVIEWS)]
    counted = [(entries.more, entries.noun) for entries in lists]
    counted.append((hidden, "changed metric"))
    for count, noun in counted:
        if count:
            yield plural(count, noun)


_COMPLETE = (
    "notes",
    "accepted",
    "broken_newly_rest",
    "findings",
    "changed",
    "settled",
    "broken",
    "over",
    "unmeasured",
    "commands",
    "causes",
    "whys",
    "pairs",
)
"""Lists that would be whole if there were room."""
