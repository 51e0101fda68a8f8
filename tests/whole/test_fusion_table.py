"""The table of `lab aggressive-fusion`: every figure equals that of a direct compile with the same flags."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from direct_compile import DirectCompile
from json_rows import JsonRow, read_json
from places import FIXTURES
from real_compilers import binary, bot, own_cache

pytestmark = pytest.mark.compiler

COMPILER = "3.13.0"
CONFIG = (
    "schema: code-size-config/1\nmodels: [models/*.mlir]\ntargets: [llvm-cpu-x86_64,"
    " vmvx]\n"
)
X86_64 = (
    "--iree-hal-target-backends=llvm-cpu",
    "--iree-llvmcpu-target-triple=x86_64-unknown-linux-gnu",
    "--iree-llvmcpu-target-cpu=x86-64-v3",
)
OPTION = "--iree-dispatch-creation-enable-aggressive-fusion"
VARIANTS = {"off": f"{OPTION}=false", "on": OPTION}
# The halves of the result are copied, and its end is filled.
MOVES = """\
func.func @moves(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %c: tensor<8x8xf32>)
    -> (tensor<16x8xf32>, tensor<8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %none = tensor.empty() : tensor<16x8xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%none : tensor<16x8xf32>) -> tensor<16x8xf32>
  %first = tensor.insert_slice %a into %filled[0, 0] [4, 8] [1, 1] : tensor<4x8xf32> into tensor<16x8xf32>
  %both = tensor.insert_slice %b into %first[4, 0] [4, 8] [1, 1] : tensor<4x8xf32> into tensor<16x8xf32>
  %rest = tensor.empty() : tensor<4x8xf32>
  %more = linalg.fill ins(%zero : f32) outs(%rest : tensor<4x8xf32>) -> tensor<4x8xf32>
  %sum = linalg.matmul ins(%a, %c : tensor<4x8xf32>, tensor<8x8xf32>)
    outs(%more : tensor<4x8xf32>) -> tensor<4x8xf32>
  %two = tensor.concat dim(0) %sum, %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  return %both, %two : tensor<16x8xf32>, tensor<8x8xf32>
}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two small models, and what the experiment wrote of them."""
    home = tmp_path_factory.mktemp("fusion")
    (home / "models").mkdir()
    shutil.copy(FIXTURES / "e2e/models/embedding_norm.mlir", home / "models")
    (home / "models/moves.mlir").write_text(MOVES, encoding="utf-8")
    (home / "c.yml").write_text(CONFIG, encoding="utf-8")
    own_cache(home / "cache", COMPILER)
    places = (
        "--config",
        home / "c.yml",
        "--cache",
        home / "cache",
        "--out",
        home / "out",
    )
    bot("lab", "aggressive-fusion", "--compiler", COMPILER, *places, codes=(0,))
    return home


@pytest.fixture(scope="module")
def direct(home: Path) -> dict[tuple[str, str], dict[str, int]]:
    """Model and variant → metric → what a direct compile for x86-64 says of it."""
    counts = {}
    for model in sorted((home / "models").glob("*.mlir")):
        for variant, flag in VARIANTS.items():
            folder = home / f"{model.stem}-{variant}"
            folder.mkdir()
            compiled = DirectCompile(
                folder, binary(COMPILER), (*X86_64, flag), model
            ).run()
            counts[model.stem, variant] = {
                "fills": compiled.statistic("execution", "fill-count"),
                "copies": compiled.statistic("execution", "copy-count"),
                "dispatch_sites": compiled.statistic("execution", "dispatch-count"),
                "executables": compiled.statistic("executable", "executable-count"),
                "dispatch_regions": compiled.regions(),
                "linalg_ops_unfused": compiled.linalg_before_fusion(),
                "linalg_ops": compiled.linalg_in_regions(),
                "stack_alloca_bytes": compiled.allocations(),
                "refused": int(compiled.is_refused()),
            }
    return counts


def test_every_figure_of_a_build_is_that_of_a_direct_compile(
    home: Path, direct: dict[tuple[str, str], dict[str, int]]
) -> None:
    cells = [
        cell
        for cell in read_json(home / "out/lab.json").cells
        if cell.target == "llvm-cpu-x86_64"
    ]
    assert {(cell.model, cell.variant) for cell in cells} == set(direct)
    for cell in cells:
        expected = direct[cell.model, cell.variant]
        figures = {
            metric: cell.metrics[metric] for metric in expected if metric != "refused"
        }
        refused = int(cell.status == "over-stack-limit")
        assert {**figures, "refused": refused} == expected, (cell.model, cell.variant)
    for metric in ("fills", "copies", "refused"):  # none of them is 0 everywhere
        assert any(counts[metric] for counts in direct.values()), metric


def test_the_one_table_has_the_sums_of_direct_compiles(
    home: Path, direct: dict[tuple[str, str], dict[str, int]]
) -> None:
    text = (home / "out/lab.md").read_text(encoding="utf-8")
    table = (
        text.partition("\nOn `llvm-cpu-x86_64`")[2]
        .partition("\n\n")[2]
        .partition("\n\n")[0]
    )
    headers, _, *rows = [
        [word.strip() for word in line.strip("|").split("|")]
        for line in table.splitlines()
    ]
    assert [row[0] for row in rows] == ["`off`", "`on`"]
    labels = {
        "fills": "fills",
        "copies": "copies",
        "dispatch_sites": "dispatch sites",
        "executables": "executables",
        "dispatch_regions": "dispatch regions",
        "linalg_ops_unfused": "linalg operations before fusion",
        "linalg_ops": "linalg operations",
    }
    for row in rows:
        variant = row[0].strip("`")
        columns = dict(zip(headers, row, strict=True))
        figures = [counts for (_, name), counts in direct.items() if name == variant]
        for metric, label in labels.items():
            assert leading_number(columns[label]) == sum(
                counts[metric] for counts in figures
            ), (variant, metric)
        largest = max(counts["stack_alloca_bytes"] for counts in figures)
        assert leading_number(columns["stack allocations, B"]) == largest
        refused = sum(counts["refused"] for counts in figures)
        expected = (
            f"⚠️ refuses {refused} of {len(figures)} builds" if refused else "passes"
        )
        assert columns["stack gate of 32 KiB"] == expected


def leading_number(text: str) -> int:
    number = re.match(r"[\d,]+", text)
    assert number, text
    return int(number[0].replace(",", ""))


def test_a_target_without_the_gate_has_no_column_for_it(home: Path) -> None:
    text = (home / "out/lab.md").read_text(encoding="utf-8")
    table = text.partition("\nOn `vmvx`")[2].partition("\n\n")[2].partition("\n\n")[0]
    assert "stack gate" not in table and "| n/a |" in table


def test_a_limit_of_ones_own_is_not_called_the_default(home: Path) -> None:
    out = home / "own"
    places = ("--config", home / "c.yml", "--cache", home / "cache", "--out", out)
    flag = "--flags=--iree-llvmcpu-stack-allocation-limit=131072"
    selected = ("--model", "embedding_norm", "--target", "x86_64")
    bot(
        "lab",
        "aggressive-fusion",
        "--compiler",
        COMPILER,
        *places,
        flag,
        *selected,
        codes=(0,),
    )
    text = (out / "lab.md").read_text(encoding="utf-8")
    assert (
        "| stack gate |" in text
        and "refuses" not in text
        and "stack gate of" not in text
    )
    assert {cell.status for cell in rows_of(out)} == {"ok"}


def rows_of(out: Path) -> list[JsonRow]:
    return list(read_json(out / "lab.json").cells)
