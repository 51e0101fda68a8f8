"""A history of real releases: the step that is known, in its release and with its cause, and the printed command."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from history_factory import MOBILENET, stored
from places import ROOT

from bot.compiler.toolchain import resolve
from bot.system.defaults import default_cache
from bot.system.processes import Cancel

RELEASES = ("3.11.0", "3.12.0", "3.13.0")
CONFIG = {
    "schema": "code-size-config/1",
    "models": ["*.mlir"],
    "targets": {"llvm-cpu-x86_64": {"extends": "llvm-cpu-x86_64"}},
}

pytestmark = pytest.mark.compiler


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One model of the packaged suite, and compilers from everybody's cache."""
    home = tmp_path_factory.mktemp("history")
    model = ROOT / "configs" / "models" / f"{MOBILENET.model}.mlir"
    (home / model.name).write_bytes(model.read_bytes())
    (home / "code-size.yml").write_text(json.dumps(CONFIG), encoding="utf-8")
    for release in RELEASES:
        resolve(release, default_cache(), Cancel(), print)
    (home / "cache").mkdir()
    (home / "cache" / "toolchains").symlink_to(default_cache() / "toolchains")
    return home


def test_the_known_step_of_real_releases(home: Path) -> None:
    argv = [sys.executable, "-m", "bot", "history", "--releases", ",".join(RELEASES), "--cache", "cache", "--quiet"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(argv, cwd=home, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    history = json.loads((home / "out" / "history.json").read_bytes())
    points = [one for one in history["points"] if (one["model"], one["target"]) == (MOBILENET.model, MOBILENET.target)]
    assert [point["metrics"]["artifact_bytes"] for point in points] == [50_438, 83_878, 83_990]
    assert [point["metrics"]["executables"] for point in points] == [36, 36, 36]
    move = next(point["move"] for point in points if "artifact_bytes" in point.get("move", {"changes": {}})["changes"])
    assert move["cause"] == "strategy" and move["since"] == "3.11.0"
    for point in points:
        (cell,) = (cell for cell in stored(point["compiler"]).cells if cell.key == MOBILENET)
        assert point["digest"] == cell.artifact_digest, "the stored baselines are of the same artifacts"
    _assert_printed_command_gives_it(home, points[-1]["command"], points[-1]["metrics"]["artifact_bytes"])


def _assert_printed_command_gives_it(home: Path, command: str, size_bytes: int | None) -> None:
    compiler = shlex.quote(str(resolve(RELEASES[-1], default_cache(), Cancel(), print).binary))
    line = command.replace("iree-compile", compiler, 1)
    subprocess.run(["sh", "-c", line], cwd=home.parent, check=True, capture_output=True, timeout=600)
    assert (home.parent / f"{MOBILENET.model}.vmfb").stat().st_size == size_bytes
