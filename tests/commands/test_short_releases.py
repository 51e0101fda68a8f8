"""`3.13` means 3.13.0 in every command, and is fetched and stored once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_compiler import TEMPLATES, install, write_model
from fake_wheels import entries, wheel_name, write_wheel

from bot.cli.main import main

CONFIG = "schema: code-size-config/1\nmodels: ['*.mlir']\ntargets: [vmvx]\n"
RELEASES = ("3.11.0", "3.13.0")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with one model, and a page that offers two releases."""
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path, "alpha")
    (tmp_path / "code-size.yml").write_text(CONFIG, encoding="utf-8")
    for release in RELEASES:
        fake = install(
            tmp_path / f"fake-{release}", version=release, templates=TEMPLATES
        )
        write_wheel(
            tmp_path / "page" / wheel_name(release), entries(fake, version=release)
        )
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "page"))
    monkeypatch.setenv("CODE_SIZE_CACHE", str(tmp_path / "cache"))
    return tmp_path


def report_text(home: Path) -> str:
    return (home / "out/report.json").read_text(encoding="utf-8")


def fetched(home: Path) -> list[str]:
    """Return the releases in the cache."""
    places = (
        path.name
        for path in (home / "cache/toolchains").iterdir()
        if not path.name.startswith(".")
    )
    return sorted(name.partition("-")[0] for name in places)


def test_compare_stores_a_release_once(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "3.11", "3.13"]) in (0, 1)
    short = report_text(home)
    assert main(["compare", "3.11.0", "3.13.0.0"]) in (0, 1)
    assert report_text(home) == short
    assert fetched(home) == list(RELEASES)
    report = json.loads(short)
    specs = [report[side]["compiler"]["spec"] for side in ("base", "head")]
    assert specs == [f"iree-base-compiler=={release}" for release in RELEASES]
    assert capsys.readouterr().err.count("fetching ") == len(RELEASES)


def test_history_has_one_point_for_both_forms(home: Path) -> None:
    assert (
        main(["history", "--releases", "3.11..3.13", "--releases", "3.13,3.11.0"]) == 0
    )
    points = json.loads((home / "out/history.json").read_text(encoding="utf-8"))[
        "points"
    ]
    assert [point["compiler"] for point in points] == list(RELEASES)
    assert fetched(home) == list(RELEASES)


def test_bisect_takes_both_forms(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = ("--model", "alpha", "--target", "vmvx")
    assert main(["bisect", "3.13", "3.13.0", *cell]) == 2
    assert "GOOD and BAD are the same" in capsys.readouterr().err
    assert main(["bisect", "3.11", "3.13", *cell]) == 2
    assert "artifact_bytes is the same at both ends" in capsys.readouterr().err
    assert fetched(home) == list(RELEASES)
