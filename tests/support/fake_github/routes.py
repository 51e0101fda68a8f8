"""What a route is, and the routes of the repository, users, pulls, commits and checks."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from api_description import skeleton

from . import rendering as render
from .replies import Refusal, Reply, Request, page_of
from .state import CheckRun, State

Handler = Callable[..., Reply]

MAX_SUMMARY_CHARACTERS = 65_535
MAX_ANNOTATIONS_PER_CALL = 50


@dataclass(frozen=True, slots=True)
class Route:
    """`pattern` is the path below the repository; `scopes` are the permissions of which one must allow the method."""

    method: str
    pattern: re.Pattern[str]
    scopes: tuple[str, ...]
    handler: Handler


def route(method: str, pattern: str, scopes: str, handler: Handler) -> Route:
    return Route(method, re.compile(pattern), tuple(scopes.split()), handler)


def get_repository(state: State, _request: Request) -> Reply:
    return Reply(200, render.repository(state, state.repo, "full-repository"))


def get_user(state: State, request: Request) -> Reply:
    """Only a user has one: the token of a workflow belongs to an installation."""
    if request.token.kind != "user":
        raise Refusal(403, "Resource not accessible by integration")
    known = render.user(state, request.token.login)
    return Reply(200, skeleton("public-user", **{**known, "user_view_type": "public"}))


def get_permission(state: State, _request: Request, login: str) -> Reply:
    if login not in state.users:
        raise Refusal(404, f"{login} is not a user")
    return Reply(200, render.permission(state, login))


def list_pulls(state: State, request: Request) -> Reply:
    """Newest first; a `head` without an owner filters nothing, as on GitHub."""
    wanted, head, base = (request.query.get(key, "") for key in ("state", "head", "base"))
    found = [
        one
        for one in sorted(state.pulls.values(), key=lambda one: -one.number)
        if (wanted == "all" or one.state == (wanted or "open"))
        and (not base or one.base_ref == base)
        and (":" not in head or f"{(one.head_repo or '').partition('/')[0]}:{one.head_branch}" == head)
    ]
    return page_of(request, [render.pull(state, one) for one in found])


def get_pull(state: State, _request: Request, number: str) -> Reply:
    return Reply(200, render.pull(state, known(state.pulls, number), "pull-request"))


def list_pull_files(state: State, request: Request, number: str) -> Reply:
    one = known(state.pulls, number)
    return page_of(request, [render.pull_file(state, one, name) for name in one.files])


def known(things: dict[int, render.Thing], number: str) -> render.Thing:
    """The thing of that number; Refusal 404 where there is none."""
    if int(number) not in things:
        raise Refusal(404, "Not Found")
    return things[int(number)]


def get_commit(state: State, _request: Request, ref: str) -> Reply:
    if not state.commits:
        raise Refusal(409, "Git Repository is empty.")
    sha = state.commit_of(ref)
    if sha is None:
        raise Refusal(422, f"No commit found for SHA: {ref}")
    return Reply(200, render.commit(state, sha))


def list_pulls_of_commit(state: State, request: Request, sha: str) -> Reply:
    """Merged ones whose merge it is; open ones are named too, where it is their head."""
    of_commit = [one for one in state.pulls.values() if sha == (one.merge_sha if one.merged_at else one.head_sha)]
    return page_of(request, [render.pull(state, one) for one in of_commit])


def compare(state: State, request: Request, base: str, head: str) -> Reply:
    """`ahead_by` and `behind_by` count the known commits of one side that the other lacks."""
    shas = state.commit_of(base), state.commit_of(head)
    if shas[0] is None or shas[1] is None:
        raise Refusal(404, "Not Found")
    before, after = state.ancestors(shas[0]), state.ancestors(shas[1])
    shared = next((sha for sha in after if sha in before), None)
    if shared is None:
        raise Refusal(404, f"No common ancestor between {base} and {head}.")
    ahead = [sha for sha in reversed(after) if sha not in before]
    behind = [sha for sha in before if sha not in after]
    return Reply(200, _comparison(state, (shas[0], shared), ahead, len(behind), request))


def _comparison(state: State, ends: tuple[str, str], ahead: list[str], behind: int, request: Request) -> render.Json:
    status = {(True, True): "diverged", (True, False): "ahead", (False, True): "behind"}
    base_commit, merge_base_commit = (render.commit(state, sha) for sha in ends)
    return skeleton(
        "commit-comparison",
        url=request.url,
        status=status.get((bool(ahead), behind > 0), "identical"),
        ahead_by=len(ahead),
        behind_by=behind,
        total_commits=len(ahead),
        base_commit=base_commit,
        merge_base_commit=merge_base_commit,
        commits=page_of(request, [render.commit(state, sha) for sha in ahead]).body,
        files=[],
    )


def create_check_run(state: State, request: Request) -> Reply:
    if request.token.kind != "installation":
        raise Refusal(403, "You must authenticate via a GitHub App.")
    if state.commit_of(request.body["head_sha"]) is None:
        raise Refusal(422, f"No commit found for SHA: {request.body['head_sha']}")
    fields = {"status": "queued", "started_at": state.now()}
    one = CheckRun(state.next_id(), request.token.login, fields)
    _merge_check_run(state, one, request.body)
    state.checks[one.id] = one
    return Reply(201, render.check_run(state, one))


def update_check_run(state: State, request: Request, number: str) -> Reply:
    one = known(state.checks, number)
    _merge_check_run(state, one, request.body)
    return Reply(200, render.check_run(state, one))


def _merge_check_run(state: State, one: CheckRun, body: render.Json) -> None:
    """The call's fields over the earlier ones; its annotations behind the earlier ones."""
    output = dict(body.get("output") or {})
    annotations = output.pop("annotations", [])
    if len(annotations) > MAX_ANNOTATIONS_PER_CALL:
        raise Refusal(422, f"Invalid request. No more than {MAX_ANNOTATIONS_PER_CALL} items are allowed.")
    if any(len(output.get(key) or "") > MAX_SUMMARY_CHARACTERS for key in ("summary", "text")):
        raise Refusal(422, f"Invalid request. Only {MAX_SUMMARY_CHARACTERS} characters are allowed.")
    one.annotations += annotations
    one.fields |= {**body, **({"output": {**one.fields.get("output", {}), **output}} if "output" in body else {})}
    if "conclusion" in body:
        one.fields["status"] = "completed"
        one.fields.setdefault("completed_at", state.now())


