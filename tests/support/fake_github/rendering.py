"""The JSON objects that the fake GitHub answers with: the description's required fields, and the state over them."""

from __future__ import annotations

import hashlib
import zlib
from typing import Any, TypeVar

from api_description import skeleton

from .state import Artifact, CheckRun, Comment, LabelEvent, Pull, Run, State

Json = dict[str, Any]
Thing = TypeVar("Thing")

_ASSOCIATIONS = {"admin": "OWNER", "write": "COLLABORATOR", "read": "CONTRIBUTOR"}
_REACTIONS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "eyes", "rocket")


def stable_id(name: str) -> int:
    """An id for a thing that is known by name only."""
    return zlib.crc32(name.encode())


def user(state: State, login: str) -> Json:
    return skeleton(
        "simple-user",
        login=login,
        id=stable_id(login),
        url=f"{state.url}/users/{login}",
        html_url=f"https://github.com/{login}",
        type="Bot" if login.endswith("[bot]") else "User",
    )


def repository(state: State, full_name: str, schema: str = "minimal-repository") -> Json:
    owner, _, name = full_name.partition("/")
    return skeleton(
        schema,
        id=stable_id(full_name),
        name=name,
        full_name=full_name,
        owner=user(state, owner),
        private=state.private and full_name == state.repo,
        fork=full_name != state.repo,
        default_branch="main",
        url=f"{state.url}/repos/{full_name}",
        html_url=f"https://github.com/{full_name}",
        clone_url=f"https://github.com/{full_name}.git",
    )


def pull(state: State, one: Pull, schema: str = "pull-request-simple") -> Json:
    url, issue_url = f"{state.root}/pulls/{one.number}", f"{state.root}/issues/{one.number}"
    return skeleton(
        schema,
        id=stable_id(f"pull {one.number}"),
        number=one.number,
        state=one.state,
        title=one.title,
        user=user(state, one.login),
        author_association=_association(state, one.login),
        url=url,
        issue_url=issue_url,
        comments_url=f"{issue_url}/comments",
        html_url=f"https://github.com/{state.repo}/pull/{one.number}",
        head=_end(state, one.head_repo, one.head_branch, one.head_sha),
        base=_end(state, state.repo, one.base_ref, one.base_sha),
        merge_commit_sha=one.merge_sha,
        created_at=one.created_at,
        merged_at=one.merged_at,
        labels=[label(state, name) for name in state.labels.get(one.number, ())],
        **(_pull_counts(state, one) if schema == "pull-request" else {}),
    )


def _pull_counts(state: State, one: Pull) -> Json:
    mergeable = one.merge_sha is not None
    return {
        "mergeable": mergeable,
        "mergeable_state": "clean" if mergeable else "dirty",
        "changed_files": len(one.files),
        "comments": sum(comment.issue == one.number for comment in state.comments.values()),
        "commits": 1,
    }


def _end(state: State, repo: str | None, branch: str, sha: str) -> Json:
    owner = (repo or "ghost/gone").partition("/")[0]
    return {
        "label": f"{owner}:{branch}",
        "ref": branch,
        "sha": sha,
        "user": user(state, owner),
        "repo": repository(state, repo, "repository") if repo else None,
    }


def pull_file(state: State, one: Pull, name: str) -> Json:
    blob = f"https://github.com/{state.repo}/blob/{one.head_sha}/{name}"
    contents = f"{state.root}/contents/{name}?ref={one.head_sha}"
    sha = hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()
    known = {"filename": name, "sha": sha, "blob_url": blob, "raw_url": blob, "contents_url": contents}
    return skeleton("diff-entry", status="modified", additions=1, changes=1, **known)


def issue(state: State, number: int) -> Json:
    found = state.pulls.get(number)
    url = f"{state.root}/issues/{number}"
    page = f"https://github.com/{state.repo}/pull/{number}"
    links = {"url": f"{state.root}/pulls/{number}", "html_url": page, "diff_url": page, "patch_url": page}
    return skeleton(
        "issue",
        id=stable_id(f"issue {number}"),
        number=number,
        title=found.title if found else state.titles[number],
        state=found.state if found else "open",
        user=user(state, found.login if found else state.repo.partition("/")[0]),
        labels=[label(state, name) for name in state.labels.get(number, ())],
        comments=sum(comment.issue == number for comment in state.comments.values()),
        url=url,
        comments_url=f"{url}/comments",
        events_url=f"{url}/events",
        repository_url=state.root,
        **({"pull_request": links} if found else {}),
    )


def comment(state: State, one: Comment) -> Json:
    return skeleton(
        "issue-comment",
        id=one.id,
        node_id=f"IC_{one.id}",
        body=one.body,
        user=user(state, one.login),
        author_association=_association(state, one.login),
        created_at=one.created_at,
        updated_at=one.updated_at,
        url=f"{state.root}/issues/comments/{one.id}",
        issue_url=f"{state.root}/issues/{one.issue}",
        html_url=f"https://github.com/{state.repo}/issues/{one.issue}#issuecomment-{one.id}",
        reactions=_rollup(state, one),
    )


def _rollup(state: State, one: Comment) -> Json:
    contents = [each["content"] for each in state.reactions if each["comment_id"] == one.id]
    counts = {name: contents.count(name) for name in _REACTIONS}
    url = f"{state.root}/issues/comments/{one.id}/reactions"
    return {**counts, "total_count": len(contents), "url": url}


