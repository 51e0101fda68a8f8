"""A pin report over real releases: what is told of each step is what comparing its two releases says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fake_wheels import wheel_name
from places import ROOT

from bot.compiler.toolchain import resolve
from bot.system.defaults import default_cache
from bot.system.processes import Cancel

RELEASES = ("3.11.0", "3.12.0", "3.13.0")
STEPS = ("3.11.0 → 3.12.0", "3.12.0 → 3.13.0")
CONFIG = "schema: code-size-config/1\nmodels: [dense.mlir]\ntargets: [llvm-cpu-x86_64, vmvx]\ncomponents: {}\n"

pytestmark = pytest.mark.compiler


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One model on two targets, and a directory that offers the releases whose compilers are in the cache."""
    home = tmp_path_factory.mktemp("pins")
    (home / "dense.mlir").write_bytes((ROOT / "tests/fixtures/binaries/dense.mlir").read_bytes())
    (home / "code-size.yml").write_text(CONFIG)
    (home / "links").mkdir()
    for release in RELEASES:
        resolve(release, default_cache(), Cancel(), print)
        (home / "links" / wheel_name(release)).touch()
    (home / "cache").mkdir()
    (home / "cache" / "toolchains").symlink_to(default_cache() / "toolchains")
    return home


def run(home: Path, command: str, *arguments: str) -> dict[str, Any]:
    """The report that a command writes."""
    argv = [sys.executable, "-m", "bot", command, "--quiet", "--cache", "cache", *arguments]
    offered = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(home / "links")}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **offered}
    done = subprocess.run(argv, cwd=home, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode in (0, 1), done.stderr
    found: dict[str, Any] = json.loads((home / "out" / "report.json").read_text(encoding="utf-8"))
    return found


def key(root: dict[str, Any]) -> tuple[Any, ...]:
    return root["cause"], root["what"], tuple(root["targets"])


def test_each_root_cause_is_where_the_two_releases_of_a_step_have_it(home: Path) -> None:
    alone = [run(home, "compare", "--base", old, "--head", new) for old, new in pairwise(RELEASES)]
    ends = run(home, "compare", "--base", RELEASES[0], "--head", RELEASES[-1])
    pin = run(home, "pin-report", "--from", RELEASES[0], "--to", RELEASES[-1], "--steps", "all")
    assert [f"{step['base']} → {step['head']}" for step in pin["steps"]] == [*STEPS]
    roots = [{name: value for name, value in root.items() if name != "seen"} for root in pin["root_causes"]]
    assert roots == ends["root_causes"], "the ends are what compare says"
    keys = [{key(root) for root in report["root_causes"]} for report in alone]
    for root in pin["root_causes"]:
        assert root["seen"] == [name for name, there in zip(STEPS, keys, strict=True) if key(root) in there]
    assert {tuple(root["seen"]) for root in pin["root_causes"]} == {STEPS[:1]}, "3.13.0 changed nothing but code here"
    for step, report in zip(pin["steps"], alone, strict=True):
        sizes = [cell["metrics"]["artifact_bytes"] for cell in report["cells"] if cell["state"] in ("same", "changed")]
        assert step["base_bytes"] == sum(size["base"] for size in sizes)
        assert step["head_bytes"] == sum(size["head"] for size in sizes)
    told = (home / "out" / "pin.md").read_text()
    assert "first seen in 3.11.0 → 3.12.0" in told
    assert told.index("**Root causes**") < told.index("**Releases between**") < told.index("| target | change |")
