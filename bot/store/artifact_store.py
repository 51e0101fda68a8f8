"""Snapshots as workflow artifacts: the store for repositories where no job may write to a branch.

An artifact is named `code-size-baseline-<report_id>-<digest>` and holds one file,
`<report_id>--<sha>.<digest>.json.xz`; the commit is what GitHub says the run was about. So the listing alone gives
every entry, and only the one that is wanted is downloaded. Artifacts of other branches and of forks do not count:
anybody can make those.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from bot.core.baseline import Entry
from bot.core.publication import ArtifactInfo
from bot.core.snapshot import Snapshot
from bot.errors import InputError, UsageError
from bot.store.entries import checked_report_id, entry_of, path_of, unpack
from bot.store.unzip import read_zip

_LIMIT_BYTES = 64 << 20
_PREFIX = "code-size-baseline-"


class Artifacts(Protocol):
    """The artifacts of a repository; both raise NetworkError."""

    def listed(self) -> Iterable[ArtifactInfo]:
        """All that are looked at, of all runs."""

    def download(self, artifact_id: int, max_bytes: int) -> bytes:
        """The zip of one."""


def artifact_name(entry: Entry) -> str:
    """The name under which the workflow uploads an entry."""
    return f"{_PREFIX}{checked_report_id(entry.report_id)}-{entry.digest}"


def file_name(entry: Entry) -> str:
    """The one file in it: the path in other stores, without folders."""
    return f"{entry.report_id}--{Path(path_of(entry)).name}"


class ArtifactStore:
    """The store of artifacts that runs on `default_branch` of the repository itself uploaded."""

    def __init__(self, artifacts: Artifacts, default_branch: str) -> None:
        self._artifacts, self._branch = artifacts, default_branch
        self._known: dict[Entry, list[int]] | None = None

    @property
    def _ids(self) -> dict[Entry, list[int]]:
        if self._known is None:
            self._known = {}
            for artifact in sorted(self._artifacts.listed(), key=lambda one: -one.id):
                if entry := self._entry(artifact):
                    self._known.setdefault(entry, []).append(artifact.id)
        return self._known

    def entries(self) -> Sequence[Entry]:
        """Everything that can still be downloaded; raises NetworkError."""
        self._known = None
        return sorted(self._ids)

    def in_order(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """By their artifacts' ids: those grow with time."""
        return sorted(entries, key=lambda entry: (self._ids.get(entry, [0]), entry))

    def load(self, entry: Entry) -> Snapshot:
        """Download and read one snapshot, of several of that name the newest that is whole.

        Raises InputError, NetworkError.
        """
        problem = InputError("is not stored", where=artifact_name(entry))
        for artifact_id in self._ids.get(entry, ()):
            try:
                name = file_name(entry)
                files = read_zip(self._artifacts.download(artifact_id, _LIMIT_BYTES), names=(name,))
                if name not in files:
                    raise InputError("the archive is empty", where=artifact_name(entry))
                return unpack(files[name], name)
            except InputError as error:
                problem = error
        raise problem

    def save(self, entry: Entry, _snapshot: Snapshot) -> bool:
        """Raises UsageError: only the workflow itself can upload."""
        raise UsageError(
            "workflow artifacts are not stored by this program",
            hint=f"upload the file written for it as artifact {artifact_name(entry)}",
        )

    def _entry(self, artifact: ArtifactInfo) -> Entry | None:
        """The entry an artifact holds; None where it is not a baseline, or not to be trusted as one."""
        usable = artifact.is_own and artifact.head_branch == self._branch and not artifact.expired
        if not usable or not artifact.name.startswith(_PREFIX):
            return None
        report_id, _, digest = artifact.name[len(_PREFIX) :].rpartition("-")
        sha = artifact.head_sha
        return entry_of(f"snapshots/{report_id}/{sha[:2]}/{sha}.{digest}.json.xz")
