"""Nightly releases: a dated one, `latest` and `nightly` from a page of links, a directory or the environment."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_compiler import FakeCompiler, install
from fake_wheels import entries, wheel_name, write_wheel
from links_page import PAGE, LinksPage, no_other_source, serving

from bot.compiler.toolchain import Toolchain, resolve
from bot.compiler.wheels import between, newest, offered
from bot.core.spec import Places
from bot.errors import CompilerUnavailable
from bot.system.cancel import Cancel

pytestmark = pytest.mark.slow

DATED = "3.14.0rc20261101"
OLDER = "3.14.0rc20261016"
RELEASES = ("3.12.0", "3.13.0", OLDER, DATED)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeCompiler:
    no_other_source(monkeypatch)
    return install(tmp_path / "fake")


@pytest.fixture
def page(tmp_path: Path, fake: FakeCompiler) -> Iterator[LinksPage]:
    for version in RELEASES:
        write_wheel(
            tmp_path / "dist" / wheel_name(version),
            entries(fake, version.encode(), version),
        )
    with serving(tmp_path / "dist") as page:
        yield page


def found(
    spec: str, tmp_path: Path, places: Places, cancel: Cancel | None = None
) -> tuple[Toolchain, list[str]]:
    messages: list[str] = []
    return (
        resolve(
            spec,
            cache=tmp_path / "cache",
            cancel=cancel or Cancel(),
            say=messages.append,
            places=places,
        ),
        messages,
    )


def library(toolchain: Toolchain) -> str:
    """The release whose wheel it is from: the fakes' libraries say it."""
    return (toolchain.binary.parent / "libIREECompiler.so").read_text()


def test_a_dated_release_of_a_page(tmp_path: Path, page: LinksPage) -> None:
    first, messages = found(DATED, tmp_path, Places((page.url,)))
    assert (library(first), first.info.spec) == (DATED, f"iree-base-compiler=={DATED}")
    assert messages == [f"fetching iree-base-compiler=={DATED}"]
    assert page.asked[0] == PAGE and page.asked[-1] == f"/{wheel_name(DATED)}"
    before = len(page.asked)
    for spec in (DATED, f"iree-base-compiler=={DATED}"):
        assert found(spec, tmp_path, Places((page.url,))) == (first, [])
    assert len(page.asked) == before, "it is in the cache"


def test_the_same_release_of_another_place_is_another_compiler(
    tmp_path: Path, page: LinksPage, fake: FakeCompiler
) -> None:
    theirs = tmp_path / "theirs"
    write_wheel(theirs / wheel_name(), entries(fake, b"a stranger's 3.13.0"))
    with serving(theirs) as other_page:
        assert (
            library(found("3.13.0", tmp_path, Places((other_page.url,)))[0])
            == "a stranger's 3.13.0"
        )
    assert library(found("3.13.0", tmp_path, Places((page.url,)))[0]) == "3.13.0"


@pytest.mark.parametrize(
    ("spec", "release"), [("latest", "3.13.0"), ("nightly", DATED)]
)
def test_the_newest(tmp_path: Path, page: LinksPage, spec: str, release: str) -> None:
    toolchain, messages = found(spec, tmp_path, Places((page.url,)))
    assert library(toolchain) == release
    assert toolchain.info.spec == f"{spec} = iree-base-compiler=={release}"
    assert messages == [toolchain.info.spec, f"fetching iree-base-compiler=={release}"]


def test_a_run_asks_once_and_both_sides_get_the_same(
    tmp_path: Path, page: LinksPage, fake: FakeCompiler
) -> None:
    run = Cancel()
    places = Places((page.url,))
    base = found("nightly", tmp_path, places, run)[0]
    write_wheel(
        page.wheels / wheel_name("3.14.0rc20261102"),
        entries(fake, b"newer", "3.14.0rc20261102"),
    )
    before = len(page.asked)
    assert found("nightly", tmp_path, places, run)[0] == base
    assert (newest("latest", places, run), len(page.asked)) == ("3.13.0", before)
    assert library(found("nightly", tmp_path, places, Cancel())[0]) == "newer", (
        "the next run asks anew"
    )


def test_the_environment_and_a_directory_are_places_too(
    tmp_path: Path, page: LinksPage, fake: FakeCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mine"
    write_wheel(
        folder / wheel_name("3.15.0.dev1"), entries(fake, b"first build", "3.15.0.dev1")
    )
    monkeypatch.setenv("PIP_FIND_LINKS", page.url)
    assert library(found(DATED, tmp_path, Places())[0]) == DATED
    assert (
        library(found("nightly", tmp_path, Places((str(folder),)))[0]) == "first build"
    )
    write_wheel(
        folder / wheel_name("3.15.0.dev1"),
        entries(fake, b"second build", "3.15.0.dev1"),
    )
    assert (
        library(found("nightly", tmp_path, Places((str(folder),)))[0]) == "second build"
    ), "nothing stale"


def test_releases_between_two(page: LinksPage) -> None:
    places = Places((page.url,))
    run = Cancel()
    assert [str(version) for version in offered(places, run)] == [*RELEASES]
    assert between("3.11.0", "3.14.0", places, run) == ("3.12.0", "3.13.0")
    assert between("3.12.0", "3.13.0", places, run) == ()
    assert between("3.12.0", DATED, places, run) == ("3.13.0", OLDER)


# What goes wrong


def refused(spec: str, tmp_path: Path, places: Places) -> str:
    with pytest.raises(CompilerUnavailable) as raised:
        found(spec, tmp_path, places)
    assert raised.value.exit_code == 4 and "\n" not in raised.value.line
    return raised.value.line


def test_nightly_without_a_page_is_reported_where_they_are(
    tmp_path: Path, fake: FakeCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_wheel(tmp_path / "dist" / wheel_name(), entries(fake))
    places = Places((str(tmp_path / "dist"),))
    where = (
        "nightly releases are on a separate page: name it in compiler.find_links or"
        " PIP_FIND_LINKS"
    )
    assert (
        refused("nightly", tmp_path, places)
        == f"nightly: the index has no pre-release ({where})"
    )
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "dist"))
    assert refused(DATED, tmp_path, Places()).endswith("(newest: 3.13.0)")
    monkeypatch.delenv("PIP_FIND_LINKS")
    write_wheel(tmp_path / "nightly" / wheel_name(DATED), entries(fake, b"", DATED))
    line = refused("latest", tmp_path, Places((str(tmp_path / "nightly"),)))
    assert (
        line
        == "latest: the index has only pre-releases (name nightly, or one pre-release)"
    )


@pytest.mark.parametrize("spec", ["latest", "nightly", DATED])
def test_without_a_network_it_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str
) -> None:
    no_other_source(monkeypatch)
    monkeypatch.setenv("PIP_RETRIES", "0")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # and does not listen
        page = f"http://127.0.0.1:{silent.getsockname()[1]}{PAGE}"
        line = refused(spec, tmp_path, Places((page,)))
    assert "iree-base-compiler" in line and "check the network and the index" in line


def test_a_login_in_the_environment_is_in_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_other_source(monkeypatch)
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv(
        "PIP_INDEX_URL", "http://me:hunter2@127.0.0.1:9/simple?token=hunter3"
    )
    for spec in ("latest", DATED):
        assert "hunter" not in refused(spec, tmp_path, Places())
