"""Traces with real compilers, from the command line: known answers, and counts held against the compiler's bindings."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from json_rows import read_json
from places import ROOT
from product_model import PRODUCT

from bot.cli.main import main
from bot.cli.showing import TerminalShow
from bot.compiler.toolchain import resolve
from bot.config.configuration import load_config
from bot.core.parting import NOT_STORED, NOT_TRACED
from bot.core.trace import REGION, DispatchTrace
from bot.readers.passes import PassReader
from bot.show.report_files import write_snapshot
from bot.store.entries import pack, unpack
from bot.study.prepare import Work
from bot.study.request import Request
from bot.study.tracing import with_largest_traced
from bot.system.cancel import Cancel
from bot.system.defaults import default_cache

pytestmark = pytest.mark.compiler

SIDES = ("--base", "3.11.0", "--head", "3.13.0")
CONFIG = (
    "schema: code-size-config/1\nmodels: [{models}]\ntargets: [llvm-cpu-x86_64,"
    " llvm-cpu-aarch64, cuda, vmvx]\n"
)
# Counts the operations of a function with the compiler's own parser, which the reader
# does not use.
COUNTED = """
import collections, json, sys
from iree.compiler import ir
context = ir.Context()
module = ir.Module.parse(sys.stdin.read(), context)
counts = collections.Counter()
def walk(operation):
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                name = inner.operation.name
                counts[name] += 1
                if not name.startswith("linalg.") or name == "linalg.generic":
                    walk(inner.operation)
walk(module.body.operations[0].operation)
print(json.dumps(counts))
"""


NOT_COUNTED = {
    *(
        "func.return",
        "linalg.yield",
        "scf.yield",
        "vector.yield",
        "scf.forall.in_parallel",
    ),
    *("memref.assume_alignment", "util.assume.int"),
}
"""Terminators, which the printer may leave out, and what becomes no code."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Path:
    """A configuration of a small model and of one of the suite's, and the cache of the session."""
    home = tmp_path_factory.mktemp("trace")
    (home / "cache").symlink_to(shared_cache)
    (home / "product.mlir").write_text(PRODUCT, encoding="utf-8")
    models = f"product.mlir, {ROOT / 'configs/models/bert_l4_f32_s128.mlir'}"
    (home / "c.yml").write_text(CONFIG.format(models=models), encoding="utf-8")
    return home


def asked(
    home: Path, capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0
) -> str:
    places = ("--config", str(home / "c.yml"), "--cache", str(home / "cache"))
    assert main(["trace", *SIDES, *places, *arguments]) == code
    captured = capsys.readouterr()
    return captured.out if code == 0 else captured.err


def test_what_stopped_unrolling_index_arithmetic_is_named(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = (
        "--model",
        "bert*",
        "--target",
        "x86_64",
        "--dispatch",
        "dispatch_1",
        "--format",
        "json",
    )
    answer: dict[str, Any] = json.loads(asked(home, capsys, *cell))
    assert answer["schema"] == "code-size-trace/1"
    assert answer["code_bytes"] == {"base": 32013, "head": 9383}
    assert answer["parts_at"] == "iree-llvmcpu-virtual-vector-lowering"
    assert answer["operations"] == {"affine.delinearize_index": -256}
    assert answer["same_code"] == {"base": True, "head": True}
    parted = answer["passes"][answer["parts_at_place"]]
    assert parted["name"] == answer["parts_at"]
    assert parted["head"] - parted["base"] == -256 == sum(parted["apart"].values())
    assert all(
        step["share"] == 0 for step in answer["passes"][: answer["parts_at_place"]][-3:]
    )


@pytest.mark.parametrize("target", ["llvm-cpu-aarch64", "cuda", "vmvx"])
def test_every_kind_of_target_is_traced(
    home: Path, capsys: pytest.CaptureFixture[str], target: str
) -> None:
    answer = json.loads(
        asked(
            home,
            capsys,
            "--model",
            "product",
            "--target",
            target,
            "--dispatch",
            "*",
            "--format",
            "json",
        )
    )
    assert len(answer["passes"]) > 10
    assert False not in answer["same_code"].values()


def test_the_terminal_says_what_parts_them_and_how_to_see_it(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = asked(
        home,
        capsys,
        "--model",
        "bert*",
        "--target",
        "x86_64",
        "--dispatch",
        "main$async_dispatch_1_*",
    )
    assert "3.11.0" in lines and "3.13.0" in lines, (
        "both columns have room on 80 columns"
    )
    printed = " ".join(lines.split())
    assert (
        "the sides diverge after iree-llvmcpu-virtual-vector-lowering:"
        " affine.delinearize_index −256" in printed
    )
    assert printed.count("the traced compile gives the same code as the artifact") == 2
    assert "--compile-to=executable-sources" in printed
    assert "--mlir-print-ir-after-all" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "*", "--target", "x86_64", "--dispatch", "x"), "2 builds match"),
        (
            ("--model", "product", "--target", "x86_64", "--dispatch", "nothing"),
            "no dispatch that can be traced has the name",
        ),
        (
            (
                "--model",
                "bert*",
                "--target",
                "x86_64",
                "--dispatch",
                "main*dispatch_1*",
            ),
            "matches several",
        ),
    ],
)
def test_what_is_not_one_dispatch_is_refused(
    home: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    message: str,
) -> None:
    printed = asked(home, capsys, *arguments, code=2)
    assert message in printed
    assert len(printed.strip().splitlines()[-1]) < 400


