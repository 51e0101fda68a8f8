"""The API of the fake GitHub: one table of routes, each with its limits and the objects that it answers with.

An object has what the description requires of it, filled in by type, and the state over
that.
"""

from __future__ import annotations

import re
import subprocess
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlencode

from api_description import skeleton

from .state import Artifact, CheckRun, Comment, Issue, LabelEvent, Pull, State, Token

Json = dict[str, Any]
Thing = TypeVar("Thing")

MAX_COMMENT_CHARACTERS = 65_536
MAX_SUMMARY_CHARACTERS = 65_535
MAX_ANNOTATIONS_PER_CALL = 50
_DEFAULT_PAGE = 30
_MAX_PAGE = 100
_ASSOCIATIONS = {"admin": "OWNER", "write": "COLLABORATOR", "read": "CONTRIBUTOR"}
_ISSUES = "issues pull_requests"


@dataclass(frozen=True, slots=True)
class Request:
    """`path` is below the API root; `url` is its address without the query."""

    method: str
    path: str
    url: str
    query: Mapping[str, str]
    body: Any
    token: Token


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: `body` is JSON, or None for none."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Refusal(Exception):
    """An answer of 4xx in GitHub's form."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.reply = Reply(status, error(message))


def error(message: str) -> dict[str, str]:
    return {"message": message, "documentation_url": "https://docs.github.com/rest"}


Handler = Callable[..., Reply]
ROUTES: list[tuple[str, re.Pattern[str], Sequence[str], Handler]] = []
"""Method, path below the repository, permissions of which one must allow the method, and what answers."""


def route(method: str, pattern: str, scopes: str) -> Callable[[Handler], Handler]:
    def add(handler: Handler) -> Handler:
        ROUTES.append((method, re.compile(pattern), scopes.split(), handler))
        return handler

    return add


def answered(state: State, request: Request) -> Reply:
    """The answer of the first route that fits; a public repository can be read with any token."""
    if (request.method, request.path) == ("GET", "/user"):
        return get_user(state, request)
    root = f"/repos/{state.repo}"
    below = (
        request.path[len(root) :]
        if request.path.lower().startswith(root.lower())
        else "/elsewhere"
    )
    for method, pattern, scopes, handler in ROUTES:
        match = pattern.fullmatch(below)
        if match and method == request.method:
            if not (method == "GET" or request.token.may(scopes, "write")):
                raise Refusal(403, "Resource not accessible by integration")
            return handler(state, request, *match.groups())
    raise Refusal(404, "Not Found")


def known(things: dict[int, Thing], number: str) -> Thing:
    """The thing of that number; Refusal 404 where there is none."""
    if int(number) not in things:
        raise Refusal(404, "Not Found")
    return things[int(number)]


def page_of(request: Request, items: Sequence[Any], envelope: str = "") -> Reply:
    """The page asked for.

    With `envelope`, in an object with `total_count` and the items under that name.
    """
    numbers = {
        name: int(text) for name, text in request.query.items() if text.isdigit()
    }
    size = min(_MAX_PAGE, max(1, numbers.get("per_page", _DEFAULT_PAGE)))
    page = max(1, numbers.get("page", 1))
    shown_items = list(items[(page - 1) * size : page * size])
    last = max(1, -(-len(items) // size))
    links = {"prev": page - 1, "first": 1} if page > 1 else {}
    links |= {"next": page + 1, "last": last} if page < last else {}
    texts = [
        f'<{request.url}?{urlencode({**request.query, "page": number})}>; rel="{rel}"'
        for rel, number in links.items()
    ]
    body = (
        {"total_count": len(items), envelope: shown_items} if envelope else shown_items
    )
    return Reply(200, body, {"Link": ", ".join(texts)} if texts else {})


def stable_id(name: str) -> int:
    """An id for a thing that is known by name only."""
    return zlib.crc32(name.encode())


# The repository and its users


def user(state: State, login: str) -> Json:
    links = {
        "url": f"{state.url}/users/{login}",
        "html_url": f"https://github.com/{login}",
    }
    kind = "Bot" if login.endswith("[bot]") else "User"
    return skeleton("simple-user", login=login, id=stable_id(login), type=kind, **links)


def get_user(state: State, request: Request) -> Reply:
    """Only a user has one: the token of a workflow belongs to an installation."""
    if request.token.kind != "user":
        raise Refusal(403, "Resource not accessible by integration")
    return Reply(
        200,
        skeleton(
            "public-user",
            **{**user(state, request.token.login), "user_view_type": "public"},
        ),
    )


def repository(
    state: State, full_name: str, schema: str = "minimal-repository"
) -> Json:
    owner, _, name = full_name.partition("/")
    return skeleton(
        schema,
        id=stable_id(full_name),
        name=name,
        full_name=full_name,
        owner=user(state, owner),
        fork=full_name != state.repo,
        default_branch="main",
        url=f"{state.url}/repos/{full_name}",
        html_url=f"https://github.com/{full_name}",
    )


@route("GET", r"/collaborators/([^/]+)/permission", "metadata")
def get_permission(state: State, _request: Request, login: str) -> Reply:
    if login not in state.users:
        raise Refusal(404, f"{login} is not a user")
    level = state.users[login]
    person = skeleton("nullable-collaborator", role_name=level, **user(state, login))
    return Reply(200, {"permission": level, "role_name": level, "user": person})


# Pull requests


def pull(state: State, pull_request: Pull, schema: str = "pull-request-simple") -> Json:
    def end(repo: str | None, branch: str, sha: str) -> Json:
        owner = (repo or "ghost/gone").partition("/")[0]
        whole = repository(state, repo, "repository") if repo else None
        return {
            "label": f"{owner}:{branch}",
            "ref": branch,
            "sha": sha,
            "user": user(state, owner),
            "repo": whole,
        }

    issue_url = f"{state.root}/issues/{pull_request.number}"
    mergeable = (
        {"mergeable": pull_request.merge_sha is not None}
        if schema == "pull-request"
        else {}
    )
    return skeleton(
        schema,
        id=stable_id(f"pull {pull_request.number}"),
        number=pull_request.number,
        state=pull_request.state,
        locked=pull_request.locked,
        title=pull_request.title,
        user=user(state, pull_request.login),
        author_association=_association(state, pull_request.login),
        url=f"{state.root}/pulls/{pull_request.number}",
        issue_url=issue_url,
        comments_url=f"{issue_url}/comments",
        html_url=f"https://github.com/{state.repo}/pull/{pull_request.number}",
        head=end(
            pull_request.head_repo, pull_request.head_branch, pull_request.head_sha
        ),
        base=end(state.repo, pull_request.base_ref, pull_request.base_sha),
        merge_commit_sha=pull_request.merge_sha,
        created_at=pull_request.created_at,
        merged_at=pull_request.merged_at,
        labels=[
            label(state, name) for name in state.labels.get(pull_request.number, ())
        ],
        **mergeable,
    )


@route("GET", r"/pulls", "pull_requests")
def list_pulls(state: State, request: Request) -> Reply:
    """Newest first; a `head` without an owner filters nothing, as on GitHub."""
    wanted_state, head, base = (
        request.query.get(key, "") for key in ("state", "head", "base")
    )
    pulls = [
        pull
        for pull in sorted(state.pulls.values(), key=lambda pull: -pull.number)
        if (wanted_state == "all" or pull.state == (wanted_state or "open"))
        and (not base or pull.base_ref == base)
        and (
            ":" not in head
            or f"{(pull.head_repo or '').partition('/')[0]}:{pull.head_branch}" == head
        )
    ]
    return page_of(request, [pull(state, stored_pull) for stored_pull in pulls])


@route("GET", r"/pulls/(\d+)", "pull_requests")
def get_pull(state: State, _request: Request, number: str) -> Reply:
    return Reply(200, pull(state, known(state.pulls, number), "pull-request"))


@route("GET", r"/commits/([0-9a-f]+)/pulls", "pull_requests")
def list_pulls_of_commit(state: State, request: Request, sha: str) -> Reply:
    """The merged pull request that brought the commit, and open ones that have it as their head."""
    if sha not in state.commits:
        raise Refusal(422, f"No commit found for SHA: {sha}")
    pulls = [
        pull for pull in state.pulls.values() if sha in (pull.merge_sha, pull.head_sha)
    ]
    return page_of(request, [pull(state, stored_pull) for stored_pull in pulls])


# Issues


def issue(state: State, stored_issue: Issue) -> Json:
    url = f"{state.root}/issues/{stored_issue.number}"
    return skeleton(
        "issue",
        id=stable_id(f"issue {stored_issue.number}"),
        number=stored_issue.number,
        title=stored_issue.title,
        body=stored_issue.body,
        state=stored_issue.state,
        state_reason=stored_issue.state_reason,
        user=user(state, stored_issue.login),
        author_association=_association(state, stored_issue.login),
        created_at=stored_issue.created_at,
        updated_at=stored_issue.created_at,
        url=url,
        html_url=f"https://github.com/{state.repo}/issues/{stored_issue.number}",
    )


@route("GET", r"/issues", "issues")
def list_issues(state: State, request: Request) -> Reply:
    """Newest first; open ones, unless `state` says otherwise; `creator` is a login."""
    wanted_state = request.query.get("state", "open")
    creator = request.query.get("creator", "").casefold()
    newest_first = sorted(state.issues.values(), key=lambda entry: -entry.number)
    named = [entry for entry in newest_first if creator in ("", entry.login.casefold())]
    return page_of(
        request,
        [
            issue(state, entry)
            for entry in named
            if wanted_state in ("all", entry.state)
        ],
    )


def _require_issues(state: State) -> None:
    if not state.has_issues:
        raise Refusal(410, "Issues has been disabled in this repository.")


@route("POST", r"/issues", "issues")
def create_issue(state: State, request: Request) -> Reply:
    _require_issues(state)
    return Reply(
        201,
        issue(
            state,
            state.add_issue(
                request.token.login, request.body["title"], _checked_body(request)
            ),
        ),
    )


@route("PATCH", r"/issues/(\d+)", "issues")
def update_issue(state: State, request: Request, number: str) -> Reply:
    stored_issue = known(state.issues, number)
    if "body" in request.body:
        stored_issue.body = _checked_body(request)
    stored_issue.title = request.body.get("title", stored_issue.title)
    stored_issue.state = request.body.get("state", stored_issue.state)
    stored_issue.state_reason = request.body.get(
        "state_reason", stored_issue.state_reason
    )
    return Reply(200, issue(state, stored_issue))


def comment(state: State, stored_comment: Comment) -> Json:
    url = f"{state.root}/issues/comments/{stored_comment.id}"
    return skeleton(
        "issue-comment",
        id=stored_comment.id,
        node_id=f"IC_{stored_comment.id}",
        body=stored_comment.body,
        user=user(state, stored_comment.login),
        author_association=_association(state, stored_comment.login),
        created_at=stored_comment.created_at,
        updated_at=stored_comment.updated_at,
        url=url,
        issue_url=f"{state.root}/issues/{stored_comment.issue}",
        html_url=(
            f"https://github.com/{state.repo}/issues/{stored_comment.issue}#issuecomment-{stored_comment.id}"
        ),
    )


def _association(state: State, login: str) -> str:
    return _ASSOCIATIONS.get(state.users.get(login, "none"), "NONE")


@route("GET", r"/issues/(\d+)/comments", _ISSUES)
def list_comments(state: State, request: Request, number: str) -> Reply:
    known(state.pulls, number)
    return page_of(
        request,
        [
            comment(state, stored_comment)
            for stored_comment in state.comments.values()
            if stored_comment.issue == int(number)
        ],
    )


@route("POST", r"/issues/(\d+)/comments", _ISSUES)
def create_comment(state: State, request: Request, number: str) -> Reply:
    if known(state.pulls, number).locked:
        raise Refusal(403, "Unable to create comment because issue is locked.")
    stored_comment = state.add_comment(
        int(number), request.token.login, _checked_body(request)
    )
    return Reply(201, comment(state, stored_comment))


def _checked_body(request: Request) -> str:
    body: str = request.body.get("body") or ""
    if not body.strip():
        raise Refusal(422, "Validation Failed: body can't be blank")
    if len(body) > MAX_COMMENT_CHARACTERS:
        raise Refusal(
            422,
            f"Validation Failed: body is too long (maximum is {MAX_COMMENT_CHARACTERS}"
            " characters)",
        )
    return body


@route("GET", r"/issues/comments/(\d+)", _ISSUES)
def get_comment(state: State, _request: Request, number: str) -> Reply:
    return Reply(200, comment(state, known(state.comments, number)))


@route("PATCH", r"/issues/comments/(\d+)", _ISSUES)
def update_comment(state: State, request: Request, number: str) -> Reply:
    stored_comment = known(state.comments, number)
    stored_comment.body, stored_comment.updated_at = _checked_body(request), state.now()
    return Reply(200, comment(state, stored_comment))


@route("DELETE", r"/issues/comments/(\d+)", _ISSUES)
def delete_comment(state: State, _request: Request, number: str) -> Reply:
    del state.comments[known(state.comments, number).id]
    return Reply(204)


def label(state: State, name: str) -> Json:
    # in a list of pull requests a description is never null
    fixed = {
        "color": "ededed",
        "description": "",
    }
    return skeleton(
        "label",
        id=stable_id(f"label {name}"),
        name=name,
        url=f"{state.root}/labels/{name}",
        **fixed,
    )


@route("GET", r"/issues/(\d+)/labels", _ISSUES)
def list_labels(state: State, request: Request, number: str) -> Reply:
    known(state.pulls, number)
    return page_of(
        request, [label(state, name) for name in state.labels.get(int(number), ())]
    )


@route("GET", r"/issues/(\d+)/events", _ISSUES)
def list_events(state: State, request: Request, number: str) -> Reply:
    known(state.pulls, number)
    return page_of(
        request,
        [
            label_event(state, event)
            for event in state.events
            if event.issue == int(number)
        ],
    )


def label_event(state: State, stored_event: LabelEvent) -> Json:
    # the plainest of them
    schema = (
        "labeled-issue-event"
        if stored_event.label
        else "converted-note-to-issue-issue-event"
    )
    named = (
        {"label": {"name": stored_event.label, "color": "ededed"}}
        if stored_event.label
        else {}
    )
    about = {
        "id": stored_event.id,
        "event": stored_event.event,
        "actor": user(state, stored_event.login),
        "created_at": stored_event.created_at,
    }
    return skeleton(
        schema, url=f"{state.root}/issues/events/{stored_event.id}", **about, **named
    )


# The artifacts of workflow runs


def artifact(state: State, stored_artifact: Artifact) -> Json:
    url = f"{state.root}/actions/artifacts/{stored_artifact.id}"
    return skeleton(
        "artifact",
        id=stored_artifact.id,
        name=stored_artifact.name,
        size_in_bytes=len(stored_artifact.zip_bytes),
        url=url,
        archive_download_url=f"{url}/zip",
        expired=stored_artifact.expired,
        created_at=stored_artifact.created_at,
        updated_at=stored_artifact.created_at,
    )


@route("GET", r"/actions/runs/(\d+)/artifacts", "actions")
def list_artifacts(state: State, request: Request, run_id: str) -> Reply:
    """Newest first, as GitHub lists them."""
    newest_first = [
        state.artifacts[key] for key in sorted(state.artifacts, reverse=True)
    ]
    return page_of(
        request,
        [
            artifact(state, entry)
            for entry in newest_first
            if entry.run_id == int(run_id)
        ],
        "artifacts",
    )


@route("GET", r"/actions/artifacts/(\d+)/zip", "actions")
def download_artifact(state: State, _request: Request, number: str) -> Reply:
    """A redirect to another host, which needs no token and must not see one."""
    stored_artifact = known(state.artifacts, number)
    if stored_artifact.expired:
        raise Refusal(410, "Artifact has expired")
    return Reply(
        302,
        None,
        {"Location": f"{state.blob_url}/artifacts/{stored_artifact.id}.zip?sig=signed"},
    )


# Check runs


def check_run(state: State, run: CheckRun) -> Json:
    url = f"{state.root}/check-runs/{run.id}"
    output = run.fields.get("output") or {}
    fields = {
        key: value
        for key, value in run.fields.items()
        if key not in ("output", "actions")
    }
    texts = {key: output.get(key) for key in ("title", "summary", "text")}
    return skeleton(
        "check-run",
        id=run.id,
        check_suite={"id": stable_id(run.fields["head_sha"])},
        app=skeleton(
            "nullable-integration", slug="github-actions", name="GitHub Actions"
        ),
        url=url,
        html_url=f"https://github.com/{state.repo}/runs/{run.id}",
        output={
            **texts,
            "annotations_count": len(run.annotations),
            "annotations_url": f"{url}/annotations",
        },
        **fields,
    )


@route("POST", r"/check-runs", "checks")
def create_check_run(state: State, request: Request) -> Reply:
    if request.token.kind != "installation":
        raise Refusal(403, "You must authenticate via a GitHub App.")
    if state.commit_of(request.body["head_sha"]) is None:
        raise Refusal(422, f"No commit found for SHA: {request.body['head_sha']}")
    check = CheckRun(state.next_id(), {"status": "queued", "started_at": state.now()})
    _merge_check_run(state, check, request.body)
    state.checks[check.id] = check
    return Reply(201, check_run(state, check))


@route("PATCH", r"/check-runs/(\d+)", "checks")
def update_check_run(state: State, request: Request, number: str) -> Reply:
    check = known(state.checks, number)
    _merge_check_run(state, check, request.body)
    return Reply(200, check_run(state, check))


def _merge_check_run(state: State, run: CheckRun, body: Json) -> None:
    """The call's fields over the earlier ones; its annotations behind the earlier ones."""
    output = dict(body.get("output") or {})
    annotations = output.pop("annotations", [])
    if len(annotations) > MAX_ANNOTATIONS_PER_CALL:
        raise Refusal(
            422,
            f"Invalid request. No more than {MAX_ANNOTATIONS_PER_CALL} items are"
            " allowed.",
        )
    if any(
        len(output.get(key) or "") > MAX_SUMMARY_CHARACTERS
        for key in ("summary", "text")
    ):
        raise Refusal(
            422,
            f"Invalid request. Only {MAX_SUMMARY_CHARACTERS} characters are allowed.",
        )
    run.annotations += annotations
    run.fields |= {
        **body,
        **(
            {"output": {**run.fields.get("output", {}), **output}}
            if "output" in body
            else {}
        ),
    }
    if "conclusion" in body:
        run.fields["status"] = "completed"
        run.fields.setdefault("completed_at", state.now())


