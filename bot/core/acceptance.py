"""Decide which failing findings are accepted.

A person with write access accepts a failing finding as it is measured, and no further.
An acceptance covers only what its author saw. For a metric that is the value. For a
failed build it is how the build ended, and the compiler's message. A later growth is
reported again. So is a crash of a build whose size was accepted, or another error.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from msgspec.structs import replace

from bot.core.findings import Finding, Verdict, status_of
from bot.core.record import Amount, Record
from bot.core.snapshot import NOT_SHIPPED

APPROVAL_LABEL = (  # the label by which a failing report is accepted as it is measured
    "code-size-approved"
)


def approval_labels(report_id: str) -> tuple[str, ...]:
    """Return the labels that accept the findings of a report.

    One label is for all reports, and one for this report.
    """
    return (APPROVAL_LABEL, f"{APPROVAL_LABEL}-{report_id}")


def is_approval(label: str) -> bool:
    """Return whether a label accepts a report.

    Names of labels are not case-sensitive.
    """
    name = label.casefold()
    return name == APPROVAL_LABEL or name.startswith(f"{APPROVAL_LABEL}-")


_WORDED = frozenset({"compile", "read", NOT_SHIPPED, "import", "option"})
"""Stages whose failures differ only in their words.

A failure of another stage has a figure, or only one possible reason.
"""
_VARYING = re.compile(
    r"(?:[\w.+-]*/)+"  # directories
    r"|(?<=[\w>]):\d+(?::\d+)?(?=[:\s]|$)"  # `<stdin>:12:3`, `Pass.cpp:123`
    r"|0x[0-9a-fA-F]+"
    r"|(?<===)\d+(?===)"  # the process in the words of a sanitizer
    # memory, in the words of `bot.compiler.diagnostics`
    r"|\([^()]*\b(?:held|this machine has) [^()]*\)"
)
_LINES = 4
_LINE_CHARACTERS = 200
"""Only these first lines and characters of a message count.

A snapshot keeps more, but where it cuts a message off depends on numbers that vary.
"""


class Seen(Record, frozen=True, order=True, array_like=True):
    """A failing finding as the comment showed it."""

    model: str
    target: str
    metric: str  # the metric's id; empty if the cell's state is the finding
    kind: str
    # the metric's value on head, the largest of a range; for a state, the figure of the
    # compiler's memory gate, if it refused the cell
    value: Amount | None
    # for states, the state, how the cell ended on head, and of a failure the digest of
    # its words
    limit: str = ""


class Acceptance(Record, frozen=True, array_like=True):
    """Accepted findings with their values, who accepted them, and why."""

    who: str
    # id of the event that set the label, or of the comment with the command
    event_id: Amount
    seen: tuple[Seen, ...]  # what it is bound to
    reason: str = ""  # reason of a command; empty for a label


def _order(then: Seen) -> tuple[str, str, str, str, str, bool, int]:
    """Return a key that sorts findings; an unknown value comes before all numbers."""
    return (
        then.model,
        then.target,
        then.metric,
        then.kind,
        then.limit,
        then.value is not None,
        then.value or 0,
    )


def joint_acceptance(acceptances: Iterable[Acceptance]) -> Acceptance | None:
    """Return several acceptances as one; None if there are none."""
    people = set[str]()
    event_ids = set[int]()
    findings = set[Seen]()
    reasons = set[str]()
    for acceptance in acceptances:
        people.update(acceptance.who.split(", "))
        event_ids.add(acceptance.event_id)
        findings.update(acceptance.seen)
        if acceptance.reason:
            reasons.update(acceptance.reason.split("; "))
    if not event_ids:
        return None
    return Acceptance(
        who=", ".join(sorted(people)),
        event_id=max(event_ids),
        seen=tuple(sorted(findings, key=_order)),
        reason="; ".join(sorted(reasons)),
    )


def seen(findings: Iterable[Finding]) -> tuple[Seen, ...]:
    """Return the failing findings, accepted ones included, as they can be accepted."""
    result = list[Seen]()
    for finding in filter(_fails, findings):
        value = finding.seen[1][-1] if finding.seen else finding.head
        result.append(_seen(finding, value))
    return tuple(sorted(result, key=_order))


def _fails(finding: Finding) -> bool:
    return finding.level == "fail" and not finding.known


def _seen(finding: Finding, value: int | None) -> Seen:
    """Return the values that an acceptance is bound to.

    For a failed cell, it is a digest (16 digits) of the words that are the same in
    every run.
    """
    limit = ""
    if finding.metric is None:
        failure = finding.failure
        ending = finding.outcomes[1] if finding.outcomes else ""
        limit = f"{finding.limit}: {ending}"
        if finding.outcomes and failure is not None and failure.stage in _WORDED:
            text = _VARYING.sub("", failure.message)
            if failure.figure_bytes is not None:
                # the figure is a value of its own: a smaller one is covered
                text = re.sub(r"\d+ bytes", "bytes", text)
            lines = text.splitlines()[:_LINES]
            head = "\n".join([line[:_LINE_CHARACTERS] for line in lines])
            limit += f": {hashlib.sha256(head.encode()).hexdigest()[:16]}"
    return Seen(
        model=finding.key.model,
        target=finding.key.target,
        metric=finding.metric or "",
        kind=finding.kind,
        value=value,
        limit=limit,
    )


def accept(verdict: Verdict, acceptance: Acceptance | None) -> Verdict:
    """Return the verdict after an acceptance.

    Accepted findings stay, named as such, and do not fail any more.
    """
    if acceptance is None:
        return verdict
    findings = []
    for finding in verdict.findings:
        if _fails(finding):
            now = _seen(finding, finding.head)
            if any(is_covered(then, now) for then in acceptance.seen):
                finding = replace(
                    finding, accepted=acceptance.who, reason=acceptance.reason
                )
            else:
                finding = replace(finding, grown_since=_growth_since(acceptance, now))
        findings.append(finding)
    if verdict.status == "unknown" or tuple(findings) == verdict.findings:
        return replace(verdict, findings=tuple(findings))
    return replace(verdict, status=status_of(findings), findings=tuple(findings))


def _growth_since(acceptance: Acceptance, now: Seen) -> int | None:
    """Return by how much a finding grew above its largest accepted value.

    Return None if it was not accepted.
    """
    accepted_values = []
    for then in acceptance.seen:
        if _is_same(then, now) and then.value is not None:
            accepted_values.append(then.value)
    if not accepted_values or now.value is None:
        return None
    return now.value - max(accepted_values)


def _is_same(then: Seen, now: Seen) -> bool:
    """Return whether two findings differ in nothing but their values."""
    return replace(then, value=None) == replace(now, value=None)


def is_covered(then: Seen, now: Seen) -> bool:
    """Return whether a finding was seen before, with this value or a larger one."""
    if not _is_same(then, now):
        return False
    if now.value is None or then.value is None:
        return now.value == then.value
    return now.value <= then.value
