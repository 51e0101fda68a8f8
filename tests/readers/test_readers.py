"""What holds of every reader: real binaries beside their goldens, a reader for each, and damage is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from elf_files import tiny_object
from hypothesis import given
from hypothesis import strategies as st
from reader_checks import BINARIES, Read, check_flips, check_golden, check_truncations, fixture, outcome
from test_executable import PAYLOADS, containers

from bot.core.reading import Reading
from bot.errors import MalformedBinary
from bot.readers import cubin, elf, executable, hsaco, msl, ptx, spirv, vm_module
from bot.readers.artifact import EMBEDDED, READERS, is_executable, read_artifact, read_executable

FORMATS = {
    "dense.llvm-cpu-x86_64.o": "elf",
    "dense.llvm-cpu-x86_64.so": "elf",
    "dense.rocm.hsaco": "hsaco",
    "dense.cuda.ptx": "ptx",
    "dense.vulkan-spirv.0.spv": "spirv",
    "dense.metal-spirv.0.metal": "msl",
    "dense.vmvx.module": "vm-bytecode",
}
GOLDENS: dict[Callable[[bytes], Any], tuple[str, ...]] = {
    elf.read: tuple(f"dense.llvm-cpu-{name}" for name in ("x86_64.so", "aarch64.so", "riscv64.so", "aarch64.o")),
    hsaco.read: ("dense.rocm.hsaco",),
    cubin.read: ("dense.cuda.cubin",),
    ptx.read: ("dense.cuda.ptx", "pointwise.cuda.ptx"),
    spirv.read: ("dense.vulkan-spirv.0.spv", "dense.vulkan-spirv.1.spv"),
    msl.read: ("dense.metal-spirv.0.metal", "dense.metal-spirv.1.metal"),
    vm_module.read: ("dense.vmvx.module",),
    read_artifact: tuple(sorted(path.name for path in BINARIES.glob("*.vmfb"))),
}


@pytest.mark.parametrize(("read", "name"), [(read, name) for read, names in GOLDENS.items() for name in names])
def test_golden(read: Callable[[bytes], Any], name: str) -> None:
    check_golden(name, read(fixture(name)))


@pytest.mark.parametrize(("name", "expected"), FORMATS.items())
def test_every_format_finds_its_reader_and_no_other_but_elf_for_code_objects(name: str, expected: str) -> None:
    assert read_executable(fixture(name)).format == expected
    accepting = [reader for reader in READERS if reader.accepts(fixture(name))]
    assert len(accepting) == (2 if name.endswith(".hsaco") else 1)


def test_code_objects_go_before_other_elf_files() -> None:
    assert READERS.index(hsaco) < READERS.index(elf)
    assert READERS[: len(EMBEDDED)] == EMBEDDED


class Damaged(NamedTuple):
    """What is damaged, how many of its cuts are refused at least, and how many of its rounds of flips."""

    read: Callable[[bytes], Reading]
    data: bytes
    cuts: float
    flips: int
    rounds: int = 1500


CONTAINER = {target: next(containers(target)) for target in PAYLOADS}
METAL, SPIRV, PTX = (
    fixture("dense.metal-spirv.0.metal"),
    fixture("dense.vulkan-spirv.1.spv"),
    fixture("pointwise.cuda.ptx"),
)
LIBRARY, OBJECT, VM = fixture("dense.llvm-cpu-aarch64.so"), fixture("dense.rocm.hsaco"), fixture("dense.vmvx.module")
DAMAGED = {
    "library": Damaged(elf.read, LIBRARY, len(LIBRARY), 21),
    "object of 64 bits": Damaged(elf.read, tiny_object(64, "<"), 0, 0),
    "object of 32 bits": Damaged(elf.read, tiny_object(32, ">"), 0, 0),
    "code object": Damaged(hsaco.read, OBJECT, len(OBJECT), 21),
    "VM module": Damaged(vm_module.read, VM, 4 + int.from_bytes(VM[:4], "little"), 21),
    "SPIR-V": Damaged(spirv.read, SPIRV, len(SPIRV) * 0.7, 21),
    "PTX": Damaged(ptx.read, PTX, len(PTX) * 0.8, 0),
    "Metal": Damaged(msl.read, METAL, len(METAL) - METAL.index(b"kernel void ") - 99, 0),
    **{target: Damaged(executable.read, data, 0, 11, 500) for target, data in CONTAINER.items()},
    "metal-spirv": Damaged(executable.read, CONTAINER["metal-spirv"], len(CONTAINER["metal-spirv"]), 11, 500),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_damage_is_refused_or_read_and_nothing_else(what: str) -> None:
    damaged = DAMAGED[what]
    assert not damaged.cuts or check_truncations(damaged.read, damaged.data) >= damaged.cuts
    assert check_flips(damaged.read, damaged.data, damaged.rounds) >= damaged.flips


@pytest.mark.parametrize("data", [b"", b"hello", b"CDA1", bytes(100), b"\xff" * 100], ids=len)
def test_unknown_bytes_are_refused_with_their_beginning(data: bytes) -> None:
    """Constants of zeros are common; they are no container of an identifier of zeros."""
    assert not is_executable(data)
    with pytest.raises(MalformedBinary, match=f"{len(data)} bytes of an unknown format"):
        read_executable(data)
    for reader in READERS:
        assert data or not reader.accepts(data)
        with pytest.raises(MalformedBinary):
            reader.read(data)


@pytest.mark.parametrize("name", ["dense.cuda.ptx", "dense.metal-spirv.0.metal", "dense.vulkan-spirv.0.spv"])
def test_constants_that_look_like_modules_are_no_executables(name: str) -> None:
    assert not is_executable(fixture(name))


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    sized = (len(data) + 8).to_bytes(4, "little") + b"\x08\0\0\0IREE" + data
    reads: list[Read] = [*(reader.read for reader in READERS), read_executable, read_artifact]
    for read in reads:
        outcome(read, data)
        outcome(read, sized)
