"""An old release on all default targets: what is measured is what the printed command and the release's own tools say.

3.8.0 is the last one whose GPU executables have no header, and calls an option by its old name.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import needs
import pytest
from places import ROOT

from bot.compiler.toolchain import resolve
from bot.core.delta import diff
from bot.core.snapshot import Cell, Snapshot, from_json
from bot.system.defaults import default_cache
from bot.system.processes import Cancel

REPOSITORY = ROOT
MODEL = REPOSITORY / "tests/fixtures/binaries/dense.mlir"
OLD, NEW = "3.8.0", "3.13.0"
TARGETS = {
    "cuda", "llvm-cpu-aarch64", "llvm-cpu-riscv64", "llvm-cpu-x86_64", "metal-spirv", "rocm", "vmvx", "vulkan-spirv",
}  # fmt: skip

pytestmark = pytest.mark.compiler


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Snapshots of both releases, one model on the default targets."""
    home = tmp_path_factory.mktemp("releases")
    config = {"schema": "code-size-config/1", "models": [MODEL.name], "components": {}}
    (home / MODEL.name).write_bytes(MODEL.read_bytes())
    (home / "config.yml").write_text(json.dumps(config), encoding="utf-8")
    for version in (OLD, NEW):
        resolve(version, default_cache(), Cancel(), print)
        cache = home / "cache"
        cache.mkdir(exist_ok=True)
        if not (cache / "toolchains").is_symlink():
            (cache / "toolchains").symlink_to(default_cache() / "toolchains")
        argv = ["measure", "--compiler", version, "--config", str(home / "config.yml"), "--cache", str(cache)]
        command = [sys.executable, "-m", "bot", *argv, "--out", str(home / f"{version}.json")]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        subprocess.run(command, cwd=home, env=environment, check=True, capture_output=True, timeout=600)
    return home


def snapshot(home: Path, version: str) -> Snapshot:
    return from_json((home / f"{version}.json").read_text(encoding="utf-8"))


def measured(home: Path, version: str) -> dict[str, Cell]:
    cells = {cell.key.target: cell for cell in snapshot(home, version).cells if cell.status != "unsupported"}
    assert set(cells) == TARGETS
    return cells


def artifact_of(home: Path, version: str, command: str) -> Path:
    """What a person gets who runs the printed command."""
    binary = resolve(version, default_cache(), Cancel(), print).binary
    argv = shlex.split(command.partition(" < ")[0])
    subprocess.run([str(binary), *argv[1:]], cwd=home, input=MODEL.read_bytes(), check=True, timeout=120)
    return home / argv[-1]


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_the_printed_command_of_an_old_release_gives_the_measured_bytes(home: Path, target: str) -> None:
    cell = measured(home, OLD)[target]
    assert cell.status == "ok"
    artifact = artifact_of(home, OLD, cell.command)
    assert hashlib.sha256(artifact.read_bytes()).hexdigest() == cell.artifact_digest
    command = [needs.program("iree-dump-module"), "--output=metadata", artifact.name]
    dump = subprocess.run(command, cwd=home, capture_output=True, text=True)
    external = re.findall(r"^ +\.rodata\[ *\d+\] external +(\d+) bytes", dump.stdout, re.M)
    assert cell.metrics["executable_bytes"] == sum(map(int, external)) > 1000


def test_an_option_that_was_renamed_breaks_no_cell(home: Path) -> None:
    flags = {version: measured(home, version)["rocm"].command.split() for version in (OLD, NEW)}
    assert "--iree-hip-target=gfx942" in flags[OLD] and "--iree-rocm-target=gfx942" in flags[NEW]
    states = {delta.key.target: delta.state for delta in diff(snapshot(home, OLD), snapshot(home, NEW))}
    assert {states[target] for target in TARGETS} == {"changed"}


def test_a_metric_of_an_old_release_is_known_or_has_its_reason(home: Path) -> None:
    for target, cell in measured(home, OLD).items():
        missing = {name for name, value in cell.metrics.items() if value is None}
        assert missing == set(cell.reasons) - {"objects", "unread"}, target
        assert not {"executable_bytes", "rodata_bytes", "entry_points", "executables", "linalg_ops"} & missing, target
