"""Keep the state in an issue about the main branch.

It decides whether findings are those of an issue that a person closed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from bot.core.acceptance import Acceptance, Seen, is_covered
from bot.core.hidden_state import LINE_LIMIT, hidden_line, hidden_value
from bot.core.record import Count, Record


class MergedPull(Record, frozen=True, array_like=True):
    """A merged pull request."""

    number: Count
    title: str


class IssueState(Record, frozen=True, array_like=True):
    """The state of an issue, hidden in its text."""

    good_sha: str  # the commit of the last baseline within the thresholds
    first_sha: str  # the pushed commit that was the first to fail
    newest_sha: str  # the newest commit that the issue reports
    findings: tuple[Seen, ...] = ()
    pulls: tuple[MergedPull, ...] = ()
    unasked: Count = 0  # how many commits were not asked for their pull requests
    acceptance: Acceptance | None = None  # what was accepted on these pull requests
    is_resolved: bool = False  # True if the bot closed the issue


def issue_marker(report_id: str) -> str:
    """Return the first line of an issue.

    A report id has nothing that ends the HTML comment.
    """
    return f"<!-- code-size-bot-after-merge:{report_id} -->"


def encode_issue(state: IssueState) -> str:
    """Return the hidden line of an issue, without a newline.

    Never longer than `LINE_LIMIT`. A line that would be too long forgets the findings
    first: a forgotten one gets a new issue.
    """
    shorter = replace(state, findings=())
    shortest = replace(
        shorter, pulls=(), unasked=state.unasked + len(state.pulls), acceptance=None
    )
    line = ""
    for smaller in (state, shorter, shortest):
        line = hidden_line(smaller)
        if len(line) <= LINE_LIMIT:
            break
    return line


def decode_issue(body: str, marker: str) -> IssueState | None:
    """Return the state in an issue's second line; None if another version wrote it."""
    lines = body.replace("\r\n", "\n").split("\n", 2)
    if len(lines) < 2 or lines[0] != marker:
        return None
    return hidden_value(lines[1], IssueState)


def is_same_break(
    state: IssueState, findings: Sequence[Seen], commits: Collection[str]
) -> bool:
    """Return whether an issue was about these findings, and about the same merges.

    `commits`: those between the baseline and the pushed commit, which is one of them.
    """
    if state.first_sha not in commits:
        return False

    def is_in_issue(finding: Seen) -> bool:
        return any(is_covered(before, finding) for before in state.findings)

    return all(map(is_in_issue, findings))
