"""`models` and `targets`: what the configuration in force has, as a table and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bot.cli.main import main
from bot.config.configuration import load_config

CONFIG = """\
schema: code-size-config/1
models: ["models/*.mlir"]
targets:
  vmvx: {backend: vmvx}
  llvm-cpu-x86_64: {backend: llvm-cpu, flags: [--iree-llvmcpu-target-cpu=x86-64-v3]}
  hip: {backend: rocm, unsupported: needs a vendor's linker}
"""


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "models").mkdir()
    for name, text in (("small", "module {}"), ("large", "module {}" * 1000)):
        (tmp_path / f"models/{name}.mlir").write_text(text)
    (tmp_path / "code-size.yml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> tuple[str, str]:
    assert main(arguments) == code
    found = capsys.readouterr()
    return found.out, found.err


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(told(capsys, *arguments, "--format", "json")[0])
    return plain


def test_models_and_targets_are_in_the_order_of_the_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = told(capsys, "models")
    assert err == "configuration: code-size.yml\n"
    assert out.splitlines() == [
        "model  builds     size  from",
        "large       2  8.8 KiB  models/large.mlir",
        "small       2      9 B  models/small.mlir",
    ]
    assert told(capsys, "targets")[0].splitlines() == [
        "target           builds  short name  backend   flags",
        "vmvx                  2  vmvx        vmvx",
        "llvm-cpu-x86_64       2  x86_64      llvm-cpu  --iree-llvmcpu-target-cpu=x86-64-v3",
        "hip                   0  hip         rocm      needs a vendor's linker",
    ]


def test_selectors_narrow_both(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "models", "--target", "x86_64")[0].split()[4:8] == ["large", "1", "8.8", "KiB"]
    chosen = ("--model", "s*", "--target", "x86*")
    assert [t["name"] for t in as_json(capsys, "targets", *chosen)["targets"]] == ["llvm-cpu-x86_64"]
    assert [m["name"] for m in as_json(capsys, "models", *chosen)["models"]] == ["small"]
    _, err = told(capsys, "targets", "--target", "x86-64", code=2)
    assert err.endswith("--target x86-64: matches no target (did you mean 'llvm-cpu-x86_64'?)\n")


def test_json_has_a_schema_and_the_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    models = as_json(capsys, "models")
    assert (models["schema"], models["configuration"]) == ("code-size-models/1", "code-size.yml")
    assert models["models"][1] == {"name": "small", "file": "models/small.mlir", "size_bytes": 9, "cells": 2}
    targets = as_json(capsys, "targets")
    assert (targets["schema"], targets["configuration"]) == ("code-size-targets/1", "code-size.yml")
    assert targets["targets"][1] == {
        "name": "llvm-cpu-x86_64",
        "short": "x86_64",
        "backend": "llvm-cpu",
        "flags": ["--iree-llvmcpu-target-cpu=x86-64-v3"],
        "cells": 2,
        "unsupported": "",
        "extends": "",
        "releases": {},
    }


def test_ranges_of_releases_have_a_line_each(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ranges = '  tiled: {extends: vmvx, flags: [--a], releases: {"<3.11": [], "==3.11.*": [--b, --c]}}\n'
    (repository / "code-size.yml").write_text(CONFIG + ranges)
    assert [line.split() for line in told(capsys, "targets", "--target", "tiled")[0].splitlines()[1:]] == [
        ["tiled", "2", "tiled", "vmvx", "vmvx", "--a"],
        ["<3.11:", "(none)"],
        ["==3.11.*:", "--b", "--c"],
    ]
    row = as_json(capsys, "targets", "--target", "tiled")["targets"][0]
    assert row["releases"] == {"<3.11": [], "==3.11.*": ["--b", "--c"]}


def test_what_was_derived_is_told_with_all_its_flags(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    derived = "  x86_64-O3: {extends: llvm-cpu-x86_64, flags: [--iree-opt-level=O3]}\n  cuda: {extends: cuda}\n"
    (repository / "code-size.yml").write_text(CONFIG + derived)
    cpu = "--iree-llvmcpu-target-cpu=x86-64-v3"
    assert told(capsys, "targets")[0].splitlines() == [
        "target           builds  short name  extends          backend   flags",
        "vmvx                  2  vmvx                         vmvx",
        f"llvm-cpu-x86_64       2  x86_64                       llvm-cpu  {cpu}",
        "hip                   0  hip                          rocm      needs a vendor's linker",
        f"x86_64-O3             2  x86_64-O3   llvm-cpu-x86_64  llvm-cpu  {cpu} --iree-opt-level=O3",
        "cuda                  2  cuda                         cuda      --iree-cuda-target=sm_80",
    ]
    listed = as_json(capsys, "targets")["targets"]
    assert [row["extends"] for row in listed] == ["", "", "", "llvm-cpu-x86_64", ""]
    assert listed[3]["flags"] == [cpu, "--iree-opt-level=O3"]


def test_the_packaged_suite_is_listed_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    models = as_json(capsys, "models", "--config", "default")
    assert models["configuration"] is None
    assert {row["file"] for row in models["models"]} == {"the packaged suite"}
    config = load_config(None)
    assert [row["name"] for row in models["models"]] == [path.stem for path in config.models]
    targets = as_json(capsys, "targets", "--config", "default")["targets"]
    assert [row["name"] for row in targets] == [target.name for target in config.targets]
    assert {"x86_64", "vulkan", "metal", "cuda"} <= {row["short"] for row in targets}