def _association(state: State, login: str) -> str:
    return _ASSOCIATIONS.get(state.users.get(login, "none"), "NONE")


def reaction(state: State, one: Json) -> Json:
    return skeleton("reaction", id=one["id"], content=one["content"], user=user(state, one["user"]))


def label(state: State, name: str) -> Json:
    fixed = {"color": "ededed", "description": ""}  # in a list of pull requests a description is never null
    return skeleton("label", id=stable_id(f"label {name}"), name=name, url=f"{state.root}/labels/{name}", **fixed)


def label_event(state: State, one: LabelEvent) -> Json:
    schema = "labeled-issue-event" if one.label else "converted-note-to-issue-issue-event"  # the plainest of them
    return skeleton(
        schema,
        id=one.id,
        event=one.event,
        actor=user(state, one.login),
        created_at=one.created_at,
        url=f"{state.root}/issues/events/{one.id}",
        **({"label": {"name": one.label, "color": "ededed"}} if one.label else {}),
    )


def permission(state: State, login: str) -> Json:
    level = state.users[login]
    return {
        "permission": level,
        "role_name": level,
        "user": skeleton("nullable-collaborator", role_name=level, **user(state, login)),
    }


def commit(state: State, sha: str) -> Json:
    parents = [{"sha": one, "url": f"{state.root}/commits/{one}"} for one in state.commits[sha]]
    owner = user(state, state.repo.partition("/")[0])
    known = {"sha": sha, "parents": parents, "author": owner, "committer": owner}
    return skeleton("commit", url=f"{state.root}/commits/{sha}", **known)


def check_run(state: State, one: CheckRun) -> Json:
    url, output = f"{state.root}/check-runs/{one.id}", one.fields.get("output") or {}
    known = {key: value for key, value in one.fields.items() if key not in ("output", "actions")}
    shown = {key: output.get(key) for key in ("title", "summary", "text")}
    return skeleton(
        "check-run",
        id=one.id,
        check_suite={"id": stable_id(one.fields["head_sha"])},
        app=skeleton("nullable-integration", slug="github-actions", name="GitHub Actions"),
        url=url,
        html_url=f"https://github.com/{state.repo}/runs/{one.id}",
        output={**shown, "annotations_count": len(one.annotations), "annotations_url": f"{url}/annotations"},
        **known,
    )


def annotation(state: State, one: CheckRun, given: Json) -> Json:
    href = f"https://github.com/{state.repo}/blob/{one.fields['head_sha']}/{given['path']}"
    optional = dict.fromkeys(("start_column", "end_column", "title", "raw_details"))
    return {**optional, "blob_href": href, **given}


def run(state: State, one: Run) -> Json:
    url = f"{state.root}/actions/runs/{one.id}"
    return skeleton(
        "workflow-run",
        id=one.id,
        name=one.name,
        head_branch=one.head_branch,
        head_sha=one.head_sha,
        event=one.event,
        status=one.status,
        conclusion=one.conclusion,
        path=one.path,
        workflow_id=stable_id(one.path),
        display_title=one.name,
        run_attempt=one.run_attempt,
        run_number=1,
        actor=user(state, one.login),
        triggering_actor=user(state, one.login),
        pull_requests=[_pull_minimal(state, state.pulls[number]) for number in one.pull_numbers],
        repository=repository(state, state.repo),
        head_repository=repository(state, one.head_repo),
        created_at=one.created_at,
        updated_at=one.created_at,
        url=url,
        html_url=f"https://github.com/{state.repo}/actions/runs/{one.id}",
        artifacts_url=f"{url}/artifacts",
        rerun_url=f"{url}/rerun",
        workflow_url=f"{state.root}/actions/workflows/{stable_id(one.path)}",
    )


def _pull_minimal(state: State, one: Pull) -> Json:
    def end(repo: str, ref: str, sha: str) -> Json:
        short = {"id": stable_id(repo), "url": f"{state.url}/repos/{repo}", "name": repo.partition("/")[2]}
        return {"ref": ref, "sha": sha, "repo": short}

    return {
        "id": stable_id(f"pull {one.number}"),
        "number": one.number,
        "url": f"{state.root}/pulls/{one.number}",
        "head": end(one.head_repo or state.repo, one.head_branch, one.head_sha),
        "base": end(state.repo, one.base_ref, one.base_sha),
    }


def artifact(state: State, one: Artifact) -> Json:
    url = f"{state.root}/actions/artifacts/{one.id}"
    home = state.repo if one.same_repository else state.runs[one.run_id].head_repo
    return skeleton(
        "artifact",
        id=one.id,
        name=one.name,
        size_in_bytes=len(one.zip_bytes),
        url=url,
        archive_download_url=f"{url}/zip",
        expired=one.expired,
        created_at=one.created_at,
        updated_at=one.created_at,
        digest=f"sha256:{hashlib.sha256(one.zip_bytes).hexdigest()}",
        workflow_run={
            "id": one.run_id,
            "repository_id": stable_id(state.repo),
            "head_repository_id": stable_id(home),
            "head_branch": one.head_branch,
            "head_sha": one.head_sha,
        },
    )


def workflow(state: State, file_or_id: str) -> Json:
    path = f".github/workflows/{file_or_id}"
    url = f"{state.root}/actions/workflows/{file_or_id}"
    return skeleton("workflow", id=stable_id(path), name=file_or_id, path=path, state="active", url=url)
