"""Decide what is published beside the files.

That is what is accepted, the check run, what a comment remembers, and when there is one.

A person with write access accepts a failing finding as it is measured, and no further.
An acceptance is bound to what its author saw: the value of each, and for a cell's state
how the cell had ended, and in which words the compiler failed. Whatever grows later is
reported again, and so is a crash of a cell that was over a limit, or another error.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec.structs import replace

from bot.core.hidden_state import LINE_LIMIT, hidden_line, hidden_value
from bot.core.policy import Finding, Verdict, status_of
from bot.core.record import Amount, Record, Small
from bot.core.report import Report
from bot.core.snapshot import NOT_SHIPPED, Cell

APPROVAL_LABEL = (  # the label by which a failing report is accepted as it is measured
    "code-size-approved"
)


def approval_labels(report_id: str) -> tuple[str, ...]:
    """Return the labels that accept the findings of a report.

    The one for all reports, and its own.
    """
    return (APPROVAL_LABEL, f"{APPROVAL_LABEL}-{report_id}")


def is_approval(label: str) -> bool:
    """Return True for a label that accepts some report.

    Names of labels know no case.
    """
    name = label.casefold()
    return name == APPROVAL_LABEL or name.startswith(f"{APPROVAL_LABEL}-")


_WORDED = frozenset({"compile", "read", NOT_SHIPPED, "import", "option"})
"""Stages whose failures differ in nothing but the words.

The others have a figure, or one reason.
"""
_VARYING = re.compile(
    r"(?:[\w.+-]*/)+"  # directories
    r"|(?<=[\w>]):\d+(?::\d+)?(?=[:\s]|$)"  # `<stdin>:12:3`, `Pass.cpp:123`
    r"|0x[0-9a-fA-F]+"
    r"|(?<===)\d+(?===)"  # the process in the words of a sanitizer
    # memory, as `bot.compiler.diagnostics` tells it
    r"|\([^()]*\b(?:held|this machine has) [^()]*\)"
)
_LINES, _LINE_CHARACTERS = 4, 200
"""So much of a message counts, less than a snapshot keeps.