def test_a_stored_baseline_names_the_pass_when_its_compiler_is_gone(
    home: Path, tmp_path: Path
) -> None:
    request = Request(
        {"head": "3.11.0"},
        home / "c.yml",
        ("bert*",),
        ("x86_64",),
        cache=default_cache(),
        out=tmp_path,
    )
    work = Work(
        request, load_config(home / "c.yml"), TerminalShow(quiet=True), Cancel()
    )
    plan = work.prepare("head", "3.11.0")
    whole = work.measured([plan])["head"]
    traced = with_largest_traced(plan, whole, work, 3)
    assert [len(cell.traces) for cell in traced.cells] == [3]
    stored = unpack(pack(traced), "stored")
    assert len(pack(traced)) - len(pack(whole)) < 3 * 12_000
    write_snapshot(tmp_path / "stored.json", stored)
    sides = ["--base", str(tmp_path / "stored.json"), "--head", "3.13.0"]
    cell = ["--config", str(home / "c.yml"), "--model", "bert*", "--target", "x86_64"]
    assert main(["compare", *sides, *cell, "--out", str(tmp_path / "out")]) in (0, 1)
    report = read_json(tmp_path / "out/report.json")
    first = report.root_causes[0]
    assert (first["pass"], first.operations) == (
        "iree-llvmcpu-virtual-vector-lowering",
        {"affine.delinearize_index": -256},
    )
    assert first.traced.dispatches == 1
    untraced = {
        row.untraced
        for row in report.cells[0].dispatches
        if isinstance(row.untraced, str)
    }
    assert untraced <= {NOT_STORED, NOT_TRACED}


MINUS = """func.func @main(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64xf32>) {
  %e = tensor.empty() : tensor<64x64xf32>
  %d = linalg.map { arith.subf } ins(%a, %b : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>)
  %zero = arith.constant 0.0 : f32
  %v = tensor.empty() : tensor<64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%v : tensor<64xf32>) -> tensor<64xf32>
  %s = linalg.reduce { arith.addf } ins(%d : tensor<64x64xf32>) outs(%f : tensor<64xf32>) dimensions = [1]
  return %d, %s : tensor<64x64xf32>, tensor<64xf32>
}
"""


