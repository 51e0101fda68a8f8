"""What the documents for contributors list is what there is."""

from __future__ import annotations

import re

from test_architecture import FLOORS, ROOT, SOURCES

ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
DOCUMENTS = ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "README.md", "CHANGELOG.md")


def test_the_floor_plan_is_that_of_the_test() -> None:
    rows = re.findall(r"^\| (\d) \| `(\w+)` \| \S.* \|$", ARCHITECTURE, re.MULTILINE)
    assert {name: int(floor) for floor, name in rows} == FLOORS
    floors = [int(floor) for floor, _ in rows]
    assert floors == sorted(floors, reverse=True)


def test_every_module_and_file_that_is_named_is_there() -> None:
    for name in DOCUMENTS:
        text = (ROOT / name).read_text(encoding="utf-8")
        for path in re.findall(r"`((?:bot|configs|tests|docs|core|readers|inputs|insight|render)/[\w./-]+)`", text):
            assert (ROOT / path).exists() or (ROOT / "bot" / path).exists(), f"{name}: {path}"
        for module in re.findall(r"`((?:core|measurement|compiler|insight|readers|system)\.[\w.]+)`", text):
            assert f"bot.{module}" in SOURCES, f"{name}: {module}"


def test_the_license_is_there_and_is_the_one_that_is_declared() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text and "Version 2.0" in text
    assert 'license = "Apache-2.0"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
