"""A flag on one side: the report names the pass that the flag changes, whichever side has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from json_rows import read_json
from real_compilers import bot
from reduction_models import SUMS

pytestmark = pytest.mark.compiler

PASS = "iree-llvmcpu-split-reduction"
PLAIN = "schema: code-size-config/1\nmodels: [m.mlir]\ntargets: [llvm-cpu-x86_64]\n"


@pytest.mark.parametrize(
    ("base", "head"), [("plain", "optimized"), ("optimized", "plain")]
)
def test_the_pass_that_a_flag_changes_is_named_from_both_sides(
    tmp_path: Path, base: str, head: str
) -> None:
    """Without the flag the pass prints nothing, and a later pass does.

    The report named the later pass.
    """
    (tmp_path / "m.mlir").write_text(SUMS, encoding="utf-8")
    (tmp_path / "plain.yml").write_text(PLAIN, encoding="utf-8")
    flags = "flags: [--iree-opt-level=O3]\n"
    (tmp_path / "optimized.yml").write_text(PLAIN + flags, encoding="utf-8")
    configs = ("--config", f"{base}.yml", "--head-config", f"{head}.yml")
    bot("compare", "--compiler", "3.13.0", *configs, "--out", "out", cwd=tmp_path)
    report = read_json(tmp_path / "out/report.json")
    causes = [root for root in report.root_causes if root.cause == "codegen"]
    assert [root["pass"] for root in causes] == [PASS]
