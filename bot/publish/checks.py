"""The check run of a report, with annotations on the lines concerned.

A check run is created once and its annotations are appended in chunks. Where an answer gets lost, GitHub is asked how
far it came, as sending a chunk twice would show each of its annotations twice.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

from bot.core.values.publication import Annotation, CheckRun, Conclusion
from bot.publish.hub import PAGE_ITEMS, Hub, explain, in_doubt
from bot.publish.shapes import at, number, rows, text_or_none

# "REST API endpoints for check runs": output object and its annotations objects.
ANNOTATIONS_A_CALL = 50
MAX_TITLE_CHARACTERS = 255
MAX_SUMMARY_CHARACTERS = 65_535
MAX_MESSAGE_BYTES = 64 * 1024

_TRIES = 3
_OURS_SAYS: dict[str, Conclusion] = {one: one for one in get_args(Conclusion)}
_OURS = re.compile(rf"code-size:([0-9]{{1,10}}):({'|'.join(_OURS_SAYS)}):[0-9a-f]{{16}}")


@dataclass(frozen=True, slots=True)
class _Publication:
    """One check run on its way.

    Attributes:
        external_id: tells this publication from all others, so that it can be found after a lost answer.
    """

    hub: Hub
    head_sha: str
    check: CheckRun
    details_url: str
    external_id: str


@dataclass(frozen=True, slots=True)
class _Stored:
    """What GitHub has of it."""

    id: int
    url: str
    annotations: int


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
    external_id = f"code-size:{pull_number}:{own or check.conclusion}:{secrets.token_hex(8)}"
    task = _Publication(hub, head_sha, check, details_url, external_id)
    with explain(f"write the check run on {head_sha[:12]}", "checks: write"):
        stored = _once(task, lambda known: known or _create(task), None)
        while stored and stored.annotations < len(check.annotations):
            stored = _once(task, lambda known: _append(task, known), stored)
    return stored.url if stored else ""


def results(hub: Hub, head_sha: str, name: str) -> dict[int, Conclusion]:
    """Pull request → its own result in its newest check of this name on a commit.

    Raises:
        NetworkError: the checks cannot be read.
    """
    with explain(f"read the checks of {head_sha[:12]}", "checks: write"):
        listed = hub.listed(f"commits/{head_sha}/check-runs", "check_runs", check_name=name, filter="all")
        told = [(number(run, "id"), _OURS.fullmatch(text_or_none(run, "external_id") or "")) for run in listed]
    # Ids grow with time. What a job or another app calls by the same name has another external id.
    return {int(match[1]): _OURS_SAYS[match[2]] for _, match in sorted(told, key=lambda one: one[0]) if match}


def _once(
    task: _Publication, step: Callable[[_Stored | None], _Stored | None], known: _Stored | None
) -> _Stored | None:
    """One step; after a lost answer what GitHub has decides whether it is taken again."""
    before = known
    for tries_left in reversed(range(_TRIES)):
        try:
            return step(known)
        except Exception as error:
            if not tries_left or not in_doubt(error):
                raise
        time.sleep(task.hub.backoff_seconds)
        known = _look(task)
        if known and (before is None or known.annotations > before.annotations):
            return known
    return known


def _create(task: _Publication) -> _Stored:
    body = {
        "name": task.check.name,
        "head_sha": task.head_sha,
        "details_url": task.details_url,
        "external_id": task.external_id,
        "status": "completed",
        "conclusion": task.check.conclusion,
        "output": _output(task.check, 0),
    }
    answer = task.hub.call("POST", "check-runs", body)
    sent = len(task.check.annotations[:ANNOTATIONS_A_CALL])
    return _Stored(number(answer, "id"), text_or_none(answer, "html_url") or "", sent)


def _append(task: _Publication, known: _Stored | None) -> _Stored | None:
    if known is None:
        return None
    chunk = _output(task.check, known.annotations)
    number(task.hub.call("PATCH", f"check-runs/{known.id}", {"output": chunk}), "id")
    return _Stored(known.id, known.url, known.annotations + len(chunk["annotations"]))


def _look(task: _Publication) -> _Stored | None:
    """This publication as GitHub has it; None where it has not."""
    place, name = f"commits/{task.head_sha}/check-runs", task.check.name
    listed = task.hub.call("GET", place, check_name=name, filter="all", per_page=PAGE_ITEMS)
    for run in rows(listed, "check_runs"):
        if at(run, "external_id") == task.external_id:
            count = number(run, "output.annotations_count")
            return _Stored(number(run, "id"), text_or_none(run, "html_url") or "", count)
    return None


def _output(check: CheckRun, start: int) -> dict[str, Any]:
    chunk = check.annotations[start : start + ANNOTATIONS_A_CALL]
    return {
        "title": _clip(check.title, MAX_TITLE_CHARACTERS),
        "summary": _clip_bytes(check.summary, MAX_SUMMARY_CHARACTERS),  # bytes: the stricter of the two readings
        "annotations": [_annotation(annotation) for annotation in chunk],
    }


def _annotation(annotation: Annotation) -> dict[str, Any]:
    return {
        "path": annotation.path,
        "start_line": annotation.line,
        "end_line": annotation.line,
        "annotation_level": annotation.level,
        "title": _clip(annotation.title, MAX_TITLE_CHARACTERS),
        "message": _clip_bytes(annotation.message, MAX_MESSAGE_BYTES),
    }


def _clip(text: str, characters: int) -> str:
    return text if len(text) <= characters else f"{text[: characters - 1]}…"


def _clip_bytes(text: str, size_bytes: int) -> str:
    data = text.encode("utf-8", "replace")
    if len(data) <= size_bytes:
        return text
    return data[: size_bytes - len("…".encode())].decode("utf-8", "ignore") + "…"
