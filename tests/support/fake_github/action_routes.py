"""The routes of GitHub Actions: workflow runs, their artifacts, reruns and dispatches."""

from __future__ import annotations

from . import rendering as render
from .replies import Refusal, Reply, Request, page_of
from .routes import known, route
from .state import State


def list_artifacts(state: State, request: Request) -> Reply:
    return _artifacts(state, request, None)


def list_run_artifacts(state: State, request: Request, run_id: str) -> Reply:
    return _artifacts(state, request, known(state.runs, run_id).id)


def _artifacts(state: State, request: Request, run_id: int | None) -> Reply:
    """Newest first, as GitHub lists them."""
    name = request.query.get("name")
    newest_first = [state.artifacts[key] for key in sorted(state.artifacts, reverse=True)]
    found = [one for one in newest_first if run_id in (None, one.run_id) and name in (None, one.name)]
    return page_of(request, [render.artifact(state, one) for one in found], "artifacts")


def get_artifact(state: State, _request: Request, number: str) -> Reply:
    return Reply(200, render.artifact(state, known(state.artifacts, number)))


def download_artifact(state: State, _request: Request, number: str) -> Reply:
    """A redirect to another host, which needs no token and must not see one."""
    one = known(state.artifacts, number)
    if one.expired:
        raise Refusal(410, "Artifact has expired")
    return Reply(302, None, {"Location": f"{state.blob_url}/artifacts/{one.id}.zip?sig=signed"})


def list_runs(state: State, request: Request) -> Reply:
    """Newest first."""
    filters = {"head_sha": "head_sha", "event": "event", "branch": "head_branch", "status": "status"}
    wanted = {filters[key]: value for key, value in request.query.items() if key in filters}
    newest_first = [state.runs[key] for key in sorted(state.runs, reverse=True)]
    found = [one for one in newest_first if all(getattr(one, key) == value for key, value in wanted.items())]
    return page_of(request, [render.run(state, one) for one in found], "workflow_runs")


def get_run(state: State, _request: Request, number: str) -> Reply:
    return Reply(200, render.run(state, known(state.runs, number)))


def rerun(state: State, _request: Request, number: str) -> Reply:
    one = known(state.runs, number)
    if one.status != "completed":
        raise Refusal(403, "This workflow is already running")
    state.reruns.append(one.id)
    one.run_attempt += 1
    one.status, one.conclusion = "queued", None
    return Reply(201, {})


def get_workflow(state: State, _request: Request, file: str) -> Reply:
    return Reply(200, render.workflow(state, file))


def dispatch(state: State, request: Request, file: str) -> Reply:
    inputs = dict(request.body.get("inputs") or {})
    state.dispatches.append({"workflow": file, "ref": request.body["ref"], "inputs": inputs})
    return Reply(204)


ROUTES = (
    route("GET", r"/actions/artifacts", "actions", list_artifacts),
    route("GET", r"/actions/artifacts/(\d+)", "actions", get_artifact),
    route("GET", r"/actions/artifacts/(\d+)/zip", "actions", download_artifact),
    route("GET", r"/actions/runs", "actions", list_runs),
    route("GET", r"/actions/runs/(\d+)", "actions", get_run),
    route("GET", r"/actions/runs/(\d+)/artifacts", "actions", list_run_artifacts),
    route("POST", r"/actions/runs/(\d+)/rerun", "actions", rerun),
    route("GET", r"/actions/workflows/([^/]+)", "actions", get_workflow),
    route("POST", r"/actions/workflows/([^/]+)/dispatches", "actions", dispatch),
)
