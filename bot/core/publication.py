"""What is published beside the files: the check run, its annotations, and whether a comment is due."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from bot.core.acceptance import Acceptance, Seen
from bot.core.json_text import decoded
from bot.core.policy import Finding
from bot.core.record import Amount, Count
from bot.core.report import Report
from bot.core.snapshot import Cell
from bot.errors import InputError

Conclusion = Literal["success", "neutral", "failure"]
AnnotationLevel = Literal["notice", "warning", "failure"]


@dataclass(frozen=True, slots=True)
class Annotation:
    """One line of a file of the pull request that a finding concerns; plain text, no Markdown.

    Attributes:
        path: relative to the repository.
    """

    path: str
    line: int
    level: AnnotationLevel
    title: str
    message: str


@dataclass(frozen=True, slots=True)
class CheckRun:
    """A finished check run.

    Attributes:
        summary: Markdown, within GitHub's limit.
    """

    name: str
    conclusion: Conclusion
    title: str
    summary: str
    annotations: Sequence[Annotation] = ()


@dataclass(frozen=True, slots=True)
class ArtifactInfo:
    """One artifact of a workflow run; an expired one is listed but cannot be had any more.

    Attributes:
        is_own: True where that is of the repository itself, and not of a fork.
    """

    id: int
    name: str
    size_bytes: int
    expired: bool
    head_sha: str = ""
    head_branch: str = ""
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class CommentState:
    """What a comment remembers, hidden in itself, for the runs that come after.

    Attributes:
        head_sha: tip of the pull request's branch that the comment is about.
        run_id: the run whose artifact holds the report.
        alarming: True where it gave an alarm, so that an all-clear is worth a word.
        acceptances: all that were given so far, oldest first.
        base_ref: the branch that the pull request went to; empty where an older version wrote the comment.
    """

    head_sha: str
    run_id: int
    alarming: bool = False
    findings: tuple[Seen, ...] = ()
    acceptances: tuple[Acceptance, ...] = ()
    base_ref: str = ""


# What a comment remembers, as one hidden line of it: written with a bound on its length, read with suspicion.
#
# The line is the comment's second one (its first is the marker), `<!-- code-size-bot-state:1:DATA -->`. DATA is the
# canonical JSON of the state, through zlib, in the standard base64 alphabet: that has neither `-` nor `>`, so that
# nothing in it can end the HTML comment. `1` is the version of the format; other versions are not read.
#
# Where the line would be longer than `LINE_LIMIT`, it forgets, and always to the safe side: what is forgotten fails
# again, and nothing is accepted by accident. The findings go first (those last in order first): they fail until the
# next run, and an approval cannot be bound to them. Then the acceptances go, the oldest first.


LINE_LIMIT = 16_000
"""Characters of the line; the rest of a comment's 65,536 is for the report."""

_PLAIN_LIMIT_BYTES = 1 << 20
_MARKER = re.compile(r"<!-- code-size-bot:[A-Za-z0-9._-]{1,64} -->\s*")
_LINE = re.compile(r"<!-- code-size-bot-state:1:([A-Za-z0-9+/]{1,16000}={0,2}) -->")


