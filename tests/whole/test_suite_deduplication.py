"""Deduplication of the packaged suite: the table of docs/fold.md has the compiler's own counts."""

from __future__ import annotations

import os
import re
from pathlib import Path

import deduplication_page
import pytest
from direct_compile import DirectCompile
from evidence_page import written
from page_tables import rows_below
from places import ROOT
from real_compilers import binary, bot

from bot.core.snapshot import Snapshot
from bot.core.snapshot_json import from_json

pytestmark = pytest.mark.compiler

COMPILER = "3.13.0"
TARGET = "vmvx"
# Up to the phase after which nothing changes the counts.
FLAGS = (
    "--iree-hal-target-backends=vmvx",
    "--iree-dispatch-creation-enable-aggressive-fusion",
    "--compile-to=stream",
)
EXECUTABLE = re.compile(r"^ *flow\.executable (?:public|private) @", re.MULTILINE)


def models() -> list[str]:
    """Return the models of `make dedup-table`: the five of the suite that compile fastest."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (names,) = re.findall(r"^DEDUP = (.*)$", makefile, re.MULTILINE)
    return str(names).split()


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Snapshot:
    home = tmp_path_factory.mktemp("suite")
    selected = [word for name in models() for word in ("--model", name)]
    argv = ["--compiler", COMPILER, "--config", "full", "--target", TARGET]
    places = ["--cache", str(shared_cache), "--out", f"{home}/suite.json"]
    bot("measure", *argv, *selected, *places, codes=(0,))
    return from_json((home / "suite.json").read_bytes())


def test_the_page_has_what_was_measured(suite: Snapshot) -> None:
    lines = deduplication_page.page_lines(suite)
    page = deduplication_page.PAGE.read_text(encoding="utf-8")
    part = deduplication_page.PART
    again = written(page, part, lines, [part])
    if os.environ.get("UPDATE_GOLDENS"):
        deduplication_page.PAGE.write_text(again, encoding="utf-8")
    assert again == page or os.environ.get("UPDATE_GOLDENS"), (
        "docs/fold.md is made anew by `make dedup-table`"
    )


@pytest.mark.parametrize("name", models())
def test_the_page_has_the_compilers_own_counts(name: str, tmp_path: Path) -> None:
    model = ROOT / "configs" / "models" / f"{name}.mlir"
    compiled = DirectCompile(tmp_path, binary(COMPILER), FLAGS, model).run()
    regions = compiled.regions()
    executables = compiled.statistic("executable", "executable-count")
    (path,) = tmp_path.glob("*.6.flow.mlir")
    assert len(EXECUTABLE.findall(path.read_text(encoding="utf-8"))) == executables
    page = deduplication_page.PAGE
    rows = rows_below(page, f"<!-- begin: {deduplication_page.PART} -->")
    (row,) = [row for row in rows if row["model"] == name]
    assert row["dispatch regions"] == f"{regions:,}"
    assert row["executables"] == f"{executables:,}"
    folded = regions - executables
    assert row["regions folded"].startswith(f"{folded:,} of {regions:,} (")
    (share,) = re.findall(r"\((\d+) %\)", row["regions folded"])
    assert abs(int(share) - 100 * folded / regions) <= 0.5
