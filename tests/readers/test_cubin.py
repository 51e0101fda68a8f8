"""Cubins and what ptxas prints of them: real ones beside independent readings, and damaged ones."""

from __future__ import annotations

import re
import subprocess

import needs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reader_checks import BINARIES, check_flips, fixture, outcome

from bot.core.reading import Assembled
from bot.errors import MalformedBinary
from bot.readers import cubin
from bot.readers.artifact import ptx_modules
from bot.readers.assemble import NO_ENTRY, of_machine_code
from bot.readers.cubin import MachineCode, read_assembled
from bot.readers.ptx import device_of

NAME = "dense.cuda.cubin"
SAID = (BINARIES / "dense.cuda.ptxas.txt").read_text()
READ = cubin.read
REAL = Assembled(fixture(NAME), SAID)
SPILLED = """ptxas info    : Compiling entry function 'k' for 'sm_80'
ptxas info    : Function properties for k
    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 256 bytes smem, 384 bytes cmem[0]
ptxas info    : Compile time = 1.894 ms
ptxas info    : Function properties for helper
    0 bytes stack frame, 2 bytes spill stores, 3 bytes spill loads
"""


def test_machine_code_and_registers_are_those_of_readelf() -> None:
    """Up to sm_89 the count of registers stands in the section's `sh_info`, too."""
    command = [needs.program("readelf"), "-SW", str(BINARIES / NAME)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = re.findall(r"\] \.text\.(\S+) +PROGBITS +\S+ \S+ (\S+) \d+ +AXo? +\d+ +(\d+)", said)
    module = read_assembled(REAL)
    assert {code.name: (code.sass_bytes, code.registers) for code in module.functions} == {
        name: (int(size, 16), int(info) >> 24) for name, size, info in rows
    }
    assert module.sass_bytes == sum(int(size, 16) for _, size, _ in rows) > 1000


def test_the_first_kernel_of_a_section_has_it_all() -> None:
    """Helpers of the assembler's own stand behind the kernel, in its section."""
    elf_names = {entry.name for entry in READ(fixture(NAME)).entry_points}
    assert elf_names == {"main_dispatch_0_matmul_48x96x40_f32", "main_dispatch_1_reduction_48x96_f32"}


def test_registers_and_spills_of_the_print() -> None:
    said = SPILLED.replace("'k'", "'main'") + SAID
    found = {code.name: code for code in read_assembled(Assembled(fixture(NAME), said)).functions}
    assert found["k"] == MachineCode("k", 255, 16, None)
    assert found["helper"] == MachineCode("helper", None, 5, None)


def test_a_kernel_that_the_print_does_not_tell_of_is_refused() -> None:
    with pytest.raises(MalformedBinary, match="ptxas says nothing of 'main_dispatch_"):
        read_assembled(Assembled(fixture(NAME), SAID.partition("Used")[0]))


@pytest.mark.parametrize("digits", [16, 400])
def test_a_number_beyond_all_measure_is_refused(digits: int) -> None:
    said = SPILLED.replace("12 bytes", f"{'9' * digits} bytes")
    with pytest.raises(MalformedBinary, match="loads"):
        read_assembled(Assembled(fixture(NAME), said + SAID))


def test_any_other_file_is_refused() -> None:
    for data in (b"", b"\x7fELF", fixture("dense.rocm.hsaco"), fixture("dense.llvm-cpu-x86_64.so")):
        with pytest.raises(MalformedBinary):
            READ(data)


def test_damaged_cubins() -> None:
    data = fixture(NAME)
    assert sum(outcome(READ, data[:length]) is None for length in range(0, len(data), 7)) > len(data) // 8
    assert check_flips(READ, data, 300) > 0


@given(st.text(max_size=200), st.sampled_from(SPILLED.splitlines()))
def test_any_print_is_read_or_refused(noise: str, line: str) -> None:
    try:
        read_assembled(Assembled(fixture(NAME), f"{noise}\n{line}\n{noise}{SAID}"))
    except MalformedBinary as error:
        assert error.line.isprintable()


def test_the_modules_of_an_artifact() -> None:
    (module,) = ptx_modules(fixture("dense.cuda.vmfb"))
    assert module.device == "sm_80"
    assert module.text == fixture("dense.cuda.ptx").rstrip(b"\0")
    assert ptx_modules(fixture("dense.vulkan-spirv.vmfb")) == ptx_modules(fixture("dense.rocm.vmfb")) == ()


@pytest.mark.parametrize("line", [b".target sm_80", b".target\tsm_90a, texmode_independent", b"  .target sm_120 "])
def test_the_device_of_a_module(line: bytes) -> None:
    assert device_of(b".version 8.0\n" + line + b"\n.address_size 64") in ("sm_80", "sm_90a", "sm_120")


@pytest.mark.parametrize("line", [b"", b".target", b".target compute_80", b".target sm_80x9", b".target sm_80 --help"])
def test_no_device_is_made_up(line: bytes) -> None:
    """It goes to the command line of the assembler."""
    with pytest.raises(MalformedBinary, match=r"no \.target"):
        device_of(b".version 8.0\n" + line + b"\n.address_size 64")


def test_the_metrics_of_machine_code() -> None:
    module = read_assembled(Assembled(fixture(NAME), SPILLED + SAID))
    assert of_machine_code([module], "") == {
        "registers_max": (255, ""),
        "spill_bytes": (21, ""),
        "sass_bytes": (module.sass_bytes, ""),
    }
    assert of_machine_code([], "")["registers_max"] == (None, NO_ENTRY)
    assert of_machine_code(None, "why") == dict.fromkeys(of_machine_code([], ""), (None, "why"))