class _Plain(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """Lists instead of objects, and each finding once: acceptances and findings are mostly the same ones."""

    head_sha: str
    run_id: Amount
    alarming: bool
    every: tuple[Seen, ...]
    findings: tuple[Count, ...]
    given: tuple[tuple[str, str, str, Amount, tuple[Count, ...]], ...]
    base_ref: str = ""


def encode(state: CommentState) -> str:
    """The hidden line, without a newline; never longer than `LINE_LIMIT`."""
    for smaller in _ever_smaller(state):
        given = smaller.acceptances
        every = sorted(
            {*smaller.findings, *(one for each in given for one in each.seen)},
            key=lambda one: (
                one.model,
                one.target,
                one.metric,
                one.kind,
                one.limit,
                -1 if one.value is None else one.value,
            ),
        )
        index = {one: number for number, one in enumerate(every)}
        plain = _Plain(
            *(smaller.head_sha, smaller.run_id, smaller.alarming, tuple(every)),
            tuple(index[one] for one in smaller.findings),
            tuple((a.who, a.why, a.how, a.event_id, tuple(index[one] for one in a.seen)) for a in given),
            smaller.base_ref,
        )
        data = base64.b64encode(zlib.compress(msgspec.json.encode(plain), 9)).decode()
        line = f"<!-- code-size-bot-state:1:{data} -->"
        if len(line) <= LINE_LIMIT:
            break
    return line


def _ever_smaller(state: CommentState) -> Iterator[CommentState]:
    yield state
    count = len(state.findings)
    while count:
        count //= 2
        yield replace(state, findings=state.findings[:count])
    for dropped in range(1, len(state.acceptances) + 1):
        yield replace(state, findings=(), acceptances=state.acceptances[dropped:])
    yield CommentState("", state.run_id, state.alarming)


def decode(comment_body: str) -> CommentState | None:
    """The state in the second line of a comment; None where there is none that this version wrote."""
    lines = comment_body.split("\n", 2)
    match = _LINE.match(lines[1]) if len(lines) > 1 and _MARKER.fullmatch(lines[0]) else None
    if match is None:
        return None
    try:
        inflater = zlib.decompressobj()
        text = inflater.decompress(base64.b64decode(match[1], validate=True), _PLAIN_LIMIT_BYTES)
        if not inflater.eof or inflater.unused_data:
            return None  # cut off, too large, or followed by something else
        plain = decoded(text, _Plain, "state")

        def picked(numbers: tuple[int, ...]) -> tuple[Seen, ...]:
            return tuple(plain.every[number] for number in numbers)

        given = tuple(Acceptance(who, why, how, at, picked(numbers)) for who, why, how, at, numbers in plain.given)
        findings = picked(plain.findings)
    except (ValueError, IndexError, InputError, zlib.error, binascii.Error):
        return None
    return CommentState(plain.head_sha, plain.run_id, plain.alarming, findings, given, plain.base_ref)


# Quiet by default: whether a report is worth a comment.
#
# In prose:
#
# * A comment that is there already is always updated: it must not go on saying what is not so any more.
# * Where the configuration says `always`, there is always a comment; and where the change brings the configuration.
# * Otherwise there is one where there is news. News is:
#   - something broke: the analysis itself, or what the report or the head side (and not base, too) notes;
#   - a finding that does not stand, that is, neither one that base had (`known`) nor the state of a cell that ended on
#     both sides alike;
#   - nothing that could be compared;
#   - a cell that is new, removed, changed, fixed or newly broken;
#   - a cell that is broken or not measured in another way than on base: refused by another gate, or lost on one
#     side only.
# * So there is none where every cell is the same, or broken or not measured on both sides alike.


def is_standing(finding: Finding) -> bool:
    """True for a finding that base had, and for a cell that ended on both sides alike: no news."""
    alike = finding.outcomes is not None and len(set(finding.outcomes)) == 1 and finding.base == finding.head
    return finding.known or alike


def wants_comment(report: Report, previous: CommentState | None, always: bool) -> bool:
    """True where a comment is to be created or updated (see the module's text).

    Args:
        previous: what the comment that is there remembers; None where there is no comment. For one whose state cannot
            be read, give an empty one.
    """
    if previous is not None or always or report.adoption or alarms(report) or report.notes:
        return True
    if set(report.head.notes) - set(report.base.notes):
        return True
    return any(
        _shape(delta.base) != _shape(delta.head) if delta.state in ("broken", "unmeasured") else delta.state != "same"
        for delta in report.deltas
    )


def alarms(report: Report) -> bool:
    """True where something should worry its reader: the analysis broke, it has no verdict, or a finding is news."""
    unknown = report.broke or report.verdict.status == "unknown"
    return bool(unknown) or any(not is_standing(finding) for finding in report.verdict.findings)


def resolves(report: Report, previous: CommentState | None) -> bool:
    """True where an alarm that the comment gave is gone."""
    return previous is not None and previous.alarming and not alarms(report)


def _shape(cell: Cell | None) -> tuple[str, bool]:
    """How a cell came to have no comparable numbers."""
    return ("absent", False) if cell is None else (cell.status, bool(cell.others))
