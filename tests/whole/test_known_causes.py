"""Real releases, real models: the causes that are told are those that were found by hand, and own most of the bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from places import ROOT
from real_compilers import bot

from bot.cli.main import main

Compared = Callable[..., dict[str, Any]]

pytestmark = pytest.mark.compiler


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Compared:
    """Models and targets of the suite, 3.11.0 against 3.13.0 → the report."""
    home = tmp_path_factory.mktemp("causes")

    def compare(models: str, targets: str) -> dict[str, Any]:
        selected = [word for model in models.split() for word in ("--model", model)]
        selected += [
            word for target in targets.split() for word in ("--target", target)
        ]
        where = (
            "--config",
            "configs/default.yml",
            "--cache",
            shared_cache,
            "--out",
            home / "out",
        )
        bot(
            "compare",
            "--base",
            "3.11.0",
            "--head",
            "3.13.0",
            "--quiet",
            *selected,
            *where,
        )
        report: dict[str, Any] = json.loads(
            (home / "out" / "report.json").read_text(encoding="utf-8")
        )
        return report

    return compare


def changed(report: Mapping[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """The changed cells.

    Each one's waterfall sums to its artifact's change and its cause owns the most of
    it.
    """
    cells = {
        (cell["model"], cell["target"]): cell
        for cell in report["cells"]
        if cell["state"] == "changed"
    }
    for cell in cells.values():
        size = cell["metrics"]["artifact_bytes"]
        falls = cell["waterfall"]
        assert sum(falls.values()) == size["head"] - size["base"]
        assert cell["cause"] == "mixed" or abs(falls[cell["cause"]]) == max(
            map(abs, falls.values())
        )
    return cells


def test_one_knob_explains_three_conv_nets(compared: Compared) -> None:
    """On x86-64 3.13.0 tiles by 8 what 3.11.0 tiled by 1."""
    nets = ("deeplabv3p_mnv2_f32_257", "mobilenet_v1_f32_224", "mobilenet_v2_f32_224")
    report = compared(" ".join(nets), "llvm-cpu-x86_64")
    cells = changed(report)
    assert {
        model: cells[model, "llvm-cpu-x86_64"]["cause"] for model in nets
    } == dict.fromkeys(nets, "strategy")
    cell = cells["mobilenet_v1_f32_224", "llvm-cpu-x86_64"]
    assert cell["first"] == "configuration" and all(
        row["base"] and row["head"] for row in cell["dispatches"]
    )
    root = report["root_causes"][0]
    assert (
        root["cause"] == "strategy" and root["what"] == "vector_common_parallel 1 → 8"
    )
    assert tuple(root["models"]) == nets and root["share"] > 0.5
    assert root["bytes"]["net"] == sum(
        target["net"] for target in root["by_target"].values()
    )


def test_symbol_tables_are_no_code_and_a_host_program_is_none_either(
    compared: Compared,
) -> None:
    cells = changed(compared("mobilenet_v1_f32_224", "rocm vmvx"))
    rocm = cells["mobilenet_v1_f32_224", "rocm"]
    assert rocm["cause"] == "container" and rocm["waterfall"]["strategy"] > 0
    assert {
        "cause": "container",
        "what": "symbol tables",
        "change_bytes": -24560,
    } in rocm["parts"]
    assert cells["mobilenet_v1_f32_224", "vmvx"]["cause"] == "host"


@pytest.mark.parametrize(
    ("cell", "sizes", "name", "operation", "added_count"),
    [
        (
            ("bert_l4_f32_dyn", "x86_64", "main*dispatch_1_*"),
            {"base": 146344, "head": 57406},
            "iree-llvmcpu-virtual-vector-lowering",
            "affine.delinearize_index",
            -1440,
        ),
        (
            ("jax_mlp_train_step_f32", "riscv64", "main_dispatch_16_*"),
            {"base": 38060, "head": 60508},
            "greedy",
            "VS4R_V",
            439,
        ),
    ],
    ids=["a gather that is no longer unrolled", "vector registers that are spilled"],
)
def test_the_pass_behind_a_large_dispatch_is_named(
    capsys: pytest.CaptureFixture[str],
    shared_cache: Path,
    cell: tuple[str, str, str],
    sizes: dict[str, int],
    name: str,
    operation: str,
    added_count: int,
) -> None:
    selected = [
        word
        for pair in zip(("--model", "--target", "--dispatch"), cell, strict=True)
        for word in pair
    ]
    sides = [
        "--base",
        "3.11.0",
        "--head",
        "3.13.0",
        "--config",
        str(ROOT / "configs/default.yml"),
        "--cache",
        str(shared_cache),
    ]
    assert main(["trace", *sides, *selected, "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["code_bytes"] == sizes and answer["same_code"] == {
        "base": True,
        "head": True,
    }
    assert (answer["parts_at"], answer["operations"][operation]) == (name, added_count)
