"""Workflow runs and commits: running again, starting by hand, listing artifacts, asking who descends from whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from bot.core.values.publication import ArtifactInfo
from bot.publish.hub import Hub, explain
from bot.publish.shapes import flag, number, optional, rows, text, text_or_none
from bot.system.retrying import Refused

_DESCENDS = frozenset({"ahead", "identical"})
_MOST_PAGES_OF_ARTIFACTS = 30


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
        listed = hub.listed("actions/runs", "workflow_runs", head_sha=head_sha)
        # GitHub does not promise an order; ids grow with time.
        return max((number(one, "id") for one in listed if workflow_file in {None, _file(one)}), default=None)


def unfinished_push(hub: Hub, sha: str, workflow_file: str) -> tuple[int, str] | None:
    """The newest run of a workflow for the push of that commit which has not ended, and its status; None for none.

    Args:
        workflow_file: `code-size.yml`, without its folder.

    Raises:
        NetworkError: the runs cannot be read.
    """
    with explain(f"look for the runs of {sha[:12]}", "actions: read"):
        listed = hub.listed("actions/runs", "workflow_runs", head_sha=sha, event="push")
        mine = [one for one in listed if _file(one) == workflow_file]
        found = ((number(one, "id"), text_or_none(one, "status") or "not known") for one in mine)
        return max((one for one in found if one[1] != "completed"), default=None)


def _file(run: Any) -> str:
    """The name of its workflow's file; the path can carry `@ref`."""
    return text(run, "path").partition("@")[0].rpartition("/")[2]


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
        listed = hub.listed(f"actions/runs/{run_id}/artifacts", "artifacts")
        return sorted(map(_artifact, listed), key=lambda info: info.id)


def download(hub: Hub, artifact_id: int, max_bytes: int) -> bytes:
    """The zip of one artifact.

    Raises:
        NetworkError: expired, refused (with the missing permission), larger than `max_bytes`, or no answer.
    """
    with explain(f"download artifact {artifact_id} of {hub.repository}", "actions: read"):
        return hub.download(f"actions/artifacts/{artifact_id}/zip", max_bytes)


@dataclass(frozen=True, slots=True)
class RepositoryArtifacts:
    """What the workflows of a repository uploaded: the newest 3,000."""

    hub: Hub

    def listed(self) -> list[ArtifactInfo]:
        """Raises NetworkError where they cannot be read."""
        with explain(f"list the artifacts of {self.hub.repository}", "actions: read"):
            found = self.hub.listed("actions/artifacts", "artifacts", _MOST_PAGES_OF_ARTIFACTS)
            return [_artifact(one) for one in found]

    def download(self, artifact_id: int, max_bytes: int) -> bytes:
        """Raises NetworkError where it cannot be had."""
        return download(self.hub, artifact_id, max_bytes)


def _artifact(found: Any) -> ArtifactInfo:
    run = optional(found, "workflow_run")
    own, of = (optional(run, f"{whose}repository_id") for whose in ("", "head_"))
    sha, branch = (optional(run, name) for name in ("head_sha", "head_branch"))
    return ArtifactInfo(
        id=number(found, "id"),
        name=text(found, "name"),
        size_bytes=number(found, "size_in_bytes"),
        expired=flag(found, "expired"),
        head_sha=sha if isinstance(sha, str) else "",
        head_branch=branch if isinstance(branch, str) else "",
        is_own=type(own) is int and own == of,
    )


def is_ancestor(hub: Hub, older: str, newer_ref: str) -> bool:
    """True where `newer_ref` is at or after `older`; False too where GitHub does not know one of them.

    Raises:
        NetworkError: GitHub does not say.
    """
    with explain(f"compare {older[:12]} with {newer_ref}", "contents: read"):
        try:
            # Page 2 leaves out the files, which only page 1 has and which can be megabytes.
            place = f"compare/{quote(older, safe='')}...{quote(newer_ref, safe='/')}"
            return text(hub.call("GET", place, page=2, per_page=1), "status") in _DESCENDS
        except Refused as refused:
            if refused.status != 404:
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
        return tuple(text(parent, "sha") for parent in rows(commit, "parents"))
