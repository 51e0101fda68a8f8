"""Acceptance: a person with write access takes a failing finding as it is measured, and no further.

An acceptance is bound to what its author saw: for each failing finding the value it had then, and for a cell's state
how the cell had ended, and in which words the compiler failed. A finding is accepted where its value is not above that
one, and the cell ends as it did then; whatever grows later is reported again, and so does a crash of a cell that was
over a limit, or another error of one that failed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from bot.core.policy import Accepted, Finding, Verdict, status_of
from bot.core.record import Amount, Record

APPROVAL_LABEL = "code-size-approved"
"""The label by which a failing report is accepted as it is measured."""


_WORDED = frozenset({"compile", "read", "import", "option"})
"""Stages whose failures differ in nothing but the words; the others have a figure, or one reason."""
_VARYING = re.compile(
    r"(?:[\w.+-]*/)+"  # directories
    r"|(?<=[\w>]):\d+(?::\d+)?(?=[:\s]|$)"  # `<stdin>:12:3`, `Pass.cpp:123`
    r"|0x[0-9a-fA-F]+"
    r"|(?<===)\d+(?===)"  # the process in the words of a sanitizer
    r"|\([^()]*\b(?:held|this machine has) [^()]*\)"  # memory, as `bot.compiler.machine` tells it
)
_LINES, _LINE_CHARACTERS = 4, 200
"""So much of a message counts, less than a snapshot keeps: what that cuts off depends on numbers that vary."""


class Seen(Record, frozen=True, order=True, array_like=True):
    """A failing finding as the comment showed it.

    Attributes:
        metric: the metric's id; empty where the cell's state is the finding.
        value: the metric's value on head, of a range the largest; for states the figure of the compiler's memory gate,
            where that refused.
        limit: for states, the state, how the cell ended on head, and of a failure the digest of its words. What
            comments of earlier versions remember without one of these covers no cell that has it.
    """

    model: str
    target: str
    metric: str
    kind: str
    value: Amount | None
    limit: str = ""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Who accepted what, how and why.

    Attributes:
        event_id: of the labelling event or the comment, so that it is taken once.
        seen: what it is bound to.
    """

    who: str
    why: str
    how: str
    event_id: int
    seen: tuple[Seen, ...]


def seen(findings: Iterable[Finding]) -> tuple[Seen, ...]:
    """The failing findings in the form in which they can be accepted, accepted ones included."""
    return tuple(sorted(_seen(f, f.seen[1][-1] if f.seen else f.head) for f in findings if _fails(f)))


def _fails(finding: Finding) -> bool:
    return finding.level == "fail" and not finding.known


def _seen(finding: Finding, value: int | None) -> Seen:
    """What an acceptance is bound to; of a failed cell's words a digest (16 digits) of what they are in every run."""
    limit = ""
    if finding.metric is None:
        failure, ending = finding.failure, finding.outcomes[1] if finding.outcomes else ""
        limit = f"{finding.limit}: {ending}"
        if finding.outcomes and failure is not None and failure.stage in _WORDED:
            text = _VARYING.sub("", failure.message)
            if failure.figure_bytes is not None:
                text = re.sub(r"\d+ bytes", "bytes", text)  # the figure is a value of its own: a smaller one is covered
            head = "\n".join(line[:_LINE_CHARACTERS] for line in text.splitlines()[:_LINES])
            limit += f": {hashlib.sha256(head.encode()).hexdigest()[:16]}"
    return Seen(finding.key.model, finding.key.target, finding.metric or "", finding.kind, value, limit)


def accept(verdict: Verdict, acceptances: Sequence[Acceptance]) -> Verdict:
    """The verdict after all acceptances: accepted findings stay, named as such, and do not fail any more."""
    findings = []
    for finding in verdict.findings:
        if _fails(finding):
            now = _seen(finding, finding.head)
            covering = (one for one in reversed(acceptances) if any(_same_or_less(then, now) for then in one.seen))
            if acceptance := next(covering, None):
                finding = replace(finding, accepted=Accepted(acceptance.who, acceptance.why))
        findings.append(finding)
    if verdict.status == "unknown" or tuple(findings) == verdict.findings:
        return replace(verdict, findings=tuple(findings))
    return replace(verdict, status=status_of(findings), findings=tuple(findings))


def _same_or_less(then: Seen, now: Seen) -> bool:
    if structs.replace(then, value=None) != structs.replace(now, value=None):
        return False
    if now.value is None or then.value is None:
        return now.value == then.value
    return now.value <= then.value
