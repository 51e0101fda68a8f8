"""The whole program with real compilers: IREE 3.12.0 against 3.13.0 over two small models and all targets."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import needs
import numpy
import onnx
import pytest
from fake_compiler import wait_until
from msgspec.structs import replace
from places import ROOT
from real_compilers import binary, bot
from real_compilers import own_cache as cache_of

from bot.core.metrics import ARTIFACT_PARTS, METRIC_IDS
from bot.core.planned import LIFTED_LIMIT_FLAG
from bot.core.snapshot import Cell, Snapshot
from bot.core.snapshot_json import from_json, snapshot_lines
from bot.study.snapshot_files import load_snapshot

SUITE = ROOT / "tests/fixtures/e2e"
BASE = "3.12.0"
HEAD = "3.13.0"
CONTRACT_FILES = {
    "base.json",
    "head.json",
    "report.json",
    "comment.md",
    "summary.md",
    "report.html",
}

pytestmark = pytest.mark.compiler


@dataclass(frozen=True)
class Comparison:
    """One finished `compare`."""

    out: Path
    cache: Path
    code: int
    stdout: str
    stderr: str

    @property
    def base(self) -> Snapshot:
        return from_json((self.out / "base.json").read_text())

    @property
    def head(self) -> Snapshot:
        return from_json((self.out / "head.json").read_text())

    @property
    def report(self) -> dict[str, Any]:
        plain: dict[str, Any] = json.loads((self.out / "report.json").read_text())
        return plain


def own_cache(directory: Path) -> Path:
    return cache_of(directory, BASE, HEAD)


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    home = tmp_path_factory.mktemp("e2e")
    cache = own_cache(home / "cache")
    out = home / "out"
    run = bot(
        "compare",
        "--config",
        str(SUITE / "config.yml"),
        "--cache",
        str(cache),
        "--out",
        str(out),
    )
    return Comparison(
        out=out, cache=cache, code=run.returncode, stdout=run.stdout, stderr=run.stderr
    )


@pytest.mark.quick
def test_one_model_on_two_targets_from_end_to_end(tmp_path: Path) -> None:
    """What `make test` has time for: every figure of every cell, and the bytes of the printed command."""
    cache = own_cache(tmp_path / "cache")
    out = tmp_path / "out"
    selected = ("--model", "tiny", "--target", "vmvx", "--target", "llvm-cpu-x86_64")
    run = bot(
        "compare",
        "--config",
        str(SUITE / "config.yml"),
        *selected,
        "--cache",
        str(cache),
        "--out",
        str(out),
    )
    comparison = Comparison(
        out=out, cache=cache, code=run.returncode, stdout=run.stdout, stderr=run.stderr
    )
    require_verdict_and_files(comparison)
    for version, snapshot in ((BASE, comparison.base), (HEAD, comparison.head)):
        assert [cell.key.target for cell in snapshot.cells] == [
            "llvm-cpu-x86_64",
            "vmvx",
        ]
        for cell in snapshot.cells:
            require_every_figure(cell)
            folder = tmp_path / version / cell.key.target
            artifact = run_command(cell, version, folder, SUITE / "models/tiny.mlir")
            assert (
                hashlib.sha256(artifact.read_bytes()).hexdigest()
                == cell.artifact_digest
            )


def test_the_first_command_of_the_readme_says_the_same_in_a_checkout_and_in_an_empty_folder(
    tmp_path: Path, shared_cache: Path
) -> None:
    (line,) = re.findall(
        r"^code-size-bot (compare .* --config quick)\s*$",
        (ROOT / "README.md").read_text(),
        re.M,
    )
    few = (
        "--model",
        "bert_l4_f32_s128",
        "--target",
        "vmvx",
        "--cache",
        str(shared_cache),
    )
    checkout = tmp_path / "checkout"
    empty = tmp_path / "empty"
    subprocess.run(
        ["git", "clone", "--quiet", "--shared", str(ROOT), str(checkout)], check=True
    )
    empty.mkdir()
    inside = bot(*line.split(), *few, cwd=checkout, env={"PYTHONPATH": str(checkout)})
    outside = bot(*line.split(), *few, cwd=empty, env={"PYTHONPATH": str(checkout)})
    assert (
        inside.returncode == outside.returncode == 0 and inside.stdout == outside.stdout
    )
    for name in CONTRACT_FILES:
        assert (checkout / "out" / name).read_bytes() == (
            empty / "out" / name
        ).read_bytes(), name


def require_verdict_and_files(comparison: Comparison) -> None:
    """The six files, and an exit code and a first line that say the verdict."""
    assert comparison.code in (0, 1), comparison.stderr
    assert {path.name for path in comparison.out.iterdir()} == CONTRACT_FILES
    verdict = comparison.report["verdict"]
    assert (verdict["status"] == "fail") == (comparison.code == 1)
    icon = {"pass": "✅", "warn": "⚠️", "fail": "❌"}[verdict["status"]]
    assert comparison.stdout.startswith(f"{icon} Code size: ")
    assert len((comparison.out / "comment.md").read_text()) <= 65_536


def require_every_figure(cell: Cell) -> None:
    """All metrics or the reason why one is not there, parts that sum to the artifact, code of every dispatch."""
    assert cell.measured, f"{cell.key}: {cell.failure}"
    assert set(cell.metrics) == set(METRIC_IDS)
    assert {name for name, value in cell.metrics.items() if value is None} == set(
        cell.reasons
    )
    assert (
        sum(cell.metrics[part] or 0 for part in ARTIFACT_PARTS)
        == cell.metrics["artifact_bytes"]
    )
    assert cell.dispatches
    assert all(dispatch.code_bytes and dispatch.sites for dispatch in cell.dispatches)


def test_writes_the_six_files_and_exits_with_the_verdict(
    comparison: Comparison,
) -> None:
    require_verdict_and_files(comparison)


def test_every_cell_has_every_metric_or_the_reason(comparison: Comparison) -> None:
    for snapshot in (comparison.base, comparison.head):
        assert len(snapshot.cells) == 2 * 9
        for cell in snapshot.cells:
            if cell.status == "unsupported":
                assert cell.key.target == "vmvx-inline"
                assert cell.failure is not None
                continue
            require_every_figure(cell)


def test_the_compilers_own_stack_figure_is_the_measured_one(
    comparison: Comparison,
) -> None:
    over = [
        c
        for s in (comparison.base, comparison.head)
        for c in s.cells
        if c.status == "over-stack-limit"
    ]
    assert {cell.key.target for cell in over} == {
        "llvm-cpu-x86_64",
        "llvm-cpu-aarch64",
        "llvm-cpu-riscv64",
    }
    for cell in over:
        assert cell.failure is not None
        assert cell.failure.figure_bytes == cell.metrics["stack_alloca_bytes"]
        assert f"Got {cell.failure.figure_bytes} bytes" in cell.failure.message
        assert LIFTED_LIMIT_FLAG in cell.command


def run_command(cell: Cell, version: str, folder: Path, model: Path) -> Path:
    """Run the printed line as a user would, in `folder`; the artifact."""
    folder.mkdir(parents=True)
    line = cell.command.rpartition("< ")[0] + f"< '{model}'"
    path = f"{binary(version).parent}:{os.environ['PATH']}"
    subprocess.run(
        ["sh", "-c", line],
        cwd=folder,
        env={**os.environ, "PATH": path},
        check=True,
        capture_output=True,
    )
    return folder / f"{cell.key.model}.vmfb"


def test_artifacts_are_those_of_the_printed_commands_in_any_folder(
    comparison: Comparison, tmp_path: Path
) -> None:
    deep = tmp_path / "a folder with a much longer name" / "and another one"
    shutil.copytree(SUITE / "models", deep / "models")
    measured = [cell for cell in comparison.head.cells if cell.measured]
    assert len(measured) == 16
    for index, cell in enumerate(measured):
        assert f"< tests/fixtures/e2e/models/{cell.key.model}.mlir" in cell.command
        models = (SUITE / "models", deep / "models")[index % 2]
        artifact = run_command(
            cell, HEAD, deep / str(index), models / f"{cell.key.model}.mlir"
        )
        assert (
            hashlib.sha256(artifact.read_bytes()).hexdigest() == cell.artifact_digest
        ), cell.key


def test_counts_are_those_of_the_compilers_statistics(
    comparison: Comparison, tmp_path: Path
) -> None:
    for version, snapshot in ((BASE, comparison.base), (HEAD, comparison.head)):
        cell = next(
            c
            for c in snapshot.cells
            if c.key.model == "tiny" and c.key.target == "vmvx"
        )
        option = "--iree-scheduling-dump-statistics"
        options = f"{option}-format=json {option}-file=statistics.json"
        counted = Cell(
            cell.model,
            cell.target,
            "ok",
            command=cell.command.replace(" -o ", f" {options} -o "),
        )
        run_command(counted, version, tmp_path / version, SUITE / "models/tiny.mlir")
        statistics = json.loads((tmp_path / version / "statistics.json").read_text())[
            "stream-aggregate"
        ]
        assert (
            statistics["execution"]["dispatch-count"] == cell.metrics["dispatch_sites"]
        )
        assert (
            statistics["executable"]["executable-count"] == cell.metrics["executables"]
        )


def test_segments_are_those_of_iree_dump_module(
    comparison: Comparison, tmp_path: Path
) -> None:
    tool = needs.program("iree-dump-module")
    for index, cell in enumerate(
        cell
        for cell in comparison.head.cells
        if cell.measured and cell.key.model == "tiny"
    ):
        artifact = run_command(
            cell, HEAD, tmp_path / str(index), SUITE / "models/tiny.mlir"
        )
        text = subprocess.run(
            [tool, "--output=metadata", artifact],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        segments = [
            int(size)
            for size in re.findall(
                r"\.rodata\[ *\d+\] (?:embedded|external) +(\d+) bytes", text
            )
        ]
        bytecode = re.search(r"Bytecode: (\d+) bytes", text)
        assert bytecode is not None
        assert int(bytecode[1]) == cell.metrics["vm_bytes"]
        assert sum(segments) == (cell.metrics["rodata_bytes"] or 0) + (
            cell.metrics["executable_bytes"] or 0
        )


def test_a_second_run_compiles_nothing_and_writes_the_same_bytes(
    comparison: Comparison, tmp_path: Path
) -> None:
    arguments = [
        "--config",
        str(SUITE / "config.yml"),
        "--cache",
        str(comparison.cache),
        "--out",
        str(tmp_path),
    ]
    again = bot("compare", *arguments, codes=[comparison.code])
    assert "CPU s" not in again.stderr
    for name in CONTRACT_FILES:
        assert (tmp_path / name).read_bytes() == (comparison.out / name).read_bytes(), (
            name
        )


def test_nothing_written_names_this_machine(comparison: Comparison) -> None:
    for name in CONTRACT_FILES:
        text = (comparison.out / name).read_text()
        assert str(Path.home()) not in text
        assert str(comparison.cache.parent) not in text


def test_report_of_the_snapshots_is_the_report_of_the_comparison(
    comparison: Comparison, tmp_path: Path
) -> None:
    snapshots = [
        "--base",
        str(comparison.out / "base.json"),
        "--head",
        str(comparison.out / "head.json"),
    ]
    bot("report", *snapshots, "--out", tmp_path)
    first = comparison.report
    second = json.loads((tmp_path / "report.json").read_text())
    assert first["cells"] == second["cells"]


def test_shards_merge_into_the_unsharded_snapshot(
    comparison: Comparison, tmp_path: Path
) -> None:
    common = [
        "--compiler",
        HEAD,
        "--config",
        str(SUITE / "config.yml"),
        "--cache",
        str(comparison.cache),
    ]
    for index in (1, 2):
        bot(
            "measure",
            *common,
            "--shard",
            f"{index}/2",
            "--out",
            tmp_path / f"{index}.json",
            codes=[0],
        )
    bot(
        "merge",
        tmp_path / "2.json",
        tmp_path / "1.json",
        "--out",
        tmp_path / "all.json",
        codes=[0],
    )
    whole = load_snapshot(comparison.out / "head.json")
    # traces and ladders are of a comparison
    bare = replace(
        whole, cells=tuple(replace(cell, traces={}, ladders={}) for cell in whole.cells)
    )
    assert (tmp_path / "all.json").read_bytes() == b"".join(snapshot_lines(bare))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing_behind_but_what_was_measured(
    number: signal.Signals, tmp_path: Path
) -> None:
    cache = own_cache(tmp_path / "cache")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    argv = [
        sys.executable,
        "-m",
        "bot",
        "measure",
        "--compiler",
        HEAD,
        "--config",
        str(SUITE / "config.yml"),
    ]
    argv += ["--cache", str(cache), "--out", str(tmp_path / "head.json"), "--jobs", "2"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(scratch)}
    child = subprocess.Popen(
        argv, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert wait_until(
        lambda: list(cache.glob("cells/*/*.json")) or child.poll() is not None, 120
    )
    child.send_signal(number)
    _, printed = child.communicate(timeout=30)
    assert child.returncode == 130, printed
    assert "in the cache" in printed.splitlines()[-1]
    assert not list(running_below(scratch))
    assert not list(scratch.iterdir())
    assert not (tmp_path / "head.json").exists()
    assert list(cache.glob("cells/*/*.json"))
    assert not list(cache.glob("cells/*/.part-*"))


def running_below(directory: Path) -> Iterator[int]:
    """Processes whose working directory is inside `directory`."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if Path(os.readlink(entry / "cwd")).is_relative_to(directory):
                    yield int(entry.name)
            except OSError:
                continue


