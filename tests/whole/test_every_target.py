"""What is measured on every target is what the printed command gives, and what the release's own tools say.

The targets of `configs/wide.yml` with 3.13.0, and the default ones with 3.8.0: the last
release whose GPU executables have no header, which calls an option by its old name.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import needs
import pytest
from places import ROOT
from real_compilers import binary, bot, own_cache

from bot.config.configuration import configs_dir, load_config
from bot.core.delta import diff
from bot.core.planned import COMMON_FLAGS, Target
from bot.core.snapshot import Snapshot
from bot.core.snapshot_json import from_json

OLD = "3.8.0"
NEW = "3.13.0"
MODEL = ROOT / "tests/fixtures/binaries/dense.mlir"
WIDE = configs_dir() / "wide.yml"
TARGETS = {target.name: target for target in load_config(WIDE, models=False).targets}
MEASURED = {
    OLD: sorted(
        target.name for target in load_config().targets if not target.unsupported
    ),
    NEW: sorted(name for name, target in TARGETS.items() if not target.unsupported),
}

pytestmark = pytest.mark.compiler


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Snapshot]:
    """A small model with both releases."""
    home = tmp_path_factory.mktemp("targets")
    own_cache(home / "cache", OLD, NEW)
    (home / MODEL.name).write_bytes(MODEL.read_bytes())
    for release, text in (
        (OLD, "schema: code-size-config/1\ncomponents: {}\n"),
        (NEW, WIDE.read_text("utf-8")),
    ):
        (home / "config.yml").write_text(
            text + 'models: ["*.mlir"]\n', encoding="utf-8"
        )
        options = (
            "--compiler",
            release,
            "--config",
            "config.yml",
            "--cache",
            "cache",
            "--out",
            f"{release}.json",
        )
        bot("measure", *options, cwd=home)
    return {
        release: from_json((home / f"{release}.json").read_text(encoding="utf-8"))
        for release in MEASURED
    }


def compiled(
    argv: Sequence[str], folder: Path, release: str = NEW
) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """What the compiler makes of the model, and how that ended."""
    command = [str(binary(release)), "-", *argv, "-o", str(folder / "out")]
    text = MODEL.read_text(encoding="utf-8")
    ended = subprocess.run(
        command,
        cwd=folder,
        input=text,
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return folder / "out", ended


def digest(argv: Sequence[str], folder: Path, release: str = NEW) -> str:
    """Of the artifact."""
    artifact, ended = compiled(argv, folder, release)
    assert ended.returncode == 0, ended.stderr[:500]
    return hashlib.sha256(artifact.read_bytes()).hexdigest()


def test_every_target_compiles_or_says_why_not(
    snapshots: Mapping[str, Snapshot],
) -> None:
    for release, snapshot in snapshots.items():
        assert (
            sorted(cell.key.target for cell in snapshot.cells if cell.status == "ok")
            == MEASURED[release]
        )
    unsupported = {
        cell.key.target for cell in snapshots[NEW].cells if cell.status == "unsupported"
    }
    assert unsupported == {"cuda-sm_90"}
    for cell in snapshots[OLD].cells:
        missing = {name for name, value in cell.metrics.items() if value is None}
        assert cell.status != "ok" or missing == set(cell.reasons) - {
            "objects",
            "unread",
        }, cell.key
        assert (
            not {
                "executable_bytes",
                "rodata_bytes",
                "entry_points",
                "executables",
                "linalg_ops",
            }
            & missing
        )


@pytest.mark.parametrize(
    ("release", "target"),
    [(release, name) for release in MEASURED for name in MEASURED[release]],
)
def test_the_printed_command_gives_the_measured_bytes(
    snapshots: Mapping[str, Snapshot], tmp_path: Path, release: str, target: str
) -> None:
    (cell,) = (cell for cell in snapshots[release].cells if cell.key.target == target)
    command = shlex.split(cell.command.partition(" < ")[0])
    assert command[:2] == ["iree-compile", "-"] and command[-2] == "-o"
    assert digest(command[2:-2], tmp_path, release) == cell.artifact_digest
    if release == OLD:
        dump = [needs.program("iree-dump-module"), "--output=metadata", "out"]
        printed = subprocess.run(
            dump, cwd=tmp_path, capture_output=True, text=True, check=False
        ).stdout
        external = re.findall(
            r"^ +\.rodata\[ *\d+\] external +(\d+) bytes", printed, re.M
        )
        assert cell.metrics["executable_bytes"] == sum(map(int, external)) > 1000


def test_an_option_that_was_renamed_breaks_no_cell(
    snapshots: Mapping[str, Snapshot],
) -> None:
    (command,) = (
        cell.command.split()
        for cell in snapshots[OLD].cells
        if cell.key.target == "rocm"
    )
    assert "--iree-hip-target=gfx942" in command
    shared = set(MEASURED[OLD]) & set(MEASURED[NEW])
    states = {
        delta.key.target: delta.state for delta in diff(snapshots[OLD], snapshots[NEW])
    }
    assert shared and {states[target] for target in shared} == {"changed"}


def test_what_is_said_to_be_unsupported_still_is(tmp_path: Path) -> None:
    [target] = [target for target in TARGETS.values() if target.unsupported]
    _, ended = compiled((*COMMON_FLAGS, *target.argv), tmp_path)
    assert (
        ended.returncode != 0
        and "missing GPU target in #hal.executable.target" in ended.stderr
    )
    assert "missing GPU target in #hal.executable.target" in str(target.unsupported)


def test_data_tiling_is_off_where_nothing_is_said(tmp_path: Path) -> None:
    plain = TARGETS["llvm-cpu-x86_64"].argv
    off = (*plain, "--iree-opt-data-tiling=false")
    on = TARGETS["llvm-cpu-x86_64-tiled"].argv
    assert digest(plain, tmp_path) == digest(off, tmp_path) != digest(on, tmp_path)


def test_the_compiler_takes_the_last_of_two_which_is_the_one_that_replaces(
    tmp_path: Path,
) -> None:
    path = tmp_path / "derived.yml"
    flag = "--iree-llvmcpu-target-cpu=x86-64-v2"
    derived = {"mine": {"extends": "llvm-cpu-x86_64", "flags": [flag]}}
    path.write_text(
        json.dumps({"schema": "code-size-config/1", "targets": derived}),
        encoding="utf-8",
    )
    [target] = load_config(path, models=False).targets
    packaged = Target("mine", "llvm-cpu", (*TARGETS["llvm-cpu-x86_64"].flags, flag))
    assert len(target.argv) == len(packaged.argv) - 1
    assert digest(target.argv, tmp_path) == digest(packaged.argv, tmp_path)
    assert digest(target.argv, tmp_path) != digest(
        TARGETS["llvm-cpu-x86_64"].argv, tmp_path
    )
