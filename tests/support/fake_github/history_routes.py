"""The routes of a repository's history: trees, commits that touched a file, and their diffs; read from a clone."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from api_description import skeleton

from . import rendering as render
from .replies import Refusal, Reply, Request, page_of
from .routes import get_commit, route
from .state import State


def _git(clone: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(clone), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refusal(404, "Not Found")
    return done.stdout


def get_tree(state: State, _request: Request, revision: str) -> Reply:
    if state.clone is None:
        raise Refusal(404, "Not Found")
    rows = (row.partition("\t") for row in _git(state.clone, "ls-tree", "-r", "-t", revision).splitlines())
    entries = [dict(zip(("mode", "type", "sha"), kind.split(), strict=True)) | {"path": path} for kind, _, path in rows]
    url = f"{state.root}/git/trees/{revision}"
    return Reply(200, skeleton("git-tree", sha=revision, url=url, tree=entries, truncated=state.truncated))


def list_commits(state: State, request: Request) -> Reply:
    if state.clone is None:
        raise Refusal(404, "Not Found")
    shas = _git(state.clone, "log", "--format=%H", request.query["sha"], "--", request.query.get("path", ".")).split()
    return page_of(request, [_commit(state, state.clone, sha) for sha in shas])


def get_one(state: State, request: Request, ref: str) -> Reply:
    known = get_commit(state, request, ref).body if state.clone is None or state.commit_of(ref) is not None else None
    if state.clone is None:
        return Reply(200, known)
    patch = _git(state.clone, "show", "--format=", ref).partition("@@")
    file = skeleton("diff-entry", filename="a", status="modified", patch=f"@@{patch[2]}")
    return Reply(200, (known or _commit(state, state.clone, ref)) | {"files": [file]})


def _commit(state: State, clone: Path, sha: str) -> dict[str, Any]:
    date, message = _git(clone, "show", "--no-patch", "--format=%cI%x00%B", sha).split("\0")
    signed = {"name": "A", "email": "a@b.c", "date": date}
    owner = render.user(state, state.repo.partition("/")[0])
    known = skeleton("commit", sha=sha, url=f"{state.root}/commits/{sha}", author=owner, committer=owner, parents=[])
    return known | {"commit": {**known["commit"], "message": message.strip(), "author": signed, "committer": signed}}


ROUTES = (
    route("GET", r"/git/trees/([^/]+)", "contents", get_tree),
    route("GET", r"/commits", "contents", list_commits),
    route("GET", r"/commits/([^/]+)", "contents", get_one),
)