def test_the_pass_that_forms_other_dispatches_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a pair, and of a dispatch that one side alone has: by the operations of the same places of the model."""
    (tmp_path / "minus.mlir").write_text(MINUS, encoding="utf-8")
    (tmp_path / "c.yml").write_text(
        "schema: code-size-config/1\nmodels: [minus.mlir]\ntargets: [vmvx]\n",
        encoding="utf-8",
    )
    flags = "--flags=--iree-dispatch-creation-fuse-multi-use=false"
    work = ["--compiler", "3.13.0", flags, "--config", str(tmp_path / "c.yml")]
    assert main(["compare", *work, "--out", str(tmp_path / "out")]) in (0, 1)
    report = read_json(tmp_path / "out/report.json")
    root = report.root_causes[0]
    name = "iree-dispatch-creation-form-dispatch-regions"
    assert (root.cause, root["pass"], root.operations) == ("fusion", name, {REGION: 1})
    assert root.what == f"{name} forms other dispatch regions: proved by experiment"
    assert [
        sorted(side for side in ("base", "head") if row[side])
        for row in report.cells[0].dispatches
    ] == [
        ["head"],
        ["base", "head"],
    ]
    comment = (tmp_path / "out/comment.md").read_text(encoding="utf-8")
    assert (
        f"**Pass** `{name}` **forms other dispatch regions: proved by experiment**"
        in comment
    )
    assert "the sides diverge" in (tmp_path / "out/report.html").read_text(
        encoding="utf-8"
    )
    capsys.readouterr()
    for row in report.cells[0].dispatches:
        model = [
            "--model",
            "minus",
            "--target",
            "vmvx",
            "--dispatch",
            f"head:{row['name']}",
        ]
        assert main(["trace", *work, *model, "--format", "json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert (answer["parts_at"], answer["operations"]) == (root["pass"], {REGION: 1})
        assert answer["program"]["pass"]["status"] == "proved"
        assert all(
            "--mlir-print-ir-tree-dir=passes" in line
            for lines in answer["commands"].values()
            for line in lines
        )

    base = tmp_path / "out/base.json"
    stored = json.loads(base.read_text(encoding="utf-8"))
    (cell,) = stored["cells"]
    larger = {
        metric: cell["metrics"][metric] + 1
        for metric in ("artifact_bytes", "unattributed_bytes")
    }
    cell["others"] = [
        {
            "status": "ok",
            "artifact_digest": "0" * 64,
            "metrics": cell["metrics"] | larger,
        }
    ]
    base.write_text(json.dumps(stored), encoding="utf-8")
    lone = next(row["name"] for row in report.cells[0].dispatches if not row["base"])
    model = ["--model", "minus", "--target", "vmvx", "--dispatch", lone]
    assert (
        main(
            ["trace", "--base", str(base), "--head", "3.13.0", flags, *work[3:], *model]
        )
        == 5
    )
    message = capsys.readouterr().err
    assert f"{lone}: is only on head, and has no counterpart" in message


@pytest.mark.parametrize("pattern", ["a:b*", "head:a:b*", "base:dispatch_0"])
def test_a_colon_in_a_name_is_no_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pattern: str
) -> None:
    """Nor an emoji; the compiler prints no pass over such a name, and that is what is said."""
    function = (
        'func.func @"a:b"(%x: tensor<8xf32>) -> tensor<8xf32> {\n  %y = math.exp %x :'
        " tensor<8xf32>\n"
    )
    (tmp_path / "m.mlir").write_text(
        f"{function}  return %y : tensor<8xf32>\n}}\n", encoding="utf-8"
    )
    (tmp_path / "c.yml").write_text(
        "schema: code-size-config/1\nmodels: [m.mlir]\ntargets: [vmvx]\n",
        encoding="utf-8",
    )
    cell = ("--model", "m", "--target", "vmvx", "--dispatch", pattern)
    assert main(["trace", *SIDES, "--config", str(tmp_path / "c.yml"), *cell]) == 5
    captured = capsys.readouterr()
    assert "a:b_dispatch_0" in captured.out
    assert (
        f"{pattern} of m on vmvx: was not traced: base: the compiler printed no pass"
        " for it" in captured.err
    )


@pytest.mark.parametrize("release", ["3.11.0", "3.13.0"])
def test_counts_are_those_of_the_compilers_own_parser(
    tmp_path: Path, release: str
) -> None:
    toolchain = resolve(release, default_cache(), Cancel(), print)
    if toolchain.bindings is None:
        pytest.fail(toolchain.no_bindings)
    flags = [
        "--iree-hal-target-backends=llvm-cpu",
        "--iree-llvmcpu-target-triple=x86_64-unknown-linux-gnu",
    ]
    options = [
        "--mlir-print-ir-after-all",
        "--mlir-print-ir-after-change",
        "--mlir-disable-threading",
    ]
    compiled = subprocess.run(
        [toolchain.binary, "-", *flags, *options, "-o", tmp_path / "a.vmfb"],
        input=PRODUCT.encode(),
        capture_output=True,
        check=True,
    )
    name = "main_dispatch_0_matmul_Dx64x64_f32"
    dumps = compiled.stderr.decode().split("// -----// IR Dump After ")[1:]
    compared = 0
    for dump in dumps:
        header, _, body = dump.partition("\n")
        if not body.lstrip().startswith(f"func.func @{name}("):
            continue  # not of the function alone: the parser counts what stands around it, too
        counted = subprocess.run(
            [sys.executable, "-c", COUNTED],
            input=body.encode(),
            capture_output=True,
            env={"PYTHONPATH": str(toolchain.bindings)},
            check=True,
        )
        reader = PassReader(name)
        reader.feed(f"// -----// IR Dump After {header}\n{body}".encode())
        reader.feed(b"")
        expected = {
            name: count
            for name, count in json.loads(counted.stdout).items()
            if name not in NOT_COUNTED
        }
        (state,) = DispatchTrace(tuple(reader.steps)).states()
        assert {
            name: count
            for name, count in state.operations.items()
            if name not in NOT_COUNTED
        } == expected, header
        compared += 1
    assert compared > 20
