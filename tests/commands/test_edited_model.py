"""A model that was edited: which operations came and went, in words that tell a reader something."""

from __future__ import annotations

from pathlib import Path

import pytest
from prepared_program import bot
from real_compilers import own_cache

pytestmark = pytest.mark.compiler

RELEASE = "3.13.0"
CONFIG = "schema: code-size-config/1\nmodels: [model.mlir]\ntargets: [vmvx]\n"
MODEL = """func.func @main(%a: tensor<16xf32>) -> tensor<16xf32> {{
  %0 = arith.addf %a, %a : tensor<16xf32>{rest}
}}
"""
SHORT = "\n  return %0 : tensor<16xf32>"
LONG = """
  %1 = math.exp %0 : tensor<16xf32>
  %2 = arith.mulf %1, %0 : tensor<16xf32>
  %3 = math.sqrt %2 : tensor<16xf32>
  return %3 : tensor<16xf32>"""


def snapshot(home: Path, cache: Path, body: str) -> Path:
    """Measure the model with this body; return the snapshot's path."""
    home.mkdir()
    (home / "code-size.yml").write_text(CONFIG)
    (home / "model.mlir").write_text(MODEL.format(rest=body))
    path = home / "snapshot.json"
    options = (
        "--compiler",
        RELEASE,
        "--config",
        home / "code-size.yml",
        "--cache",
        cache,
    )
    bot("measure", *options, "--out", path)
    return path


def test_operations_outside_any_component_are_named_by_what_they_are(
    tmp_path: Path,
) -> None:
    cache = own_cache(tmp_path / "cache", RELEASE)
    base = snapshot(tmp_path / "base", cache, SHORT)
    head = snapshot(tmp_path / "head", cache, LONG)
    bot("report", "--base", base, "--head", head, "--out", tmp_path / "out")
    comment = (tmp_path / "out" / "comment.md").read_text()
    (changed,) = (line for line in comment.splitlines() if "What changed" in line)
    assert "unattributed" not in changed
    assert "`arith.mulf` +1, `math.exp` +1, `math.sqrt` +1" in changed
