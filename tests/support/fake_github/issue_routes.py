"""The routes of issues: their comments, labels, label events and reactions."""

from __future__ import annotations

from . import rendering as render
from .replies import Refusal, Reply, Request, page_of
from .routes import known, route
from .state import Comment, State

MAX_COMMENT_CHARACTERS = 65_536


def get_issue(state: State, _request: Request, number: str) -> Reply:
    return Reply(200, render.issue(state, _issue(state, number)))


def _issue(state: State, number: str) -> int:
    """The number of an issue or a pull request; Refusal 404 where there is none."""
    if int(number) not in state.titles and int(number) not in state.pulls:
        raise Refusal(404, "Not Found")
    return int(number)


def list_comments(state: State, request: Request, number: str) -> Reply:
    issue = _issue(state, number)
    found = [one for one in state.comments.values() if one.issue == issue]
    return page_of(request, [render.comment(state, one) for one in found])


def create_comment(state: State, request: Request, number: str) -> Reply:
    one = state.add_comment(_issue(state, number), request.token.login, _checked_body(request))
    return Reply(201, render.comment(state, one))


def _checked_body(request: Request) -> str:
    body: str = request.body.get("body") or ""
    if not body.strip():
        raise Refusal(422, "Validation Failed: body can't be blank")
    if len(body) > MAX_COMMENT_CHARACTERS:
        raise Refusal(422, f"Validation Failed: body is too long (maximum is {MAX_COMMENT_CHARACTERS} characters)")
    return body


def get_comment(state: State, _request: Request, number: str) -> Reply:
    return Reply(200, render.comment(state, known(state.comments, number)))


def update_comment(state: State, request: Request, number: str) -> Reply:
    one: Comment = known(state.comments, number)
    one.body, one.updated_at = _checked_body(request), state.now()
    return Reply(200, render.comment(state, one))


def delete_comment(state: State, _request: Request, number: str) -> Reply:
    del state.comments[known(state.comments, number).id]
    return Reply(204)


def create_reaction(state: State, request: Request, number: str) -> Reply:
    """A second reaction of the same kind by the same user is the first one, answered with 200."""
    given = {"comment_id": known(state.comments, number).id, "content": request.body["content"]}
    given["user"] = request.token.login
    for one in state.reactions:
        if {key: one[key] for key in given} == given:
            return Reply(200, render.reaction(state, one))
    state.reactions.append({"id": state.next_id(), **given})
    return Reply(201, render.reaction(state, state.reactions[-1]))


def list_labels(state: State, request: Request, number: str) -> Reply:
    names = state.labels.get(_issue(state, number), ())
    return page_of(request, [render.label(state, name) for name in names])


def add_labels(state: State, request: Request, number: str) -> Reply:
    """The labels come as a list, or as an object with a list; each is a name or an object with one."""
    issue = _issue(state, number)
    given = request.body["labels"] if isinstance(request.body, dict) else request.body
    for one in given:
        state.change_label(issue, one["name"] if isinstance(one, dict) else one, request.token.login, "labeled")
    return Reply(200, [render.label(state, name) for name in state.labels[issue]])


def list_events(state: State, request: Request, number: str) -> Reply:
    issue = _issue(state, number)
    found = [one for one in state.events if one.issue == issue]
    return page_of(request, [render.label_event(state, one) for one in found])


_SCOPES = "issues pull_requests"
ROUTES = (
    route("GET", r"/issues/(\d+)", _SCOPES, get_issue),
    route("GET", r"/issues/(\d+)/comments", _SCOPES, list_comments),
    route("POST", r"/issues/(\d+)/comments", _SCOPES, create_comment),
    route("GET", r"/issues/comments/(\d+)", _SCOPES, get_comment),
    route("PATCH", r"/issues/comments/(\d+)", _SCOPES, update_comment),
    route("DELETE", r"/issues/comments/(\d+)", _SCOPES, delete_comment),
    route("POST", r"/issues/comments/(\d+)/reactions", _SCOPES, create_reaction),
    route("GET", r"/issues/(\d+)/labels", _SCOPES, list_labels),
    route("POST", r"/issues/(\d+)/labels", _SCOPES, add_labels),
    route("GET", r"/issues/(\d+)/events", _SCOPES, list_events),
)