def test_an_onnx_model_is_imported_with_the_compilers_own_importer(
    tmp_path: Path,
) -> None:
    weights = onnx.numpy_helper.from_array(numpy.ones((8, 8), numpy.float32), "w")
    tensor = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4, 8])
        for name in "xy"
    ]
    node = onnx.helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = onnx.helper.make_graph([node], "g", tensor[:1], tensor[1:], [weights])
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8
    )
    onnx.save(model, str(tmp_path / "good.onnx"))
    (tmp_path / "torn.onnx").write_bytes((tmp_path / "good.onnx").read_bytes()[:100])
    (tmp_path / "config.yml").write_text(
        'schema: code-size-config/1\nmodels: ["*.onnx"]\ntargets: [vmvx]\n'
    )
    cache = own_cache(tmp_path / "cache")
    out = tmp_path / "head.json"
    config = ["--config", str(tmp_path / "config.yml"), "--cache", str(cache)]
    bot("measure", "--compiler", HEAD, *config, "--out", out, codes=[0])
    good, torn = from_json(out.read_text()).cells
    assert (good.status, good.metrics["dispatch_sites"]) == ("ok", 1)
    assert "iree-import-onnx" in good.command and good.command.endswith("< good.mlir")
    assert torn.status == "failed" and torn.failure is not None
    assert torn.failure.stage == "import"
    assert (
        torn.failure.message.startswith("not imported: ")
        and "\n" not in torn.failure.message
    )


