"""docs/scale.md: its array job, run by a stand-in scheduler, gives the snapshot that one machine gives."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from places import ROOT
from real_compilers import own_cache
from test_documented_commands import PROGRAM, script

pytestmark = pytest.mark.slow
SCHEDULER = """\
#!/bin/sh
for task in 1 2 3 4 5 6; do
  mkdir -p "node-$task"
  export SLURM_TMPDIR=$PWD/node-$task SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_TASK_COUNT=6 SLURM_CPUS_PER_TASK=2
  bash "$2" || exit 1
done
"""


def cells(path: Path) -> list[dict[str, object]]:
    """Of a snapshot, without what compiling cost."""
    rows: list[dict[str, object]] = json.loads(path.read_text())["cells"]
    for row in rows:
        metrics = row["metrics"]
        assert isinstance(metrics, dict)
        row["metrics"] = {
            name: value
            for name, value in metrics.items()
            if not name.startswith("compile_")
        }
    return rows


def test_an_array_job_gives_what_one_machine_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        shutil.copy(
            ROOT / "tests/fixtures/e2e/models/tiny.mlir", tmp_path / f"{name}.mlir"
        )
    config = (
        'schema: code-size-config/1\nmodels: ["*.mlir"]\ntargets: [llvm-cpu-riscv64,'
        " vulkan-spirv, vmvx]\n"
    )
    (tmp_path / "code-size.yml").write_text(config)
    batch, commands = re.findall(
        r"```bash\n(.*?)```",
        (ROOT / "docs/scale.md").read_text(encoding="utf-8"),
        re.DOTALL,
    )
    assert len(batch.rstrip().splitlines()) <= 8
    (tmp_path / "code-size.sbatch").write_text(batch)
    script(tmp_path / "bin/code-size-bot", PROGRAM)
    script(tmp_path / "bin/sbatch", SCHEDULER)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for task in (*(f"node-{number}/code-size-cache" for number in range(1, 7)), "own"):
        own_cache(tmp_path / task, "3.13.0")
    command = "code-size-bot measure --compiler 3.13.0 --cache own --out base.json"
    for line in (command, *commands.rstrip().splitlines()):
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    assert cells(tmp_path / "head.json") == cells(tmp_path / "base.json")
    assert (
        json.loads((tmp_path / "code-size-report/report.json").read_text())["verdict"][
            "status"
        ]
        == "pass"
    )
