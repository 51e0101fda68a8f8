"""Nightly releases from the command line and the configuration to the report that names them, with fakes in wheels."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_compiler import TEMPLATES, install, write_model
from fake_wheels import entries, wheel_name, write_wheel
from links_page import LinksPage, no_other_source, serving

from bot.cli.main import main

pytestmark = pytest.mark.slow

DATED = "3.14.0rc20261101"
CONFIG = (
    "schema: code-size-config/1\nmodels: [m/*.mlir]\ntargets: [vmvx]\ncomponents: {}\n"
)


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LinksPage]:
    no_other_source(monkeypatch)
    monkeypatch.chdir(tmp_path)
    fake = install(tmp_path / "fake", templates=TEMPLATES)
    (tmp_path / "m").mkdir()
    write_model(tmp_path / "m", "alpha")
    for version in ("3.13.0", DATED):
        write_wheel(
            tmp_path / "dist" / wheel_name(version),
            entries(fake, version.encode(), version),
        )
    with serving(tmp_path / "dist") as page:
        yield page


def run(*arguments: str) -> int:
    return main((*arguments, "--cache", "cache"))


def specs(file: str = "out/report.json") -> list[str]:
    report: dict[str, Any] = json.loads(Path(file).read_text())
    return [report[side]["compiler"]["spec"] for side in ("base", "head")]


def test_two_sides_of_a_configuration(
    page: LinksPage, capsys: pytest.CaptureFixture[str]
) -> None:
    pins = f"compiler: {{base: latest, head: nightly, find_links: '{page.url}'}}\n"
    Path("code-size.yml").write_text(CONFIG + pins)
    assert run("compare") == 0
    assert specs() == [
        "latest = iree-base-compiler==3.13.0",
        f"nightly = iree-base-compiler=={DATED}",
    ]
    change = f"compiler IREE 3.13.0 (`latest`) → IREE {DATED} (`nightly`)"
    comment = Path("out/comment.md").read_text()
    changed = next(line for line in comment.splitlines() if "What changed" in line)
    assert changed == f"**What changed:** {change}", (
        "a version can be copied as it stands"
    )
    assert all(char.isprintable() or char == "\n" for char in comment)
    assert page.asked.count("/pip-release-links.html") == 3, (
        "one list of releases for both, and a look for each wheel"
    )
    assert f"nightly = iree-base-compiler=={DATED}" in capsys.readouterr().err


def test_a_requirements_file_with_its_page(
    page: LinksPage, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("code-size.yml").write_text(f"{CONFIG}compiler: {{requirements: pins.txt}}\n")
    text = (
        "--pre\n--extra-index-url https://x.example\n-f"
        f" {page.url}\niree-base-compiler=={DATED}\n"
    )
    Path("pins.txt").write_text(text)
    assert run("compare", "--base", "iree-base-compiler==3.13.0") == 4, (
        "an option's SPEC has no requirements file"
    )
    assert run("compare", "--flags=--x") == 0
    assert specs() == [f"iree-base-compiler=={DATED}"] * 2
    rule = json.loads(Path("out/report.json").read_text())["baseline"]["rule"]
    assert rule == "pins.txt, which the configuration names"
    assert (
        "pins.txt:2: ignored the index: the bot uses the index of its own machine"
        in capsys.readouterr().err
    )


def test_nothing_of_a_login_is_kept(
    page: LinksPage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", page.url.replace("://", "://me:hunter2@"))
    Path("code-size.yml").write_text(CONFIG)
    assert run("compare", "--compiler", "nightly", "--flags=--x") == 0
    paths = [*(tmp_path / "cache").rglob("*"), *(tmp_path / "out").iterdir()]
    assert paths and not [
        path for path in paths if path.is_file() and b"hunter2" in path.read_bytes()
    ]
