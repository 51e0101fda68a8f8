"""Write and read the check run of a report, with annotations on the lines concerned.

A check run is created once, and its annotations are appended in chunks. If an answer
gets lost, GitHub is asked how many annotations it has: a chunk that is sent twice would
show each of its annotations twice.
"""

from __future__ import annotations

import re
import secrets
from typing import Any, NamedTuple, get_args

from bot.core.check_run import CheckRun, Conclusion
from bot.github.doubt import Doubt
from bot.github.rows import CheckRuns, WrittenCheck
from bot.system.hub import Hub
from bot.system.refusals import explain

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
    sent = 0
    doubt = Doubt(hub, _CHECK_TRIES)
    with explain(f"write the check run on {head_sha[:12]}", "checks: write"):
        while written is None or sent < len(check.annotations):
            output = _output(check, sent)
            try:
                if written is None:
                    written = hub.write(
                        "POST",
                        WrittenCheck,
                        "check-runs",
                        name=check.name,
                        head_sha=head_sha,
                        details_url=details_url,
                        external_id=external_id,
                        status="completed",
                        conclusion=check.conclusion,
                        output=output,
                    )
                else:
                    place = f"check-runs/{written.id}"
                    hub.write("PATCH", WrittenCheck, place, output=output)
                sent += len(output["annotations"])
                doubt.forget()
            except Exception as error:
                doubt.wait(error)
                for posted_check in _checks(hub, head_sha, check.name):
                    if posted_check.external_id == external_id and (
                        written is None or posted_check.output.annotations_count > sent
                    ):
                        written = posted_check
                        sent = posted_check.output.annotations_count
                        doubt.forget()


def results(hub: Hub, head_sha: str, name: str) -> dict[int, Result]:
    """Return pull request → its own result in its newest check on a commit."""
    with explain(f"read the checks of {head_sha[:12]}", "checks: write"):
        # Ids grow with time. What a job or another app calls by the same name has
        # another external id.
        in_order = sorted(_checks(hub, head_sha, name), key=lambda check: check.id)
    own_results = {}
    for check in in_order:
        match = _OURS.fullmatch(check.external_id or "")
        if match:
            own_results[int(match["pull"])] = _result(match)
    return own_results


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


def _checks(hub: Hub, head_sha: str, name: str) -> list[WrittenCheck]:
    place = f"commits/{head_sha}/check-runs"
    found = list[WrittenCheck]()
    for page in hub.pages(CheckRuns, place, check_name=name, filter="all"):
        found += page.check_runs
    return found


def _output(check: CheckRun, start: int) -> dict[str, Any]:
    def clip(text: str, size_bytes: int) -> str:
        data = text.encode("utf-8", "replace")
        if len(data) <= size_bytes:
            return text
        return data[: size_bytes - len("…".encode())].decode("utf-8", "ignore") + "…"

    annotations = []
    for annotation in check.annotations[start : start + ANNOTATIONS_A_CALL]:
        annotations.append(
            {
                "path": annotation.path,
                "start_line": annotation.line,
                "end_line": annotation.line,
                "annotation_level": annotation.level,
                "title": clip(annotation.title, MAX_TITLE_BYTES),
                "message": clip(annotation.message, MAX_MESSAGE_BYTES),
            }
        )
    return {
        "title": clip(check.title, MAX_TITLE_BYTES),
        "summary": clip(check.summary, MAX_SUMMARY_BYTES),
        "annotations": annotations,
    }
