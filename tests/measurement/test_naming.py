"""bot.study.between: globs and directories that name a side."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_wheels import wheel_name

from bot.errors import BotError, CompilerUnavailable, UsageError
from bot.study.between import named_file

RUNTIME = "iree_base_runtime-3.13.0-py3-none-any.whl"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(here: Path, *names: str) -> None:
    for name in names:
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text("x")


SPECS = ("3.13.0", "iree-base-compiler==3.13.0", "dist", "dist/", "./build", "main", "ref:main", "a.json", "x" * 5_000)


@pytest.mark.parametrize("spec", SPECS)
def test_what_is_no_glob_and_no_directory_with_a_snapshot_stays_as_it_is(here: Path, spec: str) -> None:
    put(here, f"dist/{wheel_name()}", "build/iree-compile")
    assert named_file(spec) == spec


def test_of_the_wheels_that_match_the_compilers_is_meant(here: Path) -> None:
    put(here, f"dist/{wheel_name()}", f"dist/{RUNTIME}", "dist/notes.txt")
    for pattern in ("dist/*.whl", "dist/*", "d*/iree_base_compiler-*", "**/*.whl"):
        assert named_file(pattern) == f"dist/{wheel_name()}"


def test_of_several_wheels_of_the_compiler_the_one_for_this_machine_is_meant(here: Path) -> None:
    put(here, f"dist/{wheel_name()}", f"dist/{wheel_name(platform='win_amd64')}", f"dist/{wheel_name(python='cp27')}")
    assert named_file("dist/*.whl") == f"dist/{wheel_name()}"


def test_several_that_could_be_meant_are_one_line(here: Path) -> None:
    put(here, f"dist/{wheel_name()}", f"dist/{wheel_name('3.12.0')}")
    with pytest.raises(CompilerUnavailable) as caught:
        named_file("dist/*.whl")
    assert "several wheels fit this machine: iree_base_compiler-3.12.0" in caught.value.line
    assert "name one wheel" in caught.value.line and "\n" not in caught.value.line


def test_a_glob_that_matches_no_compiler_is_one_line(here: Path) -> None:
    put(here, f"dist/{RUNTIME}", "out/a/snapshot.json", "out/b/snapshot.json")
    said = {
        "dist/*.whl": "dist/*.whl: matches 1 wheel, and none of the compiler",
        "gone/*.whl": "gone/*.whl: matches no file",
        "out/*": "out/*: matches 2 paths: out/a, out/b",
        "out/*/snapshot.json": "out/*/snapshot.json: matches 2 paths: out/a/snapshot.json, out/b/snapshot.json",
    }
    for pattern, line in said.items():
        with pytest.raises(UsageError) as caught:
            named_file(pattern)
        assert caught.value.line.startswith(line), caught.value.line
        assert "name one wheel of iree-base-compiler" in caught.value.line


def test_a_directory_that_holds_a_snapshot_is_that_snapshot(here: Path) -> None:
    put(here, "dist-base/snapshot.json", "dist-base/report.html")
    assert named_file("dist-base") == named_file("dist-b*") == "dist-base/snapshot.json"
    assert named_file("dist-base/*.json") == "dist-base/snapshot.json"


def test_a_directory_that_holds_both_is_refused(here: Path) -> None:
    put(here, "dist/snapshot.json", f"dist/{wheel_name()}")
    with pytest.raises(UsageError, match=r"dist: holds a snapshot.json and a wheel of the compiler \(name one of them"):
        named_file("dist")


def test_a_file_whose_name_looks_like_a_glob_is_that_file(here: Path) -> None:
    put(here, "a[1].json", "a1.json")
    assert named_file("a[1].json") == "a[1].json"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("spec", ["[", "**", "a\0b*", "*" * 300, "~/*", "[!a]?"])
def test_odd_globs_are_one_line(spec: str) -> None:
    with pytest.raises(BotError) as caught:
        named_file(spec)
    assert "\n" not in caught.value.line
