"""bot.study.cell: a cell of cuda with an assembler, without one, and with one that refuses."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import needs
import pytest
from places import FIXTURES, ROOT

from bot.compiler.compiler import Compiled
from bot.compiler.compiling import ARTIFACT
from bot.compiler.ptxas import MISSING, Assembler, Ptxas, installed
from bot.core.planned import PlannedCell, Target, plan
from bot.core.policy import lasts
from bot.core.snapshot import ASSEMBLED, Cell
from bot.study.cell import cell_of
from bot.study.prepare import load_models
from bot.system.processes import Cancel

DENSE = (FIXTURES / "binaries" / "dense.cuda.vmfb").read_bytes()
MODEL = ROOT / "configs" / "models" / "mobilenet_v1_f32_224.mlir"
FLAGS = ("--iree-cuda-target=sm_80",)


def planned(backend: str = "cuda") -> PlannedCell:
    (cell,) = plan(load_models([MODEL], None), (Target(backend, backend, FLAGS if backend == "cuda" else ()),))
    return cell


def cell(artifact: bytes, ptxas: Ptxas | None, backend: str = "cuda") -> Cell:
    compiled = Compiled({ARTIFACT: artifact}, 120, 90_000)
    return cell_of(planned(backend), compiled, assembler=Assembler(Cancel(), 60, ptxas))


def real() -> Ptxas:
    return installed() or needs.missing("the extra cuda is not installed")


def test_a_cell_has_what_the_assembler_made() -> None:
    found = cell(DENSE, real())
    assert [found.value(name) for name in ASSEMBLED] == [48, 0, 4_992]
    assert found.assembler == real().name and found.status == "ok" and found.value("compile_cpu_ms") == 120
    assert {(one.registers, one.spill_bytes, one.sass_bytes) for one in found.dispatches} == {
        (48, 0, 3_712),
        (16, 0, 1_280),
    }


def test_without_an_assembler_the_rest_is_measured_and_says_how_to_get_it() -> None:
    found, full = cell(DENSE, None), cell(DENSE, real())
    assert found.status == "ok" and found.assembler is None and lasts(found)
    assert {found.reasons[name] for name in ASSEMBLED} == {MISSING}
    assert {name for name, value in full.metrics.items() if found.value(name) != value} == set(ASSEMBLED)


def test_a_refusal_is_a_reason_and_no_failure(tmp_path: Path) -> None:
    binary = tmp_path / "ptxas"
    binary.write_text("#!/bin/sh\necho 'ptxas module.ptx, line 3; error   : no such thing' >&2\nexit 255\n")
    binary.chmod(0o755)
    found = cell(DENSE, Ptxas(binary, "1.2.3"))
    words = "ptxas refuses the PTX text: ptxas module.ptx, line 3; error   : no such thing"
    assert found.status == "ok" and {found.reasons[name] for name in ASSEMBLED} == {words}
    assert found.value("executable_bytes") and found.assembler == "ptxas 1.2.3 -O3"


def test_other_backends_have_no_assembler() -> None:
    found = cell((FIXTURES / "binaries" / "dense.rocm.vmfb").read_bytes(), Ptxas(Path("none"), "1"), "rocm")
    assert found.assembler is None and found.value("sass_bytes") is None
    assert (found.value("vgprs_max") or 0) > 0 and found.value("vgpr_spills") == 0 == found.value("sgpr_spills")


@pytest.mark.compiler
def test_a_real_model_against_the_assembler_by_hand(compiler_root: Path, tmp_path: Path) -> None:
    """The dumped PTX, assembled here and read by pattern: another way to every figure."""
    command = [str(compiler_root / "iree/compiler/_mlir_libs/iree-compile"), "-", *planned().argv, "-o", "out.vmfb"]
    command += ["--iree-hal-dump-executable-binaries-to=bin"]
    with MODEL.open() as text:
        subprocess.run(command, stdin=text, cwd=tmp_path, check=True, capture_output=True)
    found = cell((tmp_path / "out.vmfb").read_bytes(), real())
    (ptx,) = (tmp_path / "bin").glob("*.ptx")
    by_hand = [str(real().binary), "-v", "--gpu-name", "sm_80", "-o", "by_hand.cubin", str(ptx)]
    said = subprocess.run(by_hand, cwd=tmp_path, capture_output=True, text=True, check=True)
    printed = said.stdout + said.stderr
    assert found.value("registers_max") == max(map(int, re.findall(r"Used (\d+) registers", printed)))
    spills = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", printed)
    assert found.value("spill_bytes") == sum(int(size) for pair in spills for size in pair)
    assert {int(size) for size in re.findall(r"(\d+) bytes smem", printed)} <= {0}  # launches ask for theirs
    sections = subprocess.run(["readelf", "-SW", "by_hand.cubin"], cwd=tmp_path, capture_output=True, text=True).stdout
    sizes = re.findall(r"\] \.text\.\S+ +PROGBITS +\S+ \S+ (\S+) ", sections)
    assert found.value("sass_bytes") == sum(int(size, 16) for size in sizes) > 100_000
