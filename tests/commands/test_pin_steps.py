"""`pin-report` over releases whose compilers are fakes: which steps there are, and what is told of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fake_compiler import TEMPLATES, install, write_model
from fake_wheels import entries, wheel_name, write_wheel
from links_page import no_other_source

from bot.cli.main import main
from bot.study.between import spread

pytestmark = pytest.mark.slow

RELEASES = ("3.8.0", "3.9.0", "3.10.0", "3.11.0", "3.12.0rc20260402", "3.12.0")
GROWS = "3.10.0"
CONFIG = "schema: code-size-config/1\nmodels: [m/*.mlir]\ntargets: [vmvx]\ncomponents: {}\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a suite, and wheels of all releases: from 3.10.0 on artifacts are larger."""
    no_other_source(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "dist"))
    for number, version in enumerate(RELEASES):
        rules = [{"do": "grow"}] if number >= RELEASES.index(GROWS) else []
        fake = install(tmp_path / "fakes" / version, rules, version=version, templates=TEMPLATES)
        write_wheel(tmp_path / "dist" / wheel_name(version), entries(fake, version.encode(), version))
    (tmp_path / "m").mkdir()
    write_model(tmp_path / "m", "alpha")
    (tmp_path / "code-size.yml").write_text(CONFIG)
    return tmp_path


def run(old: str, new: str, *options: str) -> int:
    return main(("pin-report", "--from", old, "--to", new, "--cache", "cache", *options))


def told() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("out/report.json").read_text())
    return found


def names() -> list[str]:
    return [f"{step['base']} → {step['head']}" for step in told()["steps"]]


def test_every_release_between_is_a_step(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("3.8.0", "3.12.0", "--steps", "all") in (0, 1)
    assert names() == ["3.8.0 → 3.9.0", "3.9.0 → 3.10.0", "3.10.0 → 3.11.0", "3.11.0 → 3.12.0"]
    sizes = [step["head_bytes"] - step["base_bytes"] for step in told()["steps"]]
    grown = told()["cells"][0]["metrics"]["artifact_bytes"]
    assert sizes[1] == grown["head"] - grown["base"] > 0 and sizes[0] == sizes[2] == sizes[3] == 0
    assert [step["larger"] for step in told()["steps"]] == [0, 1, 0, 0]
    pin, out = (home / "out" / "pin.md").read_text(), capsys.readouterr()
    assert "3 releases between 3.8.0 and 3.12.0, 3 measured" in out.err
    assert out.out.index("Releases between") < out.out.index("base → head")
    assert not pin.startswith("<!--") and "<details>" not in pin
    assert pin.index("**Releases between**") < pin.index("| target | change |")
    page = (home / "out" / "report.html").read_text()
    assert page.index(">Root causes</h2>") < page.index(">Releases between</h2>")
    line = next(line for line in pin.splitlines() if line.startswith("- **3\\.9.0 → 3.10.0**: "))
    assert f"+{sizes[1]:,} B" in line and "1 larger, 0 smaller" in line


def test_the_two_ends_are_the_default_and_the_index_is_not_asked(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("3.8.0", "3.12.0") in (0, 1)
    assert "steps" not in told() and not any("seen" in root for root in told()["root_causes"])
    assert "--steps all measures them" in capsys.readouterr().err
    monkeypatch.setenv("PIP_FIND_LINKS", str(home / "nowhere"))
    assert run("3.8.0", "3.12.0") in (0, 1)
    assert run("3.8.0", "3.12.0", "--steps", "1") == 4
    assert "the releases cannot be listed" in capsys.readouterr().err


def test_as_many_as_are_wanted_and_those_left_out_are_told(home: Path) -> None:
    assert run("3.8.0", "3.12.0", "--steps", "1") in (0, 1)
    assert names() == ["3.8.0 → 3.10.0", "3.10.0 → 3.12.0"]
    assert [step["skipped"] for step in told()["steps"]] == [1, 1]
    said = "**3\\.8.0 → 3.10.0** (with 1 release between that nobody measured): "
    assert said in (home / "out" / "pin.md").read_text()


@pytest.mark.usefixtures("home")
def test_the_way_back_and_dated_pins() -> None:
    assert run("3.12.0", "3.10.0", "--steps", "all") in (0, 1)
    assert names() == ["3.12.0 → 3.11.0", "3.11.0 → 3.10.0"]
    assert run("3.11.0", "3.12.0rc20260402", "--steps", "all") in (0, 1)
    assert "steps" not in told(), "nothing is between"
    assert run("3.10.0", "latest", "--steps", "all") in (0, 1)
    assert names() == ["3.10.0 → 3.11.0", "3.11.0 → 3.12.0"], "no pre-release where both ends are none"


def test_a_release_that_cannot_be_had_is_left_out(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "dist" / wheel_name("3.9.0")).write_bytes(b"cut off")
    assert run("3.8.0", "3.10.0", "--steps", "all") in (0, 1)
    assert "left out: iree-base-compiler==3.9.0: " in capsys.readouterr().err
    assert "steps" not in told()


def test_what_is_no_release_has_none_between(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wheel = str(home / "dist" / wheel_name("3.9.0"))
    assert run(wheel, "3.12.0") in (0, 1)
    assert run(wheel, "3.12.0", "--out", "measured") in (0, 1)
    capsys.readouterr()
    for spec in (wheel, "measured/base.json"):
        assert run("3.12.0", spec, "--steps", "2") == 2
        assert "--to: is no release, so that there are none between" in capsys.readouterr().err
    assert run(wheel, "3.12.0", "--steps", "2") == 2
    assert "--from: is no release, so that there are none between (leave out --steps)" in capsys.readouterr().err


@pytest.mark.parametrize("steps", ["0", "-1", "some", "1000", ""])
def test_steps_are_all_none_or_a_number(capsys: pytest.CaptureFixture[str], steps: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        run("3.8.0", "3.9.0", f"--steps={steps}")
    assert "is neither all nor none nor a number of releases" in capsys.readouterr().err


def test_steps_are_spread_evenly() -> None:
    seven = tuple("abcdefg")
    assert spread(seven, 0) == () and spread(seven, None) == spread(seven, 7) == spread(seven, 9) == seven
    assert spread(seven, 1) == ("d",) and spread(seven, 3) == ("b", "d", "f")
    for most in range(1, 8):
        chosen = spread(seven, most)
        assert len(set(chosen)) == most and list(chosen) == sorted(chosen)
