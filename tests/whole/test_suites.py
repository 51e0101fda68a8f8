"""A suite in IREE's layout with real compilers: fetched, measured by its own flags, held to its goldens, patched."""

from __future__ import annotations

import hashlib
import json
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from https_site import Page, Site, serving
from real_compilers import binary, own_cache
from torch_models import CPU, HIP, TINY, compstat, configuration, module, suite

from bot.cli.main import main
from bot.core.snapshot import Cell, from_json

BASE, HEAD = "3.12.0", "3.13.0"
MODELS = ("small-tiny_cpu", "small-tiny_vmvx")

pytestmark = pytest.mark.compiler


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with serving(tmp_path, monkeypatch) as site:
        yield site


@pytest.fixture
def home(tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the suite, whose model is behind a redirect; the cache shares the compilers."""
    home = tmp_path / "home"
    site.put("/tiny.mlir", Page(TINY))
    suite(home / "suite", site.put("/latest.mlir", Page(status=307, headers={"Location": "/tiny.mlir"})))
    configuration(home)
    own_cache(home / "cache")
    monkeypatch.chdir(home)
    subprocess.run(["git", "init", "-q", home], check=True)
    return home


def cells(path: Path) -> dict[str, Cell]:
    return {cell.key.model: cell for cell in from_json(path.read_text(encoding="utf-8")).cells}


def plainly(cell: Cell, home: Path) -> bytes:
    """The artifact of the printed command, in another folder."""
    there = home / "elsewhere" / cell.key.model
    there.mkdir(parents=True)
    command = cell.command.partition(" | ")[2]
    subprocess.run([binary(HEAD), *shlex.split(command)[1:]], input=TINY, cwd=there, capture_output=True, check=True)
    return (there / f"{cell.key.model}.vmfb").read_bytes()


def run(*words: str) -> int:
    return main((*words, "--config", "code-size.yml", "--cache", "cache"))


def test_a_suite_is_measured_judged_and_its_goldens_patched(
    home: Path, site: Site, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run("measure", "--compiler", HEAD, "--out", "head.json") == 0
    head = cells(home / "head.json")
    assert tuple(head) == MODELS and {cell.status for cell in head.values()} == {"ok"}
    assert site.asked == {"/latest.mlir": 1, "/tiny.mlir": 1}
    assert " ".join(CPU) in head[MODELS[0]].command
    for cell in head.values():
        assert hashlib.sha256(plainly(cell, home)).hexdigest() == cell.artifact_digest
    assert head[MODELS[0]].metrics["stack_alloca_bytes"] is not None

    # The golden of the binary is too small: base broke it as well, so it is known, and the growth is what is judged.
    assert run("compare", "--base", BASE, "--head", "head.json", "--out", "out") == 0
    report = json.loads((home / "out/report.json").read_text(encoding="utf-8"))
    (found,) = (one for one in report["verdict"]["findings"] if one["kind"] == "limit")
    assert (found["rule"], found["known"]) == ("small/compstat_cpu.json:8 golden_binary_size", True)
    assert "small-tiny_cpu" in (home / "out/comment.md").read_text(encoding="utf-8")

    capfdbinary.readouterr()
    assert run("goldens", "--base", "out/base.json", "--head", "head.json") == 0
    text = capfdbinary.readouterr().out
    sites, size = (head[MODELS[0]].metrics[name] for name in ("dispatch_sites", "artifact_bytes"))
    assert f"golden_binary_size 100 -> {size}; ".encode() in text
    subprocess.run(["git", "apply"], input=text, cwd=home, check=True)
    assert run("goldens", "--head", "head.json") == 0
    assert b"diff --git" not in capfdbinary.readouterr().out
    golden = json.loads((home / "suite/small/compstat_cpu.json").read_text(encoding="utf-8"))
    assert (golden["golden_dispatch_count"], golden["golden_binary_size"]) == (sites, size)


def test_a_golden_that_base_kept_and_head_breaks_fails(home: Path) -> None:
    module(home / "suite", "small/modules/tiny_gfx942", "small/tiny.mlir", HIP)
    sizes = {}
    for side, compiler in (("base", BASE), ("head", HEAD)):
        assert run("measure", "--compiler", compiler, "--model", "*gfx942", "--out", f"{side}.json") == 0
        sizes[side] = cells(home / f"{side}.json")["small-tiny_gfx942"].metrics["artifact_bytes"]
    assert sizes["base"] is not None and sizes["head"] is not None and sizes["base"] < sizes["head"]
    rule = "small/compstat_hip.json:7 golden_binary_size"
    for golden, code in ((sizes["base"], 1), (sizes["head"], 0)):
        compstat(home / "suite", "small/compstat_hip.json", "small/modules/tiny_gfx942", golden_binary_size=golden)
        words = ("--base", "base.json", "--head", "head.json", "--model", "*gfx942", "--out", "out")
        assert run("report", *words) == code
        report = json.loads((home / "out/report.json").read_text(encoding="utf-8"))
        assert (rule in [one["rule"] for one in report["verdict"]["findings"]]) is bool(code)
        comment = (home / "out/comment.md").read_text(encoding="utf-8").replace("\\", "").replace("\u2060", "")
        assert (rule in comment) is bool(code)
