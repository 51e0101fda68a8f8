"""`compare --run` with a real compiler and a real runtime: artifacts of failing builds in pairs.

No test looks at how long anything takes.
"""

from __future__ import annotations

import io
import json
from collections.abc import Collection
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import yaml
from real_compilers import own_cache

from bot.cli.main import main
from bot.running.runner import PAIRS
from bot.study.run_times import (
    NO_ARTIFACTS,
    OTHER_PROGRAM,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.compiler,
    pytest.mark.usefixtures("runtime", "short_runs"),
]
RELEASE = "3.13.0"
X86 = "llvm-cpu-x86_64"
OTHER_CPU = "llvm-cpu-riscv64"
GPU = "vulkan-spirv"
TYPE = "tensor<256xf32>"
FUNCTION = "func.func @main(%x: {t}) -> {t} {{\n{body}\n  return %y : {t}\n}}\n"
ABSOLUTE = "  %y = math.absf %x : {t}"
BY_LOGARITHM = (
    "  %half = arith.constant dense<0.5> : {t}\n"
    "  %s = arith.mulf %x, %x : {t}\n  %l = math.log %s : {t}\n"
    "  %h = arith.mulf %l, %half : {t}\n  %y = math.exp %h : {t}"
)
"""The absolute value within rounding, with more code."""
SQUARE = "  %s = math.exp %x : {t}\n  %y = arith.mulf %s, %x : {t}"
TWO = (
    "func.func @main(%x: {t}, %z: {t}) -> {t} {{\n"
    "  %s = math.exp %z : {t}\n  %y = arith.addf %x, %s : {t}\n  return %y : {t}\n}}\n"
)
NO_TARGET_HAS_IT = (
    "func.func private @none({t}) -> {t}\nfunc.func @main(%x: {t}) -> {t} {{\n"
    "  %y = call @none(%x) : ({t}) -> {t}\n  return %y : {t}\n}}\n"
)
MODELS = {
    "agrees": (FUNCTION, ABSOLUTE, FUNCTION, BY_LOGARITHM),
    "differs": (FUNCTION, ABSOLUTE, FUNCTION, SQUARE),
    "takes_more": (FUNCTION, ABSOLUTE, TWO, ""),
    "breaks": (FUNCTION, ABSOLUTE, NO_TARGET_HAS_IT, ""),
}


def write_side(folder: Path, side: int, **keys: Any) -> Path:
    """Write the models of a side (0 is base) and their configuration."""
    folder.mkdir()
    for model, parts in MODELS.items():
        function, body = parts[2 * side : 2 * side + 2]
        text = function.format(t=TYPE, body=body.format(t=TYPE))
        (folder / f"{model}.mlir").write_text(text)
    config = {
        "schema": "code-size-config/1",
        "models": ["*.mlir"],
        "targets": [X86, OTHER_CPU, GPU],
        "thresholds": [
            {"name": "any growth", "metrics": ["*"], "fail": {"absolute": 0}},
        ],
        **keys,
    }
    path = folder / "code-size.yml"
    path.write_text(yaml.safe_dump(config))
    return path


def printed_by(*arguments: str | Path, codes: Collection[int] = (0, 1)) -> str:
    """Run a command of the program, and return what it prints."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        code = main([str(argument) for argument in arguments])
    assert code in codes
    return printed.getvalue()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison of two configurations with one compiler, its failing builds run."""
    home = tmp_path_factory.mktemp("run-times")
    own_cache(home / "cache", RELEASE)
    base = write_side(home / "base", 0)
    head = write_side(home / "head", 1)
    options = ("--config", base, "--head-config", head, "--cache", home / "cache")
    printed = printed_by(
        "compare",
        "--compiler",
        RELEASE,
        *options,
        "--run",
        "--out",
        home / "out",
        codes=(1,),
    )
    (home / "terminal.txt").write_text(printed)
    return home


