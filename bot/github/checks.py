"""The check run of a report, with annotations on the lines concerned.

A check run is created once and its annotations are appended in chunks. Where an answer gets lost, GitHub is asked how
far it came, as sending a chunk twice would show each of its annotations twice.
"""

from __future__ import annotations

import re
import secrets
import time
from typing import Any, get_args

from github.CheckRun import CheckRun as WrittenCheck
from github.PaginatedList import PaginatedList

from bot.core.publication import CheckRun, Conclusion
from bot.system.hub import Hub, explain, in_doubt, required

# "REST API endpoints for check runs": output object and its annotations objects.
ANNOTATIONS_A_CALL = 50
MAX_TITLE_CHARACTERS = 255
MAX_SUMMARY_CHARACTERS = 65_535
MAX_MESSAGE_BYTES = 64 * 1024

_TRIES = 3
_CONCLUSIONS: dict[str, Conclusion] = {one: one for one in get_args(Conclusion)}
_OURS = re.compile(rf"code-size:([0-9]{{1,10}}):({'|'.join(_CONCLUSIONS)}):[0-9a-f]{{16}}")


def publish_check(
    hub: Hub, head_sha: str, check: CheckRun, details_url: str, *, pull_number: int = 0, own: Conclusion | None = None
) -> str:
    """Creates a completed check run on a commit, and returns the address of its page.

    Texts beyond GitHub's limits are clipped.

    Args:
        details_url: where the check's "Details" lead to.
        pull_number: of the pull request that it is the result of.
        own: what that result is by itself, where the check says something else.

    Raises:
        NetworkError: the check run cannot be written.
    """
    # Tells this publication from all others, so that it can be found after a lost answer.
    external_id = f"code-size:{pull_number}:{own or check.conclusion}:{secrets.token_hex(8)}"
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
                sent, failures = sent + len(output["annotations"]), 0
            except Exception as error:
                failures += 1
                if failures == _TRIES or not in_doubt(error):
                    raise
                time.sleep(hub.backoff_seconds)
                for one in _checks(hub, head_sha, check.name):
                    if one.external_id == external_id and (written is None or one.output.annotations_count > sent):
                        written, sent, failures = one, one.output.annotations_count, 0
        return written.html_url or ""


def results(hub: Hub, head_sha: str, name: str) -> dict[int, Conclusion]:
    """Pull request → its own result in its newest check of this name on a commit; raises NetworkError."""
    with explain(f"read the checks of {head_sha[:12]}", "checks: write"):
        # Ids grow with time. What a job or another app calls by the same name has another external id.
        in_order = sorted(_checks(hub, head_sha, name), key=lambda one: one.id)
        matches = [_OURS.fullmatch(one.external_id or "") for one in in_order]
        return {int(match[1]): _CONCLUSIONS[match[2]] for match in matches if match}


def _checks(hub: Hub, head_sha: str, name: str) -> PaginatedList[WrittenCheck]:
    return hub.repo.get_commit(head_sha).get_check_runs(check_name=name, filter="all")


def _output(check: CheckRun, start: int) -> dict[str, Any]:
    return {
        "title": _clip(check.title, MAX_TITLE_CHARACTERS),
        "summary": _clip_bytes(check.summary, MAX_SUMMARY_CHARACTERS),  # bytes: the stricter of the two readings
        "annotations": [
            {
                "path": annotation.path,
                "start_line": annotation.line,
                "end_line": annotation.line,
                "annotation_level": annotation.level,
                "title": _clip(annotation.title, MAX_TITLE_CHARACTERS),
                "message": _clip_bytes(annotation.message, MAX_MESSAGE_BYTES),
            }
            for annotation in check.annotations[start : start + ANNOTATIONS_A_CALL]
        ],
    }


def _clip(text: str, characters: int) -> str:
    return text if len(text) <= characters else f"{text[: characters - 1]}…"


def _clip_bytes(text: str, size_bytes: int) -> str:
    data = text.encode("utf-8", "replace")
    if len(data) <= size_bytes:
        return text
    return data[: size_bytes - len("…".encode())].decode("utf-8", "ignore") + "…"
