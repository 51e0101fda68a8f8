"""The programs in tools/: what the pages say of them is true, and none of them is shipped."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

import example
import pytest
from places import ROOT

from bot.config.experiments import load_experiments


@pytest.mark.parametrize("name", ["cause_members", "cause_reading", "compiler_figures"])
def test_the_second_sources_of_the_evidence_share_no_code_with_the_bot(
    name: str,
) -> None:
    tree = ast.parse((ROOT / "tools" / f"{name}.py").read_text(encoding="utf-8"))
    modules = {
        node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
    }
    modules |= {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert modules and "bot" not in {module.partition(".")[0] for module in modules}


@pytest.mark.parametrize("page", ["docs/evidence.md", "docs/fold.md", "docs/lab.md"])
def test_every_measured_part_of_a_page_begins_and_ends_once(page: str) -> None:
    marks = re.findall(
        r"^<!-- (begin|end): (\S+) -->$",
        (ROOT / page).read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    names = [name for _, name in marks[::2]]
    assert names and len(set(names)) == len(names)
    assert marks == [(mark, name) for name in names for mark in ("begin", "end")]


def test_every_packaged_experiment_has_its_part_of_the_page_and_is_in_the_makefile() -> (
    None
):
    page, makefile = (
        (ROOT / name).read_text(encoding="utf-8")
        for name in ("docs/lab.md", "Makefile")
    )
    (listed,) = re.findall(r"^LABS \?= (.*)$", makefile, re.MULTILINE)
    assert set(listed.split()) == load_experiments().keys()
    for name in load_experiments():
        assert page.count(f"\n### {name}\n") == 1


def test_they_are_in_neither_the_wheel_nor_the_image() -> None:
    packages = (
        (ROOT / "pyproject.toml")
        .read_text(encoding="utf-8")
        .partition("\npackages = [")[2]
        .partition("]")[0]
    )
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8") + (
        ROOT / ".dockerignore"
    ).read_text(encoding="utf-8")
    assert (
        "tools" in {path.name for path in ROOT.iterdir()} and "COPY bot ./bot" in image
    )
    assert '"tools' not in packages and not re.search(r"(COPY |!)tools", image)


@pytest.mark.slow
def test_the_example_is_what_its_program_writes(tmp_path: Path) -> None:
    folder = example.FOLDER if os.environ.get("UPDATE_GOLDENS") else tmp_path
    example.write(folder)
    for name in example.SHOWN:
        is_same = (folder / name).read_bytes() == (example.FOLDER / name).read_bytes()
        assert is_same, (  # the difference of two pages takes minutes to draw
            f"{name}: `make example`"
        )
