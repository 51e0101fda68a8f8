"""`make test` and `make test-all` share the tests between them, and CI runs each of them once."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import needs
from places import ROOT


def test_each_test_is_of_one_of_the_two_runs(tmp_path: Path) -> None:
    (tmp_path / ".installed").touch()
    make = [
        needs.program("make"),
        "--dry-run",
        "--always-make",
        f"VENV={tmp_path}",
        "--old-file",
        "pyproject.toml",
    ]
    make += ["--old-file", f"{tmp_path}/.installed"]

    def runs(*targets: str) -> list[str]:
        printed = subprocess.run(
            [*make, *targets], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        return re.findall(r"-m pytest (.*)", printed)

    assert runs("test") == ["-m 'not slow'"]
    assert runs("test-all") == runs("test", "test-all") == ["-m 'not slow'", "-m slow"]


def test_ci_runs_each_of_them_once() -> None:
    for path in (ROOT / ".ci" / "run", ROOT / ".github" / "workflows" / "ci.yml"):
        text = path.read_text(encoding="utf-8")
        lines = [line.strip().removeprefix("- run: ") for line in text.splitlines()]
        assert [
            line for line in lines if re.search(r"\bmake .*test|\bpytest\b", line)
        ] == ["make test test-all"], path


def test_every_slow_folder_is_there() -> None:
    """A folder that is slow and is renamed would be quick again, and nobody would notice."""
    conftest = (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8")
    (named,) = re.findall(r"^SLOW = frozenset\(\{(.*)\}\)$", conftest, re.MULTILINE)
    assert all(
        (ROOT / "tests" / name.strip('" ')).is_dir() for name in named.split(",")
    )


def test_every_file_that_begins_first_is_there() -> None:
    conftest = (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8")
    (named,) = re.findall(r"^LONGEST = \((.*?)\)$", conftest, re.MULTILINE | re.DOTALL)
    names = re.findall(r'"(.*?)"', named)
    assert names
    for name in names:
        assert list((ROOT / "tests").glob(f"*/{name}")), name
