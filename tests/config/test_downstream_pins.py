"""Pins with all that projects write around them: places of nightly wheels, other indexes, included files, markers."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from places import FIXTURES

from bot.config.requirements import asks_for_compiler, sought_compiler
from bot.core.spec import Places, Sought
from bot.errors import ConfigError

PIN = "iree-base-compiler==3.13.0"
IREE = "https://iree.dev/pip-release-links.html"
WAVE = "https://github.com/iree-org/wave/releases/expanded_assets/dev-wheels"
REAL = FIXTURES / "requirements"


def sought(folder: Path, text: str, top: Path | None = None) -> Sought:
    path = folder / "requirements.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return sought_compiler(path, top)


def notes(found: Sought, folder: Path) -> list[str]:
    return [note.replace(f"{folder}/", "") for note in found.notes]


# As they are.


def test_a_dated_pin_with_its_page() -> None:
    found = sought_compiler(REAL / "turbine-pinned.txt")
    assert found == Sought("iree-base-compiler==3.6.0rc20250714", Places((IREE,)))


def test_a_dated_pin_with_several_pages_and_no_index() -> None:
    found = sought_compiler(REAL / "shark-ai-pinned.txt")
    assert found == Sought("iree-base-compiler==3.8.0rc20251005", Places((WAVE, IREE), no_index=True))


@pytest.mark.parametrize(("name", "line"), [("shark-ai-unpinned.txt", 8), ("test-suites-torch-ops.txt", 8)])
def test_what_floats_is_no_pin(name: str, line: int) -> None:
    with pytest.raises(ConfigError) as raised:
        sought_compiler(REAL / name)
    said = f"{name}:{line}: iree-base-compiler is not pinned to one release: 'iree-base-compiler' "
    assert raised.value.line.removeprefix(f"{REAL}/") == said + "(write iree-base-compiler==X.Y.Z)"
    assert asks_for_compiler(REAL / name)


# Places of wheels.


@pytest.mark.parametrize(
    "option", [f"-f {IREE}", f"-f{IREE}", f"--find-links {IREE}", f"--find-links={IREE}  # nightly", f"  -f '{IREE}'"]
)
def test_a_page_in_every_spelling(tmp_path: Path, option: str) -> None:
    assert sought(tmp_path, f"{PIN}\n{option}\n{option}\n") == Sought(PIN, Places((IREE,)))


def test_a_directory_is_found_from_the_file(tmp_path: Path) -> None:
    (tmp_path / "pins" / "wheels").mkdir(parents=True)
    found = sought(tmp_path / "pins", f"-f wheels\n{PIN}\n", tmp_path)
    assert found == Sought(PIN, Places((str(tmp_path / "pins" / "wheels"),)))


@pytest.mark.parametrize(
    ("link", "why"),
    [
        ("http://iree.dev/links.html", "is neither an HTTPS page nor a directory"),
        ("file:///etc", "is neither an HTTPS page nor a directory"),
        ("git+https://iree.dev/x", "is neither an HTTPS page nor a directory"),
        ("https:///links.html", "is neither an HTTPS page nor a directory"),
        ("http://localhost.evil.example/x", "is neither an HTTPS page nor a directory"),
        ("http://127.0.0.1@evil.example/x", "is neither an HTTPS page nor a directory"),
        ("https://me:hunter2@iree.dev/links.html", "has credentials in it"),
        ("https://${TOKEN}@iree.dev/links.html", "has credentials in it"),
        ("https://iree.dev/links.html?token=hunter2", "has a query, which may be a credential"),
        ("nowhere", "is no directory"),
        ("..", "leaves the repository"),
        ("wheels", "leaves the repository"),
    ],
)
def test_a_place_that_is_not_taken_is_told_without_its_words(tmp_path: Path, link: str, why: str) -> None:
    top = tmp_path / "top"
    top.mkdir()
    (top / "wheels").symlink_to(tmp_path)
    found = sought(top, f"{PIN}\n-f {link}\n", top)
    assert found.places == Places()
    assert notes(found, top) == [f"requirements.txt:2: the place of wheels is not used: it {why}"]


@pytest.mark.parametrize(
    "option",
    [
        "-i https://me:hunter2@index.example/simple",
        "--index-url=https://x.example",
        "--extra-index-url https://x.example",
    ],
)
def test_another_index_is_not_used_and_that_is_said(tmp_path: Path, option: str) -> None:
    found = sought(tmp_path, f"{option}\n{PIN}\n")
    assert (found.spec, found.places) == (PIN, Places())
    said = "requirements.txt:1: the index is not used: it is that of the machine which runs the bot"
    assert notes(found, tmp_path) == [said]


@pytest.mark.parametrize(
    "option", ["--pre", "--trusted-host x.example", "-e .", "--hash=sha256:00", "--require-hashes"]
)
def test_other_options_say_nothing_of_a_pin(tmp_path: Path, option: str) -> None:
    assert sought(tmp_path, f"{option}\n{PIN}\n") == Sought(PIN)


@pytest.mark.parametrize("line", ["-f", "-f 'open", "--find-links"])
def test_an_option_that_is_not_understood_is_told(tmp_path: Path, line: str) -> None:
    found = sought(tmp_path, f"{PIN}\n{line}\n")
    assert found.spec == PIN
    assert notes(found, tmp_path) == ["requirements.txt:2: the options are not understood, and not used"]


# Included files.


@pytest.mark.parametrize("option", ["-r iree.txt", "--requirement=iree.txt", "-c iree.txt", "-riree.txt"])
@pytest.mark.parametrize("own", ["", "iree-base-compiler\n"])
def test_a_pin_in_an_included_file(tmp_path: Path, option: str, own: str) -> None:
    (tmp_path / "iree.txt").write_text(f"-f {IREE}\n{PIN}\n")
    assert sought(tmp_path, f"{own}{option}\n") == Sought(PIN, Places((IREE,)))
    assert asks_for_compiler(tmp_path / "requirements.txt") is bool(own)


def test_files_that_include_each_other_are_read_once(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text(f"-r requirements.txt\n-r b.txt\n{PIN}\n")
    assert sought(tmp_path, "-r b.txt\n-c b.txt\n").spec == PIN


def test_what_is_not_followed_is_told(tmp_path: Path) -> None:
    top = tmp_path / "top"
    (tmp_path / "secret.txt").write_text("iree-base-compiler==6.6.6\n")
    found = sought(top, f"-r ../secret.txt\n-r https://x.example/r.txt\n-r none.txt\n{PIN}\n", top)
    assert found.spec == PIN
    assert notes(found, top) == [
        "requirements.txt:1: the file is not followed: leaves the repository",
        "requirements.txt:2: the file is not followed: an address",
        "not followed: none.txt: cannot be read: No such file or directory",
    ]


def test_endless_includes_end(tmp_path: Path) -> None:
    for number in range(80):
        (tmp_path / f"{number}.txt").write_text(f"-r {number + 1}.txt\n")
    found = sought(tmp_path, f"-r 0.txt\n{PIN}\n")
    assert found.spec == PIN and "one of too many" in found.notes[0]


def test_two_files_with_other_pins_are_refused(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("iree-base-compiler==3.12.0\n")
    with pytest.raises(ConfigError, match="pins iree-base-compiler more than once"):
        sought(tmp_path, f"-r b.txt\n{PIN}\n")


# Markers.


def test_of_several_the_one_that_is_for_this_machine_counts(tmp_path: Path) -> None:
    here, other = f"sys_platform == '{sys.platform}'", "sys_platform == 'another'"
    text = f"iree-base-compiler==3.11.0 ; {other}\n{PIN} ; {here}\n"
    assert sought(tmp_path, text).spec == PIN
    assert sought(tmp_path, f"{PIN} ; {other}\n").spec == PIN, "a single one is what the project ships"
    with pytest.raises(ConfigError, match="more than once"):
        sought(tmp_path, f"iree-base-compiler==3.11.0 ; {here}\n{PIN} ; {here}\n")


def test_a_variable_of_the_environment_is_not_filled_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "hunter2")
    found = sought(tmp_path, f"-f https://iree.dev/${{TOKEN}}/links.html\n{PIN}\n")
    assert found.places.find_links == ("https://iree.dev/${TOKEN}/links.html",)
    assert os.environ["TOKEN"] not in repr(found)
