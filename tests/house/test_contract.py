"""The contract check finds what GitHub's description does not allow.

What it allows is in the traffic of each story.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from api_description import skeleton
from contract import violations

_REPO = "/repos/octo/repo"
_COMMENT = skeleton("issue-comment", user=None)


def exchange(method: str, path: str, **parts: Any) -> dict[str, Any]:
    """A harmless exchange with `parts` over it; bodies as objects."""
    bodies = {
        key: json.dumps(parts.pop(key)) if key in parts else ""
        for key in ("req_body", "res_body")
    }
    defaults = {
        "query": "",
        "req_headers": {},
        "res_headers": {},
        "status": 200,
        **bodies,
    }
    return {"method": method, "path": _REPO + path, **defaults, **parts}


def post_comment(**parts: Any) -> dict[str, Any]:
    fields = {"req_body": {"body": "hi"}, "status": 201, "res_body": _COMMENT, **parts}
    return exchange("POST", "/issues/7/comments", **fields)


def _pull_of(**head: Any) -> dict[str, Any]:
    pull = skeleton("pull-request")
    return {**pull, "head": {**pull["head"], **head}}


def check_run(**body: Any) -> dict[str, Any]:
    return exchange(
        "POST",
        "/check-runs",
        req_body={"name": "n", "head_sha": "a", **body},
        status=403,
    )


def accepted(request: dict[str, Any]) -> dict[str, Any]:
    """The same request, let through by the server, with the answer's check left out."""
    return {**request, "status": 201, "injected": True}


VIOLATIONS = {
    "no such operation": exchange("GET", "/nonsense"),
    "unknown query parameter pages": exchange(
        "GET", "/issues/7/comments", query="pages=2", res_body=[]
    ),
    "query per_page: 'many' is not of type 'integer'": exchange(
        "GET", "/pulls", query="per_page=many", res_body=[]
    ),
    "path issue_number: 'seven' is not of type 'integer'": exchange(
        "GET", "/issues/seven/comments", res_body=[]
    ),
    "unknown body key text": post_comment(req_body={"body": "hi", "text": "hi"}),
    "body: 'body' is a required property": post_comment(req_body={}),
    "the body is not JSON": {**post_comment(), "req_body": "{"},
    "body.conclusion: 'good' is not one of": accepted(check_run(conclusion="good")),
    "response: 'id' is a required property": post_comment(res_body={"body": "hi"}),
    "response.0.created_at: 'soon' is not a 'date-time'": exchange(
        "GET", "/issues/7/comments", res_body=[{**_COMMENT, "created_at": "soon"}]
    ),
    "response.head.sha: None": exchange("GET", "/pulls/7", res_body=_pull_of(sha=None)),
    "status 409 is not described": post_comment(status=409, res_body={}),
    "has a body, none is described": exchange(
        "DELETE", "/issues/comments/1", status=204, res_body={}
    ),
}


@pytest.mark.parametrize("message", VIOLATIONS)
def test_caught(message: str) -> None:
    messages = violations([post_comment(), VIOLATIONS[message]])
    assert any(message in line for line in messages), messages
    assert all(line.startswith("exchange 2: ") for line in messages)
