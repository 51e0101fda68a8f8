from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_github import FakeGitHub
from report_factory import snapshot

from bot.core.baseline import Entry
from bot.errors import InputError, NetworkError, UsageError
from bot.store.artifact import ArtifactStore, artifact_name, download, file_name
from bot.store.entries import pack

SNAPSHOT = snapshot("3.13.0", models=("gpt2_f32_dyn",))
ENTRY = Entry("my-report", "ab" * 20, "c" * 64)


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
    return ArtifactStore(hub.url, hub.token(), "octo/repo", "main", sleep=lambda _: None)


def test_names() -> None:
    assert artifact_name(ENTRY) == f"code-size-baseline-my-report-{'c' * 64}"
    assert file_name(ENTRY) == f"my-report--{'ab' * 20}.{'c' * 64}.json.xz"


def test_stored_and_found(hub: FakeGitHub, tmp_path: Path) -> None:
    hub.add_artifact(1, artifact_name(ENTRY), zipped(ENTRY, tmp_path), head_sha=ENTRY.sha)
    found = store(hub)
    assert found.entries() == [ENTRY]
    assert not hub.blob_requests, "the listing alone is enough"
    assert found.load(ENTRY) == SNAPSHOT
    assert [request["authorization"] for request in hub.blob_requests] == [None]
    hub.assert_contract()


@pytest.mark.parametrize("wrong", [{"head_branch": "topic"}, {"same_repository": False}, {"expired": True}])
def test_what_does_not_count(hub: FakeGitHub, tmp_path: Path, wrong: dict[str, object]) -> None:
    hub.add_artifact(1, artifact_name(ENTRY), zipped(ENTRY, tmp_path), head_sha=ENTRY.sha, **wrong)  # type: ignore[arg-type]
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


def test_not_stored(hub: FakeGitHub) -> None:
    with pytest.raises(InputError, match="not stored"):
        store(hub).load(ENTRY)


def test_it_cannot_be_written_to(hub: FakeGitHub) -> None:
    with pytest.raises(UsageError, match="upload"):
        store(hub).save(ENTRY, SNAPSHOT)


# Downloads


def fetched(hub: FakeGitHub, number: int, pauses: list[float] | None = None, max_bytes: int = 1000) -> bytes:
    sleep = (pauses if pauses is not None else []).append
    return download(hub.url, hub.token(), "octo/repo", number, max_bytes=max_bytes, timeout_seconds=5, sleep=sleep)


@pytest.mark.parametrize(
    ("status", "line"), [(401, "actions: read"), (403, "actions: read"), (404, "actions: read"), (410, "expired")]
)
def test_refusals(hub: FakeGitHub, status: int, line: str) -> None:
    hub.fail_next("GET", r"/zip$", status)
    with pytest.raises(NetworkError, match=line) as caught:
        fetched(hub, hub.add_artifact(1, "a", b"data"))
    assert "\n" not in caught.value.line


@pytest.mark.parametrize("status", [429, 500, 502, 503, 0])
def test_a_fault_is_asked_again(hub: FakeGitHub, status: int) -> None:
    number, pauses = hub.add_artifact(1, "a", b"data"), list[float]()
    hub.fail_next("GET", r"/zip$", status, times=2, headers={"Retry-After": "7"} if status else {})
    assert fetched(hub, number, pauses) == b"data"
    assert pauses == ([7, 7] if status else [0.5, 1])


def test_a_fault_that_stays(hub: FakeGitHub) -> None:
    pauses: list[float] = []
    hub.fail_next("GET", r"/zip$", 503, times=9)
    with pytest.raises(NetworkError, match="503"):
        fetched(hub, hub.add_artifact(1, "a", b"data"), pauses)
    assert len(pauses) == 3


def test_a_pause_that_is_too_long(hub: FakeGitHub) -> None:
    pauses: list[float] = []
    hub.fail_next("GET", r"/zip$", 429, headers={"Retry-After": "3600"})
    with pytest.raises(NetworkError, match="429"):
        fetched(hub, hub.add_artifact(1, "a", b"data"), pauses)
    assert not pauses


def test_more_bytes_than_allowed(hub: FakeGitHub) -> None:
    number = hub.add_artifact(1, "a", b"x" * 1001)
    with pytest.raises(NetworkError, match="more than 1000 bytes"):
        fetched(hub, number)
    assert len(fetched(hub, number, max_bytes=1001)) == 1001


@pytest.mark.parametrize(
    "url", ["http://example.org/x", "file:///etc/passwd", "", "https://a@b/x", "ftp://localhost/x"]
)
def test_a_redirect_to_elsewhere(hub: FakeGitHub, url: str) -> None:
    hub.fail_next("GET", r"/zip$", 302, headers={"Location": url})
    with pytest.raises(NetworkError, match="not https"):
        fetched(hub, hub.add_artifact(1, "a", b"data"))