def list_check_runs(state: State, request: Request, ref: str) -> Reply:
    """Of each name the latest, unless `filter` is all."""
    sha, name = state.commit_of(ref) or ref, request.query.get("check_name")
    found = [one for one in state.checks.values() if one.fields["head_sha"] == sha]
    named = [one for one in found if name in (None, one.fields["name"])]
    latest = named if request.query.get("filter") == "all" else {one.fields["name"]: one for one in named}.values()
    return page_of(request, [render.check_run(state, one) for one in latest], "check_runs")


def list_annotations(state: State, request: Request, number: str) -> Reply:
    one = known(state.checks, number)
    return page_of(request, [render.annotation(state, one, given) for given in one.annotations])


ROUTES = (
    route("GET", "", "metadata", get_repository),
    route("GET", r"/collaborators/([^/]+)/permission", "metadata", get_permission),
    route("GET", r"/pulls", "pull_requests", list_pulls),
    route("GET", r"/pulls/(\d+)", "pull_requests", get_pull),
    route("GET", r"/pulls/(\d+)/files", "pull_requests", list_pull_files),
    route("GET", r"/compare/(.+?)\.\.\.(.+)", "contents", compare),
    route("POST", r"/check-runs", "checks", create_check_run),
    route("PATCH", r"/check-runs/(\d+)", "checks", update_check_run),
    route("GET", r"/check-runs/(\d+)/annotations", "checks", list_annotations),
    route("GET", r"/commits/(.+)/check-runs", "checks", list_check_runs),
    route("GET", r"/commits/([0-9a-f]+)/pulls", "pull_requests", list_pulls_of_commit),
    route("GET", r"/commits/(.+)", "contents", get_commit),
)
