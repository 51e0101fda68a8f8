"""Read what the comment of a report remembers, and what was accepted on pull requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bot.core.acceptance import (
    APPROVAL_LABEL,
    Acceptance,
    Seen,
    approval_labels,
    joint_acceptance,
)
from bot.core.asked import Asked
from bot.core.comment_state import CommentState, decode
from bot.github.comments import find
from bot.github.destination import Destination
from bot.github.queue import queued_pulls
from bot.github.repository import MOMENT, comment_of, labelling, may_write
from bot.github.rows import Comment, Event
from bot.github.services import Services
from bot.show.comment import marker
from bot.system.hub import Hub


class Memory(NamedTuple):
    """What the comment remembers, and what the approval label accepts now."""

    previous: CommentState | None = None  # None where there is no comment
    acceptance: Acceptance | None = None
    # why the label accepts nothing, for the reader of the report; empty where it
    # accepts something
    ignored: str = ""


_SET_TOO_EARLY = (
    f"The label {APPROVAL_LABEL} accepts none of these findings. It was set before this"
    " comment was written, or the comment that it accepted was deleted or edited. To"
    " accept them, remove the label and add it again."
)
_NOT_BY_A_WRITER = (
    f"The label {APPROVAL_LABEL} accepts nothing, because nobody with write access set"
    " it. Ask a maintainer to remove it and add it again."
)


_CHANGED_SINCE = (
    "The command accepts none of these findings, because the report changed after it."
    " To accept them, write it again."
)


def recalled(
    hub: Hub, number: int, to: Destination, command: Asked | None = None
) -> Memory:
    """Return what the comment's state has, with the approval label as it is set now.

    `command`: the command of this run. It accepts the findings that the report
    showed when it was written. Its acceptance stands until its comment is deleted,
    or until somebody sets a label later.

    A label accepts, once, the findings that the comment showed. A label that was
    set before there were findings, or before the comment was last written, accepts
    none. It is remembered as such, or it would accept whatever comes later. If the
    label is removed, its acceptance ends.

    Raises NetworkError if GitHub does not answer.
    """
    reports = find(hub, number, marker(to.config.report_id))
    report = reports[0] if reports else None
    previous = None
    if report:
        previous = decode(report.body or "") or CommentState()
    if not to.head_sha:
        return Memory(previous)
    new_command = None
    if command and _is_new_acceptance(command, previous):
        new_command = command
        acceptance = _accepted_now(command, previous, report)
        if acceptance:
            return Memory(previous, acceptance)
    memory = _accepted_before(
        hub, number=number, to=to, previous=previous, report=report
    )
    if new_command:
        return memory._replace(ignored=_CHANGED_SINCE)
    return memory


def _accepted_now(
    command: Asked, previous: CommentState | None, report: Comment | None
) -> Acceptance | None:
    """Return what a command accepts; None if the report changed after it."""
    if report is None or previous is None or not previous.findings:
        return None
    if f"{report.updated_at:{MOMENT}}" >= command.written_at:
        return None
    return Acceptance(
        who=command.who,
        event_id=command.comment_id,
        seen=previous.findings,
        reason=command.typed.reason,
    )


def _is_new_acceptance(command: Asked, previous: CommentState | None) -> bool:
    """Return whether a command accepts, and the comment does not remember it yet."""
    if command.typed.verb != "accept":
        return False
    acceptance = previous.acceptance if previous else None
    return not acceptance or acceptance.event_id != command.comment_id


def _accepted_before(
    hub: Hub,
    number: int,
    to: Destination,
    previous: CommentState | None,
    report: Comment | None,
) -> Memory:
    """Return what the label accepts, or what an earlier command accepted.

    `report`: the comment that has the state.
    """
    acceptance = previous.acceptance if previous else None
    label = labelling(hub, number, *approval_labels(to.config.report_id))
    if acceptance and acceptance.reason and _still_holds(hub, acceptance, label):
        return Memory(previous, acceptance)
    if label is None:
        return Memory(previous)
    if acceptance is None or acceptance.event_id != label.id:
        # the account may be gone
        who = label.actor.login if label.actor else ""
        if not who or not may_write(hub, who):
            return Memory(previous, ignored=_NOT_BY_A_WRITER)
        findings = _findings_before(label, previous, report)
        acceptance = Acceptance(who, label.id, findings)
    if acceptance.seen:
        return Memory(previous, acceptance)
    return Memory(previous, acceptance, _SET_TOO_EARLY)


def _findings_before(
    label: Event, previous: CommentState | None, report: Comment | None
) -> tuple[Seen, ...]:
    """Return the findings that the comment showed when the label was set."""
    if previous and report and report.updated_at < label.created_at:
        return previous.findings
    return ()


def _still_holds(hub: Hub, acceptance: Acceptance, label: Event | None) -> bool:
    """Return whether an acceptance by a command still counts.

    Its comment must be there, and no label may be set after it.
    """
    comment = comment_of(hub, acceptance.event_id)
    if comment is None:
        return False
    return label is None or label.created_at <= comment.created_at


def remembered(hub: Hub, services: Services, to: Destination) -> Memory:
    """Return what the comment of the pull request remembers.

    For a merge queue, this is what was accepted on all pull requests that are queued.
    """
    if to.pull is not None:
        return recalled(hub, number=to.pull, to=to, command=services.context.asked)
    queue = services.context.queue
    if queue is None:
        return Memory()
    numbers = queued_pulls(hub, git=services.git, queue=queue, sha=services.context.sha)
    return Memory(acceptance=accepted_on(hub, numbers, to))


def accepted_on(hub: Hub, numbers: Sequence[int], to: Destination) -> Acceptance | None:
    """Return what was accepted on any of these pull requests, as one acceptance.

    None if nothing was accepted.

    `to`: has the report, and the commit that was measured.
    """
    acceptances = [recalled(hub, number, to).acceptance for number in numbers]
    return joint_acceptance(filter(None, acceptances))
