"""`models` and `targets`: what the configuration in force has, as a table and as JSON."""

from __future__ import annotations

from pathlib import Path

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


def told(
    capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0
) -> tuple[str, str]:
    assert main(arguments) == code
    captured = capsys.readouterr()
    return captured.out, captured.err


def test_models_and_targets_are_in_the_order_of_the_configuration(
    capsys: pytest.CaptureFixture[str],
) -> None:
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
        (
            "llvm-cpu-x86_64       2  x86_64      llvm-cpu "
            " --iree-llvmcpu-target-cpu=x86-64-v3"
        ),
        (
            "hip                   0  hip         rocm      never measured: needs a"
            " vendor's linker"
        ),
    ]


def test_selectors_narrow_both(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "models", "--target", "x86_64")[0].split()[4:8] == [
        "large",
        "1",
        "8.8",
        "KiB",
    ]
    chosen = ("--model", "s*", "--target", "x86*")
    assert [
        told(capsys, command, *chosen)[0].splitlines()[1].split()[0]
        for command in ("models", "targets")
    ] == [
        "small",
        "llvm-cpu-x86_64",
    ]
    _, err = told(capsys, "targets", "--target", "x86-64", code=2)
    assert err.endswith(
        "--target x86-64: matches no target (did you mean 'llvm-cpu-x86_64'?)\n"
    )


def test_a_derived_target_has_all_its_flags_and_ranges_of_releases_have_a_line_each(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ranges = (
        '  tiled: {extends: cuda, flags: [--a], releases: {"<3.11": [], "==3.11.*":'
        " [--b, --c]}}\n"
    )
    (repository / "code-size.yml").write_text(CONFIG + ranges)
    assert [
        line.split()
        for line in told(capsys, "targets", "--target", "tiled")[0].splitlines()[1:]
    ] == [
        ["tiled", "2", "tiled", "cuda", "--iree-cuda-target=sm_80", "--a"],
        ["<3.11:", "--iree-cuda-target=sm_80"],
        ["==3.11.*:", "--iree-cuda-target=sm_80", "--b", "--c"],
    ]


def test_the_packaged_suite_is_listed_as_such(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, *models = told(capsys, "models", "--config", "default")[0].splitlines()
    config = load_config(None)
    assert [line.split()[0] for line in models] == [path.stem for path in config.models]
    assert all(line.endswith("  the packaged suite") for line in models)
    _, *targets = told(capsys, "targets", "--config", "default")[0].splitlines()
    assert [line.split()[0] for line in targets] == [
        target.name for target in config.targets
    ]
    assert {"x86_64", "vulkan", "metal", "cuda"} <= {
        line.split()[2] for line in targets
    }
