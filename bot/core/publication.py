"""Decide when there is a comment.

The bot is quiet by default. An existing comment is always updated, so that it never
shows old results. There is a comment if the configuration says `always`, or if the
change brings the configuration. Otherwise there is one if there is news:

* something broke: the analysis itself, or something that the report or the head side
  (and not base, too) notes;
* a finding that does not stand: base did not have it, and its cell did not end on both
  sides alike;
* nothing that could be compared;
* a cell that is new, removed, changed, fixed or newly broken;
* a cell that is broken or not measured, in another way than on base.
"""

from __future__ import annotations

from bot.core.comment_state import CommentState
from bot.core.delta import CellDelta
from bot.core.findings import Finding
from bot.core.report import Report
from bot.core.snapshot import Cell


def is_standing(finding: Finding) -> bool:
    """Return whether a finding is no news.

    Base had it, or its cell ended on both sides in the same way.
    """
    ended_equally = (
        finding.outcomes is not None
        and len(set(finding.outcomes)) == 1
        and finding.base == finding.head
    )
    return finding.known or ended_equally


def wants_comment(report: Report, previous: CommentState | None, always: bool) -> bool:
    """Return whether a comment is to be created or updated.

    `previous`: the state in the existing comment (empty if it cannot be read); None
    without a comment.
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
    return any(map(_is_news, report.deltas))


def _is_news(delta: CellDelta) -> bool:
    """Return whether a cell changed; for one that fails, whether it fails otherwise."""
    if delta.state in ("broken", "unmeasured"):
        return _shape(delta.base) != _shape(delta.head)
    return delta.state != "same"


def alarms(report: Report) -> bool:
    """Return whether something should worry its reader.

    The analysis broke, it has no verdict, or a finding is news.
    """
    if report.broke or report.verdict.status == "unknown":
        return True
    return not all(map(is_standing, report.verdict.findings))


def resolves(report: Report, previous: CommentState | None) -> bool:
    """Return whether an alarm that the comment gave is gone."""
    return previous is not None and previous.alarming and not alarms(report)


def _shape(cell: Cell | None) -> tuple[str, bool]:
    """Return how a cell came to have no comparable numbers."""
    if cell is None:
        return ("absent", False)
    return (cell.status, bool(cell.others))
