"""The view: a report as values that templates and the terminal only have to lay out. Pure; no escapes, no files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from bot.core.policy import Finding
from bot.core.report import ONCE, Report
from bot.render.first.adoption import AdoptionView, adoption
from bot.render.reasons.model_tables import OVERVIEWS, pair_tables
from bot.render.reasons.step_lines import step_lines
from bot.render.reasons.why_lines import WhyCell, cause_of, held, roots, whys
from bot.render.text.escape import clean, clip
from bot.render.text.filters import plural
from bot.render.text.phrase import Phrase
from bot.render.text.selection import Limits, Listing, fair_in_order, listing
from bot.render.text.text_tables import Line, Table
from bot.render.view.alarms import AcceptedGroup, Alarms, accepted, alarms, close
from bot.render.view.changes import changes
from bot.render.view.compilers import Commands, Compared, commands, compared, notes
from bot.render.view.details import CostRow, ModelChanges, Unchanged, changed, costs, settled, unchanged
from bot.render.view.facts import STACK_LIMIT_BYTES, Facts, build_facts
from bot.render.view.failures import FailureGroup, OverRow, ReasonGroup, failures, over_limit, unmeasured
from bot.render.view.grid import Grid, build_grid
from bot.render.view.headline import headline
from bot.render.view.rows import MetricRow, finding_row
from bot.render.view.totals import Totals, totals

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
        alarms: cells that broke a rule or are newly broken, worst first.
        close: values that grew and use most of a limit; `closer`: those that do and did not grow.
        ask: True where there is something to accept, and a pull request to do it on.
        accepted: by whom and why, with their findings.
        notes: what else a reader should know; `loud`: those that no other line says.
        adoption: what is measured from now on; None where base was measured already.
        grid: the state of every cell.
        whys: changed cells with all that is known of why.
        findings: those of this change; `known`: those that base had.
        broken_newly, broken: cells that do not compile on head, and on neither side.
        over: cells that the compiler's stack gate refuses on both sides.
        fusion, folding, pairs: what there is to say of whole models.
    """

    status: str
    headline: Phrase
    broke: str
    resolved: bool
    untrusted: bool
    changes: tuple[Phrase, ...]
    compared: Compared
    totals: Totals
    pin: bool
    steps: Listing[Line]
    roots: Listing[Line]
    held: str
    alarms: Alarms
    close: Listing[Phrase]
    ask: bool
    accepted: Listing[AcceptedGroup]
    notes: Listing[str]
    loud: tuple[str, ...]
    adoption: AdoptionView | None
    grid: Grid
    unmeasured: Listing[ReasonGroup]
    unchanged: Unchanged
    whys: Listing[WhyCell]
    changed_cells: int
    changed: Listing[ModelChanges]
    settled: Listing[Phrase]
    findings: Listing[MetricRow]
    known: Listing[MetricRow]
    closer: Listing[Phrase]
    broken_newly: Listing[FailureGroup]
    broken: Listing[FailureGroup]
    broken_cells: int
    over: Listing[OverRow]
    stack_limit_bytes: int
    fusion: Table
    folding: Table
    pairs: Listing[Table]
    commands: Listing[Commands]
    costs: tuple[CostRow, ...]
    left_out: tuple[str, ...]


def build_view(report: Report, limits: Limits) -> ReportView:
    """Make the view of a report in one size."""
    return views(build_facts(report))(limits)


def views(facts: Facts) -> Callable[[Limits], ReportView]:
    """What makes the view of a report in any size; what is the same in all of them is worked out once."""
    alike = _alike(facts)

    def view(limits: Limits) -> ReportView:
        parts = {**alike, **_first_screen(facts, limits), **_folds(facts, limits)}
        return ReportView(**parts, left_out=tuple(_left_out(parts)))

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
        "compared": compared(report),
        "totals": totals(facts),
        "pin": report.pin,
        "ask": report.verdict.status == "fail" and bool(report.links or report.state_line),
        "changed_cells": facts.count("changed"),
        "broken_cells": facts.count("broken"),
        "stack_limit_bytes": STACK_LIMIT_BYTES,
        "costs": costs(facts),
    }


def _first_screen(facts: Facts, limits: Limits) -> dict[str, Any]:
    told, said = roots(facts, limits), notes(facts.report, limits)
    return {
        "roots": told,
        "steps": step_lines(facts, limits),
        "held": held(facts, told),
        "alarms": alarms(facts, limits, partial(cause_of, facts, told)),
        "close": close(facts, limits, True),
        "accepted": accepted(facts, limits),
        "notes": said,
        "loud": tuple(note for note in said if not note.startswith(ONCE)),
    }


def _folds(facts: Facts, limits: Limits) -> dict[str, Any]:
    verdict = facts.report.verdict
    return {
        "adoption": adoption(facts, limits),
        "grid": build_grid(facts, limits),
        "unmeasured": unmeasured(facts, limits),
        "unchanged": unchanged(facts, limits),
        "whys": whys(facts, limits),
        "changed": changed(facts, limits),
        "settled": settled(facts, limits),
        "findings": _findings(facts, verdict.news, limits.findings),
        "known": _findings(facts, [one for one in verdict.findings if one.known], limits.findings, "known finding"),
        "closer": close(facts, limits, False),
        "broken_newly": failures(facts, "newly-broken", limits),
        "broken": failures(facts, "broken", limits),
        "over": over_limit(facts, limits),
        **{name: table(facts, limits) for name, table in OVERVIEWS},
        "pairs": pair_tables(facts, limits),
        "commands": commands(facts, limits),
    }


def _findings(facts: Facts, findings: Sequence[Finding], limit: int, noun: str = "finding") -> Listing[MetricRow]:
    shown = fair_in_order(findings, lambda finding: finding.key.model, limit)
    return listing((finding_row(facts, finding) for finding in shown), len(findings), noun)


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
    "steps",
    "accepted",
    "broken_newly",
    "findings",
    "known",
    "closer",
    "changed",
    "settled",
    "broken",
    "over",
    "unmeasured",
    "commands",
    "whys",
    "pairs",
)
"""Lists that would be whole if there were room."""
