"""The recipes of docs/compilers.md, each as it stands there; Triton and XLA from the package index.

The first command of the page is the test of Triton: code-size-bot compare 3.6.0 3.9.0
--config triton
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from places import ROOT

PAGE = (ROOT / "docs" / "compilers.md").read_text(encoding="utf-8")
TABLE = re.findall(
    r"^\| (\S+) ([\d×]+), (\S+) \| ([\d,]+) → ([\d,]+) B \| (.*?) \| ([\d,]+) →"
    r" ([\d,]+) B",
    PAGE,
    re.M,
)
WHOLE = ("base.json", "head.json", "report.json")
METRICS = ("executable_bytes", "vgpr_spills", "stack_max_bytes")
HEADER = "int area(int, int);\n"
SOURCE = (
    '#include "../include/area.h"\nint area(int a, int b) { int t[9]; t[a & 7] = b;'
    " return t[b & 7] * a; }\n"
)


def recipe(title: str, home: Path) -> None:
    """The files of one section."""
    section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    for text in re.findall(r"^```\w+\n(.*?)^```", section, re.M | re.S):
        path = home / text.partition("\n")[0].removeprefix("# ")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def compared(home: Path, *arguments: str) -> dict[tuple[str, str], dict[str, Any]]:
    argv = [
        sys.executable,
        "-m",
        "bot",
        "compare",
        *arguments,
        "--out",
        str(home / "out"),
        "--cache",
        str(home / "cache"),
    ]
    done = subprocess.run(argv, cwd=home, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    report = json.loads((home / "out/report.json").read_text())
    return {(cell["model"], cell["target"]): cell for cell in report["cells"]}


def without_costs(path: Path) -> str:
    """The text of a run's file but for what compiling cost in time and memory."""
    return re.sub(
        r'"compile_(cpu_ms|peak_rss_kib)":(\d+|\{[^}]*\})', "", path.read_text()
    )


def test_a_library_in_c(tmp_path: Path) -> None:
    recipe("A library in C", tmp_path)
    for name, text in (("src/area.c", SOURCE), ("include/area.h", HEADER)):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    cell = compared(tmp_path)["area", "here"]
    assert cell["state"] == "changed" and cell["metrics"]["stack_max_bytes"]["head"]


@pytest.mark.compiler
def test_xla(tmp_path: Path) -> None:
    recipe("XLA on the CPU", tmp_path)
    cell = compared(tmp_path)["mlp", "cpu"]
    metrics = cell["metrics"]
    assert metrics["transient_memory_bytes"] == {"base": 65536, "head": 65536}
    assert metrics["peak_memory_bytes"] == {"base": 578824, "head": 578820}
    assert "peak memory" in (tmp_path / "out/report.html").read_text()
    assert metrics["executables"]["head"] and metrics["executable_bytes"]["head"]


@pytest.mark.compiler
def test_triton_gives_the_table_of_the_page_to_the_byte_twice(tmp_path: Path) -> None:
    names = {"attention": "attn"}
    arguments = [
        "3.6.0",
        "3.9.0",
        "--config",
        "triton",
        "--model",
        "attn*",
        "--model",
        "matmul_256*",
    ]
    arguments += [
        word
        for target in ("gfx942", "gfx950", "gfx1100", "sm_80")
        for word in ("--target", target)
    ]
    cells = compared(tmp_path, *arguments)
    assert len(TABLE) == 5
    for kernel, shape, target, *row in TABLE:
        metrics = cells[
            f"{names.get(kernel, kernel)}_{shape.replace('×', 'x')}", target
        ]["metrics"]
        measured = [metrics[id_][side] for id_ in METRICS for side in ("base", "head")]
        spills = (
            [None, None]
            if row[2] == "n/a"
            else [int(figure.replace(",", "")) for figure in row[2].split(" → ")]
        )
        expected = [
            int(figure.replace(",", "")) for figure in (row[0], row[1], row[3], row[4])
        ]
        assert measured == [*expected[:2], *spills, *expected[2:]], (kernel, target)
    traced = cells["attn_128x64x128", "gfx1100"]["dispatches"]
    assert [row["cause"] for row in traced] == ["codegen"]
    first = [without_costs(tmp_path / "out" / name) for name in WHOLE]
    for path in (tmp_path / "cache").iterdir():
        if path.is_dir() and path.name != "toolchains":
            shutil.rmtree(path)
    compared(tmp_path, *arguments)
    assert [without_costs(tmp_path / "out" / name) for name in WHOLE] == first