What that cuts off depends on numbers that vary.
"""


class Seen(Record, frozen=True, order=True, array_like=True):
    """A failing finding as the comment showed it."""

    model: str
    target: str
    metric: str  # the metric's id; empty where the cell's state is the finding
    kind: str
    # the metric's value on head, of a range the largest; for states the figure of the
    # compiler's memory gate, where that refused
    value: Amount | None
    # for states, the state, how the cell ended on head, and of a failure the digest of
    # its words
    limit: str = ""


class Acceptance(Record, frozen=True, array_like=True):
    """The acceptance of what was seen, bound to those numbers."""

    who: str
    event_id: Amount  # of the event by which the label was set; of a command the id of its comment
    seen: tuple[Seen, ...]  # what it is bound to
    reason: str = ""  # of a command; empty for a label


def seen(findings: Iterable[Finding]) -> tuple[Seen, ...]:
    """Return the failing findings, accepted ones included, as they can be accepted."""
    return tuple(
        sorted(
            _seen(f, f.seen[1][-1] if f.seen else f.head) for f in findings if _fails(f)
        )
    )


def _fails(finding: Finding) -> bool:
    return finding.level == "fail" and not finding.known


def _seen(finding: Finding, value: int | None) -> Seen:
    """Return what an acceptance is bound to.

    Of a failed cell's words a digest (16 digits) of what they are in every run.
    """
    limit = ""
    if finding.metric is None:
        failure, ending = (
            finding.failure,
            (finding.outcomes[1] if finding.outcomes else ""),
        )
        limit = f"{finding.limit}: {ending}"
        if finding.outcomes and failure is not None and failure.stage in _WORDED:
            text = _VARYING.sub("", failure.message)
            if failure.figure_bytes is not None:
                # the figure is a value of its own: a smaller one is covered
                text = re.sub(r"\d+ bytes", "bytes", text)
            head = "\n".join(
                line[:_LINE_CHARACTERS] for line in text.splitlines()[:_LINES]
            )
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
    """Return by how much a finding grew above its accepted value.

    None where none was accepted.
    """
    for then in acceptance.seen:
        is_same = replace(then, value=None) == replace(now, value=None)
        if is_same and then.value is not None and now.value is not None:
            return now.value - then.value
    return None


def is_covered(then: Seen, now: Seen) -> bool:
    """Return whether a finding is what was seen then, at the same value or a smaller one."""
    if replace(then, value=None) != replace(now, value=None):
        return False
    if now.value is None or then.value is None:
        return now.value == then.value
    return now.value <= then.value


Conclusion = Literal["success", "neutral", "failure"]
AnnotationLevel = Literal["notice", "warning", "failure"]


class Annotation(Small, frozen=True):
    """One line of a file of the pull request that a finding concerns; plain text, no Markdown."""

    path: str  # relative to the repository
    line: int
    level: AnnotationLevel
    title: str
    message: str


class CheckRun(Small, frozen=True):
    """A finished check run."""

    name: str
    conclusion: Conclusion
    title: str
    summary: str  # Markdown, within GitHub's limit
    annotations: Sequence[Annotation] = ()


class CommentState(Record, frozen=True, array_like=True):
    """What a comment remembers, hidden in itself, for the runs that come after."""

    # True where it gave an alarm, so that an all-clear is worth a word
    alarming: bool = False
    findings: tuple[Seen, ...] = ()
    # what the label accepted that is set on the pull request
    acceptance: Acceptance | None = None


# What a comment remembers is its second line, behind the marker. A line that would be
# too long forgets to the safe side: what is forgotten fails again. The findings go
# first, then the acceptance.

_MARKER = re.compile(r"<!-- code-size-bot:[A-Za-z0-9._-]{1,64} -->\s*")


def encode(state: CommentState) -> str:
    """Return the hidden line, without a newline; never longer than `LINE_LIMIT`."""
    for smaller in (state, replace(state, findings=()), CommentState(state.alarming)):
        line = hidden_line(smaller)
        if len(line) <= LINE_LIMIT:
            break
    return line


def decode(comment_body: str) -> CommentState | None:
    """Return the state in the second line of a comment.

    None where there is none that this version wrote.
    """
    lines = comment_body.split("\n", 2)
    is_ours = len(lines) > 1 and _MARKER.fullmatch(lines[0])
    if is_ours:
        return hidden_value(lines[1], CommentState)
    return None


# Quiet by default. A comment that is there is always updated: it must not go on saying
# what is not so any more. Where the configuration says `always`, and where the change
# brings the configuration, there is one. Otherwise there is one where there is news:
#
# * something broke: the analysis itself, or something that the report or the head side
#   (and not base, too) notes;
# * a finding that does not stand: base did not have it, and its cell did not end on both
#   sides alike;
# * nothing that could be compared;
# * a cell that is new, removed, changed, fixed or newly broken;
# * a cell that is broken or not measured, in another way than on base.


def is_standing(finding: Finding) -> bool:
    """Return True for a finding that base had, and for a cell that ended on both sides alike.

    No news.
    """
    ended_equally = (
        finding.outcomes is not None
        and len(set(finding.outcomes)) == 1
        and finding.base == finding.head
    )
    return finding.known or ended_equally


def wants_comment(report: Report, previous: CommentState | None, always: bool) -> bool:
    """Return whether a comment is to be created or updated.

    `previous`: what the comment that is there remembers (an empty state where it cannot
    be read); None without one.
    """
    if (
        previous is not None
        or always
        or report.adoption
        or alarms(report)
        or report.notes
    ):
        return True
    if set(report.head.notes) - set(report.base.notes):
        return True
    return any(
        (
            _shape(delta.base) != _shape(delta.head)
            if delta.state in ("broken", "unmeasured")
            else delta.state != "same"
        )
        for delta in report.deltas
    )


def alarms(report: Report) -> bool:
    """Return whether something should worry its reader.

    The analysis broke, it has no verdict, or a finding is news.
    """
    unknown = report.broke or report.verdict.status == "unknown"
    return bool(unknown) or any(
        not is_standing(finding) for finding in report.verdict.findings
    )


def resolves(report: Report, previous: CommentState | None) -> bool:
    """Return whether an alarm that the comment gave is gone."""
    return previous is not None and previous.alarming and not alarms(report)


def _shape(cell: Cell | None) -> tuple[str, bool]:
    """Return how a cell came to have no comparable numbers."""
    if cell is None:
        return ("absent", False)
    return (cell.status, bool(cell.others))
