"""bot.store.artifact_store: baselines among workflow artifacts, over a GitHub's HTTP."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fake_github import FakeGitHub
from report_factory import snapshot

from bot.core.baseline import Entry
from bot.errors import InputError, UsageError
from bot.github.repository import all_artifacts, download
from bot.store.artifact_store import ArtifactStore, artifact_name, file_name
from bot.store.entries import pack
from bot.system.hub import connect

SNAPSHOT = snapshot("3.13.0", models=("gpt2_f32_dyn",))
ENTRY = Entry("my-report", "ab" * 20, "c" * 64)
TORN = Entry("my-report", "ef" * 20, "c" * 64)


@pytest.fixture
def hub() -> Iterator[FakeGitHub]:
    with FakeGitHub("octo/repo") as hub:
        yield hub


def zipped(entry: Entry, directory: Path) -> bytes:
    path = directory / file_name(entry)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pack(SNAPSHOT))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.write(path, path.name)
    return buffer.getvalue()


def store(hub: FakeGitHub) -> ArtifactStore:
    one = connect(hub.url, hub.token(), "octo/repo", backoff_seconds=0.01)
    return ArtifactStore(partial(all_artifacts, one), partial(download, one), "main")


def test_stored_and_found(hub: FakeGitHub, tmp_path: Path) -> None:
    hub.add_artifact(1, artifact_name(ENTRY), zipped(ENTRY, tmp_path), head_sha=ENTRY.sha)
    assert artifact_name(ENTRY) == f"code-size-baseline-my-report-{'c' * 64}"
    found = store(hub)
    assert found.entries() == [ENTRY]
    assert not hub.blob_requests, "the listing alone is enough"
    assert found.load(ENTRY) == SNAPSHOT
    assert [request["authorization"] for request in hub.blob_requests] == [None]
    hub.assert_contract()


@pytest.mark.parametrize("wrong", [{"head_branch": "topic"}, {"same_repository": False}, {"expired": True}])
def test_what_does_not_count(hub: FakeGitHub, tmp_path: Path, wrong: dict[str, Any]) -> None:
    hub.add_artifact(1, artifact_name(ENTRY), zipped(ENTRY, tmp_path), head_sha=ENTRY.sha, **wrong)
    hub.add_artifact(2, "logs", b"", head_sha=ENTRY.sha)
    assert store(hub).entries() == []


def test_all_pages(hub: FakeGitHub) -> None:
    entries = [Entry("default", f"{number:040x}", "d" * 64) for number in range(230)]
    for number, entry in enumerate(entries):
        hub.add_artifact(number + 1, artifact_name(entry), b"", head_sha=entry.sha)
    assert store(hub).entries() == entries


def test_a_file_about_another_commit(hub: FakeGitHub, tmp_path: Path) -> None:
    other = Entry("my-report", "cd" * 20, ENTRY.digest)
    hub.add_artifact(1, artifact_name(ENTRY), zipped(other, tmp_path), head_sha=ENTRY.sha)
    with pytest.raises(InputError, match="not expected"):
        store(hub).load(ENTRY)


def test_what_is_not_stored_and_cannot_be(hub: FakeGitHub) -> None:
    with pytest.raises(InputError, match="not stored"):
        store(hub).load(ENTRY)
    with pytest.raises(UsageError, match="upload"):
        store(hub).save(ENTRY, SNAPSHOT)


def test_a_damaged_artifact_gives_way_to_an_older_one_of_the_same_name(hub: FakeGitHub, tmp_path: Path) -> None:
    hub.add_artifact(1, artifact_name(ENTRY), zipped(ENTRY, tmp_path), head_sha=ENTRY.sha)
    hub.add_artifact(2, artifact_name(ENTRY), b"PK torn", head_sha=ENTRY.sha)
    assert store(hub).load(ENTRY) == SNAPSHOT
    hub.add_artifact(3, artifact_name(TORN), b"PK torn", head_sha=TORN.sha)
    with pytest.raises(InputError, match="no zip archive"):
        store(hub).load(TORN)


def test_the_newest_is_the_one_uploaded_last(hub: FakeGitHub) -> None:
    second, first = Entry("my-report", ENTRY.sha, "0" * 64), Entry("my-report", ENTRY.sha, "f" * 64)
    for run, entry in enumerate((first, second)):
        hub.add_artifact(run + 1, artifact_name(entry), b"", head_sha=entry.sha)
    assert store(hub).in_order([second, first])[-1] == second
