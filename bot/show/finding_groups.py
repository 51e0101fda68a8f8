"""Group findings by level, metric and root cause, the worst first."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.delta import CellDelta
from bot.core.findings import Finding
from bot.core.metrics import ARTIFACT_PARTS
from bot.core.snapshot import CellKey
from bot.show.facts import Facts, is_lost, mark_of, worst_first


def groups_of_findings(facts: Facts) -> list[tuple[int, list[Finding]]]:
    """Return groups of findings of one level, metric and root cause, the worst first.

    Each group has the number of its cause, or 0.
    """
    groups: dict[tuple[object, ...], tuple[int, list[Finding]]] = {}
    for finding in wholes_and_parts(facts)[0]:
        cause = 0
        state = ""
        label = ""
        if finding.metric is not None:
            label = facts.label(finding.quantity, finding.key)
        if finding.metric == "artifact_bytes":
            cause = cause_of(facts, finding.key)[0]
        elif finding.metric is None:
            state = facts.deltas[finding.key].state
        group = (
            mark_of(finding),
            finding.metric,
            label,
            finding.kind,
            finding.limit,
            finding.is_open,
            state,
            cause,
        )
        groups.setdefault(group, (cause, []))[1].append(finding)
    return list(groups.values())


def wholes_and_parts(facts: Facts) -> tuple[list[Finding], list[Finding]]:
    """Return this change's findings, the worst first, and findings that these cover.

    A finding about a part of an artifact is covered by one about the whole artifact
    that is as bad. Neither list has newly failing builds, which have lines of their
    own, nor builds that were not measured, which the first sentence counts.
    """
    news = []
    for finding in worst_first(facts.report.verdict.news):
        delta = facts.deltas[finding.key]
        has_line = delta.state == "newly-broken" and is_judged(facts, [delta])
        if not has_line and not is_lost(delta, finding):
            news.append(finding)
    whole_marks = set[tuple[CellKey, str]]()
    for finding in news:
        if finding.metric == "artifact_bytes":
            whole_marks.add((finding.key, mark_of(finding)))
    wholes = []
    parts = []
    for finding in news:
        is_part = finding.metric in ARTIFACT_PARTS
        if is_part and (finding.key, mark_of(finding)) in whole_marks:
            parts.append(finding)
        else:
            wholes.append(finding)
    return wholes, parts


def cause_of(facts: Facts, key: CellKey) -> tuple[int, float]:
    """Return the number of a build's largest root cause, and its share.

    The share is of the build's total change. Both are 0 if no root cause has a part in
    the build. The number is 0 if most of the change is not explained.
    """
    sizes = facts.causes.get(key, ())
    if not sizes:
        return 0, 0
    size, number = sizes[0]
    return number, size / sum(part for part, _ in sizes)


def is_judged(facts: Facts, group: Sequence[CellDelta]) -> bool:
    """Return whether a rule judges the state of one of the builds."""
    for delta in group:
        findings = facts.findings.get(delta.key, ())
        if any(finding.metric is None for finding in findings):
            return True
    return False


def keys_of(findings: Sequence[Finding]) -> tuple[CellKey, ...]:
    """Return the build of each finding."""
    return tuple(finding.key for finding in findings)