def test_a_model_of_an_old_opset_compiles_with_a_newer_one(tmp_path: Path) -> None:
    folder = Path(onnx.__file__).parent / "backend/test/data"
    for name in (
        "pytorch-converted/test_Softmin",
        "pytorch-operator/test_operator_view",
    ):
        shutil.copy(folder / name / "model.onnx", tmp_path / f"{Path(name).name}.onnx")
    cache = own_cache(tmp_path / "cache")
    out = tmp_path / "head.json"
    text = "schema: code-size-config/1\n"
    config = tmp_path / "config.yml"
    argv = [
        "measure",
        "--compiler",
        HEAD,
        "--config",
        str(config),
        "--cache",
        str(cache),
        "--out",
        str(out),
    ]
    config.write_text(text + 'models: ["*.onnx"]\ntargets: [vmvx]\n')
    bot(*argv, codes=[5])
    for cell in from_json(out.read_text()).cells:
        assert (
            cell.failure is not None and "failed to legalize" in cell.failure.first_line
        )
    config.write_text(config.read_text() + 'import_flags: ["--opset-version=17"]\n')
    bot(*argv, codes=[0])
    for cell in from_json(out.read_text()).cells:
        assert cell.status == "ok" and ".onnx --opset-version=17 -o " in cell.command
