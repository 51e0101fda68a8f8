"""Real compiles that give more than a plain `.vmfb`: what ships is measured, or the build fails with the reason."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from real_compilers import bot, own_cache

from bot.core.metrics import ARTIFACT_PARTS, OTHER, TABLES
from bot.core.snapshot import Cell, from_json

pytestmark = pytest.mark.compiler

RELEASE = "3.13.0"
MATMUL = """func.func @layer(%x: tensor<32x64xf32>, %y: tensor<64x32xf32>) -> tensor<32x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x32xf32>
  %sum = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x32xf32>) -> tensor<32x32xf32>
  %0 = linalg.matmul ins(%x, %y : tensor<32x64xf32>, tensor<64x32xf32>)
      outs(%sum : tensor<32x32xf32>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}
"""
ZIP = "--iree-vm-emit-polyglot-zip=true"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return own_cache(tmp_path_factory.mktemp("cache"), RELEASE)


@dataclass(frozen=True)
class Suite:
    """One model and its targets, in a folder of its own."""

    home: Path
    cache: Path

    def write(self, model: str, targets: Sequence[str] | Mapping[str, Any]) -> Path:
        """Write the model and the configuration, and return its path."""
        (self.home / "model.mlir").write_text(model, encoding="utf-8")
        keys = {"schema": "code-size-config/1", "models": ["model.mlir"], "targets": targets}
        path = self.home / "config.yml"
        path.write_text(json.dumps(keys), encoding="utf-8")
        return path

    def measure(self, model: str, targets: Sequence[str] | Mapping[str, Any]) -> dict[str, Cell]:
        """Return target → cell."""
        config, out = self.write(model, targets), self.home / "snapshot.json"
        bot("measure", "--compiler", RELEASE, "--config", config, "--cache", self.cache, "--out", out)
        return {cell.key.target: cell for cell in from_json(out.read_text(encoding="utf-8")).cells}

    def compare(self, model: str, targets: Mapping[str, Any], *options: str) -> dict[str, Any]:
        """Return target → cell of the report, of a comparison with these options on head."""
        config, out = self.write(model, targets), self.home / "out"
        where = ("--config", config, "--cache", self.cache, "--out", out)
        bot("compare", "--compiler", RELEASE, *options, *where)
        report = json.loads((out / "report.json").read_text(encoding="utf-8"))
        return {cell["target"]: cell for cell in report["cells"]}


@pytest.fixture
def suite(tmp_path: Path, cache: Path) -> Suite:
    """A folder of its own for each test."""
    return Suite(tmp_path, cache)


def extended(*flags: str, target: str = "llvm-cpu-x86_64") -> dict[str, Any]:
    """Return a target of the configuration that adds these flags."""
    return {"extends": target, "flags": list(flags)}


def require_parts(cell: Cell) -> None:
    """Check that the artifact's size is known, and the sum of its parts."""
    values = [cell.metrics[name] for name in ARTIFACT_PARTS]
    assert None not in values
    assert sum(value or 0 for value in values) == cell.metrics["artifact_bytes"]


# The compiler's default container.


@pytest.mark.parametrize("target", ["llvm-cpu-x86_64", "vmvx", "vulkan-spirv"])
def test_a_polyglot_zip_is_read_like_the_plain_artifact(suite: Suite, target: str) -> None:
    cells = suite.measure(MATMUL, {"zip": extended(ZIP, target=target), target: extended(target=target)})
    zipped, plain = cells["zip"], cells[target]
    assert (zipped.status, plain.status) == ("ok", "ok")
    require_parts(zipped)
    assert zipped.metrics["entry_points"] == plain.metrics["entry_points"] == 1
    headers = (TABLES, OTHER)  # an executable of vmvx is a ZIP itself
    assert without(zipped.parts, headers) == without(plain.parts, headers)
    assert (zipped.metrics["artifact_bytes"] or 0) > (plain.metrics["artifact_bytes"] or 0)


def without(parts: Mapping[str, int], names: Collection[str]) -> dict[str, int]:
    """Return the parts but for these."""
    return {name: size for name, size in parts.items() if name not in names}
