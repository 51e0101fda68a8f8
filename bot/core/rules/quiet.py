"""Quiet by default: whether a report is worth a comment.

In prose:

* A comment that is there already is always updated: it must not go on saying what is not so any more.
* Where the configuration says `always`, there is always a comment; and where the change brings the configuration.
* Otherwise there is one where there is news. News is:
  - something broke: the analysis itself, or what the report or the head side (and not base, too) notes;
  - a finding that does not stand, that is, neither one that base had (`known`) nor the state of a cell that ended on
    both sides alike;
  - nothing that could be compared;
  - a cell that is new, removed, changed, fixed or newly broken;
  - a cell that is broken or not measured in another way than on base: refused by another gate, or lost on one
    side only.
* So there is none where every cell is the same, or broken or not measured on both sides alike.
"""

from __future__ import annotations

from bot.core.values.publication import CommentState
from bot.core.values.snapshot import Cell
from bot.core.values.verdict import Finding
from bot.core.values.whole_report import Report


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
