"""A row in the table of metrics or of backends is found everywhere, and nothing but its reader is written besides."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fake_compiler import TEMPLATES, install, install_native, write_model
from places import ROOT, TESTS

METRIC = """    Metric("fake_bytes", "fake size", "bytes", "what nobody else measures", "thin air", tracked=True),
"""
READER = """        "fake_bytes": Known(2 * len(products.artifact)),
"""
FIGURE = """    Metric("fake_words", "fake words", "count", "words of bytecode", of_entry="fake_words", backend="vmvx"),
"""
FIELD = """    fake_words: Count | None = None
"""
FIGURE_READER = "fake_words=length // 4, "
BACKEND = """    Backend("fake-npu", 3.0, text_form="fake text", no_frames="fakes have no frames"),
"""
TARGET = """  fake-npu: {backend: fake-npu, flags: [--iree-fake-chip=1]}
"""
CONFIG = """schema: code-size-config/1
models: ["*.mlir"]
targets: [vmvx, fake-npu]
thresholds: [{name: fakes, metrics: [fake_bytes], fail: 0}, {name: rest, metrics: ["*"]}]
"""


def inserted(path: Path, before: str, text: str) -> None:
    whole = path.read_text(encoding="utf-8")
    assert whole.count(before) == 1, (path, before)
    path.write_text(whole.replace(before, text + before), encoding="utf-8")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with both rows, and what `compare` wrote of two compilers."""
    home = tmp_path_factory.mktemp("rows")
    for name in ("bot", "configs", "templates", "docs"):
        shutil.copytree(
            ROOT / name,
            home / name,
            ignore=shutil.ignore_patterns("__pycache__", "models", "comments"),
        )
    (home / "configs/models").symlink_to(ROOT / "configs/models")
    inserted(home / "bot/core/metrics.py", ")\n\nMETRIC_BY_ID", METRIC + FIGURE)
    inserted(home / "bot/core/snapshot.py", "    registers: Count", FIELD)
    inserted(
        home / "bot/readers/vm_module.py", "code=code_digest(code))", FIGURE_READER
    )
    inserted(
        home / "bot/readers/assemble.py",
        "        **parsed.program_metrics(),\n",
        READER,
    )
    inserted(home / "bot/core/backends.py", ")\n\nBACKEND_BY_NAME", BACKEND)
    inserted(home / "configs/default.yml", "  vmvx: {backend: vmvx}\n", TARGET)
    run(home, "-m", "generated")
    (home / "suite").mkdir()
    (home / "suite/c.yml").write_text(CONFIG, encoding="utf-8")
    write_model(home / "suite", "alpha")
    templates = {**TEMPLATES, "fake-npu": TEMPLATES["vmvx"]}
    for name, rules in (("base", []), ("head", [{"do": "grow", "kind": "direct"}])):
        fake = install(home / f"fake-{name}", rules, version=name, templates=templates)
        install_native(home / name / "iree-compile", fake)
    sides = (
        "--base",
        str(home / "base"),
        "--head",
        str(home / "head"),
        "--cache",
        str(home / "cache"),
    )
    printed = run(
        home,
        "-m",
        "bot",
        "compare",
        "--config",
        "suite/c.yml",
        *sides,
        "--out",
        str(home / "out"),
        code=1,
    )
    (home / "out/terminal").write_text(printed, encoding="utf-8")
    return home


def run(home: Path, *arguments: str, code: int = 0) -> str:
    environment = {**os.environ, "PYTHONPATH": f"{home}:{TESTS / 'support'}"}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=home,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def test_a_metric_is_in_every_file_and_every_text(home: Path) -> None:
    out = home / "out"
    for side in ("base", "head"):
        for cell in json.loads((out / f"{side}.json").read_text())["cells"]:
            assert (
                cell["metrics"]["fake_bytes"] == 2 * cell["metrics"]["artifact_bytes"]
            )
    report = json.loads((out / "report.json").read_text())
    assert {finding["metric"] for finding in report["verdict"]["findings"]} == {
        "fake_bytes"
    }
    for cell in report["cells"]:
        assert (
            cell["metrics"]["fake_bytes"]["head"]
            - cell["metrics"]["fake_bytes"]["base"]
            == 128
        )
    for name in ("comment.md", "summary.md", "report.html", "terminal"):
        assert "fake size" in (out / name).read_text(), name
    assert "what nobody else measures" in (out / "report.html").read_text()
    assert '"fake_bytes"' in (home / "configs/schema.json").read_text()
    assert (
        "| `fake_bytes` | what nobody else measures | thin air |"
        in (home / "docs/metrics.md").read_text()
    )


def test_a_figure_of_an_entry_point_is_a_row_a_field_and_its_reader(home: Path) -> None:
    cells = json.loads((home / "out/head.json").read_text())["cells"]
    by_target = {cell["target"]: cell for cell in cells}
    rows = by_target["vmvx"]["dispatches"]
    assert rows
    for row in rows:
        assert row["fake_words"] == row["code_bytes"] // 4
    total = sum(row["fake_words"] for row in rows)
    assert by_target["vmvx"]["metrics"]["fake_words"] == total
    assert by_target["fake-npu"]["metrics"]["fake_words"] is None
    assert by_target["fake-npu"]["reasons"]["fake_words"] == "only vmvx has it"
    assert (
        "| `fake_words` | words of bytecode |" in (home / "docs/metrics.md").read_text()
    )


def test_a_backend_is_a_target_with_all_that_is_said_of_it(home: Path) -> None:
    cells = json.loads((home / "out/head.json").read_text())["cells"]
    [cell] = (cell for cell in cells if cell["target"] == "fake-npu")
    assert (
        cell["status"] == "ok"
        and "--iree-hal-target-backends=fake-npu" in cell["command"]
    )
    assert cell["reasons"]["stack_max_bytes"] == "fakes have no frames"
    assert (
        "fake-npu" in (home / "out/comment.md").read_text()
        and "fake text" in (home / "out/report.html").read_text()
    )
    assert "fake-npu" in run(home, "-m", "bot", "targets")
    schema = (home / "configs/schema.json").read_text()
    assert schema.count('"fake-npu"') == 2, "a default target, and a backend"
    assert (
        "| `fake-npu` | fake text | n/a: fakes have no frames | yes | its device |"
        in (home / "docs/metrics.md").read_text()
    )