@route("GET", r"/commits/(.+)/check-runs", "checks")
def list_check_runs(state: State, request: Request, ref: str) -> Reply:
    """Of each name the latest, unless `filter` is all."""
    sha = state.commit_of(ref) or ref
    name = request.query.get("check_name")
    checks = [
        check for check in state.checks.values() if check.fields["head_sha"] == sha
    ]
    named = [check for check in checks if name in (None, check.fields["name"])]
    latest = (
        named
        if request.query.get("filter") == "all"
        else {check.fields["name"]: check for check in named}.values()
    )
    return page_of(request, [check_run(state, check) for check in latest], "check_runs")


# Commits and trees: those that a test named, and those of a clone


def commit(state: State, sha: str, *, is_cloned: bool = False) -> Json:
    parents = [
        {"sha": parent_sha, "url": f"{state.root}/commits/{parent_sha}"}
        for parent_sha in state.commits.get(sha, ())
    ]
    owner = user(state, state.repo.partition("/")[0])
    url = f"{state.root}/commits/{sha}"
    description = skeleton(
        "commit", sha=sha, url=url, parents=parents, author=owner, committer=owner
    )
    if not is_cloned:
        return description
    date, message = _git(state, "show", "--no-patch", "--format=%cI%x00%B", sha).split(
        "\0"
    )
    signed = {"name": "A", "email": "a@b.c", "date": date}
    return description | {
        "commit": {
            **description["commit"],
            "message": message.strip(),
            "author": signed,
            "committer": signed,
        }
    }


