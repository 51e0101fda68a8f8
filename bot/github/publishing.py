"""What is written to a pull request: the one comment of a report, and its check run.

The one comment is found by the marker in its first line and by its author. Nothing is
remembered between runs, so every step starts from what is there: two runs that create
at once, a comment that someone deletes meanwhile, and an answer that got lost all end
with one comment. What GitHub refuses is a NetworkError, with the missing permission
where that may be it.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, get_args

from github import GithubException
from github.CheckRun import CheckRun as WrittenCheck
from github.IssueComment import IssueComment
from github.PaginatedList import PaginatedList

from bot.core.check_run import CheckRun, Conclusion
from bot.errors import NetworkError
from bot.system.hub import Hub, explain, in_doubt, required

MAX_COMMENT_CHARACTERS = 65_536
"""GitHub answers a longer body with 422 "body is too long (maximum is 65536 characters)"."""

_TRIES = 4


def find(hub: Hub, number: int, marker: str) -> list[IssueComment]:
    """Return the token's own comments whose first line is the marker, oldest first.

    All pages are read.
    """
    with explain(f"read the comments on #{number}", "pull-requests: write"):
        login = hub.token_login()
        comments = sorted(
            hub.issue(number).get_comments(), key=lambda comment: comment.id
        )
        # The account of a comment's author may be gone.
        own_comments = [
            comment
            for comment in comments
            if comment.user and is_login(comment.user.login, login)
        ]
        return [
            comment
            for comment in own_comments
            if first_line(comment.body or "") == marker
        ]


def publish(
    hub: Hub,
    number: int,
    marker: str,
    body: str,
    *,
    create: bool,
    still_current: Callable[[], bool],
) -> str:
    """Makes `body` the one comment of this marker; its address.

    The oldest comment of ours is updated in place, younger ones are deleted, a deleted
    one is created again. A creation is followed by another look: where a run that raced
    with this one was first, ours goes and that one is updated.

    `marker`: the first line of `body`; `body`: at most `MAX_COMMENT_CHARACTERS`;
    `create`: False where a new comment is not wanted, only the update of an old one;
    `still_current`: asked right before each write; False where a newer run is
    responsible by now.

    Empty where nothing was to be written: there is no comment and `create` is False, or
    `still_current` said no. Raises ValueError where `body` is too long, or does not
    begin with `marker`.
    """
    if len(body) > MAX_COMMENT_CHARACTERS or first_line(body) != marker:
        raise ValueError(
            f"a comment begins with its marker and has at most {MAX_COMMENT_CHARACTERS}"
            " characters"
        )
    with explain(f"write the comment on #{number}", "pull-requests: write"):
        failures = 0
        while True:
            try:
                return _settled(
                    hub,
                    number=number,
                    marker=marker,
                    body=body,
                    create=create,
                    still_current=still_current,
                )
            except Exception as error:
                failures += 1
                if failures == _TRIES or not in_doubt(error):
                    raise
            time.sleep(hub.backoff_seconds)


def _settled(
    hub: Hub,
    number: int,
    marker: str,
    body: str,
    create: bool,
    still_current: Callable[[], bool],
) -> str:
    """Change the comments that are there into the wished one; return its address."""
    present = find(hub, number, marker)
    while True:
        if not present:
            if not (create and still_current()):
                return ""
            created = hub.issue(number).create_comment(body)
            created_id = required(created.id, "id")
            url = required(created.html_url, "html_url")
            _require_author(hub, number, created)
            present = [
                comment
                for comment in find(hub, number, marker)
                if comment.id < created_id
            ]
            if not present:
                return url
            _unless_gone(created.delete)  # another run was first
        oldest = present[0]
        younger = present[1:]
        # equal but for what a server may do to line ends and to the last one
        if (oldest.body or "").replace("\r\n", "\n").rstrip() != body.replace(
            "\r\n", "\n"
        ).rstrip():
            if not still_current():
                return ""
            if not _unless_gone(partial(oldest.edit, body)):
                present = younger
                continue
        for comment in younger:
            if still_current():
                _unless_gone(comment.delete)
        return oldest.html_url


def is_login(login: str, other_login: str) -> bool:
    """Return whether this is one account: GitHub ignores the case of logins."""
    return login.casefold() == other_login.casefold()


def _require_author(hub: Hub, number: int, created: IssueComment) -> None:
    """Raise NetworkError for a new comment with another author than expected.

    The next run would not find it. The comment is deleted: every run would write one more.
    """
    expected = hub.token_login()
    actual = created.user.login if created.user else ""
    if not actual or is_login(actual, expected):
        return
    _unless_gone(created.delete)
    problem = (
        f"cannot keep the comment on #{number}: the token writes as {actual}, not as"
        f" {expected}"
    )
    raise NetworkError(problem, hint=f"set the input `author` to {actual}")


def _unless_gone(write: Callable[[], None]) -> bool:
    """Change or delete a comment.

    False where it is gone: a run that raced with this one may have been faster.
    """
    try:
        write()
    except GithubException as refused:
        if refused.status not in {404, 410}:
            raise
        return False
    return True


def first_line(body: str) -> str:
    """Return the first line of a comment or an issue, which is its marker."""
    return body.split("\n", 1)[0].rstrip("\r")


# The check run of a report, with annotations on the lines concerned.
#
# A check run is created once and its annotations are appended in chunks. Where an
# answer gets lost, GitHub is asked how far it came, as sending a chunk twice would show
# each of its annotations twice.


# "REST API endpoints for check runs": output object and its annotations objects. Where
# it counts characters, bytes are the stricter reading.
ANNOTATIONS_A_CALL = 50
MAX_TITLE_BYTES = 255
MAX_SUMMARY_BYTES = 65_535
MAX_MESSAGE_BYTES = 64 * 1024

_CHECK_TRIES = 3
_CONCLUSIONS: dict[str, Conclusion] = {
    argument: argument for argument in get_args(Conclusion)
}
_OURS = re.compile(
    rf"code-size:(?P<pull>[0-9]{{1,10}}):(?P<conclusion>{'|'.join(_CONCLUSIONS)})"
    r"(?::(?P<verdict>[01]):(?P<merge>[0-9a-f]*):(?P<base>[0-9a-f]*):(?P<run>[0-9]{1,19}):(?P<config>[0-9a-f]*))?"
    r":[0-9a-f]{16}"
)


class Result(NamedTuple):
    """The result of one pull request, as its check run remembers it.

    Fields are empty in checks of older versions.
    """

    pull_number: int
    # of the pull request by itself; the check may say something worse
    conclusion: Conclusion
    has_verdict: bool = False
    merge_sha: str = ""  # the merge commit that was measured
    base_sha: str = ""  # the commit of the base branch that it was merged onto
    run_id: int = 0  # the run that measured it
    config: str = ""  # hexadecimal digits that stand for the configuration

    @property
    def external_id(self) -> str:
        """Return the result as the id of a new check run.

        The id is unique, because an answer of GitHub may get lost.
        """
        facts = (
            int(self.has_verdict),
            self.merge_sha,
            self.base_sha,
            self.run_id,
            self.config,
        )
        fields = (
            "code-size",
            self.pull_number,
            self.conclusion,
            *facts,
            secrets.token_hex(8),
        )
        return ":".join(map(str, fields))


def publish_check(
    hub: Hub, head_sha: str, check: CheckRun, details_url: str, result: Result
) -> None:
    """Create a completed check run on a commit, its texts clipped to GitHub's limits.

    `details_url`: where the check's "Details" lead to; `result`: what the check remembers.
    """
    external_id = result.external_id
    written: WrittenCheck | None = None
    sent = failures = 0
    with explain(f"write the check run on {head_sha[:12]}", "checks: write"):
        while written is None or sent < len(check.annotations):
            output = _output(check, sent)
            try:
                if written is None:
                    created = hub.repo.create_check_run(
                        check.name,
                        head_sha,
                        details_url=details_url,
                        external_id=external_id,
                        status="completed",
                        conclusion=check.conclusion,
                        output=output,
                    )
                    required(created.id, "id")
                    written = created
                else:
                    written.edit(output=output)
                sent += len(output["annotations"])
                failures = 0
            except Exception as error:
                failures += 1
                if failures == _CHECK_TRIES or not in_doubt(error):
                    raise
                time.sleep(hub.backoff_seconds)
                for posted_check in _checks(hub, head_sha, check.name):
                    if posted_check.external_id == external_id and (
                        written is None or posted_check.output.annotations_count > sent
                    ):
                        written = posted_check
                        sent = posted_check.output.annotations_count
                        failures = 0


def results(hub: Hub, head_sha: str, name: str) -> dict[int, Result]:
    """Return pull request → its own result in its newest check on a commit."""
    with explain(f"read the checks of {head_sha[:12]}", "checks: write"):
        # Ids grow with time. What a job or another app calls by the same name has
        # another external id.
        in_order = sorted(_checks(hub, head_sha, name), key=lambda check: check.id)
        matches = [_OURS.fullmatch(check.external_id or "") for check in in_order]
        return {int(match["pull"]): _result(match) for match in matches if match}


def _result(match: re.Match[str]) -> Result:
    number = int(match["pull"])
    conclusion = _CONCLUSIONS[match["conclusion"]]
    if match["run"] is None:
        return Result(number, conclusion)
    return Result(
        number,
        conclusion,
        has_verdict=match["verdict"] == "1",
        merge_sha=match["merge"],
        base_sha=match["base"],
        run_id=int(match["run"]),
        config=match["config"],
    )


def _checks(hub: Hub, head_sha: str, name: str) -> PaginatedList[WrittenCheck]:
    return hub.repo.get_commit(head_sha).get_check_runs(check_name=name, filter="all")


def _output(check: CheckRun, start: int) -> dict[str, Any]:
    def clip(text: str, size_bytes: int) -> str:
        data = text.encode("utf-8", "replace")
        if len(data) <= size_bytes:
            return text
        return data[: size_bytes - len("…".encode())].decode("utf-8", "ignore") + "…"

    return {
        "title": clip(check.title, MAX_TITLE_BYTES),
        "summary": clip(check.summary, MAX_SUMMARY_BYTES),
        "annotations": [
            {
                "path": annotation.path,
                "start_line": annotation.line,
                "end_line": annotation.line,
                "annotation_level": annotation.level,
                "title": clip(annotation.title, MAX_TITLE_BYTES),
                "message": clip(annotation.message, MAX_MESSAGE_BYTES),
            }
            for annotation in check.annotations[start : start + ANNOTATIONS_A_CALL]
        ],
    }
