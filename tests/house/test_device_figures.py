"""Registers, spills and machine code of GPU cells, held against tools that are not the bot's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from against_compiler import Compared, all_of
from compiler_figures import TOOLS, Compiled, assembled, kernels, machine_code, tool
from places import FIXTURES
from replacing import replace

from bot.compiler.tools.ptxas import Assembler, installed
from bot.core.metrics import METRIC_BY_ID
from bot.core.values.reading import PtxModule
from bot.core.values.snapshot import Cell, CellKey, Dispatch
from bot.readers.formats.artifact import ptx_modules
from bot.readers.formats.cubin import read_assembled
from bot.readers.formats.hsaco import HsacoReader
from bot.readers.registers import OF_CODE_OBJECTS, of_code_objects, of_machine_code
from bot.readers.registers import kernels as functions_of
from bot.system.processes import Cancel

BINARIES = FIXTURES / "binaries"
MATMUL, REDUCTION = "main_dispatch_0_matmul_48x96x40_f32", "main_dispatch_1_reduction_48x96_f32"
ROWS = (Dispatch("main_dispatch_0", MATMUL), Dispatch("main_dispatch_1", REDUCTION))


@pytest.fixture(autouse=True)
def _tools() -> None:
    for name in ("readelf", "llvm-readelf", "ptxas"):
        try:
            tool(name)
        except FileNotFoundError as error:
            pytest.skip(str(error))


def copied(name: str, folder: Path) -> Path:
    return Path(shutil.copy(BINARIES / name, folder))


def amd_cell() -> Cell:
    """As the bot's own readers see the code object."""
    entries = {one.name: one for one in HsacoReader().read((BINARIES / "dense.rocm.hsaco").read_bytes()).entry_points}
    fields = [METRIC_BY_ID[name].of_entry for name in OF_CODE_OBJECTS]
    rows = tuple(replace(row, **{field: getattr(entries[row.name], field) for field in fields}) for row in ROWS)
    metrics = {name: value for name, (value, _) in of_code_objects("rocm", rows, "").items()}
    return Cell(CellKey("dense", "rocm"), "ok", metrics, rows)


def nvidia_cell() -> Cell:
    """As the bot's own assembler and readers see the module in the artifact."""
    made = Assembler(Cancel(), 60, installed()).assembled(ptx_modules((BINARIES / "dense.cuda.vmfb").read_bytes()))
    assert not isinstance(made, str), made
    modules = [read_assembled(one) for one in made]
    known = functions_of(modules)
    rows = tuple(
        replace(row, registers=known[row.name].registers, sass_bytes=known[row.name].sass_bytes) for row in ROWS
    )
    metrics = {name: value for name, (value, _) in of_machine_code("cuda", modules, "").items()}
    return Cell(CellKey("dense", "cuda"), "ok", metrics, rows)


def compared(cell: Cell, folder: Path, missing: set[str]) -> list[Compared]:
    found = list(all_of(cell, Compiled(folder), missing | {"spirv-val"}))
    told = [one for one in found if isinstance(one, Compared)]
    assert told == found
    return told


def assert_held(cell: Cell, folder: Path, missing: set[str], count: int) -> None:
    """All is equal; a metric that is another, or rows of which nothing is known, are told."""
    found = compared(cell, folder, missing)
    assert len(found) == count and all(one.equal for one in found)
    for name in cell.metrics:
        other = replace(cell, metrics={**cell.metrics, name: 12_345})
        (wrong,) = [one for one in compared(other, folder, missing) if not one.equal]
        assert (wrong.what, wrong.bot) == (f"`{name}`", "12,345")
    known = {one.what for one in found if one.bot and " of all " not in one.what}
    unknown = replace(cell, metrics={}, dispatches=ROWS)
    assert {one.what for one in compared(unknown, folder, missing) if not one.equal} == known


def test_registers_of_amd_are_those_of_llvm_readelf(tmp_path: Path) -> None:
    copied("dense.rocm.hsaco", tmp_path)
    assert_held(amd_cell(), tmp_path, {"readelf"}, len(OF_CODE_OBJECTS) + len(ROWS))


def test_figures_of_nvidia_are_those_of_ptxas_and_of_the_machine_code_that_it_makes(tmp_path: Path) -> None:
    copied("dense.cuda.ptx", tmp_path)
    modules_and_names = 2
    assert_held(nvidia_cell(), tmp_path, set(), modules_and_names + 3 + 2 * len(ROWS))


def test_without_the_tools_nothing_is_compared(tmp_path: Path) -> None:
    copied("dense.cuda.ptx", tmp_path)
    copied("dense.rocm.hsaco", tmp_path)
    assert compared(nvidia_cell(), tmp_path, set(TOOLS)) == []
    assert {one.who for one in compared(amd_cell(), tmp_path, {"ptxas", "readelf"})} == {"llvm-readelf"}


def test_the_metadata_of_kernels_is_read() -> None:
    first, second = kernels(BINARIES / "dense.rocm.hsaco").values()
    assert (first[".name"], first[".vgpr_count"], first[".sgpr_count"]) == (MATMUL, 28, 22)
    assert (second[".name"], second[".vgpr_count"], second[".agpr_count"]) == (REDUCTION, 73, 0)
    assert kernels(BINARIES / "dense.llvm-cpu-x86_64.so") == {}


def test_a_code_object_without_kernels_is_no_agreement(tmp_path: Path) -> None:
    copied("dense.llvm-cpu-x86_64.so", tmp_path).rename(tmp_path / "x.hsaco")
    assert {one.other for one in compared(amd_cell(), tmp_path, {"readelf"})} == {"n/a", "n/a n/a n/a n/a n/a"}


def test_what_ptxas_says_is_read(tmp_path: Path) -> None:
    module = copied("dense.cuda.ptx", tmp_path)
    made, code = assembled(module), machine_code(module.with_suffix(".cubin"))
    assert made.registers.keys() == code.keys() == {MATMUL, REDUCTION}
    assert min(*made.registers.values(), *code.values()) > 0 == made.spill_bytes and not made.complaint


def test_spills_are_those_that_the_bot_reads(tmp_path: Path) -> None:
    """The module with too few registers for its kernels."""
    module = copied("dense.cuda.ptx", tmp_path)
    module.write_text(module.read_text().rstrip("\0").replace("\n{\n", "\n.maxnreg 16\n{\n"))
    made = Assembler(Cancel(), 60, installed()).assembled([PtxModule("sm_80", module.read_bytes())])
    assert not isinstance(made, str), made
    spilled, _ = of_machine_code("cuda", [read_assembled(one) for one in made], "")["spill_bytes"]
    assert assembled(module).spill_bytes == spilled and spilled


@pytest.mark.parametrize(
    ("text", "said"), [(".version 8.0\n.target sm_80\nnever;\n", "error"), ("", "names no target")]
)
def test_a_module_that_is_refused_has_no_figures_and_is_told(tmp_path: Path, text: str, said: str) -> None:
    copied("dense.cuda.ptx", tmp_path).write_text(text)
    (told,) = compared(nvidia_cell(), tmp_path, set())
    assert not told.equal and said in told.other
