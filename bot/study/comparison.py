"""Two sides to a report: compared, judged and explained; and why a report has no verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from packaging.version import Version

from bot.config.configuration import Config
from bot.core.delta import CellDelta, diff
from bot.core.explanation import Explanation, RootCause, Step
from bot.core.policy import Verdict, VerdictStatus, judge, status_of
from bot.core.report import ONCE, Adoption, Baseline, Report
from bot.core.sharding import nothing_in_common, unmeasured_models
from bot.core.snapshot import UNFETCHED, CellKey, Snapshot, other_version
from bot.errors import NoVerdict
from bot.explain.edits import model_edits
from bot.explain.explanations import changed_models, explanations
from bot.explain.root_causes import root_causes
from bot.explain.texts import Texts, no_texts
from bot.explain.whole_models import overview
from bot.show.facts import build_facts
from bot.show.totals import everything


def reported(config: Config, base: Snapshot, head: Snapshot, baseline: Baseline, texts: Texts = no_texts) -> Report:
    """Compare, judge and explain two sides; `texts`: as `bot.explain.texts` has it."""
    deltas = diff(base, head)
    verdict = judge(deltas, config.thresholds, config.states, config.noise)
    causes = explanations(base, head, deltas, config.sections, texts)
    return Report(
        base=base,
        head=head,
        baseline=baseline,
        deltas=deltas,
        verdict=verdict,
        report_id=config.report_id,
        notes=(*_notes(base, head, deltas, causes), *_once(head, verdict)),
        explanations=causes,
        root_causes=root_causes(deltas, causes, changed_models(base, head), {**base.targets, **head.targets}),
        overview=overview(base, head, config.pairs),
        edits=model_edits(base, head, config.sections),
    )


def adopting(report: Report, brought: Adoption) -> Report:
    """The report of a change that brings the configuration: what base had no say in does not fail it.

    Without a single cell that was compared it does not pass either: it warns, so that nobody takes it for a comparison.
    """
    compared = {delta.key for delta in report.deltas if delta.base is not None}
    judged = [one if one.key in compared else replace(one, level="warn") for one in report.verdict.findings]
    findings = tuple(sorted(judged, key=lambda one: (one.known, one.level == "warn")))
    status: VerdictStatus = status_of(findings) if any(one.state in _JUDGED for one in report.deltas) else "warn"
    if not any(cell.measured for cell in report.head.cells):
        status = "unknown"
    verdict = replace(report.verdict, status=status, findings=findings)
    return replace(report, verdict=verdict, adoption=brought)


_JUDGED = frozenset({"same", "changed", "fixed"})


def require_verdict(report: Report, out: Path) -> None:
    """Raise NoVerdict, once the report is written, where it has nothing to judge."""
    if report.verdict.status == "unknown":
        raise no_verdict(report, out)


def no_verdict(report: Report, out: Path) -> NoVerdict:
    """Why a report has no verdict, in one line."""
    where, what = str(out / "report.json"), f"no verdict: {report.broke or 'nothing could be compared'}"
    if any(cell.measured for snapshot in (report.base, report.head) for cell in snapshot.cells):
        why = nothing_in_common(report.base, report.head)
        return NoVerdict(what, where=where, hint=why or next((d.reason for d in report.deltas if d.reason), ""))
    failure = next((cell.failure for cell in report.head.cells if cell.failure), None)
    hint = failure.first_line if failure else "no cells were planned"
    return NoVerdict(f"{what}, no cell could be measured on either side", where=where, hint=hint)


def _notes(
    base: Snapshot, head: Snapshot, deltas: Sequence[CellDelta], causes: Mapping[CellKey, Explanation]
) -> tuple[str, ...]:
    """What a reader must not miss beside the cells themselves."""
    first = {key for key, one in causes.items() if one.first_compiles}
    unstable = (
        f"{delta.key}: {delta.noise}; {_OF_FIRST if delta.key in first else _LEAST}"
        for delta in deltas
        if delta.unstable and (delta.state != "same" or delta.is_open)
    )
    return (*filter(None, [other_version(base.cells, head.cells)]), *unmeasured_models(base, head), *unstable)


_LEAST = "told and judged as a range"
_OF_FIRST = "all sizes and counts are the same each time, cause and parts are those of one compile of each side"


def _once(head: Snapshot, verdict: Verdict) -> tuple[str, ...]:
    """Which alarms rest on a single compile of the head: repeating has its price, so that not all are repeated."""
    alarming = dict.fromkeys(finding.key for finding in verdict.news)
    compiled = (cell for cell in head.cells if not (cell.failure and cell.failure.stage == UNFETCHED))
    single = {cell.key for cell in compiled if cell.compiles == 1 and cell.status in _REPEATABLE}
    once = [str(key) for key in alarming if key in single]
    if not once:
        return ()
    rest = f" and {len(once) - _NAMED} more" if len(once) > _NAMED else ""
    return (f"{ONCE}{', '.join(once[:_NAMED])}{rest}",)


_REPEATABLE = frozenset({"ok", "over-stack-limit", "failed"})
_NAMED = 3


# The way from base to head over the releases between them: a report of each step, and where root causes stand in them.
#
# A root cause is found in a step where that step's own report has one of the same cause, the same words and the same
# targets. Its words hold its sums, so that what is made of several steps is in none of them, and that is what is told.


_CAUSES = 2
_FEWEST_RELEASES = 2
"""Without a release between the two ends the one step is the report itself."""
Release = tuple[str, Snapshot]


def stepped(
    report: Report,
    way: Sequence[tuple[Release, Release]],
    offered: Sequence[str],
    config: Config,
    texts: Texts = no_texts,
) -> Report:
    """The report, with what each step of the way adds to it.

    Args:
        way: each step over the releases measured between, in order.
        offered: all releases that there are between base and head.
    """
    if len(way) < _FEWEST_RELEASES:
        return report
    steps, seen = list[Step](), list[tuple[str, set[tuple[object, ...]]]]()
    for (old, base), (new, head) in way:
        one = reported(config, base, head, Baseline(old), texts)
        first, last = sorted((Version(old), Version(new)))
        skipped = sum(first < Version(name) < last for name in offered)
        steps.append(_step(old, new, skipped, one))
        seen.append((steps[-1].name, {_key(root) for root in one.root_causes}))
    roots = (replace(r, seen=tuple(name for name, keys in seen if _key(r) in keys)) for r in report.root_causes)
    return replace(report, root_causes=tuple(roots), steps=tuple(steps))


def _key(root: RootCause) -> tuple[object, ...]:
    return root.cause, root.what, root.targets


def _step(old: str, new: str, skipped: int, one: Report) -> Step:
    total = everything(build_facts(one))
    broken = sum(delta.state == "newly-broken" for delta in one.deltas)
    causes = tuple((root.what, root.total.net_bytes) for root in one.root_causes[:_CAUSES] if root.total.absolute_bytes)
    return Step(old, new, skipped, total.base, total.head, total.larger, total.smaller, broken, causes)
