"""bot.compiler.bindings: a wheel of another Python says what the release's wheel for this Python says, or why not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import needs
import pytest

from bot.cli.main import main
from bot.compiler.bindings import QUESTIONS, questions, reading, with_reader, working
from bot.compiler.bindings import _reads_sample as reads_sample
from bot.compiler.toolchain import resolve
from bot.core.policy import is_local
from bot.system.defaults import default_cache
from bot.system.processes import Cancel, run

pytestmark = pytest.mark.slow
RELEASE = "3.13.0"
MODEL = """func.func @two(%a: tensor<8x64xf32>, %b: tensor<64x32xf32>) -> tensor<8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x32xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x32xf32>) -> tensor<8x32xf32>
  %product = linalg.matmul ins(%a, %b : tensor<8x64xf32>, tensor<64x32xf32>)
    outs(%fill : tensor<8x32xf32>) -> tensor<8x32xf32>
  %result = linalg.softmax dimension(1) ins(%product : tensor<8x32xf32>)
    outs(%empty : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %result : tensor<8x32xf32>
}
"""


def wheel(python: str) -> Path:
    """The release's wheel for a Python, fetched once into the user's cache."""
    home = default_cache() / "wheels"
    if not (found := sorted(home.glob(f"*-{RELEASE}-{python}-*.whl"))):
        argv = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", f"--dest={home}"]
        version = f"3.{python.removeprefix('cp3')}"
        subprocess.run([*argv, f"--python-version={version}", f"iree-base-compiler=={RELEASE}"], check=True)
        found = sorted(home.glob(f"*-{RELEASE}-{python}-*.whl"))
    return found[0]


def figures(compiler: Path | str, tmp_path: Path) -> str:
    """The cells of a snapshot, without their command, that this compiler gives."""
    (tmp_path / "two.mlir").write_text(MODEL)
    config = "schema: code-size-config/1\nmodels: [two.mlir]\ntargets: [llvm-cpu-x86_64, vulkan-spirv, vmvx]\n"
    (tmp_path / "code-size.yml").write_text(config)
    out = tmp_path / "out.json"
    argv = ["measure", "--compiler", str(compiler), "--config", str(tmp_path / "code-size.yml"), "--out", str(out)]
    assert main([*argv, "--cache", str(tmp_path / "cache")]) == 0
    cells = json.loads(out.read_text())["cells"]
    for cell in cells:  # what the clock and the kernel say
        for metric in ("compile_cpu_ms", "compile_peak_rss_kib"):
            cell["metrics"].pop(metric, None)
            cell["reasons"].pop(metric, None)
        cell.pop("phases_ms", None)
    return json.dumps(cells, indent=1)


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A cache that has the release for this Python and nothing else."""
    home = resolve(RELEASE, default_cache(), Cancel(), print).binary.parents[3]
    (tmp_path / "cache" / "toolchains").mkdir(parents=True)
    (tmp_path / "cache" / "toolchains" / home.name).symlink_to(home)
    return tmp_path


@pytest.mark.parametrize("python", ["cp310", "cp312"])
def test_wheels_of_other_pythons_give_the_same_figures(
    python: str, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = figures(RELEASE, shared)
    assert '"stack_alloca_bytes": null' not in own.partition("vmvx")[0]
    monkeypatch.setenv("PATH", "/nonexistent")  # no other Python: the release's own bindings are lent
    assert figures(wheel(python), shared) == own


def test_an_interpreter_of_the_wheel_s_tag_reads_its_ir(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    homes = (Path(python).parent for python in sorted(Path.home().glob(".pyenv/versions/3.10.*/bin/python3.10")))
    monkeypatch.setenv("PATH", os.pathsep.join((os.environ["PATH"], *map(str, homes))))
    python = needs.program("python3.10") if not shutil.which("python3.10") else "python3.10"
    toolchain = with_reader(resolve(str(wheel("cp310")), shared / "cache", Cancel(), print), shared, Cancel(), print)
    assert toolchain.bindings == toolchain.binary.parents[3]
    assert toolchain.python.endswith("python3.10") and toolchain.read_by.endswith(toolchain.python), python


def test_other_releases_bindings_say_the_same_or_that_they_cannot_read_it(tmp_path: Path) -> None:
    """Of a text of each release, read by each of the others: what makes it safe to lend them."""
    (tmp_path / "two.mlir").write_text(MODEL)
    releases = ("3.8.0", "3.11.0", "3.12.0", "3.13.0")
    toolchains = {name: resolve(name, default_cache(), Cancel(), print) for name in releases}
    same: list[tuple[str, str, str]] = []
    refused: list[tuple[str, str, str]] = []
    for text, toolchain in toolchains.items():
        work = tmp_path / text
        work.mkdir()
        argv = [str(toolchain.binary), "-", "--iree-hal-target-backends=llvm-cpu", "--mlir-print-debuginfo"]
        argv += ["--dump-compilation-phases-to=phases", "-o", "two.vmfb"]
        assert run(argv, cancel=Cancel(), stdin=tmp_path / "two.mlir", cwd=work).ok
        answers = {}
        for reader, lender in toolchains.items():
            lent = replace(toolchain, bindings=None, lent=lender.bindings)
            with closing(reading(toolchain if reader == text else lent, Cancel())) as bindings:
                for question, files in questions(work / "phases").items():
                    answer = bindings.ask(question, **{name: str(file) for name, file in files.items()}) or ""
                    answers[reader, question] = answer
            whole = all("error" not in json.loads(answers[reader, question]) for question in QUESTIONS)
            assert reader == text or reads_sample(lent, Cancel()) == whole
        for (reader, question), answer in answers.items():
            error = json.loads(answer).get("error")
            (refused if error else same).append((text, reader, question))
            assert is_local(error) if error else answer == answers[text, question]
    assert ("3.12.0", "3.13.0", "program") in same and ("3.11.0", "3.13.0", "strategies") in refused


def test_lent_bindings_write_nothing() -> None:
    toolchain = resolve(RELEASE, default_cache(), Cancel(), print)
    lent = replace(toolchain, bindings=None, no_bindings="none here", lent=toolchain.bindings)
    with closing(reading(lent, Cancel())) as bindings:
        assert "bindings of this compiler's own" in (bindings.ask("interface", flow="a") or "")
    assert working(lent, Cancel()).reason == "none here"