def _git(state: State, *arguments: str) -> str:
    if state.clone is None:
        raise Refusal(404, "Not Found")
    done = subprocess.run(
        ["git", "-C", state.clone, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Refusal(404, "Not Found")
    return done.stdout


@route("GET", r"/git/trees/([^/]+)", "contents")
def get_tree(state: State, _request: Request, revision: str) -> Reply:
    rows = (
        row.partition("\t")
        for row in _git(state, "ls-tree", "-r", "-t", revision).splitlines()
    )
    entries = [
        dict(zip(("mode", "type", "sha"), kind.split(), strict=True)) | {"path": path}
        for kind, _, path in rows
    ]
    url = f"{state.root}/git/trees/{revision}"
    return Reply(200, skeleton("git-tree", sha=revision, url=url, tree=entries))


@route("GET", r"/commits", "contents")
def list_commits(state: State, request: Request) -> Reply:
    shas = _git(
        state,
        "log",
        "--format=%H",
        request.query["sha"],
        "--",
        request.query.get("path", "."),
    ).split()
    return page_of(request, [commit(state, sha, is_cloned=True) for sha in shas])


@route("GET", r"/commits/(.+)", "contents")
def get_commit(state: State, _request: Request, ref: str) -> Reply:
    sha = state.commit_of(ref)
    if state.clone is not None:
        patch = _git(state, "show", "--format=", ref).partition("@@")
        file = skeleton(
            "diff-entry", filename="a", status="modified", patch=f"@@{patch[2]}"
        )
        return Reply(
            200, commit(state, sha or ref, is_cloned=sha is None) | {"files": [file]}
        )
    if not state.commits:
        raise Refusal(409, "Git Repository is empty.")
    if sha is None:
        raise Refusal(422, f"No commit found for SHA: {ref}")
    return Reply(200, commit(state, sha))


@route("GET", r"/compare/(.+?)\.\.\.(.+)", "contents")
def compare(state: State, request: Request, base: str, head: str) -> Reply:
    """`ahead_by` and `behind_by` count the known commits of one side that the other lacks."""
    base_sha = state.commit_of(base)
    head_sha = state.commit_of(head)
    if base_sha is None or head_sha is None:
        raise Refusal(404, "Not Found")
    before = state.ancestors(base_sha)
    after = state.ancestors(head_sha)
    shared = next((sha for sha in after if sha in before), None)
    if shared is None:
        raise Refusal(404, f"No common ancestor between {base} and {head}.")
    ahead = [sha for sha in reversed(after) if sha not in before]
    behind = sum(sha not in after for sha in before)
    status = {(True, True): "diverged", (True, False): "ahead", (False, True): "behind"}
    comparison = skeleton(
        "commit-comparison",
        url=request.url,
        status=status.get((bool(ahead), behind > 0), "identical"),
        ahead_by=len(ahead),
        behind_by=behind,
        total_commits=len(ahead),
        base_commit=commit(state, base_sha),
        merge_base_commit=commit(state, shared),
        commits=page_of(request, [commit(state, sha) for sha in ahead]).body,
    )
    return Reply(200, comparison)
