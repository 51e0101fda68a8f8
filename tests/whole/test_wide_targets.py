"""configs/wide.yml on the real compiler: every target compiles, as its printed command does."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from places import ROOT

from bot.compiler.toolchain import resolve
from bot.config.configuration import configs_dir, load_config
from bot.core.planned import COMMON_FLAGS, Target
from bot.core.snapshot import Cell, Snapshot, from_json
from bot.system.defaults import default_cache
from bot.system.processes import Cancel

VERSION = "3.13.0"
MODEL = ROOT / "tests/fixtures/binaries/dense.mlir"
WIDE = configs_dir() / "wide.yml"
TARGETS = {target.name: target for target in load_config(WIDE, models=False).targets}
MEASURED = sorted(name for name, target in TARGETS.items() if not target.unsupported)

pytestmark = pytest.mark.compiler


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """A small model on all targets of the file."""
    home = tmp_path_factory.mktemp("wide")
    resolve(VERSION, default_cache(), Cancel(), print)
    (home / "cache").mkdir()
    (home / "cache/toolchains").symlink_to(default_cache() / "toolchains")
    (home / MODEL.name).write_bytes(MODEL.read_bytes())
    (home / "config.yml").write_text(WIDE.read_text(encoding="utf-8") + 'models: ["*.mlir"]\n', encoding="utf-8")
    argv = ["measure", "--compiler", VERSION, "--config", "config.yml", "--cache", "cache", "--out", "wide.json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-m", "bot", *argv], cwd=home, env=environment, check=True, timeout=600)
    return from_json((home / "wide.json").read_text(encoding="utf-8"))


def cells(snapshot: Snapshot) -> dict[str, Cell]:
    return {cell.key.target: cell for cell in snapshot.cells}


def compiled(argv: Sequence[str], folder: Path, name: str = "out") -> tuple[Path, subprocess.CompletedProcess[str]]:
    """What the compiler makes of the model, and how that ended."""
    binary = resolve(VERSION, default_cache(), Cancel(), print).binary
    command = [str(binary), "-", *argv, "-o", str(folder / name)]
    text = MODEL.read_text(encoding="utf-8")
    return folder / name, subprocess.run(command, cwd=folder, input=text, text=True, capture_output=True, timeout=120)


def digest(argv: Sequence[str], folder: Path) -> str:
    """Of the artifact."""
    artifact, ended = compiled(argv, folder)
    assert ended.returncode == 0, ended.stderr[:500]
    return hashlib.sha256(artifact.read_bytes()).hexdigest()


def test_every_target_compiles_or_says_why_not(snapshot: Snapshot) -> None:
    found = cells(snapshot)
    assert {name for name, cell in found.items() if cell.status == "ok"} == set(MEASURED)
    assert {name for name, cell in found.items() if cell.status == "unsupported"} == {"cuda-sm_90"}


@pytest.mark.parametrize("target", MEASURED)
def test_the_printed_command_gives_the_measured_bytes(snapshot: Snapshot, tmp_path: Path, target: str) -> None:
    cell = cells(snapshot)[target]
    command = shlex.split(cell.command.partition(" < ")[0])
    assert command[:2] == ["iree-compile", "-"] and command[-2] == "-o"
    assert digest(command[2:-2], tmp_path) == cell.artifact_digest


def test_what_is_said_to_be_unsupported_still_is(tmp_path: Path) -> None:
    [target] = [target for target in TARGETS.values() if target.unsupported]
    _, ended = compiled((*COMMON_FLAGS, *target.argv), tmp_path)
    assert ended.returncode != 0 and "missing GPU target in #hal.executable.target" in ended.stderr
    assert "missing GPU target in #hal.executable.target" in str(target.unsupported)


def test_data_tiling_is_off_where_nothing_is_said(tmp_path: Path) -> None:
    plain = TARGETS["llvm-cpu-x86_64"].argv
    off, on = (*plain, "--iree-opt-data-tiling=false"), TARGETS["llvm-cpu-x86_64-tiled"].argv
    assert digest(plain, tmp_path) == digest(off, tmp_path) != digest(on, tmp_path)


def test_the_compiler_takes_the_last_of_two_which_is_the_one_that_replaces(tmp_path: Path) -> None:
    path = tmp_path / "derived.yml"
    mine = "--iree-llvmcpu-target-cpu=x86-64-v2"
    derived = {"mine": {"extends": "llvm-cpu-x86_64", "flags": [mine]}}
    path.write_text(json.dumps({"schema": "code-size-config/1", "targets": derived}), encoding="utf-8")
    [target] = load_config(path, models=False).targets
    packaged = Target("mine", "llvm-cpu", (*TARGETS["llvm-cpu-x86_64"].flags, mine))
    assert len(target.argv) == len(packaged.argv) - 1
    assert digest(target.argv, tmp_path) == digest(packaged.argv, tmp_path)
    assert digest(target.argv, tmp_path) != digest(TARGETS["llvm-cpu-x86_64"].argv, tmp_path)
