"""Draw the issue about a branch that exceeds its thresholds.

It has the comparison with the last good baseline, and the merged pull requests.
"""

from __future__ import annotations

from markupsafe import Markup

from bot.core.after_merge import IssueState, encode_issue, issue_marker
from bot.core.record import Small
from bot.core.report import Report
from bot.show.blocks import (
    Block,
    Line,
    List,
    Phrase,
    Rank,
    Sentence,
    Span,
    bounded,
    code,
    listed,
    phrase,
    section,
    strong,
)
from bot.show.comment import COMMENT_LIMIT
from bot.show.escape import clean, clip
from bot.show.facts import build_facts
from bot.show.filters import plural
from bot.show.first_screen import first_screen
from bot.show.renderers import fitting_text
from bot.show.views import COMMENT

_SHOWN_DIGITS = 10
_BRANCH_CHARACTERS = 100  # GitHub takes 256 characters as a title
_ABOUT = (
    "The bot updates this issue after each push. It closes the issue when the branch is"
    " within its thresholds again, compared with the last good baseline. If you close"
    " the issue yourself, you accept these findings: only a new regression opens a new"
    " issue."
)


class MainIssue(Small, frozen=True):
    """The values that an issue about a branch shows."""

    report: Report  # report of the newest commit against the last good baseline
    state: IssueState
    branch: str
    home: str  # the address of the repository: `https://github.com/OWNER/NAME`
    no_pulls: str = ""  # why the merged pull requests are not known; empty if they are


def issue_title(issue: MainIssue) -> str:
    """Return the title: `Code size of main: 2 builds fail the thresholds`."""
    report_id = issue.report.report_id
    subject = "Code size"
    if report_id != "default":
        subject = f"Code size {report_id}"
    lead = f"{subject} of {clip(clean(issue.branch), _BRANCH_CHARACTERS)}"
    if issue.state.is_resolved:
        return f"{lead}: within the thresholds again"
    builds = {finding.key for finding in issue.report.verdict.failing}
    verb = "fails" if len(builds) == 1 else "fail"
    return f"{lead}: {plural(len(builds), 'build')} {verb} the thresholds"


def issue_body(issue: MainIssue) -> str:
    """Return the Markdown of the issue: two hidden lines, then what a reader sees.

    It is at most as long as GitHub allows.
    """
    # Both parts of the marker are checked where they are made.
    marker = Markup(  # noqa: S704
        f"{issue_marker(issue.report.report_id)}\n{encode_issue(issue.state)}"
    )
    verdict, *screen = first_screen(build_facts(issue.report), COMMENT)
    blocks = (
        verdict,
        Sentence(_what_happened(issue), name="branch"),
        *screen,
        _pulls(issue),
        Sentence(_ABOUT, small=True),
    )
    return fitting_text(
        "comment.md.j2",
        blocks,
        values=lambda shown: {
            "answer": "issue",
            "blocks": shown,
            "page": "",
            "marker": marker,
        },
        limit=COMMENT_LIMIT,
    )


def _commit(issue: MainIssue, sha: str) -> Span:
    return code(sha[:_SHOWN_DIGITS], f"{issue.home}/commit/{sha}")


def _what_happened(issue: MainIssue) -> Phrase:
    """Return the push that broke the thresholds, and the good and newest commits."""
    state = issue.state
    first = _commit(issue, state.first_sha)
    good = _commit(issue, state.good_sha)
    newest = _commit(issue, state.newest_sha)
    broke = phrase(
        "The push of ", first, " made ", code(issue.branch), " exceed its thresholds. "
    )
    summary = phrase(broke, "The last good baseline is that of ", good, ".")
    if state.is_resolved:
        return phrase(
            strong("Resolved:"),
            " ",
            newest,
            " is within the thresholds again. ",
            summary,
        )
    if state.newest_sha != state.first_sha:
        return phrase(summary, " The numbers are those of ", newest, ".")
    return summary


def _pulls(issue: MainIssue) -> Block:
    """Return the pull requests merged after the good baseline.

    Remarks name those that are not known.
    """
    pulls = issue.state.pulls
    unasked = issue.state.unasked
    lines = [_pull_line(issue, number=pull.number, title=pull.title) for pull in pulls]
    remarks = list[Phrase]()
    if issue.no_pulls:
        remarks.append(phrase(f"n/a: {issue.no_pulls}"))
    elif not pulls:
        remarks.append(phrase("GitHub knows no merged pull request of these commits."))
    if unasked:
        older = plural(unasked, "older commit")
        remarks.append(
            phrase(
                f"The bot asks for the newest commits only. It did not ask for {older}."
            )
        )
    return section(
        phrase(strong("Merged pull requests"), " since the last good baseline"),
        bounded(List(listed(lines, "pull request")), Rank.COMMAND, COMMENT.names),
        *(Sentence(remark, small=True) for remark in remarks),
        name="pulls",
    )


def _pull_line(issue: MainIssue, *, number: int, title: str) -> Line:
    """Return the number as a link, and the title as code, which is inert."""
    link = Span(f"#{number}", to=f"{issue.home}/pull/{number}")
    return Line(phrase(link, " ", code(title)))
