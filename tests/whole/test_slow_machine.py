"""A slow machine: the same comparison gives the same report, but for measured times and memory."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from json_rows import read_json
from places import ROOT
from real_compilers import bot, own_cache

from bot.core.parting import NO_BUDGET

SLOW_CLOCK = ROOT / "tests/support/slow_clock"
RELEASES = ("3.11.0", "3.13.0")
CONFIG = (
    "schema: code-size-config/1\nmodels: [{model}]\ntargets: [llvm-cpu-x86_64,"
    " llvm-cpu-riscv64]\n"
)
MEASURED = ("compile_cpu_ms", "compile_peak_rss_kib")
_TIME_OR_MEMORY = re.compile(r"[+−]?[\d,]+ (ms|KiB)( \([^)]*\))?")

pytestmark = pytest.mark.compiler


def written(home: Path, factor: int) -> Path:
    """The folder of a comparison on a machine that is so many times slower, with a cache of its own."""
    cache = own_cache(home / f"cache{factor}", *RELEASES)
    out = home / f"out{factor}"
    path = os.pathsep.join((str(SLOW_CLOCK), str(ROOT)))
    sides = ("--base", RELEASES[0], "--head", RELEASES[1])
    environment = {"PYTHONPATH": path, "CLOCK_FACTOR": str(factor)}
    bot(
        "compare",
        *sides,
        "--config",
        home / "c.yml",
        "--cache",
        cache,
        "--out",
        out,
        cwd=home,
        env=environment,
    )
    return out


def timeless(report: Any) -> Any:
    """The report without what was measured of the compiler's run."""
    for cell in report["cells"]:
        for metric in MEASURED:
            cell["metrics"].pop(metric, None)
    return report


def test_a_clock_three_times_as_fast_changes_no_trace_no_recheck_and_no_word(
    tmp_path: Path,
) -> None:
    model = ROOT / "configs/models/jax_mlp_train_step_f32.mlir"
    (tmp_path / "c.yml").write_text(CONFIG.format(model=model), encoding="utf-8")
    fast, slow = (written(tmp_path, factor) for factor in (1, 3))
    reports = [read_json(out / "report.json") for out in (fast, slow)]
    times = [
        sum(cell["metrics"]["compile_cpu_ms"]["head"] for cell in report["cells"])
        for report in reports
    ]
    assert times[1] > 1.5 * times[0], "the clock of the second run is another one"
    assert timeless(reports[0]) == timeless(reports[1])
    rows = [row for cell in reports[0]["cells"] for row in cell["dispatches"]]
    assert any(row.get("pass") for row in rows) and any(
        row.get("untraced") == NO_BUDGET for row in rows
    )
    for name in ("comment.md", "summary.md", "report.html"):
        texts = [(out / name).read_text(encoding="utf-8") for out in (fast, slow)]
        plain = [_TIME_OR_MEMORY.sub("", text) for text in texts]
        assert plain[0] == plain[1], name
