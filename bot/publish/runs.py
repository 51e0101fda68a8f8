"""Workflow runs and commits: running again, starting by hand, listing artifacts, asking who descends from whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from github import GithubException
from github.Artifact import Artifact
from github.PaginatedList import PaginatedList

from bot.publish.github import Hub, explain

_DESCENDS = frozenset({"ahead", "identical"})


@dataclass(frozen=True, slots=True)
class ArtifactInfo:
    """One artifact of a run; an expired one is listed but cannot be had any more."""

    id: int
    name: str
    size_bytes: int
    expired: bool


def rerun(hub: Hub, run_id: int) -> None:
    """Runs all jobs of a finished run again.

    Raises:
        NetworkError: GitHub refuses: the run is under way, or older than 30 days.
    """
    with explain(f"run {run_id} again", "actions: write"):
        hub.call("POST", f"actions/runs/{run_id}/rerun")


def newest_run(hub: Hub, head_sha: str, workflow_file: str | None) -> int | None:
    """The newest run for a commit, of one workflow or (None) of any; None where there is none.

    Args:
        workflow_file: `code-size.yml`, without its folder.

    Raises:
        NetworkError: the runs cannot be read.
    """
    with explain(f"look for the runs of {head_sha[:12]}", "actions: read"):
        listed = hub.repo.get_workflow_runs(head_sha=head_sha)
        # GitHub does not promise an order; ids grow with time. The path can carry `@ref`.
        files = ((one.id, one.path.partition("@")[0].rpartition("/")[2]) for one in listed)
        return max((number for number, file in files if workflow_file in {None, file}), default=None)


def dispatch(hub: Hub, workflow_file: str, ref: str, inputs: Mapping[str, str]) -> None:
    """Starts a workflow that has `on: workflow_dispatch`.

    Args:
        ref: the branch or tag whose workflow file runs.
        inputs: at most 25; the workflow's own inputs.

    Raises:
        NetworkError: GitHub refuses; 422 where the workflow has no such trigger or input.
    """
    with explain(f"start the workflow {workflow_file}", "actions: write"):
        place = f"actions/workflows/{quote(workflow_file, safe='')}/dispatches"
        hub.call("POST", place, {"ref": ref, "inputs": dict(inputs)})


def artifacts(hub: Hub, run_id: int) -> list[ArtifactInfo]:
    """All artifacts of a run, over all pages, by id.

    Raises:
        NetworkError: they cannot be read.
    """
    with explain(f"list the artifacts of run {run_id}", "actions: read"):
        place = f"/repos/{hub.repository}/actions/runs/{run_id}/artifacts"
        listed = PaginatedList(Artifact, hub.client.requester, place, None, list_item="artifacts")
        found = (ArtifactInfo(one.id, one.name, one.size_in_bytes, one.expired) for one in listed)
        return sorted(found, key=lambda info: info.id)


def is_ancestor(hub: Hub, older: str, newer_ref: str) -> bool:
    """True where `newer_ref` is at or after `older`; False too where GitHub does not know one of them.

    Raises:
        NetworkError: GitHub does not say.
    """
    with explain(f"compare {older[:12]} with {newer_ref}", "contents: read"):
        try:
            # Page 2 leaves out the files, which only page 1 has and which can be megabytes.
            place = f"compare/{quote(older, safe='')}...{quote(newer_ref, safe='/')}"
            return hub.call("GET", place, page=2, per_page=1)["status"] in _DESCENDS
        except GithubException as error:
            if error.status != 404:
                raise
            return False


def parents(hub: Hub, sha: str) -> tuple[str, ...]:
    """The parents of a commit, in order: of a merge the branch merged into first.

    Raises:
        NetworkError: the commit cannot be read.
    """
    with explain(f"read the commit {sha[:12]}", "contents: read"):
        # Of the files, which come with it, one is the least to ask for.
        commit = hub.call("GET", f"commits/{quote(sha, safe='')}", per_page=1)
        return tuple(str(parent["sha"]) for parent in commit["parents"])
