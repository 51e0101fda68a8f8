"""Say what is to be done about a comparison, by whom, and where to read on."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from bot.core.acceptance import APPROVAL_LABEL
from bot.core.findings import Finding
from bot.core.policy import excess
from bot.core.report import Report
from bot.core.snapshot import CellKey
from bot.show.alarms import BROKEN, WARNED, AlarmGroup
from bot.show.blocks import (
    Fold,
    Phrase,
    Sentence,
    Span,
    code,
    joined,
    phrase,
    section,
    some,
    strong,
)
from bot.show.escape import is_link
from bot.show.facts import Facts, cells_phrase, mark_of
from bot.show.filters import amount, plural
from bot.show.views import View

_NAMED = 2  # builds that each part of the next step names


def next_block(facts: Facts, groups: Sequence[AlarmGroup], view: View) -> Fold:
    """Return what is to be done, by whom, and where to read on."""
    links: Phrase = ()
    if not view.is_terminal:
        links = _links(facts)
    step = _next_step(facts, groups)
    if not step:
        return section("", Sentence(links, small=True), name="next")
    sentence = phrase(strong("Next:"), " ", step, ".")
    if links:
        sentence = phrase(sentence, " ", links)
    return section("", Sentence(sentence), name="next")


def _next_step(facts: Facts, groups: Sequence[AlarmGroup]) -> Phrase:
    """Return the next step of a reader; empty if the report does not know it."""
    report = facts.report
    status = report.verdict.status
    if status == "fail":
        return phrase(_to_do(facts, groups), _or_accept(report))
    if report.adoption:
        return ()
    if status == "warn" and any(group.title == WARNED for group in groups):
        return phrase("read the warnings; they do not block the merge")
    if status == "pass" and not report.broke:
        return phrase("nothing to do")
    return ()


def _or_accept(report: Report) -> Phrase:
    """Return who can accept the findings, and how.

    It is empty for the report of a push, and for that of a run that a person started.
    Only reports on pull requests and merge queues have a `state_line`.
    """
    if not report.state_line:
        return ()
    return phrase(", or ask a maintainer to add the label ", code(APPROVAL_LABEL))


def _to_do(facts: Facts, groups: Sequence[AlarmGroup]) -> Phrase:
    """Return the next step for failing builds: ``shrink `m` on `x86_64` by 29,456 B``.

    The first builds are named, and the others counted.
    """
    steps = list[Phrase]()
    broken = [
        key
        for group in groups
        if group.title == BROKEN
        for line in group.lines
        for key in line.cells
    ]
    if broken:
        steps.append(
            phrase("make ", cells_phrase(facts, broken, _NAMED), " compile again")
        )
    failing = _worst_findings(facts, set(broken))
    shrinking = [finding for finding in failing if finding.metric == "artifact_bytes"]
    other_metrics = [
        finding for finding in failing if finding.metric != "artifact_bytes"
    ]
    if shrinking:
        named = [_shrink(facts, finding) for finding in shrinking[:_NAMED]]
        steps.append(phrase("shrink ", some(named, len(shrinking))))
    steps += [_other_step(facts, finding) for finding in other_metrics[:_NAMED]]
    if len(other_metrics) > _NAMED:
        steps.append(
            phrase(f"see {plural(len(other_metrics) - _NAMED, 'more build')} above")
        )
    return joined(steps, "; ") or phrase("see the finding for the reason")


def _worst_findings(facts: Facts, broken: Collection[CellKey]) -> list[Finding]:
    """Return one failing finding for each build that compiles.

    A finding about code size comes first. If one metric exceeds several limits, it is
    the one with the largest excess.
    """
    failing = [
        finding for finding in facts.report.verdict.news if mark_of(finding) == "fail"
    ]
    worst = dict[CellKey, Finding]()
    for finding in failing:
        if finding.key in broken:
            continue
        if finding.key not in worst or _is_worse(finding, worst[finding.key]):
            worst[finding.key] = finding
    return list(worst.values())


def _is_worse(finding: Finding, other: Finding) -> bool:
    """Return whether the finding replaces the other one as the worst of its build."""
    if finding.metric != other.metric:
        return finding.metric == "artifact_bytes"
    return excess(finding) > excess(other)


def _by_excess(finding: Finding) -> str:
    """Return by how much a value exceeds its limit: `` by 29,456 B``.

    It is empty if the finding has no figure.
    """
    if not excess(finding):
        return ""
    return f" by {amount(excess(finding), finding.quantity.unit)}"


def _shrink(facts: Facts, finding: Finding) -> Phrase:
    """Return a build, and the bytes that it has to lose."""
    return phrase(facts.named(finding.key), _by_excess(finding))


def _other_step(facts: Facts, finding: Finding) -> Phrase:
    """Return the next step for a finding that is not about code size."""
    named = facts.named(finding.key)
    by_excess = _by_excess(finding)
    if not by_excess:
        return phrase("see the finding for ", named)
    return phrase(
        f"reduce {facts.label(finding.quantity, finding.key)} of ", named, by_excess
    )


def _links(facts: Facts) -> Phrase:
    """Return where to read on: the page, and the links of the event.

    It is empty without any.
    """
    links = [(Span(label, to=url),) for label, url in facts.report.links]
    page = facts.report.page
    if is_link(page):
        links.insert(0, (Span("the page", to=page),))
    if links:
        return phrase("More: ", joined(links, " · "))
    return ()
