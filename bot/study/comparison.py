"""Compare, judge and explain two measured sides, and make the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from msgspec import structs

from bot.config.configuration import Config
from bot.core.comparable import other_version
from bot.core.delta import CellDelta, diff
from bot.core.explanation import Explanation
from bot.core.findings import VerdictStatus, status_of
from bot.core.flag_changes import proved_alone
from bot.core.policy import judge
from bot.core.report import Adoption, Baseline, Report
from bot.core.sharding import nothing_in_common, unmeasured_models
from bot.core.snapshot import CellKey, Snapshot
from bot.errors import NoVerdict
from bot.explain.explanations import explanations
from bot.explain.root_causes import root_causes_between
from bot.explain.texts import Texts, no_texts
from bot.explain.whole_models import model_edits

_LEAST = "reported and judged as a range"
_OF_FIRST = (
    "sizes and counts are the same each time; cause and parts come from one compile of"
    " each side"
)


def reported(
    config: Config,
    base: Snapshot,
    head: Snapshot,
    baseline: Baseline,
    texts: Texts = no_texts,
) -> Report:
    """Compare, judge and explain two sides; `texts`: as `bot.explain.texts` has it."""
    deltas = diff(base, head)
    verdict = judge(deltas, config.thresholds, config.states)
    causes = explanations(
        base, head=head, deltas=deltas, sections=config.components, texts=texts
    )
    return Report(
        base=base,
        head=head,
        baseline=baseline,
        deltas=deltas,
        verdict=verdict,
        report_id=config.report_id,
        notes=tuple(_notes(base, head=head, deltas=deltas, causes=causes)),
        explanations=causes,
        root_causes=root_causes_between(
            base, head=head, deltas=deltas, explanations=causes
        ),
        edits=model_edits(base, head, config.components),
        changed_flags=proved_alone(base, head, deltas),
    )


def adopting(report: Report, brought: Adoption) -> Report:
    """Return the report of a change that brings the configuration.

    Nothing is compared, so nothing fails it. It does not pass either: it warns, so that
    nobody takes it for a comparison. Without a measured cell it is unknown.
    """
    findings = []
    for finding in report.verdict.findings:
        findings.append(structs.replace(finding, level="warn"))
    status: VerdictStatus = "unknown"
    if any(cell.measured for cell in report.head.cells):
        status = "warn"
    verdict = structs.replace(report.verdict, status=status, findings=tuple(findings))
    return structs.replace(report, verdict=verdict, adoption=brought)


def held_to_limits(report: Report, repaired: Adoption) -> Report:
    """Return the report of a change that repairs a pin of a missing release.

    Only limits of head are judged. If none is exceeded, the report warns, so that
    nobody takes it for a comparison. Without a measured build, its verdict is unknown.
    """
    findings = []
    for finding in report.verdict.findings:
        if (finding.kind, finding.limit) != ("state", "new"):
            findings.append(finding)
    status: VerdictStatus = status_of(findings)
    if status == "pass":
        status = "warn"
    if not any(cell.measured for cell in report.head.cells):
        status = "unknown"
    verdict = structs.replace(report.verdict, status=status, findings=tuple(findings))
    return structs.replace(report, verdict=verdict, adoption=repaired)


def require_verdict(report: Report, out: Path) -> None:
    """Raise NoVerdict, after the report is written, if it has nothing to judge."""
    if report.verdict.status == "unknown":
        raise no_verdict(report, out)


def no_verdict(report: Report, out: Path) -> NoVerdict:
    """Return why a report has no verdict, in one line."""
    where = str(out / "report.json")
    problem = f"no verdict: {report.broke or 'nothing could be compared'}"
    all_cells = chain(report.base.cells, report.head.cells)
    if any(cell.measured for cell in all_cells):
        return NoVerdict(problem, where=where, hint=_why_uncompared(report))
    failure = next((cell.failure for cell in report.head.cells if cell.failure), None)
    if failure:
        hint = failure.first_line
    else:
        hint = "no builds were planned"
    return NoVerdict(
        f"{problem}, no build could be measured on either side", where=where, hint=hint
    )


def _why_uncompared(report: Report) -> str:
    """Return why measured builds could not be compared; empty if that is not known."""
    reason = nothing_in_common(report.base, report.head)
    if reason:
        return reason
    for delta in report.deltas:
        if delta.reason:
            return delta.reason
    for side, snapshot in (("base", report.base), ("head", report.head)):
        if not snapshot.cells:
            return f"{side} has none of these builds"
    return ""


def _notes(
    base: Snapshot,
    head: Snapshot,
    deltas: Sequence[CellDelta],
    causes: Mapping[CellKey, Explanation],
) -> Iterator[str]:
    """Yield the notes that a reader must see beside the cells."""
    yield from filter(None, [other_version(base, head)])
    yield from unmeasured_models(base, head)
    for delta in deltas:
        if delta.unstable and (delta.state != "same" or delta.is_open):
            note = _LEAST
            if delta.key in causes and causes[delta.key].first_compiles:
                note = _OF_FIRST
            yield f"{delta.key}: {delta.noise}; {note}"
