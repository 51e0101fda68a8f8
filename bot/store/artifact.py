"""Snapshots as workflow artifacts: the store for repositories where no job may write to a branch.

An artifact is named `<name>-<report_id>-<digest>` and holds one file, `<report_id>--<sha>.<digest>.json.xz`; the
commit is what GitHub says the run was about. So the listing alone gives every entry, and only the one that is wanted
is downloaded. Artifacts of other branches and of forks do not count: anybody can make those.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bot.core.baseline import Entry
from bot.core.snapshot import Snapshot
from bot.errors import InputError, NetworkError, UsageError
from bot.store.entries import checked_report_id, entry_of, path_of, unpack
from bot.store.http import Client
from bot.store.unzip import read_zip

MAX_PAGES, _PAGE_SIZE = 30, 100
_LISTING_LIMIT_BYTES = 16 << 20
_REPOSITORY = re.compile(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+")


def download(
    api_url: str,
    token: str,
    repository: str,
    artifact_id: int,
    *,
    max_bytes: int = 64 << 20,
    timeout_seconds: float = 30,
    sleep: Callable[[float], None] = time.sleep,
) -> bytes:
    """The zip of one artifact; the token stays with GitHub's API and is not sent to where that redirects.

    Raises NetworkError: expired, refused (with the missing permission), too large, or no answer after a few attempts.
    """
    client = Client(api_url, token, timeout_seconds, sleep)
    what = f"artifact {artifact_id} of {repository}"
    url = f"{_repository_url(api_url, repository)}/actions/artifacts/{int(artifact_id)}/zip"

    def ask() -> bytes:
        answer = client.get(url, what, with_token=True)
        if location := answer.location:
            answer = client.get(location, what, with_token=False)
            if answer.location:
                raise NetworkError("the download redirects again", where=what)
        return answer.read(max_bytes)

    return client.retried(what, ask)


def _repository_url(api_url: str, repository: str) -> str:
    if not _REPOSITORY.fullmatch(repository):
        raise UsageError(f"{repository[:80]!r} is no repository", mend="write it as OWNER/NAME")
    return f"{api_url.rstrip('/')}/repos/{repository}"


def artifact_name(entry: Entry, name: str = "code-size-baseline") -> str:
    """The name under which the workflow uploads an entry."""
    return f"{name}-{checked_report_id(entry.report_id)}-{entry.digest}"


def file_name(entry: Entry) -> str:
    """The one file in it: the path in other stores, without folders."""
    return f"{entry.report_id}--{Path(path_of(entry)).name}"


class ArtifactStore:
    """The store of artifacts that runs on `default_branch` of `repository` uploaded.

    Args:
        name: the prefix of the artifacts' names.
    """

    def __init__(
        self,
        api_url: str,
        token: str,
        repository: str,
        default_branch: str,
        name: str = "code-size-baseline",
        timeout_seconds: float = 30,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = Client(api_url, token, timeout_seconds, sleep)
        self._repository, self._branch, self._name = repository, default_branch, name
        self._ids: dict[Entry, int] | None = None

    def entries(self) -> Sequence[Entry]:
        """Everything that can still be downloaded, of the newest 3,000 artifacts; raises NetworkError."""
        ids: dict[Entry, int] = {}
        for artifact in self._artifacts():
            entry = self._entry(artifact)
            if entry is not None:
                ids[entry] = max(artifact["id"], ids.get(entry, 0))
        self._ids = ids
        return sorted(ids)

    def load(self, entry: Entry) -> Snapshot:
        """Download and read one snapshot; raises InputError, NetworkError."""
        if self._ids is None:
            self.entries()
        artifact_id = (self._ids or {}).get(entry)
        if artifact_id is None:
            raise InputError("is not stored", where=artifact_name(entry, self._name))
        client, name = self._client, file_name(entry)
        timeout, sleep = client.timeout_seconds, client.sleep
        data = download(
            client.api_url, client.token, self._repository, artifact_id, timeout_seconds=timeout, sleep=sleep
        )
        files = read_zip(data, names=(name,))
        if name not in files:
            raise InputError("the archive is empty", where=artifact_name(entry, self._name))
        return unpack(files[name], name)

    def save(self, entry: Entry, snapshot: Snapshot) -> bool:
        """Raises UsageError: only the workflow itself can upload."""
        raise UsageError(
            "workflow artifacts are not stored by this program",
            mend=f"upload the file written for it as artifact {artifact_name(entry, self._name)}",
        )

    def _artifacts(self) -> Iterator[Any]:
        what = f"artifacts of {self._repository}"
        for page in range(1, MAX_PAGES + 1):
            found = self._page(page, what)
            yield from found
            if len(found) < _PAGE_SIZE:
                return

    def _page(self, page: int, what: str) -> list[Any]:
        url = f"{_repository_url(self._client.api_url, self._repository)}/actions/artifacts"
        parameters = {"per_page": str(_PAGE_SIZE), "page": str(page)}

        def ask() -> bytes:
            answer = self._client.get(url, what, with_token=True, parameters=parameters)
            return answer.read(_LISTING_LIMIT_BYTES)

        try:
            artifacts = json.loads(self._client.retried(what, ask))["artifacts"]
        except (ValueError, KeyError, TypeError, RecursionError):
            artifacts = None
        if not isinstance(artifacts, list):
            raise NetworkError("GitHub's answer is not a list of artifacts", where=what)
        return artifacts

    def _entry(self, artifact: Any) -> Entry | None:
        """The entry an artifact holds; None where it is not a baseline, or not to be trusted as one."""
        try:
            run, name = artifact["workflow_run"], artifact["name"]
            own = type(run["repository_id"]) is int and run["head_repository_id"] == run["repository_id"]
            usable = own and run["head_branch"] == self._branch and artifact["expired"] is False
            if not usable or type(artifact["id"]) is not int or not name.startswith(f"{self._name}-"):
                return None
            report_id, _, digest = name[len(self._name) + 1 :].rpartition("-")
            return entry_of(f"snapshots/{report_id}/{run['head_sha'][:2]}/{run['head_sha']}.{digest}.json.xz")
        except (KeyError, TypeError, AttributeError):
            return None