def run_of(home: Path, model: str, target: str, out: str = "out") -> dict[str, Any]:
    """What `report.json` says of the run of one build."""
    report = json.loads((home / out / "report.json").read_text())
    (run,) = [
        build
        for build in report["run_times"]["builds"]
        if (build["model"], build["target"]) == (model, target)
    ]
    return dict(run)


def told_in(path: Path) -> str:
    """The text of a report in small letters, its lines joined."""
    return " ".join(path.read_text().lower().split())


def test_equal_outputs_and_a_ratio_from_pairs(home: Path) -> None:
    run = run_of(home, "agrees", X86)
    assert run["equal"] is True and "on 3 random inputs" in run["equal_note"]
    time = run["time"]
    assert time["pairs"] == PAIRS
    assert 0 < time["low"] <= time["ratio"] <= time["high"]
    machine = json.loads((home / "out/report.json").read_text())["run_times"]["machine"]
    assert "iree-base-runtime" in machine


def test_other_outputs_are_shown_plainly(home: Path) -> None:
    run = run_of(home, "differs", X86)
    assert run["equal"] is False and "differs in" in run["equal_note"]
    assert run["time"]["pairs"] == PAIRS
    for file in ("comment.md", "summary.md", "report.html"):
        assert "outputs differ" in told_in(home / "out" / file), file
    assert "outputs differ" in told_in(home / "terminal.txt")
    printed = printed_by("explain", home / "out", "--model", "differs", "--target", X86)
    assert "run time" in printed and "outputs differ" in printed


def test_programs_with_other_inputs_are_not_run(home: Path) -> None:
    run = run_of(home, "takes_more", X86)
    assert run["equal"] is None and run["time"] is None
    assert run["time_note"] == OTHER_PROGRAM


def test_builds_for_other_devices_and_without_artifacts_have_their_reasons(
    home: Path,
) -> None:
    gpu = run_of(home, "differs", GPU)
    assert gpu["time"] is None and "needs its device" in gpu["time_note"]
    for model in ("agrees", "differs"):
        foreign = run_of(home, model, OTHER_CPU)
        assert (
            foreign["time"] is None and "processor does not run" in foreign["time_note"]
        )
    broken = run_of(home, "breaks", X86)
    assert broken["time"] is None
    assert broken["time_note"] == "head has no artifact"


def test_a_run_time_is_no_finding(home: Path) -> None:
    report = json.loads((home / "out/report.json").read_text())
    assert not any(
        "time" in finding["rule"] for finding in report["verdict"]["findings"]
    )
    assert not any("run_times" in cell for cell in report["cells"])


def test_a_stored_side_is_run_by_its_release_if_the_artifact_is_the_same(
    home: Path,
) -> None:
    """The second base has other models than its snapshot: that is no artifact of the report."""
    head = ("--head-config", home / "head/code-size.yml")
    common = ("--cache", home / "cache", "--run", "--model", "agrees", "--target", X86)
    stored = home / "out/base.json"
    sides = ("compare", stored, RELEASE)
    base = home / "base/code-size.yml"
    printed_by(*sides, "--config", base, *head, *common, "--out", home / "stored")
    assert run_of(home, "agrees", X86, "stored")["time"]["pairs"] == PAIRS
    printed_by(*sides, "--config", head[1], *head, *common, "--out", home / "other")
    other_run = run_of(home, "agrees", X86, "other")
    assert other_run["time"] is None
    assert other_run["time_note"].startswith(
        "compiled again, base gives another artifact"
    )


def test_report_has_no_artifacts_to_run(home: Path) -> None:
    config = write_side(home / "asked", 0, run="failing")
    files = (home / "out/base.json", home / "out/head.json")
    printed_by("report", *files, "--config", config, "--out", home / "reported")
    assert run_of(home, "agrees", X86, "reported")["time_note"] == NO_ARTIFACTS
    plain = home / "plain"
    printed_by(
        "report", *files, "--config", home / "base/code-size.yml", "--out", plain
    )
    assert "run_times" not in json.loads((plain / "report.json").read_text())
